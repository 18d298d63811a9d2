//! The table of all attempts, and what is wrong with it.

use std::{
    fmt::Write as _,
    io::{self, Write as _},
};

use super::{attempt::Attempt, judge::Field};

/// One row for each attempt, one column for each side.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<&'static str>,
    columns: Vec<(String, Vec<Field>)>,
}

impl Table {
    /// A table without columns.
    pub fn new(attempts: &[Attempt]) -> Self {
        Self { rows: attempts.iter().map(|attempt| attempt.name).collect(), columns: Vec::new() }
    }

    /// Adds a side.
    pub fn add(&mut self, name: &str, fields: Vec<Field>) {
        assert_eq!(fields.len(), self.rows.len());
        self.columns.push((name.to_owned(), fields));
    }

    /// How many attempts prove something: they work unconfined.
    pub fn working(&self) -> usize {
        self.columns[0].1.iter().filter(|field| **field == Field::Works).count()
    }

    /// What must not be, one line each.
    pub fn wrong(&self) -> Vec<String> {
        let wrong = |(side, fields): &(String, Vec<Field>)| -> Vec<String> {
            let rows = self.rows.iter().zip(fields);
            rows.filter_map(|(row, field)| match field {
                Field::Wrong(why) => Some(format!("{row}, {side}: {why}")),
                _ => None,
            })
            .collect()
        };
        self.columns.iter().flat_map(wrong).collect()
    }

    /// Prints it past the capture of tests that pass: it is what the suite is for.
    pub fn print(&self) {
        let text = self.to_text();
        io::stderr().write_all(text.as_bytes()).unwrap();
    }

    fn to_text(&self) -> String {
        let mut text = format!("\n{:<66}", "attempt");
        for (side, _) in &self.columns {
            let _ = write!(text, " {side:<28}");
        }
        for (number, row) in self.rows.iter().enumerate() {
            let _ = write!(text, "\n{row:<66}");
            for (_, fields) in &self.columns {
                let _ = write!(text, " {:<28}", fields[number].to_string());
            }
        }
        text + &self.sums() + "\n"
    }

    fn sums(&self) -> String {
        let mut text = format!("\n{} attempts", self.rows.len());
        for (side, fields) in &self.columns {
            let count = |wanted: fn(&Field) -> bool| fields.iter().filter(|f| wanted(f)).count();
            let _ = write!(
                text,
                "\n{side}: {} work, {} excused, {} refused, {} without a session, {} open and stated, {} wrong",
                count(|field| *field == Field::Works),
                count(|field| matches!(field, Field::Excused(_))),
                count(|field| matches!(field, Field::Refused(_))),
                count(|field| matches!(field, Field::NotOpened(_))),
                count(|field| matches!(field, Field::Declared(_))),
                count(|field| matches!(field, Field::Wrong(_))),
            );
        }
        text
    }
}

impl std::fmt::Display for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Works => f.write_str("works"),
            Self::Excused(why) => write!(f, "not here ({why})"),
            Self::Refused(why) => write!(f, "refused ({why})"),
            Self::NotOpened(error) => write!(f, "no session ({error})"),
            Self::Declared(gap) => write!(f, "open ({gap})"),
            Self::Wrong(why) => write!(f, "WRONG: {why}"),
        }
    }
}
