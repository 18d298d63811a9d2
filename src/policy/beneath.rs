//! Opening what lies beneath a directory, and nothing else, whatever else goes on in the file system.

use std::{
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use nix::{
    errno::Errno,
    fcntl::{OpenHow, ResolveFlag, openat2},
};

/// How often a lookup is begun anew. Each time another rename anywhere on the machine has to come in
/// between.
const ATTEMPTS: usize = 256;

/// Opens a path beneath a directory; symlinks are followed as long as they stay beneath it.
///
/// The kernel gives up with `EAGAIN` on a `..` while something is renamed or mounted, wherever that is
/// (openat2(2)).
///
/// # Errors
/// As openat2(2): `EXDEV` for what leads out, `EAGAIN` after 256 attempts.
pub(super) fn open(directory: impl AsFd, path: &Path, how: OpenHow) -> nix::Result<OwnedFd> {
    let how = how.resolve(ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_MAGICLINKS);
    let attempts = (0..ATTEMPTS).map(|_| openat2(&directory, path, how));
    let is_last = |opened: &nix::Result<OwnedFd>| !matches!(opened, Err(Errno::EAGAIN));
    attempts.into_iter().find(is_last).unwrap_or(Err(Errno::EAGAIN))
}

#[cfg(test)]
mod tests {
    use std::{
        fs::{self, File},
        sync::atomic::{AtomicBool, Ordering},
        thread,
    };

    use nix::fcntl::OFlag;

    use super::*;

    #[test]
    fn what_is_renamed_elsewhere_does_not_matter() {
        let [here, elsewhere] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        fs::create_dir_all(here.path().join("a/b")).unwrap();
        let directory = File::open(here.path()).unwrap();
        let how = OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let [one, two] = ["one", "two"].map(|name| elsewhere.path().join(name));
                fs::write(&one, "").unwrap();
                while !stop.load(Ordering::Relaxed) {
                    fs::rename(&one, &two).unwrap();
                    fs::rename(&two, &one).unwrap();
                }
            });
            let path = Path::new("a/../a/../a/b");
            let failed = (0..20_000).find_map(|_| open(&directory, path, how).err());
            stop.store(true, Ordering::Relaxed);
            assert_eq!(failed, None);
        });
        assert_eq!(open(&directory, Path::new("a/../.."), how).unwrap_err(), Errno::EXDEV);
    }
}
