//! Words, variables and links of the documentation.

use std::{collections::BTreeSet, fs};

use st2_tools::client::Refusal;

use crate::markdown::{blocks, files, links, root, text};

/// All that a user may look into.
fn documentation() -> String {
    text("README.md") + &text("policy/README.md")
}

/// What follows a prefix in a text, as long as it is made of such characters.
fn after<'a>(text: &'a str, prefix: &'a str, part: fn(char) -> bool) -> BTreeSet<&'a str> {
    let words = text.split(prefix).skip(1);
    words.map(|rest| rest.split(|c| !part(c)).next().unwrap()).collect()
}

/// The words of an `as_str` in a source file: `Self::Name => "word"`.
fn words_on_the_wire(source: &str) -> BTreeSet<&str> {
    after(source, " => \"", |c| c.is_ascii_lowercase() || c == '-')
}

#[test]
fn every_gap_is_documented() {
    let report = text("src/launch/report.rs");
    let gaps = report.split("impl Gap").nth(1).unwrap();
    let gaps = words_on_the_wire(gaps);
    assert!(gaps.contains("no-scope") && gaps.len() >= 11, "{gaps:?}");
    let readme = text("README.md");
    for gap in &gaps {
        assert!(readme.contains(&format!("\n| `{gap}` | ")), "{gap} has no row in README.md");
    }
    let table = readme.split("## Gaps").nth(1).unwrap().split("What else").next().unwrap();
    let documented = after(table, "\n| `", |c| c != '`');
    assert_eq!(documented, gaps);
}

#[test]
fn every_reason_of_an_outcome_is_documented() {
    let outcome = text("src/broker/outcome.rs");
    let reasons = words_on_the_wire(outcome.split("impl Reason").nth(1).unwrap());
    assert!(reasons.contains("silence-timeout") && reasons.len() >= 11, "{reasons:?}");
    let readme = text("README.md");
    let table = readme.split("### Outcomes").nth(1).unwrap().split("### Errors").next().unwrap();
    for reason in &reasons {
        let is_row = |line: &str| line.starts_with("| `") && line.contains(&format!("`{reason}`"));
        assert!(table.lines().any(is_row), "{reason} has no row in README.md");
    }
}

/// The threat model names attempts, gaps and tests that there are.
#[test]
fn what_the_threat_model_names_exists() {
    let model = text("docs/threat-model.md");
    let promises = model.split("## What is promised").nth(1).unwrap();
    let promises = promises.split("\n## ").next().unwrap();
    let rows: Vec<Vec<&str>> = promises
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| attack"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 20, "{rows:?}");
    let read = |file| fs::read_to_string(file).unwrap();
    let suite: String = files("tests/hostile", ".rs").into_iter().map(read).collect();
    let report = text("src/launch/report.rs");
    let gaps = words_on_the_wire(report.split("impl Gap").nth(1).unwrap());
    for row in &rows {
        let [_, tiers @ .., attempts] = row.as_slice() else { panic!("{row:?}") };
        assert_eq!(tiers.len(), 3, "{row:?}");
        for tier in tiers {
            assert!(*tier == "closed" || gaps.contains(tier.trim_matches('`')), "{tier}: {row:?}");
        }
        let named: Vec<&str> = attempts.split('"').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "nothing proves {row:?}");
        for name in named {
            assert!(suite.contains(&format!("\"{name}\"")), "no attempt is called {name}");
        }
    }
    let tests = text("tests/bus/hardening.rs");
    assert!(tests.contains("fn no_other_program_of_the_user_looks_into_the_broker"));
}

#[test]
fn every_error_is_documented() {
    let source = text("src/bus/error.rs");
    let contract = source.split("pub enum Contract {").nth(1).unwrap().split("\n}").next().unwrap();
    let names = after(contract, "\n    ", |c| c.is_ascii_alphabetic());
    let names: BTreeSet<&str> = names.into_iter().filter(|name| !name.is_empty()).collect();
    assert!(names.contains(Refusal::NoSuchTool.as_str()) && names.len() >= 13, "{names:?}");
    let readme = text("README.md");
    let table = readme.split("### Errors").nth(1).unwrap().split("\n## ").next().unwrap();
    assert_eq!(after(table, "\n| `", |c| c != '`'), names);
}

#[test]
fn every_variable_is_documented() {
    let documentation = documentation();
    let mut known = BTreeSet::new();
    for file in files("src", ".rs") {
        let source = fs::read_to_string(file).unwrap();
        // Those of unit tests are nobody's to set.
        let source = source.split("#[cfg(test)]").next().unwrap();
        let names = after(source, "\"ST2_TOOLS_", |c| c.is_ascii_uppercase() || c == '_');
        known.extend(names.into_iter().map(|name| format!("ST2_TOOLS_{name}")));
    }
    assert!(known.len() >= 6, "{known:?}");
    for name in known {
        assert!(documentation.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

#[test]
fn every_setting_and_key_of_a_shipped_policy_is_documented() {
    let reference = text("policy/README.md");
    for (name, default) in st2_tools::config::Limits::default().to_map() {
        let row = format!("| `{name}` | ");
        let row = reference.lines().find(|line| line.starts_with(&row));
        let row = row.unwrap_or_else(|| panic!("{name} has no row in policy/README.md"));
        let written: String = row.split('|').nth(2).unwrap().split_whitespace().collect();
        assert_eq!(written, default.to_string(), "{name}");
    }
    for file in files("policy", ".toml") {
        let table: toml::Table = fs::read_to_string(&file).unwrap().parse().unwrap();
        for key in table.keys() {
            assert!(reference.contains(&format!("`{key}")), "{key} of {}", file.display());
        }
    }
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut seen = 0;
    for file in files("", ".md") {
        let markdown = fs::read_to_string(&file).unwrap();
        for link in links(&markdown) {
            let (path, anchor) = link.split_once('#').unwrap_or((&link, ""));
            if path.contains("://") {
                continue;
            }
            seen += 1;
            let target = match path {
                "" => file.clone(),
                path => file.parent().unwrap().join(path),
            };
            assert!(target.exists(), "{}: {link}", file.display());
            assert!(anchor.is_empty() || anchors(&target).contains(anchor), "{link}");
        }
    }
    assert!(seen >= 20, "only {seen} links were found");
}

/// The anchors of a file's headings, as they are made of them.
fn anchors(file: &std::path::Path) -> BTreeSet<String> {
    let markdown = fs::read_to_string(file).unwrap();
    let headings = markdown.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| -> String {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn the_readme_shows_the_example_as_it_is() {
    let shown = blocks(&text("README.md"), "rust");
    let example = text("examples/ask.rs");
    assert_eq!(shown.len(), 1);
    assert!(example.contains(&shown[0]), "examples/ask.rs does not hold what the README shows");
    assert!(root().join("examples/ask.rs").is_file());
}
