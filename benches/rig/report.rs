//! What a benchmark found: series of measurements, and what they are to be.

use std::fmt;

use comfy_table::{CellAlignment, Table, presets};
use serde_json::{Value, json};

/// What is measured, and in what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
}

/// Who was measured, and under which condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject {
    /// The broker or a peer.
    pub name: &'static str,
    /// `free`, `pinned`, or another that says what was varied.
    pub condition: &'static str,
}

/// What a median is to be, where it was measured.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Of what.
    pub metric: Metric,
    /// Whose.
    pub of: &'static str,
    /// What is made of it.
    pub measure: Measure,
    /// What that is to be.
    pub bound: Bound,
    /// The only condition it is about; `None` where it is about each.
    pub condition: Option<&'static str>,
}

/// What is made of a median.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The quotient by another subject's.
    Ratio(&'static str),
    /// The difference to another subject's: what the one costs more, in the metric's unit.
    Difference(&'static str),
    /// Itself.
    Value,
    /// The quotient of the 99th percentile by it.
    Spread,
}

/// What something is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// No more.
    AtMost(f64),
    /// No less.
    AtLeast(f64),
}

/// Everything that one benchmark found.
#[derive(Debug)]
pub struct Report {
    title: &'static str,
    series: Vec<Series>,
    targets: Vec<Target>,
}

#[derive(Debug)]
struct Series {
    subject: Subject,
    metric: Metric,
    values: Vec<f64>,
}

impl Report {
    /// An empty one.
    pub fn new(title: &'static str, targets: &[Target]) -> Self {
        Self { title, series: Vec::new(), targets: targets.to_vec() }
    }

    /// Adds a measurement.
    pub fn add(&mut self, subject: Subject, metric: Metric, value: f64) {
        let known = |series: &&mut Series| series.subject == subject && series.metric == metric;
        match self.series.iter_mut().find(known) {
            Some(series) => series.values.push(value),
            None => self.series.push(Series { subject, metric, values: vec![value] }),
        }
    }

    /// Orders the subjects by their names, which otherwise stand as they were first measured.
    pub fn order(&mut self, names: &[&str]) {
        self.series.sort_by_key(|series| {
            let name = names.iter().position(|name| *name == series.subject.name);
            (series.subject.condition, name)
        });
    }

    /// Everything, as JSON.
    pub fn to_json(&self) -> Value {
        let series = self.series.iter().map(Series::to_json).collect::<Vec<_>>();
        let judged = self.judged().map(|(condition, target, found)| {
            let Target { metric, of, measure, bound, .. } = target;
            let (measured, to) = measure.named();
            let (bounded, limit) = bound.named();
            json!({ "condition": condition, "metric": metric.name, "unit": metric.unit, "of": of,
                "to": to, "measure": measured, "found": found, bounded: limit,
                "met": bound.holds(found) })
        });
        let judged = judged.collect::<Vec<_>>();
        json!({ "title": self.title, "series": series, "targets": judged })
    }

    fn find(&self, subject: Subject, metric: Metric) -> Option<&Series> {
        self.series.iter().find(|series| series.subject == subject && series.metric == metric)
    }

    fn subjects(&self) -> Vec<Subject> {
        first_of_each(self.series.iter().map(|series| series.subject))
    }

    fn metrics(&self) -> Vec<Metric> {
        first_of_each(self.series.iter().map(|series| series.metric))
    }

    /// Every target under every condition that all it needs was measured under.
    fn judged(&self) -> impl Iterator<Item = (&'static str, &Target, f64)> {
        let conditions = first_of_each(self.subjects().iter().map(|subject| subject.condition));
        conditions.into_iter().flat_map(move |condition| {
            let targets = self.targets.iter();
            let meant = targets.filter(move |t| t.condition.is_none_or(|only| only == condition));
            meant
                .filter_map(move |target| Some((condition, target, self.found(target, condition)?)))
        })
    }

    fn found(&self, target: &Target, condition: &'static str) -> Option<f64> {
        let series = |name| self.find(Subject { name, condition }, target.metric);
        let of = series(target.of)?;
        let median = of.percentile(50);
        Some(match target.measure {
            Measure::Ratio(to) => median / series(to)?.percentile(50),
            Measure::Difference(to) => median - series(to)?.percentile(50),
            Measure::Value => median,
            Measure::Spread => of.percentile(99) / median,
        })
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        let metrics = self.metrics();
        let titles = metrics.iter().map(|metric| format!("{} ({})", metric.name, metric.unit));
        table.set_header(["".to_owned(), "".to_owned()].into_iter().chain(titles));
        for subject in self.subjects() {
            let cells = metrics.iter().map(|metric| {
                self.find(subject, *metric).map_or_else(|| "–".to_owned(), Series::to_string)
            });
            let head = [subject.name.to_owned(), subject.condition.to_owned()];
            table.add_row(head.into_iter().chain(cells));
        }
        for column in table.column_iter_mut().skip(2) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

impl Target {
    /// About each condition.
    pub const fn new(metric: Metric, of: &'static str, measure: Measure, bound: Bound) -> Self {
        Self { metric, of, measure, bound, condition: None }
    }

    /// About this condition only.
    pub const fn only(mut self, condition: &'static str) -> Self {
        self.condition = Some(condition);
        self
    }

    /// A sentence: what was found, what it is to be, and whether it is.
    fn sentence(&self, condition: &str, found: f64) -> String {
        let Self { metric: Metric { name, unit }, of, measure, bound, .. } = self;
        let (found_text, unit) = match measure {
            Measure::Ratio(to) => (format!("{found:.3} × {to}"), ""),
            Measure::Difference(to) => (format!("{to} and {found:.2} {unit} more"), *unit),
            Measure::Value => (format!("{found:.2} {unit}"), *unit),
            Measure::Spread => (format!("{found:.2} × its median at the 99th percentile"), ""),
        };
        let verdict = if bound.holds(found) { "met" } else { "MISSED" };
        let limit = match bound {
            Bound::AtMost(limit) => format!("≤ {limit} {unit}"),
            Bound::AtLeast(limit) => format!("≥ {limit} {unit}"),
        };
        let place = if condition.is_empty() { String::new() } else { format!(", {condition}") };
        format!("{name}{place}: {of} is {found_text} (to be {}): {verdict}", limit.trim_end())
    }
}

impl Measure {
    fn named(self) -> (&'static str, Option<&'static str>) {
        match self {
            Self::Ratio(to) => ("ratio", Some(to)),
            Self::Difference(to) => ("difference", Some(to)),
            Self::Value => ("value", None),
            Self::Spread => ("p99 by p50", None),
        }
    }
}

impl Bound {
    fn named(self) -> (&'static str, f64) {
        match self {
            Self::AtMost(limit) => ("at_most", limit),
            Self::AtLeast(limit) => ("at_least", limit),
        }
    }

    fn holds(self, found: f64) -> bool {
        match self {
            Self::AtMost(limit) => found <= limit,
            Self::AtLeast(limit) => found >= limit,
        }
    }
}

impl Series {
    /// The value that so many of a hundred do not exceed (nearest rank).
    fn percentile(&self, percent: usize) -> f64 {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        sorted[rank - 1]
    }

    fn to_json(&self) -> Value {
        json!({ "subject": self.subject.name, "condition": self.subject.condition,
            "metric": self.metric.name, "unit": self.metric.unit, "measured": self.values.len(),
            "p50": self.percentile(50), "p99": self.percentile(99) })
    }
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (p50, p99) = (self.percentile(50), self.percentile(99));
        let places = if 0.0 < p50 && p50 < 0.1 { 4 } else { 2 };
        write!(f, "{p50:.places$} / {p99:.places$}")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: p50 / p99\n\n{}\n", self.title, self.table())?;
        for (condition, target, found) in self.judged() {
            writeln!(f, "{}", target.sentence(condition, found))?;
        }
        Ok(())
    }
}

fn first_of_each<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}
