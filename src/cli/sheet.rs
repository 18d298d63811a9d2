//! Facts for a person, in sections: a name on the left, one or more lines on the right.

use super::human::visible;

/// Sections of facts; what is empty is left out.
#[derive(Debug, Default)]
pub(super) struct Sheet(Vec<Section>);

/// Facts under a title.
#[derive(Debug)]
pub(super) struct Section {
    title: String,
    rows: Vec<(String, Vec<String>)>,
}

impl Sheet {
    /// Adds a section.
    pub(super) fn with(mut self, section: Section) -> Self {
        self.0.push(section);
        self
    }

    /// The text, all values in one column; nothing in it moves a cursor.
    pub(super) fn text(&self) -> String {
        let rows = || self.0.iter().flat_map(|section| &section.rows);
        let widest = rows().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for section in self.0.iter().filter(|section| !section.rows.is_empty()) {
            if !text.is_empty() {
                text.push('\n');
            }
            text += &visible(&section.title);
            text.push('\n');
            for (name, lines) in &section.rows {
                for (number, line) in lines.iter().enumerate() {
                    let name = if number == 0 { visible(name) } else { String::new() };
                    text += format!("  {name:widest$}  {}", visible(line)).trim_end();
                    text.push('\n');
                }
            }
        }
        text
    }
}

impl Section {
    /// An empty one.
    pub(super) fn new(title: impl Into<String>) -> Self {
        Self { title: title.into(), rows: Vec::new() }
    }

    /// Adds a fact, unless it is empty.
    pub(super) fn row(self, name: &str, line: impl Into<String>) -> Self {
        let line = line.into();
        self.lines(name, if line.is_empty() { Vec::new() } else { vec![line] })
    }

    /// Adds a fact of several lines, unless there is none.
    pub(super) fn lines(mut self, name: &str, lines: Vec<String>) -> Self {
        if !lines.is_empty() {
            self.rows.push((name.to_owned(), lines));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_in_one_column_and_nothing_empty_is_shown() {
        let sheet = Sheet::default()
            .with(
                Section::new("one")
                    .row("a", "1\u{1b}")
                    .row("none", "")
                    .lines("longer", vec!["2".into(), "3".into()]),
            )
            .with(Section::new("empty").lines("x", Vec::new()))
            .with(Section::new("two").row("b", "4"));
        assert_eq!(
            sheet.text(),
            "one\n  a       1\\u{1b}\n  longer  2\n          3\n\ntwo\n  b       4\n"
        );
    }
}
