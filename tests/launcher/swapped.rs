//! Names that lead elsewhere later than when they were judged: when the launcher opens them, when it builds its root,
//! when it is released.

use std::{fs, os::unix::fs::symlink, path::Path};

use serde_json::json;
use st2_tools::launch::spec::{LaunchSpec, Slot, Step};

use crate::{
    mounts::{OK, READ, facts, granted, text},
    session::{Place, Session, mounts},
    stopped::Stopped,
};

/// What happens between which steps of the launcher.
#[derive(Debug, Clone, Copy)]
enum After {
    /// Everything is opened, and the root not begun.
    Opening,
    /// The root is there, and the launcher waits to be released.
    Confining,
}

/// Opens a session in a working directory and swaps something on its way.
fn swapped(place: &Place, cwd: &Path, spec: &LaunchSpec, after: After, swap: impl Fn()) -> Session {
    let mut session = Session::spawn();
    let mut directories = [place.workspace(), place.workspace(), place.tmpdir()];
    directories[Slot::Cwd as usize] = cwd.to_owned();
    let begin = || session.hand_over(spec, &directories.each_ref().map(AsRef::as_ref));
    match after {
        After::Opening => {
            let _stopped = Stopped::before(libc::SYS_unshare, session.pid(), begin);
            swap();
        }
        After::Confining => {
            begin();
            session.ready();
            swap();
            session.release();
        }
    }
    session
}

#[test]
fn the_working_directory_is_the_one_that_was_opened_or_none() {
    for after in [After::Opening, After::Confining] {
        let place = Place::new();
        let (inner, moved) = (place.workspace().join("inner"), place.workspace().join("moved"));
        fs::create_dir(&inner).unwrap();
        let spec = mounts(place.spec(&["facts"]));
        let mut session = swapped(&place, &inner, &spec, after, || {
            fs::rename(&inner, &moved).unwrap();
            symlink(place.outside(), &inner).unwrap();
        });
        match after {
            // It is found again by its name.
            After::Opening => {
                let failure = session.failure();
                assert_eq!((failure.step, failure.errno), (Step::Confine, libc::ELOOP));
            }
            After::Confining => {
                session.confined();
                assert_eq!(facts(&session.all_output())["cwd"], json!(moved));
            }
        }
    }
}

#[test]
fn the_workspace_is_the_one_that_was_opened() {
    for after in [After::Opening, After::Confining] {
        let place = Place::new();
        fs::write(place.workspace().join("mark"), "judged").unwrap();
        fs::write(place.outside().join("mark"), "swapped in").unwrap();
        let moved = place.outside().join("moved");
        let mut spec = mounts(place.spec(&[""]));
        spec.argv = ["cat", "mark"].map(Into::into).into();
        let mut session = swapped(&place, &place.workspace(), &spec, after, || {
            fs::rename(place.workspace(), &moved).unwrap();
            symlink(place.outside(), place.workspace()).unwrap();
        });
        if matches!(after, After::Opening) {
            session.start();
        }
        assert_eq!(session.all_output(), "judged", "{after:?}");
    }
}

#[test]
fn a_grant_that_leads_elsewhere_at_the_gate_is_the_one_that_was_opened() {
    let place = Place::new();
    let (path, other) = (place.outside().join("granted"), place.outside().join("other"));
    for (directory, mark) in [(&path, "judged"), (&other, "swapped in")] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("mark"), mark).unwrap();
    }
    let mut spec = granted(mounts(place.spec(&[""])), &path, READ);
    spec.argv = ["cat".into(), path.join("mark").into()].into();
    let mut session = swapped(&place, &place.workspace(), &spec, After::Confining, || {
        fs::rename(&path, place.outside().join("old")).unwrap();
        symlink(&other, &path).unwrap();
    });
    session.confined();
    assert_eq!(session.all_output(), "judged");
}

#[test]
fn a_grant_that_leads_elsewhere_once_it_is_opened_is_refused() {
    let place = Place::new();
    let (path, secret) = (place.outside().join("granted"), place.outside().join("secret"));
    [&path, &secret].iter().for_each(|path| fs::create_dir(path).unwrap());
    for swap in [true, false] {
        let spec = granted(mounts(place.spec(&["try", "list", &text(&path)])), &path, READ);
        let mut session = Session::open_and(&place, spec, || {
            if swap {
                fs::rename(&path, place.outside().join("old")).unwrap();
                symlink(&secret, &path).unwrap();
            }
        });
        if swap {
            let failure = session.failure();
            let message = format!("{} is not any more what was granted", path.display());
            assert_eq!((failure.step, failure.message), (Step::Confine, message));
            fs::remove_file(&path).unwrap();
            fs::rename(place.outside().join("old"), &path).unwrap();
        } else {
            session.start();
            assert_eq!(session.all_output().trim(), OK);
        }
    }
}

/// In every tier: the launcher follows no symlink to what was judged without one.
#[test]
fn a_symlink_on_the_way_to_a_grant_is_refused() {
    let place = Place::new();
    let (directory, secret) = (place.outside().join("directory"), place.outside().join("secret"));
    for directory in [&directory, &secret] {
        fs::create_dir(directory).unwrap();
        fs::write(directory.join("file"), "secret").unwrap();
    }
    let path = directory.join("file");
    let spec = |own_root: bool| {
        let spec = granted(place.spec(&["try", "read", &text(secret.join("file"))]), &path, READ);
        if own_root { mounts(spec) } else { spec }
    };
    let judged = [spec(false), spec(true)];
    fs::rename(&directory, place.outside().join("old")).unwrap();
    symlink(&secret, &directory).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "secret", "the path leads there");
    for spec in judged {
        let failure = Session::open(&place, spec).failure();
        assert_eq!((failure.step, failure.errno), (Step::Confine, libc::ELOOP), "{failure}");
        assert!(failure.message.contains(&text(&path)), "{failure}");
    }
}
