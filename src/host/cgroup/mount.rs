//! Where the unified hierarchy of control groups is mounted.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
};

use nix::errno::Errno;

use super::read_bounded;

/// Where the hierarchy is mounted, and which part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// Finds the unified hierarchy, alone or beside the old ones.
    pub(super) fn find() -> io::Result<Self> {
        let table = read_bounded(&mut File::open("/proc/self/mountinfo")?)?;
        Self::parse(&table).ok_or_else(|| Errno::ENODEV.into())
    }

    /// Reads proc_pid_mountinfo(5): root and mount point are the fourth and fifth field, the type
    /// follows a field that is a single `-`.
    fn parse(table: &[u8]) -> Option<Self> {
        table.split(|byte| *byte == b'\n').find_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ');
            let (root, point) = (fields.nth(3)?, fields.next()?);
            let kind = fields.skip_while(|field| *field != b"-").nth(1)?;
            (kind == b"cgroup2").then(|| Self { root: unescape(root), point: unescape(point) })
        })
    }

    /// Where a control group is in the file system; `None` where it is not below what is mounted.
    pub(super) fn path(&self, name: &Path) -> Option<PathBuf> {
        let below = name.strip_prefix(&self.root).ok()?;
        let is_plain = |component| matches!(component, Component::Normal(_));
        below.components().all(is_plain).then(|| self.point.join(below))
    }
}

/// Undoes the `\ooo` that stand for space, tab, newline and backslash in mountinfo.
fn unescape(field: &[u8]) -> PathBuf {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = after.get(..3).filter(|_| byte == b'\\').and_then(octal);
        plain.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[3..] } else { after };
    }
    OsStr::from_bytes(&plain).into()
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &[u8] = b"\
23 22 0:21 / /proc rw,nosuid - proc proc rw
31 23 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs rw,mode=755
32 31 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:9 master:2 - cgroup2 cgroup2 rw,nsdelegate
33 31 0:29 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd
";

    fn mount(root: &str, point: &str) -> Mount {
        Mount { root: root.into(), point: point.into() }
    }

    #[test]
    fn the_unified_hierarchy_is_found_beside_the_old_ones() {
        assert_eq!(Mount::parse(HYBRID), Some(mount("/", "/sys/fs/cgroup/unified")));
        assert_eq!(Mount::parse(b"23 22 0:21 / /proc rw - proc proc rw\n"), None);
        assert_eq!(Mount::parse(b"23 22 0:21\n\n"), None);
    }

    #[test]
    fn escaped_characters_are_read_as_they_are() {
        let line = b"1 2 0:3 /a\\134b /mnt/my\\040groups rw - cgroup2 cgroup2 rw\n";
        assert_eq!(Mount::parse(line), Some(mount("/a\\b", "/mnt/my groups")));
        assert_eq!(unescape(b"\\09 \\777\\"), Path::new("\\09 \\777\\"));
    }

    #[test]
    fn what_is_not_mounted_has_no_path() {
        let part = mount("/user.slice", "/sys/fs/cgroup");
        let below = part.path(Path::new("/user.slice/a.scope"));
        assert_eq!(below.as_deref(), Some(Path::new("/sys/fs/cgroup/a.scope")));
        assert_eq!(part.path(Path::new("/system.slice")), None);
        // Seen from another cgroup namespace (cgroup_namespaces(7)).
        assert_eq!(mount("/", "/sys/fs/cgroup").path(Path::new("/../outside")), None);
    }
}
