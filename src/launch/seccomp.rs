//! The system call filter: compiled before the scope is there, installed last before `execve(2)`.
//!
//! Four programs, one per way of refusing; the kernel runs all of them and takes the strictest
//! answer (seccomp(2)). Each begins by ending the whole process when the call comes from a foreign
//! architecture (`int 0x80` on x86-64). What they refuse is in `rules.rs`.

use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

use self::rules::{Rule, Test};
use super::spec::Network;

mod rules;

/// Why there is no filter.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SeccompError {
    /// The rules have no program for this machine.
    #[error("cannot compile the system call filter: {source}")]
    Compile {
        /// What seccompiler says.
        source: seccompiler::BackendError,
    },
    /// The kernel refused a program.
    #[error("cannot install the system call filter: {source}")]
    Install {
        /// What seccompiler says; the call's error is inside.
        source: seccompiler::Error,
    },
}

/// Whether the kernel takes system call filters (`PR_GET_SECCOMP`, prctl(2)).
#[must_use]
pub fn has_seccomp() -> bool {
    // SAFETY: this prctl takes no pointer; without a filter it answers 0, and fails where there is no seccomp.
    unsafe { libc::prctl(libc::PR_GET_SECCOMP, 0, 0, 0, 0) >= 0 }
}

impl SeccompError {
    /// `errno` of the call that failed, 0 where there is none.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::Install {
                source: seccompiler::Error::Prctl(source) | seccompiler::Error::Seccomp(source),
            } => io::Error::raw_os_error(source).unwrap_or(0),
            Self::Install { .. } | Self::Compile { .. } => 0,
        }
    }
}

/// Programs that are ready to be installed.
#[derive(Debug)]
pub struct Filter {
    programs: Vec<BpfProgram>,
}

impl Filter {
    /// Compiles the filter for one kind of network, with or without local sockets.
    ///
    /// # Errors
    /// [`SeccompError::Compile`] on a machine that seccompiler does not know.
    pub fn compile(network: &Network, local: bool) -> Result<Self, SeccompError> {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        Ok(Self {
            programs: vec![
                known_calls_only(),
                program(rules::not_permitted(), libc::EPERM, arch)?,
                program(rules::not_implemented(), libc::ENOSYS, arch)?,
                program(rules::sockets(network, local), libc::EACCES, arch)?,
            ],
        })
    }

    /// Installs it for the calling thread and everything that comes of it; sets `no_new_privs`
    /// where it is not set.
    ///
    /// # Errors
    /// [`SeccompError::Install`].
    pub fn install(&self) -> Result<(), SeccompError> {
        let install = |source| SeccompError::Install { source };
        self.programs.iter().try_for_each(|program| apply_filter(program).map_err(install))
    }
}

impl From<seccompiler::BackendError> for SeccompError {
    fn from(source: seccompiler::BackendError) -> Self {
        Self::Compile { source }
    }
}

/// Answers ENOSYS to every call number above [`rules::LAST_CALL`].
///
/// seccompiler only compares for equality. One bound covers the calls that a later kernel adds,
/// which nobody has judged yet, and the whole x32 table, whose numbers carry bit 30.
fn known_calls_only() -> BpfProgram {
    let statement = |code: u32, k: u32| sock_filter { code: narrow(code), jt: 0, jf: 0, k };
    let number = 0; // offset of `nr` in `struct seccomp_data`
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, number),
        sock_filter {
            code: narrow(libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K),
            jt: 0,
            jf: 1,
            k: rules::LAST_CALL,
        },
        statement(libc::BPF_RET | libc::BPF_K, refuse),
        statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
    ]
}

/// The `code` field of an instruction; every constant of linux/bpf_common.h fits in it.
fn narrow(code: u32) -> u16 {
    u16::try_from(code).expect("BPF opcodes are below 0x100")
}

/// Compiles rules into a program that answers `errno` where one of them holds.
fn program(rules: Vec<Rule>, errno: i32, arch: TargetArch) -> Result<BpfProgram, SeccompError> {
    let refuse = SeccompAction::Errno(errno.unsigned_abs());
    let rules = rules
        .into_iter()
        .map(|rule| {
            let chain = rule.when.iter().map(|tests| conjunction(tests));
            Ok((rule.call, chain.collect::<Result<_, _>>()?))
        })
        .collect::<Result<_, SeccompError>>()?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, arch)?;
    Ok(BpfProgram::try_from(filter)?)
}

fn conjunction(tests: &[Test]) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(tests.iter().map(|test| condition(*test)).collect::<Result<_, _>>()?)
}

/// Compares the low 32 bits: the kernel takes each tested argument as an `int` and ignores what a
/// program put above.
fn condition(test: Test) -> Result<SeccompCondition, seccompiler::BackendError> {
    let (argument, operator, value) = match test {
        Test::Is(argument, value) => (argument, SeccompCmpOp::Eq, value),
        Test::Not(argument, value) => (argument, SeccompCmpOp::Ne, value),
        Test::Masked(argument, mask, value) => {
            (argument, SeccompCmpOp::MaskedEq(mask.into()), value)
        }
    };
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value.into())
}

#[cfg(test)]
mod tests;
