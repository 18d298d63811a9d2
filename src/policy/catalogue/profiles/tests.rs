use std::collections::BTreeSet;

use crate::{
    launch::spec::Network,
    policy::{
        bed::{Bed, resolved},
        catalogue::Entry,
        composition::Composition,
    },
};

fn profile(bed: &Bed, name: &str, text: &str) {
    bed.write(&format!("policy/profiles.d/{name}.toml"), &format!("title = \"{name}'s\"\n{text}"));
}

fn tool(bed: &Bed, profile: &str) {
    bed.tool("x", &format!("title = \"t\"\ncommand = [\"true\"]\nprofile = {profile}"));
}

fn error(bed: &Bed) -> String {
    let rows = bed.catalogue().rows();
    bed.words(&rows.iter().find(|row| row.name == "x").unwrap().error)
}

fn composition(bed: &Bed) -> Composition {
    let name = crate::broker::name::ToolName::new("x").unwrap();
    match bed.catalogue().get(&name) {
        Some(Entry::Ready(tool)) => tool.profile.clone(),
        other => panic!("{other:?}"),
    }
}

fn names(composition: &Composition) -> Vec<&str> {
    composition.layers().map(|layer| layer.name.as_str()).collect()
}

#[test]
fn a_composition_is_all_of_its_profiles_once() {
    let bed = Bed::new();
    profile(
        &bed,
        "base",
        "environment = { A = \"1\" }\nprotect = [\".git/config\"]\n[grants]\nread = [\"/proc\"]\nwrite = [\"${WORKSPACE}\", \"${TMPDIR}\"]",
    );
    profile(
        &bed,
        "left",
        "include = [\"base\"]\nnetwork = \"tcp:443,22\"\n[grants]\nread = [\"/etc\"]",
    );
    profile(
        &bed,
        "right",
        "include = \"base\"\nnetwork = \"tcp:80,443\"\nenvironment = { A = \"1\", B = \"2\" }\nprotect = [\".git/config\", \"x/\"]",
    );
    tool(
        &bed,
        "[\"left\", \"right\"]\nenvironment = { B = \"3\" }\n[grants]\nexecute = [\"/usr\"]",
    );
    let whole = composition(&bed);
    assert_eq!(names(&whole), ["left", "base", "right"]);
    assert_eq!(*whole.network(), Network::TcpConnect(vec![22, 80, 443]));
    let protected: Vec<_> = whole.protect().into_iter().map(|it| (it.path, it.directory)).collect();
    assert_eq!(protected, [(".git/config".into(), false), ("x".into(), true)]);

    let resolved = resolved(&bed, "x", |_| {});
    let granted = format!("{:?}", resolved.spec.confinement.grants);
    for path in ["/proc", "/etc", "/usr", "Workspace"] {
        assert!(granted.contains(path), "{path}: {granted}");
    }
    let variable = |name: &str| resolved.spec.environment[std::ffi::OsStr::new(name)].clone();
    assert_eq!(
        (variable("A"), variable("B")),
        ("1".into(), "3".into()),
        "the tool's own word counts"
    );
    let row = bed.catalogue().rows().into_iter().find(|row| row.name == "x").unwrap();
    assert_eq!(row.profile, "left, right: left's; right's");
}

#[test]
fn networks_join_where_they_mean_something_together() {
    for (one, other, joined) in [
        ("none", "none", "none"),
        ("none", "loopback", "loopback"),
        ("loopback", "none", "loopback"),
        ("loopback", "loopback", "loopback"),
        ("none", "tcp:443", "tcp:443"),
        ("tcp:80", "all", "all"),
        ("all", "all", "all"),
        ("tcp:80,22", "tcp:22,443", "tcp:22,80,443"),
    ] {
        let bed = Bed::new();
        profile(&bed, "one", &format!("network = \"{one}\""));
        profile(&bed, "other", &format!("network = \"{other}\""));
        tool(&bed, "[\"one\", \"other\"]");
        assert_eq!(composition(&bed).network().to_string(), joined, "{one} and {other}");
        profile(&bed, "one", &format!("network = \"{one}\"\ninclude = \"other\""));
        tool(&bed, "\"one\"");
        assert_eq!(composition(&bed).network().to_string(), joined, "{one} with {other}");
    }
}

#[test]
fn what_may_be_absent_is_passed_over() {
    let bed = Bed::new();
    profile(&bed, "git", "include = [\"workspace\", \"-masked\", \"-absent\"]");
    bed.link("/dev/null", "policy/profiles.d/masked.toml");
    tool(&bed, "[\"git\", \"-masked\", \"-absent\"]");
    assert_eq!(names(&composition(&bed)), ["git", "workspace"]);
    let row = bed.catalogue().rows().into_iter().find(|row| row.name == "x").unwrap();
    assert_eq!(row.profile, "git: git's");
    tool(&bed, "[]");
    assert_eq!(names(&composition(&bed)), Vec::<&str>::new());
    assert_eq!(composition(&bed).protect().len(), 2, "the default of who says nothing");
}

/// What is wrong with the tool `x` of this profile list, and how many faults the log gets.
fn fault(list: &str, profiles: &[(&str, &str)]) -> String {
    let bed = Bed::new();
    for (name, text) in profiles {
        profile(&bed, name, text);
    }
    tool(&bed, list);
    let catalogue = bed.catalogue();
    let places: BTreeSet<String> = catalogue
        .faults()
        .map(|fault| fault.file.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    format!("{}\n  in the log: {}", error(&bed), places.into_iter().collect::<Vec<_>>().join(", "))
}

#[test]
fn what_cannot_be_joined_is_a_fault_at_its_place() {
    let chain: Vec<(String, String)> = (1..=9)
        .map(|n| {
            (
                format!("p{n}"),
                if n < 9 { format!("include = \"p{}\"", n + 1) } else { String::new() },
            )
        })
        .collect();
    let chain: Vec<(&str, &str)> = chain.iter().map(|(name, text)| (&**name, &**text)).collect();
    let local = ("local", "network = \"loopback\"");
    let web = ("web", "network = \"tcp:443\"");
    let faults = [
        fault("\"a\"", &[("a", "include = \"a\"")]),
        fault(
            "[\"workspace\", \"a\"]",
            &[("a", "include = [\"b\"]"), ("b", "include = [\"c\"]"), ("c", "include = [\"a\"]")],
        ),
        fault("\"p1\"", &chain),
        fault("\"p2\"", &chain),
        fault("[\"local\", \"web\"]", &[local, web]),
        fault("\"a\"", &[local, web, ("a", "include = [\n  \"web\",\n  \"local\",\n]")]),
        fault("\"a\"", &[local, ("a", "network = \"all\"\ninclude = [\"local\"]")]),
        fault(
            "[\"a\", \"b\"]",
            &[("a", "environment = { V = \"1\" }"), ("b", "environment = { V = \"2\" }")],
        ),
        fault("\"a\"", &[("a", "include = [\"absent\"]")]),
        fault("[\"-a\"]", &[("a", "include = [\"b\"]"), ("b", "network = \"udp\"")]),
        fault("[\"workspace\", \"--x\"]", &[]),
        fault("7", &[]),
        fault("[\"workspace\", 7]", &[]),
    ];
    insta::assert_snapshot!(faults.join("\n"), @r#"
        BED/policy/tools.d/x.toml:3:11: key "profile": profile "a" cannot be used: BED/policy/profiles.d/a.toml:2:11: key "include": profiles include each other: a → a
          in the log: a.toml, x.toml
        BED/policy/tools.d/x.toml:3:25: key "profile": profile "a" cannot be used: BED/policy/profiles.d/c.toml:2:12: key "include": profiles include each other: a → b → c → a
          in the log: c.toml, x.toml
        BED/policy/tools.d/x.toml:3:11: key "profile": profile "p1" cannot be used: BED/policy/profiles.d/p1.toml:2:11: key "include": with profile "p2" more than 8 profiles include each other in a row
          in the log: p1.toml, x.toml

          in the log: p1.toml
        BED/policy/tools.d/x.toml:3:21: key "profile": network "tcp:443" of profile "web" does not join with that of another profile: "loopback" leads nowhere else
          in the log: x.toml
        BED/policy/tools.d/x.toml:3:11: key "profile": profile "a" cannot be used: BED/policy/profiles.d/a.toml:4:3: key "include": network "loopback" of profile "local" does not join with that of another profile: "loopback" leads nowhere else
          in the log: a.toml, x.toml
        BED/policy/tools.d/x.toml:3:11: key "profile": profile "a" cannot be used: BED/policy/profiles.d/a.toml:3:12: key "include": network "loopback" of profile "local" does not join with that of another profile: "loopback" leads nowhere else
          in the log: a.toml, x.toml
        BED/policy/tools.d/x.toml:3:17: key "profile": profile "b" sets V to something else than another profile
          in the log: x.toml
        BED/policy/tools.d/x.toml:3:11: key "profile": profile "a" cannot be used: BED/policy/profiles.d/a.toml:2:12: key "include": profile "absent" is not declared
          in the log: a.toml, x.toml
        BED/policy/tools.d/x.toml:3:12: key "profile": profile "a" cannot be used: BED/policy/profiles.d/b.toml:2:11: key "network": invalid value: string "udp", expected "none", "loopback", "all" or "tcp:PORT,…" with ports in 1..=65535
          in the log: b.toml, x.toml
        BED/policy/tools.d/x.toml:3:11: key "profile": profile name "--x" is not 1 to 32 of a-z, 0-9 and '-', beginning with a letter or digit, after a '-' where it may be absent
          in the log: x.toml
        BED/policy/tools.d/x.toml:3:11: key "profile": invalid type: integer `7`, expected the name of a profile, or a list of names
          in the log: x.toml
        BED/policy/tools.d/x.toml:3:25: key "profile": invalid type: integer `7`, expected a string
          in the log: x.toml
        "#);
}

#[test]
fn many_ways_to_one_profile_are_walked_once() {
    let bed = Bed::new();
    // Of 30 layers each including all of the next two, 2^30 ways lead down: depth ends them, and each
    // profile is joined once.
    for n in 0..30 {
        let include = format!("include = [\"-n{}\", \"-n{}\"]", n + 1, n + 2);
        profile(&bed, &format!("n{n}"), &include);
    }
    tool(&bed, "\"n26\"");
    assert_eq!(names(&composition(&bed)), ["n26", "n27", "n28", "n29"]);
    tool(&bed, "\"n0\"");
    assert!(error(&bed).contains("more than 8 profiles"), "{}", error(&bed));
}
