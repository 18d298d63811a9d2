use super::{keys::KEY_END, *};
use crate::agents::text::{REDACTED, redact};

#[test]
fn every_expression_compiles() {
    for expression in [&BEGINNING, &KEY_END, &SHAPE_BEGUN, &ADDRESS_BEGUN] {
        assert!(!expression.is_match(""));
    }
}

#[test]
fn a_text_is_cut_before_what_leads_to_a_secret_or_inside_it() {
    let text = "some words, password: \"a long one\" and more";
    let secrets = Secrets::of(text, None);
    assert_eq!(secrets.ranges(), vec![23..33]);
    assert_eq!(secrets.cut(text, 5), (5, None));
    assert_eq!(secrets.cut(text, 16), (12, None));
    assert_eq!(secrets.cut(text, 25), (25, Some(Until::Quote { quote: b'"', escaped: false })));
    assert_eq!(secrets.cut(text, 33), (33, None));
}

#[test]
fn a_secret_goes_on_in_the_next_text() {
    let inside = Secrets::of("token=abc", None).inside_at_end();
    assert_eq!(inside, Some(Until::Space));
    assert_eq!(Secrets::of("def ghi", inside).ranges(), vec![0..3]);
}

#[test]
fn names_in_names_take_no_more_than_their_own_time() {
    let text = "token=".repeat(200_000);
    assert_eq!(Secrets::of(&text, None).ranges(), vec![6..text.len()]);
}

#[test]
fn a_long_quoted_value_is_cut_at_none_of_its_marks() {
    for (quote, part) in [("'", "ab''"), ("\"", "ab\\\""), ("'", "ab'\\''"), ("'", "'")] {
        for shift in 0..5 {
            let (before, value) = ("x".repeat(shift), part.repeat(2 * (10_000 / part.len())));
            let line = format!("{before} password: {quote}{value}{quote} x\n");
            let expected = format!("{before} password: {quote}{REDACTED}{quote} x\n");
            assert_eq!(redact(&line), expected, "{part} after {shift}");
        }
    }
}
