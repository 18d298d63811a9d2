use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
};

use proptest::prelude::*;

use super::*;
use crate::policy::bed::{Bed, PROFILE};

const TRUE: &str = "title = \"t\"\ncommand = [\"true\"]\n";

fn entry<'c>(catalogue: &'c Catalogue, name: &str) -> Option<&'c Entry> {
    catalogue.get(&ToolName::new(name).unwrap())
}

fn title(catalogue: &Catalogue, name: &str) -> String {
    match entry(catalogue, name) {
        Some(Entry::Ready(tool)) => tool.declaration.title.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

#[test]
fn a_later_directory_overrides_by_file_name() {
    let bed = Bed::new();
    bed.write("etc/tools.d/true.toml", "title = \"etc\"\ncommand = [\"true\"]");
    bed.write("etc/tools.d/more.toml", TRUE);
    let search = |order: [&str; 2]| SearchPath::new(order.map(|name| bed.path(name)).to_vec());

    let catalogue = Catalogue::load(search(["policy", "etc"]));
    assert_eq!(title(&catalogue, "true"), "etc");
    assert_eq!(title(&catalogue, "more"), "t");
    assert_eq!(title(&Catalogue::load(search(["etc", "policy"])), "true"), "t");
}

#[test]
fn a_broken_override_does_not_fall_back_to_what_it_overrides() {
    let bed = Bed::new();
    let broken = bed.write("etc/tools.d/true.toml", "title = 1");
    let catalogue = Catalogue::load(SearchPath::new(vec![bed.path("policy"), bed.path("etc")]));
    let Some(Entry::Broken(error)) = entry(&catalogue, "true") else { panic!("not broken") };
    assert_eq!(error.file, broken);
    assert_eq!(catalogue.faults().collect::<Vec<_>>(), [error]);
    let row = &catalogue.rows()[0];
    assert_eq!(bed.words(&row.source), "BED/etc/tools.d/true.toml");
    assert_eq!(
        bed.words(&row.error),
        "BED/etc/tools.d/true.toml:1:9: key \"title\": invalid type: integer `1`, expected a string"
    );
}

#[test]
fn a_symlink_to_dev_null_masks_and_is_shown() {
    let bed = Bed::new();
    fs::create_dir_all(bed.path("etc/tools.d")).unwrap();
    let mask = bed.link("/dev/null", "etc/tools.d/true.toml");
    let catalogue = Catalogue::load(SearchPath::new(vec![bed.path("policy"), bed.path("etc")]));
    assert_eq!(entry(&catalogue, "true"), Some(&Entry::Masked(mask)));
    assert_eq!(catalogue.rows()[0].error, "masked");
    assert_eq!(catalogue.faults().count(), 0);
}

#[test]
fn a_tool_without_its_profile_is_broken_at_the_key() {
    let bed = Bed::new();
    bed.tool("a", &format!("{TRUE}profile = \"wide\""));
    bed.tool("b", &format!("{TRUE}profile = \"masked\""));
    bed.tool("c", &format!("{TRUE}profile = \"broken\""));
    bed.tool("d", &format!("{TRUE}profile = \"../workspace\""));
    bed.tool(
        "e",
        "title = \"t\"\ncommand = []\narguments = { operands = { kind = \"any\", at_most = 1 } }",
    );
    bed.link("/dev/null", "policy/profiles.d/masked.toml");
    bed.write("policy/profiles.d/broken.toml", "title = \"b\"\nnetwork = \"tcp:0\"");
    let catalogue = bed.catalogue();
    let errors: Vec<String> = catalogue.rows().iter().map(|row| bed.words(&row.error)).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
        BED/policy/tools.d/a.toml:3:11: key "profile": profile "wide" is not declared
        BED/policy/tools.d/b.toml:3:11: key "profile": profile "masked" is masked
        BED/policy/tools.d/c.toml:3:11: key "profile": profile "broken" cannot be used: BED/policy/profiles.d/broken.toml:2:11: key "network": invalid value: string "tcp:0", expected "none", "loopback", "all" or "tcp:PORT,…" with ports in 1..=65535
        BED/policy/tools.d/d.toml:3:11: key "profile": profile name "../workspace" is not 1 to 32 of a-z, 0-9 and '-', beginning with a letter or digit, after a '-' where it may be absent
        BED/policy/tools.d/e.toml:2:11: key "command": an empty command needs arguments = "any"
        "#);
    assert_eq!(catalogue.faults().count(), 6, "five tools and a profile");
}

#[test]
fn what_is_no_policy_file_is_passed_over_and_a_wrong_name_is_told() {
    let bed = Bed::new();
    for name in [".hidden.toml", "README.md", "old.toml~", "true.toml.bak"] {
        bed.write(&format!("policy/tools.d/{name}"), "not TOML");
    }
    bed.write("policy/tools.d/Big_Name.toml", TRUE);
    fs::create_dir(bed.path("policy/tools.d/dir.toml")).unwrap();
    let catalogue = bed.catalogue();
    let faults: Vec<String> = catalogue.faults().map(|error| bed.words(error)).collect();
    insta::assert_snapshot!(faults.join("\n"), @r#"
        BED/policy/tools.d/Big_Name.toml: tool name "Big_Name" is not 1 to 32 of a-z, 0-9 and '-', beginning with a letter or digit
        BED/policy/tools.d/dir.toml: not a regular file
        "#);
    assert_eq!(catalogue.rows().len(), 2);
}

#[test]
fn at_most_256_tools_are_read() {
    let bed = Bed::new();
    for number in 0..ENTRIES_MAX {
        bed.tool(&format!("n{number:03}"), TRUE);
    }
    let catalogue = bed.catalogue();
    assert_eq!(catalogue.rows().len(), ENTRIES_MAX);
    assert_eq!(entry(&catalogue, "true"), None, "the last by name");
    let faults: Vec<String> = catalogue.faults().map(|error| bed.words(error)).collect();
    assert_eq!(faults, ["BED/policy/tools.d: more than 256 files: none from \"true\" on is read"]);
}

#[test]
fn every_kind_of_change_is_seen() {
    let bed = Bed::new();
    let mut catalogue = Catalogue::load(SearchPath::new(vec![bed.path("policy"), bed.path("etc")]));
    let mut seen = |what: &str, change: &dyn Fn()| {
        while catalogue.refresh() {}
        change();
        assert!(catalogue.refresh(), "{what}");
        catalogue.rows().iter().map(|row| format!("{}{}", row.name, row.title)).collect::<String>()
    };
    assert_eq!(seen("added", &|| drop(bed.tool("a", TRUE))), "attruet");
    assert_eq!(
        seen("same size", &|| drop(bed.tool("a", &TRUE.replace("\"t\"", "\"u\"")))),
        "autruet"
    );
    assert_eq!(
        seen("removed", &|| fs::remove_file(bed.path("policy/tools.d/a.toml")).unwrap()),
        "truet"
    );
    let replace = || {
        bed.write("policy/tools.d/.new", &TRUE.replace("\"t\"", "\"v\""));
        fs::rename(bed.path("policy/tools.d/.new"), bed.path("policy/tools.d/true.toml")).unwrap();
    };
    assert_eq!(seen("replaced", &replace), "truev");
    assert_eq!(seen("new directory", &|| drop(bed.write("etc/tools.d/b.toml", TRUE))), "bttruev");
    let relink = || {
        fs::remove_file(bed.path("etc/tools.d/b.toml")).unwrap();
        bed.link("/dev/null", "etc/tools.d/b.toml");
    };
    assert_eq!(seen("masked", &relink), "btruev");
    let mode = |mode| {
        fs::set_permissions(bed.path("policy/tools.d/true.toml"), fs::Permissions::from_mode(mode))
    };
    assert_eq!(seen("mode", &|| mode(0o666).unwrap()), "btrue");
    assert_eq!(seen("mode back", &|| mode(0o644).unwrap()), "btruev");
    assert_eq!(
        seen("profile", &|| drop(bed.write("policy/profiles.d/workspace.toml", "title = 1"))),
        "btrue"
    );
}

#[test]
fn a_change_behind_a_symlink_is_seen() {
    let bed = Bed::new();
    let target = bed.write("elsewhere/a.toml", TRUE);
    symlink(&target, bed.path("policy/tools.d/a.toml")).unwrap();
    let mut catalogue = bed.catalogue();
    assert_eq!(title(&catalogue, "a"), "t");
    fs::write(target, TRUE.replace("\"t\"", "\"longer\"")).unwrap();
    assert!(catalogue.refresh());
    assert_eq!(title(&catalogue, "a"), "longer");
}

/// Lines that make up files: whole, broken and hostile.
fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("title = \"t\"".to_owned()),
        Just("command = [\"true\"]".to_owned()),
        Just("arguments = \"any\"".to_owned()),
        Just("profile = \"workspace\"".to_owned()),
        Just("[grants]".to_owned()),
        Just("read = [\"/etc\"]".to_owned()),
        Just("grace_ms = 5".to_owned()),
        "[a-z_]{1,8} = [0-9]{1,3}",
        ".{0,20}",
    ];
    proptest::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

/// Keys that a tool's file may have, written here again on purpose.
const KEYS: &[&str] = &[
    "title",
    "command",
    "arguments",
    "io",
    "direct",
    "profile",
    "grants",
    "sockets",
    "path",
    "environment",
    "pass_environment",
    "workspace",
    "grace_ms",
    "timeout_ms",
    "silence_timeout_ms",
    "stop_timeout_ms",
    "memory_max",
    "tasks_max",
    "open_files",
    "umask",
];

proptest! {
    // Each case reads a directory of its own.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_bytes_disable_one_tool_and_nothing_else(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let bed = Bed::new();
        fs::write(bed.path("policy/tools.d/x.toml"), &bytes).unwrap();
        let catalogue = bed.catalogue();
        prop_assert_eq!(title(&catalogue, "true"), "t");
        let is_broken = matches!(entry(&catalogue, "x"), Some(Entry::Broken(_)));
        prop_assert!(is_broken);
    }

    #[test]
    fn a_tool_is_ready_only_if_every_key_is_known_and_the_required_ones_are_there(text in lines()) {
        let bed = Bed::new();
        bed.tool("x", &text);
        let catalogue = bed.catalogue();
        if let Some(Entry::Ready(_)) = entry(&catalogue, "x") {
            let table: toml::Table = text.parse().unwrap();
            prop_assert!(table.keys().all(|key| KEYS.contains(&key.as_str())));
            prop_assert!(table.contains_key("title") && table.contains_key("command"));
        } else {
            prop_assert!(!catalogue.rows().iter().find(|row| row.name == "x").unwrap().error.is_empty());
        }
    }

    #[test]
    fn arbitrary_profiles_never_panic(text in lines()) {
        let bed = Bed::new();
        bed.write("policy/profiles.d/workspace.toml", &format!("{PROFILE}{text}"));
        let ready = matches!(entry(&bed.catalogue(), "true"), Some(Entry::Ready(_)));
        prop_assert_eq!(ready, format!("{PROFILE}{text}").parse::<toml::Table>().is_ok_and(|table| {
            table.keys().all(|key| ["title", "grants", "network"].contains(&key.as_str()))
                && table["grants"].as_table().unwrap().keys().all(|key| {
                    ["read", "write", "execute", "devices"].contains(&key.as_str())
                })
        }));
    }
}
