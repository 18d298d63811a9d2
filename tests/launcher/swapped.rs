//! Names that lead elsewhere when the launcher is released than when they were judged.

use std::{fs, os::unix::fs::symlink};

use serde_json::json;
use st2_tools::launch::spec::{Slot, Step};

use crate::{
    mounts::{OK, READ, facts, granted, text},
    session::{Place, Session, mounts},
};

#[test]
fn the_working_directory_is_the_one_that_was_opened() {
    let place = Place::new();
    let (inner, moved) = (place.workspace().join("inner"), place.workspace().join("moved"));
    fs::create_dir(&inner).unwrap();
    let mut session = Session::spawn();
    let mut directories = [place.workspace(), place.workspace(), place.tmpdir()];
    directories[Slot::Cwd as usize] = inner.clone();
    let spec = mounts(place.spec(&["facts"]));
    session.hand_over(&spec, &directories.each_ref().map(|path| path.as_path()));
    session.ready();
    fs::rename(&inner, &moved).unwrap();
    symlink(place.outside(), &inner).unwrap();
    session.release();
    session.confined();
    assert_eq!(facts(&session.all_output())["cwd"], json!(moved));
}

#[test]
fn the_workspace_is_the_one_that_was_opened() {
    let place = Place::new();
    fs::write(place.workspace().join("mark"), "judged").unwrap();
    fs::write(place.outside().join("mark"), "swapped in").unwrap();
    let moved = place.outside().join("moved");
    let mut spec = mounts(place.spec(&[""]));
    spec.argv = ["cat", "mark"].map(Into::into).into();
    let mut session = Session::open(&place, spec);
    session.ready();
    fs::rename(place.workspace(), &moved).unwrap();
    symlink(place.outside(), place.workspace()).unwrap();
    session.release();
    session.confined();
    assert_eq!(session.all_output(), "judged");
}

#[test]
fn a_grant_that_leads_elsewhere_at_the_gate_is_refused() {
    let place = Place::new();
    let (path, secret) = (place.outside().join("granted"), place.outside().join("secret"));
    [&path, &secret].iter().for_each(|path| fs::create_dir(path).unwrap());
    for swap in [true, false] {
        let spec = granted(mounts(place.spec(&["try", "list", &text(&path)])), &path, READ);
        let mut session = Session::open(&place, spec);
        session.ready();
        if swap {
            fs::rename(&path, place.outside().join("old")).unwrap();
            symlink(&secret, &path).unwrap();
        }
        session.release();
        if swap {
            let failure = session.failure();
            let message = format!("{} is not any more what was granted", path.display());
            assert_eq!((failure.step, failure.message), (Step::Confine, message));
            fs::remove_file(&path).unwrap();
            fs::rename(place.outside().join("old"), &path).unwrap();
        } else {
            session.confined();
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
