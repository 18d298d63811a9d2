use std::{
    fs::{self, Permissions},
    os::unix::fs::{PermissionsExt, symlink},
};

use super::*;

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

#[test]
fn a_session_has_a_private_directory_that_goes_with_all_in_it() {
    let place = tempfile::tempdir().unwrap();
    let root = TmpRoot::create(place.path()).unwrap();
    let directory = root.make(&id("a1")).unwrap();
    let path = directory.path();
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(root.path().metadata().unwrap().permissions().mode() & 0o7777, 0o700);
    assert_eq!(root.make(&id("a1")).unwrap_err().errno(), libc::EEXIST);
    fs::create_dir(path.join("closed")).unwrap();
    fs::write(path.join("closed/file"), "x").unwrap();
    fs::set_permissions(path.join("closed"), Permissions::from_mode(0o0)).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o0)).unwrap();
    directory.remove().unwrap();
    assert!(!path.exists());
    drop(root);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn nothing_is_removed_through_a_link() {
    let place = tempfile::tempdir().unwrap();
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    fs::set_permissions(&outside, Permissions::from_mode(0o755)).unwrap();
    let root = TmpRoot::create(place.path()).unwrap();
    let directory = root.make(&id("a1")).unwrap();
    symlink(&outside, directory.path().join("link")).unwrap();
    fs::create_dir(directory.path().join("deep")).unwrap();
    symlink(&outside, directory.path().join("deep/link")).unwrap();
    directory.remove().unwrap();
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
    assert_eq!(outside.metadata().unwrap().permissions().mode() & 0o777, 0o755);
}

#[test]
fn a_path_that_was_replaced_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let outside = place.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "kept").unwrap();
    let root = TmpRoot::create(place.path()).unwrap();
    let directory = root.make(&id("a1")).unwrap();
    fs::rename(directory.path(), place.path().join("moved")).unwrap();
    symlink(&outside, directory.path()).unwrap();
    assert_eq!(directory.remove().unwrap_err().errno(), libc::ESTALE);
    drop(root);
    assert_eq!(fs::read_to_string(outside.join("file")).unwrap(), "kept");
}

#[test]
fn a_tree_deeper_than_a_path_can_be_long_is_removed() {
    // In memory: a disk shared with others takes its time for thousands of directories.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let root = TmpRoot::create(place.path()).unwrap();
    let directory = root.make(&id("a1")).unwrap();
    // PATH_MAX is 4096 bytes.
    let mut at = directory.as_fd().try_clone_to_owned().unwrap();
    for depth in 0..3000 {
        mkdirat(&at, "d", Mode::S_IRWXU).unwrap();
        if depth % 100 == 0 {
            mkdirat(&at, depth.to_string().as_str(), Mode::empty()).unwrap();
        }
        at = openat(&at, "d", DIRECTORY, Mode::empty()).unwrap();
    }
    let path = directory.path();
    directory.remove().unwrap();
    assert!(!path.exists());
}

#[test]
fn a_sweep_takes_the_dead_brokers_directories_only() {
    let place = tempfile::tempdir().unwrap();
    let living = TmpRoot::create(place.path()).unwrap();
    let stale = place.path().join(format!("{}00", prefix()));
    fs::create_dir_all(stale.join("a1/deep")).unwrap();
    let foreign = place.path().join("st2-tools-4294967290-00");
    fs::create_dir(&foreign).unwrap();
    let link = place.path().join(format!("{}01", prefix()));
    symlink(&foreign, &link).unwrap();
    assert_eq!(TmpRoot::sweep(place.path()).unwrap(), 1);
    assert!(living.path().exists() && foreign.exists() && link.is_symlink());
    assert!(!stale.exists());
    assert_eq!(TmpRoot::sweep(place.path()).unwrap(), 0);
}
