//! What a tool calls its window, and the hyperlink that it has opened.

use alacritty_terminal::vte::ansi::Hyperlink;

use super::modes::put;

/// Titles and hyperlink; bounded.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// Empty where none was set.
    title: String,
    /// Titles put by (XTWINOPS 22), the newest last.
    stack: Vec<String>,
    link: Option<Hyperlink>,
}

impl Names {
    /// Bytes of a title that are kept.
    const TITLE: usize = 1 << 10;
    /// As many as xterm puts by.
    const DEPTH: usize = 10;
    /// Longer hyperlinks are not kept: the bound of VTE and iTerm2.
    const LINK: usize = 2083;

    /// Empty where none was set.
    pub(super) fn title(&self) -> &str {
        &self.title
    }

    /// Sets the title; control characters in it would be a terminal's to obey, and are dropped.
    pub(super) fn set_title(&mut self, title: Option<String>) {
        let mut room = Self::TITLE;
        let fits = |c: &char| room.checked_sub(c.len_utf8()).inspect(|left| room = *left).is_some();
        let title = title.unwrap_or_default();
        self.title = title.chars().filter(|c| !c.is_control()).take_while(fits).collect();
    }

    pub(super) fn push_title(&mut self) {
        if self.stack.len() < Self::DEPTH {
            self.stack.push(self.title.clone());
        }
    }

    pub(super) fn pop_title(&mut self) {
        if let Some(title) = self.stack.pop() {
            self.title = title;
        }
    }

    pub(super) fn set_link(&mut self, link: Option<Hyperlink>) {
        let printable = |text: &str| text.chars().all(|c| !c.is_control());
        self.link = link.filter(|Hyperlink { id, uri }| {
            let id = id.as_deref().unwrap_or_default();
            id.len() + uri.len() <= Self::LINK && printable(id) && printable(uri)
        });
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for title in &self.stack {
            put(out, format_args!("\x1b]2;{title}\x1b\\\x1b[22;2t"));
        }
        // The one put by last is still shown.
        if !self.title.is_empty() || !self.stack.is_empty() {
            put(out, format_args!("\x1b]2;{}\x1b\\", self.title));
        }
        if let Some(Hyperlink { id, uri }) = &self.link {
            let id = id.as_ref().map(|id| format!("id={id}")).unwrap_or_default();
            put(out, format_args!("\x1b]8;{id};{uri}\x1b\\"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(names: &Names) -> String {
        let mut out = Vec::new();
        names.write(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn titles_are_put_by_and_come_back() {
        let mut names = Names::default();
        assert_eq!((names.title(), written(&names)), ("", String::new()));
        names.set_title(Some("shell".into()));
        names.push_title();
        names.set_title(Some("vim".into()));
        assert_eq!(written(&names), "\x1b]2;shell\x1b\\\x1b[22;2t\x1b]2;vim\x1b\\");
        names.set_title(None);
        assert_eq!(written(&names), "\x1b]2;shell\x1b\\\x1b[22;2t\x1b]2;\x1b\\");
        names.pop_title();
        names.pop_title();
        assert_eq!((names.title(), written(&names)), ("shell", "\x1b]2;shell\x1b\\".into()));
    }

    #[test]
    fn what_is_kept_is_bounded_and_holds_no_control() {
        let mut names = Names::default();
        names.set_title(Some(format!("a\u{9c}\n{}", "é".repeat(9000))));
        assert_eq!(names.title().len(), 1023, "whole characters");
        for _ in 0..1000 {
            names.push_title();
        }
        names.set_link(Some(Hyperlink { id: None, uri: "x".repeat(3000) }));
        assert!(written(&names).len() < 12_000 && !written(&names).contains("\x1b]8"));
        names.set_link(Some(Hyperlink {
            id: Some("1".into()),
            uri: "https://st2.dev/\u{9c}".into(),
        }));
        assert!(!written(&names).contains("\x1b]8"));
        names.set_link(Some(Hyperlink { id: Some("1".into()), uri: "file:///x".into() }));
        assert!(written(&names).ends_with("\x1b]8;id=1;file:///x\x1b\\"));
    }
}
