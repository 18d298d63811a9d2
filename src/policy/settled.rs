//! Paths with the symlinks of what exists of them followed.

use std::{
    collections::HashMap,
    ffi::OsStr,
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

/// Settles the paths of one judgement. What they have in common is looked up once: with dozens of places in the same
/// home directory, that is most of what a judgement asks of the system.
#[derive(Debug, Default)]
pub(super) struct Settler {
    known: HashMap<PathBuf, Place>,
}

/// Where a path leads.
#[derive(Debug, Clone)]
struct Place {
    /// Canonical as far as it exists.
    path: PathBuf,
    exists: bool,
}

impl Settler {
    /// A path with the symlinks of what exists of it followed.
    pub(super) fn settle(&mut self, path: &Path) -> PathBuf {
        self.find(path).path
    }

    fn find(&mut self, path: &Path) -> Place {
        if let Some(place) = self.known.get(path) {
            return place.clone();
        }
        let place = match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) if path.is_absolute() => self.find(parent).enter(name),
            _ => self.find_odd(path),
        };
        self.known.insert(path.to_owned(), place.clone());
        place
    }

    /// The root, a relative path, or one that ends in `..`, which does not mean its parent behind a symlink.
    fn find_odd(&mut self, path: &Path) -> Place {
        let whole = Place::of(path.to_owned());
        match path.parent() {
            Some(parent) if !whole.exists => {
                let last = path.strip_prefix(parent).unwrap_or(path);
                Place { path: self.find(parent).path.join(last), exists: false }
            }
            _ => whole,
        }
    }
}

impl Place {
    fn of(path: PathBuf) -> Self {
        match path.canonicalize() {
            Ok(path) => Self { path, exists: true },
            Err(_) => Self { path, exists: false },
        }
    }

    /// The place of this name in a place.
    fn enter(self, name: &OsStr) -> Self {
        let path = self.path.join(name);
        if !self.exists {
            return Self { path, exists: false };
        }
        match fs::read_link(&path) {
            Ok(_) => Self::of(path),
            // There, and no symlink (readlink(2)).
            Err(error) if error.kind() == ErrorKind::InvalidInput => Self { path, exists: true },
            Err(_) => Self { path, exists: false },
        }
    }
}

/// A single path with the symlinks of what exists of it followed.
pub(super) fn settled(path: &Path) -> PathBuf {
    Settler::default().settle(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_exists_is_followed_and_the_rest_kept() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/inner")).unwrap();
        fs::write(root.join("file"), "").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("nowhere", root.join("dangling")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let mut settler = Settler::default();
        for (path, expected) in [
            ("real/inner", "real/inner"),
            ("link/inner", "real/inner"),
            ("link", "real"),
            ("link/absent/more", "real/absent/more"),
            ("link/inner/../inner", "real/inner"),
            ("dangling/more", "dangling/more"),
            ("loop/more", "loop/more"),
            ("file/more", "file/more"),
            ("link/absent/../more", "real/absent/../more"),
        ] {
            assert_eq!(settler.settle(&root.join(path)), root.join(expected), "{path}");
            assert_eq!(settled(&root.join(path)), root.join(expected), "{path}, alone");
        }
        assert_eq!(settled(Path::new("/")), Path::new("/"));
    }
}
