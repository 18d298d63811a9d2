//! Tables: aligned columns, no lines, no colour.

use std::io::IsTerminal;

use comfy_table::{ContentArrangement, Table, presets::NOTHING};

use super::human::visible;

/// Rows under a header. On a terminal, cells wrap to its width; elsewhere a row is one line, and nothing
/// is cut either way.
pub(super) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    layout(header, rows, columns_of_output())
}

fn layout(header: &[&str], rows: Vec<Vec<String>>, width: Option<u16>) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_header(header.iter().copied());
    match width {
        Some(width) => table.set_width(width).set_content_arrangement(ContentArrangement::Dynamic),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    for row in rows {
        table.add_row(row.iter().map(|cell| visible(cell)));
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table.trim_fmt() + "\n"
}

fn columns_of_output() -> Option<u16> {
    let stdout = std::io::stdout();
    if !stdout.is_terminal() {
        return None;
    }
    terminal_size::terminal_size_of(stdout).map(|(width, _)| width.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Vec<String>> {
        vec![
            vec![
                "a1".into(),
                "lazygit".into(),
                "/home/someone/src/project with a long name".into(),
            ],
            vec!["b22".into(), "sh\nell".into(), "/w".into()],
        ]
    }

    #[test]
    fn a_pipe_gets_one_whole_line_a_row() {
        let text = layout(&["ID", "TOOL", "WORKSPACE"], rows(), None);
        assert_eq!(
            text,
            "ID   TOOL     WORKSPACE\n\
             a1   lazygit  /home/someone/src/project with a long name\n\
             b22  sh\\nell  /w\n"
        );
    }

    #[test]
    fn a_terminal_gets_no_line_wider_than_itself() {
        let text = layout(&["ID", "TOOL", "WORKSPACE"], rows(), Some(40));
        assert!(text.lines().all(|line| line.chars().count() <= 40), "{text}");
        assert!(text.replace(char::is_whitespace, "").contains("project"), "{text}");
    }
}
