use super::*;

/// Inside are the paths that do not begin with `/` or `..`.
struct Plain;

impl Inside for Plain {
    fn holds(&self, path: &OsStr) -> bool {
        !path.as_bytes().starts_with(b"/") && !path.as_bytes().starts_with(b"..")
    }
}

fn arguments(text: &str) -> Arguments {
    #[derive(Deserialize)]
    struct File {
        arguments: Arguments,
    }
    toml::from_str::<File>(&format!("arguments = {text}")).unwrap().arguments
}

fn judged(policy: &str, given: &[&str]) -> Result<String, String> {
    let given: Vec<OsString> = given.iter().map(OsString::from).collect();
    let judged = arguments(policy).judge(&given, &Plain).map_err(|error| error.to_string())?;
    Ok(judged.join(OsStr::new(" ")).into_string().unwrap())
}

const TAIL: &str = r#"{ options = ["-q", "-n NUMBER", "--pid=WORD"], operands = { kind = "path", at_least = 1, at_most = 2 } }"#;

#[test]
fn what_is_declared_passes_with_the_end_of_options_marked() {
    for (policy, given, expected) in [
        ("\"none\"", &[][..], ""),
        ("\"any\"", &["-rf", "--", "/"], "-rf -- /"),
        (TAIL, &["a"], "-- a"),
        (TAIL, &["-q", "-n", "5", "--pid=x1", "a", "b"], "-q -n 5 --pid=x1 -- a b"),
        (TAIL, &["--", "-n"], "-- -n"),
        (TAIL, &["a", "-q"], "-- a -q"),
        (TAIL, &["-"], "-- -"),
        ("{ options = [\"-v\"] }", &["-v"], "-v"),
        ("{}", &[], ""),
        ("{}", &["--"], ""),
    ] {
        assert_eq!(judged(policy, given).as_deref(), Ok(expected), "{policy} {given:?}");
    }
}

#[test]
fn what_is_not_declared_is_refused_by_name_and_rule() {
    for (policy, given, expected) in [
        ("\"none\"", &["x"][..], r#"argument "x": the tool takes none"#),
        ("{}", &["-x"], r#"argument "-x" is not a declared option: none is"#),
        ("{}", &["x"], "1 operands given, 0..=0 declared"),
        (TAIL, &[], "0 operands given, 1..=2 declared"),
        (TAIL, &["a", "b", "c"], "3 operands given, 1..=2 declared"),
        (
            TAIL,
            &["--follow", "a"],
            r#"argument "--follow" is not a declared option: -q, -n NUMBER, --pid=WORD"#,
        ),
        (
            TAIL,
            &["-n5", "a"],
            r#"argument "-n5" is not a declared option: -q, -n NUMBER, --pid=WORD"#,
        ),
        (
            TAIL,
            &["-qx", "a"],
            r#"argument "-qx" is not a declared option: -q, -n NUMBER, --pid=WORD"#,
        ),
        (TAIL, &["-n", "a"], r#"argument "-n" does not follow the declared option "-n NUMBER""#),
        (TAIL, &["-n"], r#"argument "-n" does not follow the declared option "-n NUMBER""#),
        (
            TAIL,
            &["-n", "1234567890", "a"],
            r#"argument "-n" does not follow the declared option "-n NUMBER""#,
        ),
        (
            TAIL,
            &["--pid", "a"],
            r#"argument "--pid" does not follow the declared option "--pid=WORD""#,
        ),
        (
            TAIL,
            &["--pid=", "a"],
            r#"argument "--pid=" does not follow the declared option "--pid=WORD""#,
        ),
        (
            TAIL,
            &["--pid=-x", "a"],
            r#"argument "--pid=-x" does not follow the declared option "--pid=WORD""#,
        ),
        (TAIL, &["a", "../b"], r#"argument "../b" is not a path inside the workspace"#),
        (
            TAIL,
            &["--", "/etc/passwd"],
            r#"argument "/etc/passwd" is not a path inside the workspace"#,
        ),
    ] {
        assert_eq!(judged(policy, given), Err(expected.to_owned()), "{policy} {given:?}");
    }
}

#[test]
fn a_pattern_is_an_option_and_at_most_a_kind_of_value() {
    for good in ["-n", "--lines", "-n NUMBER", "--lines=NUMBER", "--color=WORD"] {
        assert_eq!(OptionPattern::try_from(good.to_owned()).unwrap().to_string(), good);
    }
    for bad in [
        "",
        "-",
        "--",
        "n",
        "---n",
        "-n=",
        "-n PATH",
        "-n  NUMBER",
        "-n=NUMBER x",
        "-\u{e4}",
        "-a/b",
    ] {
        assert!(OptionPattern::try_from(bad.to_owned()).is_err(), "{bad:?}");
    }
}

#[test]
fn a_policy_says_what_it_admits() {
    assert_eq!(
        arguments(TAIL).to_string(),
        "[-q] [-n NUMBER] [--pid=WORD] 1..=2 × path inside the workspace"
    );
    assert_eq!(arguments("\"none\"").to_string(), "none");
    assert_eq!(arguments("\"any\"").to_string(), "any");
}

proptest::proptest! {
    /// Whatever is given: nothing after the mark is an option, nothing before it is undeclared,
    /// nothing is lost.
    #[test]
    fn an_operand_is_never_read_as_an_option(given in proptest::collection::vec("(-?-?[a-zq]{0,2}|-n|[0-9]{1,3}|--pid=[a-z-]{0,3}|/x|\\.\\./x)", 0..6)) {
        let given: Vec<OsString> = given.into_iter().map(OsString::from).collect();
        if let Ok(appended) = arguments(TAIL).judge(&given, &Plain) {
            let mark = appended.iter().position(|argument| argument == "--").unwrap();
            let mut options = appended[..mark].iter();
            while let Some(option) = options.next() {
                match option.to_str().unwrap() {
                    "-q" => {}
                    "-n" => {
                        let value = options.next().unwrap().to_str().unwrap();
                        proptest::prop_assert!(value.parse::<u32>().is_ok());
                    }
                    other => proptest::prop_assert!(other.starts_with("--pid=") && other.len() > 6),
                }
            }
            proptest::prop_assert!((1..=2).contains(&appended[mark + 1..].len()));
            proptest::prop_assert!(appended[mark + 1..].iter().all(|path| Plain.holds(path)));
            let marked_by_request = given.contains(&OsString::from("--"));
            proptest::prop_assert!(appended.len() == given.len() + usize::from(!marked_by_request) || marked_by_request);
        }
    }
}
