//! Executing the tool: `execvp(3)` with the tool's own `PATH`, and without its shell.

use std::{
    ffi::{CStr, CString, NulError, OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::Path,
};

use nix::{errno::Errno, unistd::execve};

use super::spec::LaunchSpec;

/// Where programs are looked up if the environment has no `PATH`.
const DEFAULT_PATH: &str = "/usr/bin:/bin";

/// Why a tool is not executed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// No argv.
    #[error("argv is empty")]
    Empty,
    /// A string that has no C form.
    #[error("an argument or environment entry holds a NUL byte: {source}")]
    Nul {
        /// Where.
        source: NulError,
    },
    /// A path that was to be executed as it is.
    #[error("cannot execute {program:?}: {source}")]
    Path {
        /// The path.
        program: String,
        /// What execve(2) gave.
        source: Errno,
    },
    /// A name that was looked up.
    #[error("cannot execute {program:?} from PATH {path:?}: {source}")]
    Lookup {
        /// The name.
        program: String,
        /// The directories.
        path: String,
        /// What the lookup gave: EACCES where one was found that may not be executed.
        source: Errno,
    },
}

/// A tool that is ready to be executed: nothing but system calls is left to do.
#[derive(Debug)]
pub struct Program {
    argv: Vec<CString>,
    environment: Vec<CString>,
    /// What is tried, in order.
    candidates: Vec<CString>,
    /// `PATH`, where the program is looked up.
    path: Option<String>,
}

impl Program {
    /// Takes argv and environment of a specification.
    ///
    /// A program without a slash is looked up in the absolute directories of `PATH`: others would
    /// name files beneath the working directory, which belongs to the workspace.
    ///
    /// # Errors
    /// [`ExecError::Empty`], [`ExecError::Nul`].
    pub fn new(spec: &LaunchSpec) -> Result<Self, ExecError> {
        let argv = spec.argv.iter().map(|argument| c_string(argument.as_bytes()));
        let argv = argv.collect::<Result<Vec<_>, _>>()?;
        let program = argv.first().ok_or(ExecError::Empty)?;
        let environment = spec.environment.iter();
        let environment = environment.map(|(name, value)| c_string(&entry(name, value)));
        let environment = environment.collect::<Result<_, _>>()?;
        if program.as_bytes().contains(&b'/') {
            let candidates = vec![program.clone()];
            return Ok(Self { argv, environment, candidates, path: None });
        }
        let path = spec.environment.get(OsStr::new("PATH"));
        let path = path.map_or(OsStr::new(DEFAULT_PATH), OsString::as_os_str);
        let candidates = std::env::split_paths(path)
            .filter(|directory| directory.is_absolute())
            .map(|directory| c_string(&beneath(&directory, program)))
            .collect::<Result<_, _>>()?;
        let path = Some(path.to_string_lossy().into_owned());
        Ok(Self { argv, environment, candidates, path })
    }

    /// Becomes the tool; comes back only with the reason why not.
    #[must_use]
    pub fn exec(&self) -> ExecError {
        let mut remembered = Errno::ENOENT;
        for candidate in &self.candidates {
            match try_exec(candidate, &self.argv, &self.environment) {
                Errno::ENOENT | Errno::ENOTDIR | Errno::ESTALE | Errno::ENODEV
                    if self.path.is_some() => {}
                Errno::EACCES => remembered = Errno::EACCES,
                other => return self.error(other),
            }
        }
        self.error(remembered)
    }

    fn error(&self, source: Errno) -> ExecError {
        let program = self.argv.first().map_or_else(String::new, |program| lossy(program));
        match self.path.clone() {
            Some(path) => ExecError::Lookup { program, path, source },
            None => ExecError::Path { program, source },
        }
    }
}

fn try_exec(path: &CStr, argv: &[CString], environment: &[CString]) -> Errno {
    match execve(path, argv, environment) {
        Ok(never) => match never {},
        Err(errno) => errno,
    }
}

fn c_string(bytes: &[u8]) -> Result<CString, ExecError> {
    CString::new(bytes).map_err(|source| ExecError::Nul { source })
}

fn entry(name: &OsStr, value: &OsStr) -> Vec<u8> {
    [name.as_bytes(), b"=", value.as_bytes()].concat()
}

fn beneath(directory: &Path, program: &CStr) -> Vec<u8> {
    directory.join(OsStr::from_bytes(program.to_bytes())).into_os_string().as_bytes().to_vec()
}

fn lossy(text: &CStr) -> String {
    text.to_string_lossy().into_owned()
}
