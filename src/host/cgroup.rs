//! A control group of the unified hierarchy (cgroups(7)): who is in it, whether anybody is, an end to
//! all of them.

use std::{
    ffi::OsStr,
    fs::{self, File},
    future::Future,
    io::{self, Read, Write},
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    path::{Path, PathBuf},
    time::Duration,
};

use nix::{
    errno::Errno,
    fcntl::{OFlag, open, openat},
    sys::stat::Mode,
    unistd::{Pid, UnlinkatFlags, getpgid, unlinkat},
};
use tokio::{io::Interest, time::timeout};

use self::mount::Mount;
use super::{pidfd::PidFd, watch::watch};
use crate::broker::outcome::Usage;

mod mount;

/// The first and the longest pause after which a control group is looked at without being told.
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(100);

/// Most bytes read of one control file.
const FILE_MAX: u64 = 1024 * 1024;

/// Most levels of control groups below one of ours that are looked into.
const DEPTH_MAX: usize = 32;

/// A control group by descriptor: its name may be made anew, this stays the same.
#[derive(Debug)]
pub struct Cgroup {
    directory: OwnedFd,
    /// As `/proc/PID/cgroup` has it.
    name: PathBuf,
    path: PathBuf,
}

/// The control group of a process, as `/proc/PID/cgroup` names it.
///
/// # Errors
/// `ENOENT` or `ESRCH` where there is no such process; `ENODATA` where there is no unified hierarchy.
pub fn name_of(pid: i32) -> io::Result<PathBuf> {
    let table = read_bounded(&mut File::open(format!("/proc/{pid}/cgroup"))?)?;
    let line = table.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"0::"));
    let name = line.ok_or(Errno::ENODATA)?;
    Ok(OsStr::from_bytes(name).into())
}

impl Cgroup {
    /// The control group that a process is in.
    ///
    /// # Errors
    /// As [`name_of`] and [`Cgroup::open`].
    pub fn of(pid: i32) -> io::Result<Self> {
        Self::open(name_of(pid)?)
    }

    /// The control group of this name.
    ///
    /// # Errors
    /// `ENOENT` where it is not there, `ENODEV` where it is outside of what is mounted here.
    pub fn open(name: PathBuf) -> io::Result<Self> {
        let path = Mount::find()?.path(&name).ok_or(Errno::ENODEV)?;
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        let directory = open(&path, flags, Mode::empty())?;
        Ok(Self { directory, name, path })
    }

    /// Makes a control group in this one.
    ///
    /// # Errors
    /// `EACCES` or `EROFS` where we may not, `EEXIST`.
    pub fn make(&self, name: &str) -> io::Result<Self> {
        fs::create_dir(self.path.join(name))?;
        Self::open(self.name.join(name))
    }

    /// Where it is in the file system.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// As `/proc/PID/cgroup` has it.
    #[must_use]
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// The controllers that it may use.
    ///
    /// # Errors
    /// As read(2).
    pub fn controllers(&self) -> io::Result<Vec<String>> {
        let names = self.read("cgroup.controllers")?;
        Ok(String::from_utf8_lossy(&names).split_whitespace().map(str::to_owned).collect())
    }

    /// Whether anything lives in it or below it. A control group that is gone is empty.
    ///
    /// # Errors
    /// As read(2).
    pub fn is_populated(&self) -> io::Result<bool> {
        Ok(self.value("cgroup.events", "populated")?.is_some_and(|count| count > 0))
    }

    /// The processes in it and below it; none where it is gone.
    ///
    /// # Errors
    /// As read(2).
    pub fn members(&self) -> io::Result<Vec<i32>> {
        let mut members = Vec::new();
        collect(&self.itself(), DEPTH_MAX, &mut members)?;
        Ok(members)
    }

    /// Kills all in it and below it, what is being forked and what is frozen included.
    ///
    /// # Errors
    /// `ENOENT` where the kernel has no `cgroup.kill` (before Linux 5.14).
    pub fn kill(&self) -> io::Result<()> {
        match self.write("cgroup.kill", "1") {
            Err(error) if is_gone(&error) && !self.exists() => Ok(()),
            other => other,
        }
    }

    /// Freezes or thaws all in it and below it, and waits until that is so.
    ///
    /// # Errors
    /// `ETIMEDOUT` after `at_most`; as write(2).
    pub async fn freeze(&self, frozen: bool, at_most: Duration) -> io::Result<()> {
        self.write("cgroup.freeze", if frozen { "1" } else { "0" })?;
        let wanted = u64::from(frozen);
        let settled = self.until(|| Ok(self.value("cgroup.events", "frozen")? == Some(wanted)));
        timeout(at_most, settled).await.map_err(|_| Errno::ETIMEDOUT)?
    }

    /// Waits until nothing lives in it, at most so long; gives how many processes still do.
    ///
    /// # Errors
    /// As read(2).
    pub async fn emptied(&self, at_most: Duration) -> io::Result<u32> {
        match timeout(at_most, self.until(|| Ok(!self.is_populated()?))).await {
            Ok(waited) => waited.map(|()| 0),
            // What is populated holds one at least, even if that one is not seen from here.
            Err(_) if self.is_populated()? => {
                Ok(u32::try_from(self.members()?.len()).unwrap_or(u32::MAX).max(1))
            }
            Err(_) => Ok(0),
        }
    }

    /// Sends a signal to every member that `wanted` accepts; gives how many that were.
    ///
    /// A member is held by pidfd before it is asked once more whether it is one: so its number cannot
    /// have come to mean somebody else.
    ///
    /// # Errors
    /// As read(2); `EINVAL` for a signal that is none.
    pub fn signal(&self, signal: i32, wanted: impl Fn(i32) -> bool) -> io::Result<u32> {
        let mut signalled = 0;
        for pid in self.members()? {
            let Ok(process) = PidFd::open(pid) else { continue };
            let is_member = name_of(pid).is_ok_and(|name| name.starts_with(&self.name));
            if !is_member || !wanted(pid) {
                continue;
            }
            signalled += u32::from(process.signal_if_there(signal)?);
        }
        Ok(signalled)
    }

    /// Sends a signal to every member of a process group that is in it.
    ///
    /// # Errors
    /// As [`Cgroup::signal`].
    pub fn signal_group(&self, group: i32, signal: i32) -> io::Result<u32> {
        self.signal(signal, |pid| getpgid(Some(Pid::from_raw(pid))) == Ok(Pid::from_raw(group)))
    }

    /// What all in it used so far; zero for what is not accounted for here, or where it is gone.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let peak = self.read("memory.peak").unwrap_or_default();
        Usage {
            cpu_usec: self.value("cpu.stat", "usage_usec").ok().flatten().unwrap_or_default(),
            memory_peak: String::from_utf8_lossy(&peak).trim().parse().unwrap_or_default(),
        }
    }

    /// How many processes in it the kernel killed for want of memory; 0 where that is not counted.
    #[must_use]
    pub fn out_of_memory_kills(&self) -> u64 {
        self.value("memory.events", "oom_kill").ok().flatten().unwrap_or_default()
    }

    /// Removes it and all below it. What is gone already counts as removed.
    ///
    /// # Errors
    /// `EBUSY` while anything lives in it.
    pub fn remove(&self) -> io::Result<()> {
        if self.exists() { remove_below(&self.path, DEPTH_MAX) } else { Ok(()) }
    }

    /// Whether it is still there: a removed directory has no entries, not even control files.
    fn exists(&self) -> bool {
        openat(&self.directory, "cgroup.procs", OFlag::O_PATH | OFlag::O_CLOEXEC, Mode::empty())
            .is_ok()
    }

    /// A path that leads to this very directory, whatever its name means by now.
    fn itself(&self) -> PathBuf {
        format!("/proc/self/fd/{}", self.directory.as_raw_fd()).into()
    }

    fn open_file(&self, file: &str, flags: OFlag) -> io::Result<File> {
        let flags = flags | OFlag::O_CLOEXEC | OFlag::O_NOFOLLOW;
        Ok(File::from(openat(&self.directory, file, flags, Mode::empty())?))
    }

    fn read(&self, file: &str) -> io::Result<Vec<u8>> {
        read_bounded(&mut self.open_file(file, OFlag::O_RDONLY)?)
    }

    fn write(&self, file: &str, text: &str) -> io::Result<()> {
        self.open_file(file, OFlag::O_WRONLY)?.write_all(text.as_bytes())
    }

    /// The number behind a key of a flat-keyed file; `None` where the file or the key is not there.
    fn value(&self, file: &str, key: &str) -> io::Result<Option<u64>> {
        match self.read(file) {
            Ok(text) => Ok(flat_value(&text, key)),
            Err(error) if is_gone(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until `reached` holds, asked anew whenever `cgroup.events` changes, and now and then.
    ///
    /// Now and then, because a change may go untold: the kernel holds back what comes within 10 ms of
    /// the last one told, and drops it when the control group is removed meanwhile.
    fn until(
        &self,
        reached: impl Fn() -> io::Result<bool> + Send,
    ) -> impl Future<Output = io::Result<()>> + Send {
        let events = self.open_file("cgroup.events", OFlag::O_RDONLY);
        async move {
            let events = match events {
                Err(error) if is_gone(&error) => return Ok(()),
                other => watch(other?.into(), Interest::PRIORITY)?,
            };
            let mut pause = PAUSE_MIN;
            while !reached()? {
                if let Ok(ready) = timeout(pause, events.ready(Interest::PRIORITY)).await {
                    ready?.clear_ready();
                    // The kernel tells of a change only after the last one was read.
                    let copy = File::from(events.get_ref().try_clone()?);
                    match copy.read_at(&mut [0; 256], 0) {
                        Err(error) if is_gone(&error) => return Ok(()),
                        other => drop(other?),
                    }
                }
                pause = (pause * 2).min(PAUSE_MAX);
            }
            Ok(())
        }
    }
}

fn flat_value(text: &[u8], key: &str) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let (_, value) = text.lines().filter_map(|line| line.split_once(' ')).find(|p| p.0 == key)?;
    value.trim().parse().ok()
}

/// Whether an error says that the control group, or the file of it, is not there (any more).
fn is_gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ENOENT | libc::ENODEV))
}

/// Reads a file of the kernel's, which has no size that could be asked for: most fit the first read.
fn read_bounded(file: &mut File) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(4096);
    file.take(FILE_MAX).read_to_end(&mut text)?;
    Ok(text)
}

/// Gathers the members of a control group and of those below it.
fn collect(directory: &Path, depth: usize, members: &mut Vec<i32>) -> io::Result<()> {
    let procs =
        File::open(directory.join("cgroup.procs")).and_then(|mut file| read_bounded(&mut file));
    let procs = match procs {
        Err(error) if is_gone(&error) => return Ok(()),
        other => other?,
    };
    let procs = String::from_utf8_lossy(&procs);
    members.extend(procs.lines().filter_map(|line| line.parse::<i32>().ok()));
    if depth > 0 {
        for below in children(directory)? {
            collect(&below, depth - 1, members)?;
        }
    }
    Ok(())
}

fn remove_below(directory: &Path, depth: usize) -> io::Result<()> {
    if depth > 0 {
        for below in children(directory)? {
            remove_below(&below, depth - 1)?;
        }
    }
    match unlinkat(nix::fcntl::AT_FDCWD, directory, UnlinkatFlags::RemoveDir) {
        Err(Errno::ENOENT) => Ok(()),
        other => Ok(other?),
    }
}

fn children(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let listing = match fs::read_dir(directory) {
        Err(error) if is_gone(&error) => return Ok(Vec::new()),
        other => other?,
    };
    let mut children = Vec::new();
    for entry in listing {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            children.push(entry.path());
        }
    }
    Ok(children)
}

#[cfg(test)]
mod tests;
