//! What a benchmark found: series of measurements, and ratios between them.

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

/// How one subject compares with another, by their medians.
#[derive(Debug, Clone, Copy)]
pub struct Comparison {
    /// What of them.
    pub metric: Metric,
    /// Whose.
    pub of: &'static str,
    /// Relative to whose.
    pub to: &'static str,
    /// By what.
    pub measure: Measure,
    /// What it is to be at most.
    pub at_most: f64,
}

/// What is made of two medians.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// The quotient.
    Ratio,
    /// The difference: what the one costs more, in the metric's unit.
    Difference,
}

/// Everything that one benchmark found.
#[derive(Debug)]
pub struct Report {
    title: &'static str,
    series: Vec<Series>,
    comparisons: Vec<Comparison>,
}

#[derive(Debug)]
struct Series {
    subject: Subject,
    metric: Metric,
    values: Vec<f64>,
}

impl Report {
    /// An empty one.
    pub fn new(title: &'static str, comparisons: &[Comparison]) -> Self {
        Self { title, series: Vec::new(), comparisons: comparisons.to_vec() }
    }

    /// Adds a measurement.
    pub fn add(&mut self, subject: Subject, metric: Metric, value: f64) {
        let known = |series: &&mut Series| series.subject == subject && series.metric == metric;
        match self.series.iter_mut().find(known) {
            Some(series) => series.values.push(value),
            None => self.series.push(Series { subject, metric, values: vec![value] }),
        }
    }

    /// Everything, as JSON.
    pub fn to_json(&self) -> Value {
        let series = self.series.iter().map(Series::to_json).collect::<Vec<_>>();
        let found = self.compared().map(|(condition, comparison, found)| {
            let Comparison { metric, of, to, measure, at_most } = comparison;
            json!({ "condition": condition, "metric": metric.name, "of": of, "to": to,
                measure.as_str(): found, "at_most": at_most })
        });
        let found = found.collect::<Vec<_>>();
        json!({ "title": self.title, "series": series, "comparisons": found })
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

    /// Every comparison under every condition that both were measured under.
    fn compared(&self) -> impl Iterator<Item = (&'static str, &Comparison, f64)> {
        let conditions = first_of_each(self.subjects().iter().map(|subject| subject.condition));
        conditions.into_iter().flat_map(move |condition| {
            self.comparisons.iter().filter_map(move |comparison| {
                let median = |name| {
                    let series = self.find(Subject { name, condition }, comparison.metric)?;
                    Some(series.percentile(50))
                };
                let (of, to) = (median(comparison.of)?, median(comparison.to)?);
                let found = match comparison.measure {
                    Measure::Ratio => of / to,
                    Measure::Difference => of - to,
                };
                Some((condition, comparison, found))
            })
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

impl Measure {
    fn as_str(self) -> &'static str {
        match self {
            Self::Ratio => "ratio",
            Self::Difference => "difference",
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
        write!(f, "{:.2} / {:.2}", self.percentile(50), self.percentile(99))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: p50 / p99\n\n{}\n", self.title, self.table())?;
        for (condition, comparison, found) in self.compared() {
            let Comparison { metric: Metric { name, unit }, of, to, measure, at_most } = comparison;
            let is = match measure {
                Measure::Ratio => format!("{found:.2} × {to} (to be ≤ {at_most})"),
                Measure::Difference => {
                    format!("{to} and {found:.2} {unit} more (to be ≤ {at_most} {unit})")
                }
            };
            writeln!(f, "{name}, {condition}: {of} is {is}")?;
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
