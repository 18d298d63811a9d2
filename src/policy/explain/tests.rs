use std::fs;

use super::*;
use crate::policy::bed::{Bed, strings};

fn granted(bed: &Bed, tool: &str) -> Facts {
    match bed.explain(tool, &bed.request()) {
        Explanation::Granted(facts) => *facts,
        Explanation::Refused(refusal) => panic!("{refusal}"),
    }
}

#[test]
fn an_explanation_is_what_opening_would_use() {
    let bed = Bed::new();
    let request = Request { cwd: Some("/nowhere".into()), ..bed.request() };
    let Explanation::Refused(refusal) = bed.explain("true", &request) else { panic!("granted") };
    assert_eq!(refusal, bed.resolve("true", &request).unwrap_err());

    let Explanation::Granted(facts) = bed.explain("true", &bed.request()) else {
        panic!("refused")
    };
    let resolved = bed.resolve("true", &bed.request()).unwrap();
    assert_eq!((facts.title.as_str(), facts.argv.as_slice()), ("t", &["true".to_owned()][..]));
    let profile = bed.path("policy/profiles.d/workspace.toml").display().to_string();
    assert_eq!(facts.profiles, [("workspace".to_owned(), profile)]);
    assert_eq!((facts.protect.len(), facts.sockets.len(), facts.settings), (0, 0, None));
    assert!(facts.program.as_deref().unwrap().ends_with("/true"));
    assert_eq!(facts.environment.len(), resolved.spec.environment.len());
    assert_eq!(facts.workspace, bed.path("work").to_string_lossy());
    assert!(facts.write.contains(&facts.workspace) && !facts.execute.contains(&facts.workspace));
    assert!(facts.read.contains(&"/usr".to_owned()) && !facts.write.contains(&"/usr".to_owned()));
    assert_eq!(facts.devices, ["terminal", "/dev/null"]);
    assert_eq!(
        (facts.network.as_str(), facts.landlock_abi, facts.tier),
        ("none", 7, Tier::Seccomp)
    );
    assert_eq!((facts.grace_ms, facts.timeout_ms, facts.memory_max), (10_000, 0, 0));

    let absent = Request { argv: strings(["x"]), ..bed.request() };
    bed.tool("absent", "title = \"a\"\ncommand = [\"no-such-program\"]\narguments = \"any\"");
    let Explanation::Granted(facts) = bed.explain("absent", &absent) else { panic!("refused") };
    assert_eq!(facts.program, None);
    assert!(!bed.path("tmp").exists(), "a dry run makes nothing");
}

#[test]
fn what_will_be_protected_is_what_is_there_or_can_be_made() {
    let mut bed = Bed::new();
    let protected = |bed: &Bed| {
        let paths = granted(bed, "true").protect;
        paths.iter().map(|path| bed.words(path)).collect::<Vec<_>>()
    };
    fs::create_dir(bed.path("work/.git")).unwrap();
    assert_eq!(protected(&bed), [""; 0], "the tier seccomp cannot");
    bed.surroundings.kernel.mounts = true;
    assert_eq!(protected(&bed), ["BED/work/.git/hooks", "BED/work/.git/config"]);
    bed.link("elsewhere", "work/.git/config");
    assert_eq!(protected(&bed), ["BED/work/.git/hooks"]);
    fs::remove_dir_all(bed.path("work/.git")).unwrap();
    assert_eq!(protected(&bed), [""; 0], "no repository");
    bed.link("../home", "work/.git");
    assert_eq!(protected(&bed), [""; 0], "one elsewhere");
}
