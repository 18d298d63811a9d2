use super::*;

struct Catalog {
    root: tempfile::TempDir,
}

impl Catalog {
    fn new() -> Self {
        Self { root: tempfile::tempdir().unwrap() }
    }

    fn declare(&self, text: &str) {
        let directory = self.root.path().join("agents/demo/planner");
        fs::create_dir_all(&directory).unwrap();
        fs::write(directory.join("agent.kdl"), text).unwrap();
    }

    fn workspace(&self) -> Result<PathBuf, String> {
        let identity = "demo.planner".parse().unwrap();
        let found = workspace(self.root.path(), &identity);
        found.map_err(|error| {
            error.to_string().replace(&*self.root.path().to_string_lossy(), "CATALOG")
        })
    }
}

#[test]
fn an_identity_is_two_plain_names() {
    let identity: Identity = "demo.planner-2".parse().unwrap();
    assert_eq!((identity.host.as_str(), identity.name.as_str()), ("demo", "planner-2"));
    assert_eq!(identity.to_string(), "demo.planner-2");
    for text in [
        "",
        "demo",
        "demo.",
        ".planner",
        "demo.a.b",
        "../x.y",
        "demo...",
        "de/mo.x",
        "demo.-x",
        "demo.x\n",
        &format!("demo.{}", "x".repeat(65)),
    ] {
        assert!(text.parse::<Identity>().is_err(), "{text:?}");
    }
}

#[test]
fn the_workspace_is_what_the_declaration_says() {
    let catalog = Catalog::new();
    catalog.declare(
        "// comment\nagent \"planner\" {\n  host \"demo\"\n  workspace \"/usr\"\n  restart { attempts 3 }\n  keep #true\n  command #\"while true; do { echo \"x\"; }; done\"#\n}\n",
    );
    assert_eq!(catalog.workspace(), Ok("/usr".into()));
    catalog.declare("agent \"planner\" { workspace \"/usr\"; }");
    assert_eq!(catalog.workspace(), Ok("/usr".into()));
}

#[test]
fn what_is_wrong_is_told_with_its_line() {
    let catalog = Catalog::new();
    let file = "\"CATALOG/agents/demo/planner/agent.kdl\"";
    assert_eq!(
        catalog.workspace().unwrap_err(),
        format!("the catalogue \"CATALOG\" declares no agent demo.planner: there is no {file}")
    );
    for (text, words) in [
        ("agent \"planner\" {\n  host \"demo\"\n}\n", " line 1: the agent declares no workspace"),
        (
            "agent \"planner\" {\n  workspace \"work\"\n}\n",
            " line 2: workspace \"work\" is not the absolute path of a directory",
        ),
        (
            "agent \"planner\" {\n  workspace \"/nowhere\"\n}\n",
            " line 2: workspace \"/nowhere\" is not the absolute path of a directory",
        ),
        ("agent \"planner\" {\n\n  workspace 3\n}\n", " line 3: workspace is not one string"),
        (
            "agent \"planner\" {\n  workspace \"/usr\" \"/bin\"\n}\n",
            " line 2: workspace is not one string",
        ),
        (
            "agent \"other\" {\n  workspace \"/usr\"\n}\n",
            " line 1: agent is \"other\", in the place of \"planner\"",
        ),
        (
            "agent \"planner\" {\n  host \"other\"\n  workspace \"/usr\"\n}\n",
            " line 2: host is \"other\", in the place of \"demo\"",
        ),
        (
            "agent \"planner\" {\n  host 7\n  workspace \"/usr\"\n}\n",
            " line 2: host is \"7\", in the place of \"demo\"",
        ),
        (
            "agent \"planner\" {\n  workspace \"/usr\"\n  workspace \"/bin\"\n}\n",
            " line 3: a second workspace, where one is expected",
        ),
        ("workspace \"/usr\"\n", ": 0 nodes `agent`, where one is expected"),
        (
            "agent \"planner\"\n\nagent \"planner\"\n",
            " line 3: 2 nodes `agent`, where one is expected",
        ),
    ] {
        catalog.declare(text);
        assert_eq!(catalog.workspace().unwrap_err(), format!("{file}{words}"));
    }
    catalog.declare("agent \"planner\" {\n  workspace \"/usr\n");
    let words = catalog.workspace().unwrap_err();
    assert!(words.starts_with(&format!("{file} line ")) && words.contains("not KDL: "), "{words}");
}

#[test]
fn what_would_take_too_much_is_refused() {
    let catalog = Catalog::new();
    catalog.declare(&"a { ".repeat(15_000));
    assert!(catalog.workspace().unwrap_err().ends_with("nested more than 24 deep"));
    catalog.declare(&"/*".repeat(30_000));
    assert!(catalog.workspace().unwrap_err().ends_with("nested more than 24 deep"));
    let [open, close] = ["{ a ", "}"].map(|brace| brace.repeat(DEPTH_MAX - 1));
    catalog.declare(&format!("agent \"planner\" {{ workspace \"/usr\"\n a {open} {close} }}"));
    assert_eq!(catalog.workspace(), Ok("/usr".into()));
    catalog.declare(&"// x\n".repeat(15_000));
    assert!(catalog.workspace().unwrap_err().ends_with("longer than 65536 bytes"));
    let file = catalog.root.path().join("agents/demo/planner/agent.kdl");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(catalog.workspace().unwrap_err().ends_with("not a regular file"));
}

/// What a parser might go down with, or go over again and again.
#[test]
fn what_is_no_declaration_is_refused_soon() {
    let catalog = Catalog::new();
    for part in ["/-", "(", "(a)", "=", "a)", "a=", "a;", "a /-", "\\\n", "#\"", "\"\"\"\n", "["] {
        catalog.declare(&part.repeat(65_536 / part.len()));
        let begin = std::time::Instant::now();
        assert!(catalog.workspace().is_err(), "{part:?}");
        assert!(begin.elapsed() < std::time::Duration::from_secs(20), "{part:?}");
    }
}
