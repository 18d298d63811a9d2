use std::fs;

use super::*;
use crate::{
    launch::spec::Network,
    policy::bed::{Bed, refusal, resolved},
};

#[test]
fn grants_name_what_exists_once_and_the_session_by_descriptor() {
    let bed = Bed::new();
    bed.write("home/.gitconfig", "");
    bed.link(bed.path("work"), "home/inside");
    bed.tool(
        "git",
        "title = \"g\"\ncommand = [\"git\"]\npath = [\"-~/bin\"]\n\
         [grants]\nread = [\"-~/.gitconfig\", \"-~/.absent\", \"/usr/share\", \"-~/inside\"]\nwrite = [\"-~/.gitconfig\"]",
    );
    let resolved = resolved(&bed, "git", |_| {});
    let grants = &resolved.spec.confinement.grants;
    let find = |target: &Target| {
        grants.iter().find(|grant| grant.target == *target).map(|grant| grant.access)
    };
    let workspace = Target::Descriptor(Slot::Workspace, bed.path("work"));
    let tmpdir = Target::Descriptor(Slot::TmpDir, bed.path("tmp/session"));
    let write = Access { read: true, write: true, ..Access::default() };
    assert_eq!((find(&workspace), find(&tmpdir)), (Some(write), Some(write)));
    assert_eq!(
        find(&Target::Path(bed.path("home/.gitconfig"))),
        Some(write),
        "both lists together"
    );
    assert!(find(&Target::OwnTerminal).unwrap().device);
    assert_eq!(find(&Target::Path("/usr/share".into())), None, "implied by /usr");
    assert_eq!(
        find(&Target::Path("/usr".into())),
        Some(Access { read: true, execute: true, ..Access::default() })
    );
    let named =
        |name: &str| grants.iter().any(|grant| format!("{:?}", grant.target).contains(name));
    assert!(!named("absent") && !named("inside"));
    assert!(grants.iter().all(|grant| !grant.optional));
    assert_eq!(resolved.spec.confinement.network, Network::None);
}

#[test]
fn a_grant_reaches_nothing_by_a_detour_and_writes_nothing_off_limits() {
    let bed = Bed::new();
    bed.write("home/.ssh/id", "key");
    bed.link(".ssh/id", "home/.gitconfig");
    let tool = |grants: &str| format!("title = \"g\"\ncommand = [\"git\"]\n[grants]\n{grants}");
    bed.tool("detour", &tool("read = [\"-~/.gitconfig\"]"));
    bed.tool("named", &tool("read = [\"~/.ssh/id\"]"));
    bed.tool("policy", &tool("write = [\"~/../policy\"]"));
    bed.tool("config", &tool("write = [\"${XDG_CONFIG_HOME}\"]"));
    bed.tool("home", &tool("write = [\"~\"]"));
    bed.tool("missing", &tool("read = [\"~/.absent\"]"));
    fs::create_dir_all(bed.path("home/.config/systemd")).unwrap();
    let words: Vec<String> = ["detour", "policy", "config", "home", "missing"]
        .map(|tool| refusal(&bed, tool, |_| {}))
        .to_vec();
    insta::assert_snapshot!(words.join("\n"), @r#"
        NotPermitted: "BED/home/.gitconfig" cannot be granted: it is "BED/home/.ssh/id", and it is, holds or lies in a directory of keys or of what starts by itself
        NotPermitted: tool "policy" is disabled: BED/policy/tools.d/policy.toml:4:9: key "grants.write": path "~/../policy" holds an empty, '.' or '..' component
        NotPermitted: "BED/home/.config" cannot be granted: it is "BED/home/.config", and it is, holds or lies in a directory of keys or of what starts by itself
        NotPermitted: "BED/home" cannot be granted: it is "BED/home", and it is the home directory, or holds it
        NotPermitted: "BED/home/.absent" is granted but cannot be found (no such file or directory): a leading '-' lets it be absent
        "#);
    resolved(&bed, "named", |_| {});
}
