//! `--agent`: whose session it is, and the directory that the catalogue says it works in.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::program::{World, finish};

/// A directory beneath the bus's own, with a workspace for each catalogue that is made there.
struct Place(PathBuf);

impl Place {
    fn new(world: &World, name: &str) -> Self {
        let place = world.bus.place().join(name);
        fs::create_dir_all(&place).unwrap();
        Self(place)
    }

    /// Makes a catalogue beneath it, that declares `demo.planner`; gives the workspace.
    fn declare(&self, catalog: &str) -> String {
        let (workspace, agent) = (self.0.join("work"), self.0.join(catalog).join("agents/demo"));
        fs::create_dir_all(&workspace).unwrap();
        fs::create_dir_all(agent.join("planner")).unwrap();
        let text =
            format!("agent \"planner\" {{\n  host \"demo\"\n  workspace {workspace:?}\n}}\n");
        fs::write(agent.join("planner/agent.kdl"), text).unwrap();
        workspace.into_os_string().into_string().unwrap()
    }
}

/// All that is beneath a directory, and when it was changed.
fn state(directory: &Path) -> Vec<(PathBuf, u32, i64, i64, u64)> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap().map(Result::unwrap) {
            directories.extend(entry.file_type().unwrap().is_dir().then(|| entry.path()));
        }
        let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        for path in entries.chain([directory]) {
            let it = fs::metadata(&path).unwrap();
            found.push((path, it.mode(), it.ctime(), it.ctime_nsec(), it.size()));
        }
    }
    found.sort();
    found
}

#[test]
fn an_agent_s_catalogue_gives_the_workspace_and_is_only_read() {
    let world = World::new();
    let [state_home, named] = ["state", "named"].map(|name| Place::new(&world, name));
    let workspace = state_home.declare("st2/default/catalog");
    let other = named.declare("catalog");
    let catalog = named.0.join("catalog");
    let before = [state(&state_home.0), state(&named.0)];
    let open = |catalog: Option<&Path>, more: &[&str]| {
        let line = [&["open", "--agent", "demo.planner"], more, &["--", "cat"]].concat();
        let mut command = world.command(&line);
        command.env("XDG_STATE_HOME", &state_home.0);
        command.envs(catalog.map(|catalog| ("ST2_TOOLS_CATALOG", catalog)));
        finish(&mut command)
    };
    for (nth, catalog, more, expected) in [
        (1, None, &[][..], &workspace),
        (2, Some(catalog.as_path()), &[], &other),
        (3, None, &["--workspace", &other], &other),
    ] {
        let ran = open(catalog, more);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        let call = world.fake.wait_for_nth(nth, |call| call.starts_with("Open"));
        assert!(call.contains("labels={agent:planner,host:demo}"), "{call}");
        assert!(call.ends_with(&format!("workspace={expected}")), "{call}");
    }
    for (catalog, words) in [
        (
            Path::new("named/catalog"),
            "ST2_TOOLS_CATALOG \"named/catalog\" is not the absolute path",
        ),
        (named.0.as_path(), "declares no agent demo.planner: there is no"),
    ] {
        let ran = open(Some(catalog), &[]);
        assert_eq!(ran.status, Some(1));
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
        assert!(ran.stderr.ends_with("(or name a directory with --workspace)\n"), "{}", ran.stderr);
    }
    assert_eq!([state(&state_home.0), state(&named.0)], before);
    assert_eq!(world.fake.calls().iter().filter(|call| call.starts_with("Open")).count(), 3);
}
