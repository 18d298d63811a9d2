//! What the tests of this folder stand on: a home directory, a workspace and a policy directory of
//! their own.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use nix::unistd::geteuid;

use crate::{
    config::Settings,
    policy::{
        catalogue::Catalogue,
        explain::{self, Explanation},
        refusal::Refusal,
        request::Request,
        resolve,
        resolved::Resolved,
        search_path::SearchPath,
        surroundings::{Kernel, Surroundings},
    },
};

/// Directories of one test, removed with it.
pub(super) struct Bed {
    _root: tempfile::TempDir,
    /// The canonical path of everything below.
    pub(super) root: PathBuf,
    /// The policy directory.
    pub(super) policy: PathBuf,
    pub(super) surroundings: Surroundings,
    pub(super) settings: Settings,
}

impl Bed {
    /// A home, a workspace and a policy of the `workspace` profile and a tool `true`.
    pub(super) fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let root = temporary.path().canonicalize().unwrap();
        for directory in ["home/.config", "work", "policy/tools.d", "policy/profiles.d", "run"] {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        let bed = Self {
            surroundings: surroundings(&root),
            settings: Settings::default(),
            policy: root.join("policy"),
            root,
            _root: temporary,
        };
        bed.write("policy/profiles.d/workspace.toml", PROFILE);
        bed.tool("true", "title = \"t\"\ncommand = [\"true\"]\narguments = \"any\"");
        bed
    }

    pub(super) fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    pub(super) fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    pub(super) fn link(&self, target: impl AsRef<Path>, path: &str) -> PathBuf {
        let path = self.path(path);
        symlink(target, &path).unwrap();
        path
    }

    pub(super) fn tool(&self, name: &str, text: &str) -> PathBuf {
        self.write(&format!("policy/tools.d/{name}.toml"), text)
    }

    pub(super) fn search(&self) -> SearchPath {
        SearchPath::new(vec![self.policy.clone()])
    }

    pub(super) fn catalogue(&self) -> Catalogue {
        Catalogue::load(self.search())
    }

    /// A request for the workspace of the bed.
    pub(super) fn request(&self) -> Request {
        Request { workspace: Some(self.path("work")), ..Request::default() }
    }

    pub(super) fn resolve(&self, tool: &str, request: &Request) -> Result<Resolved, Refusal> {
        let tmpdir = self.path("tmp/session");
        let catalogue = self.catalogue();
        resolve::resolve(&catalogue, tool, request, &self.surroundings, &self.settings, &tmpdir)
    }

    pub(super) fn explain(&self, tool: &str, request: &Request) -> Explanation {
        let tmpdir = self.path("tmp/session");
        let catalogue = self.catalogue();
        explain::explain(&catalogue, tool, request, &self.surroundings, &self.settings, &tmpdir)
    }

    /// The words of a refusal, with the bed's own path written as `BED`.
    pub(super) fn words(&self, refusal: &impl ToString) -> String {
        refusal.to_string().replace(&*self.root.to_string_lossy(), "BED")
    }
}

/// The kind and the words of the refusal that a changed request gets.
pub(super) fn refusal(bed: &Bed, tool: &str, change: impl FnOnce(&mut Request)) -> String {
    let mut request = bed.request();
    change(&mut request);
    let refusal = bed.resolve(tool, &request).unwrap_err();
    let kind = match refusal {
        Refusal::NoSuchTool(_) => "NoSuchTool",
        Refusal::InvalidWorkspace(_) => "InvalidWorkspace",
        Refusal::NotPermitted(_) => "NotPermitted",
        Refusal::InvalidArgs(_) => "InvalidArgs",
        Refusal::LimitReached(_) => "LimitReached",
        Refusal::ConfinementUnavailable(_) => "ConfinementUnavailable",
    };
    format!("{kind}: {}", bed.words(&refusal))
}

/// What a changed request gets.
pub(super) fn resolved(bed: &Bed, tool: &str, change: impl FnOnce(&mut Request)) -> Resolved {
    let mut request = bed.request();
    change(&mut request);
    bed.resolve(tool, &request).unwrap_or_else(|refusal| panic!("{refusal}"))
}

pub(super) fn strings<const N: usize>(texts: [&str; N]) -> Vec<OsString> {
    texts.map(OsString::from).to_vec()
}

/// A profile that every machine can grant.
pub(super) const PROFILE: &str = r#"
title = "p"
[grants]
execute = ["-/usr", "-/bin", "-/lib", "-/lib64"]
read = ["/proc"]
write = ["${WORKSPACE}", "${TMPDIR}"]
devices = ["/dev/null"]
"#;

fn surroundings(root: &Path) -> Surroundings {
    let environment = [("LANG", "C.UTF-8"), ("EDITOR", "vi"), ("SECRET", "s")];
    Surroundings {
        uid: geteuid(),
        user: "ann".into(),
        home: root.join("home"),
        account_home: root.join("home"),
        shell: "/bin/sh".into(),
        config_home: root.join("home/.config"),
        runtime_dir: Some(root.join("run")),
        temp_dir: root.join("tmp"),
        environment: environment
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into_iter()
            .collect::<BTreeMap<_, _>>(),
        programs: vec![root.join("programs/st2-toolsd")],
        state_dirs: vec![root.join("tmp")],
        kernel: Kernel { landlock_abi: 7, seccomp: true, mounts: false },
        host_gaps: Vec::new(),
    }
}
