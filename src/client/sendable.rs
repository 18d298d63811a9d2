//! What can be sent: the bus disconnects whoever sends it a string with NUL, and every session of that connection with it.

use zbus::Variant;

use super::{ClientError, Dict, Refusal};

/// A text, where it can be a string on the bus; `what` it is, for whoever reads the error.
///
/// # Errors
/// [`Refusal::InvalidArgs`], where it holds NUL; nothing is sent then.
pub(super) fn text<'a>(what: &str, text: &'a str) -> Result<&'a str, ClientError> {
    if !text.contains('\0') {
        return Ok(text);
    }
    let message = format!("{what} holds NUL, which no string on the bus can");
    Err(ClientError::Refused { refusal: Refusal::InvalidArgs, message, step: None })
}

/// Options, where each of their texts can be a string on the bus.
///
/// # Errors
/// As [`text`], naming the option.
pub(super) fn dict(dict: Dict) -> Result<Dict, ClientError> {
    for (name, value) in dict.iter() {
        text("an option's name", name)?;
        variant(name, value)?;
    }
    Ok(dict)
}

fn variant(what: &str, value: &Variant<'_>) -> Result<(), ClientError> {
    match value {
        Variant::Str(value) => text(what, value).map(drop),
        Variant::Array(values) => values.iter().try_for_each(|value| variant(what, value)),
        Variant::Dict(values) => values.iter().try_for_each(|(name, value)| {
            variant(what, name)?;
            variant(what, value)
        }),
        Variant::Variant(value) => variant(what, value),
        // Options have no structures, and nothing else has texts.
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::client::OpenOptions;

    #[test]
    fn no_text_with_nul_is_sent_wherever_it_is() {
        let map = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let some = |text: &str| Some(text.to_owned());
        let none = OpenOptions::default;
        for (what, options) in [
            ("argv", OpenOptions { argv: vec!["sh".into(), "a\0b".into()], ..none() }),
            ("prompt", OpenOptions { prompt: some("\0"), ..none() }),
            ("workspace", OpenOptions { workspace: some("/\0"), ..none() }),
            ("cwd", OpenOptions { cwd: some("/\0"), ..none() }),
            ("env", OpenOptions { env: map("A\0", "b"), ..none() }),
            ("env", OpenOptions { env: map("A", "b\0"), ..none() }),
            ("labels", OpenOptions { labels: map("task\0", "t"), ..none() }),
            ("labels", OpenOptions { labels: map("task", "t\0"), ..none() }),
            ("term", OpenOptions { term: some("xterm\0"), ..none() }),
            ("bind_unit", OpenOptions { bind_unit: some("a.service\0"), ..none() }),
        ] {
            let error = dict(options.to_dict()).unwrap_err();
            assert_eq!(error.refusal(), Some(Refusal::InvalidArgs));
            let expected = format!("{what} holds NUL, which no string on the bus can");
            assert_eq!(error.to_string(), expected);
        }
        let plain = OpenOptions { argv: vec!["sh".into()], env: map("A", "b"), ..none() };
        assert_eq!(dict(plain.to_dict()).unwrap(), plain.to_dict());
        assert!(dict(Dict::new().with("label.a\0", "b")).is_err());
        assert_eq!(text("tool", "shell").unwrap(), "shell");
        assert!(text("tool", "she\0l").is_err());
    }
}
