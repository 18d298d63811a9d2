//! The system call filter: installed last of all that confines.
//!
//! Four programs, one per way of refusing, joined to one: what the first does not refuse, the next
//! judges. It begins by ending the whole process when the call comes from a foreign architecture
//! (`int 0x80` on x86-64), and by allowing at once what no rule names. What they refuse is in
//! `rules.rs`.

use std::{collections::BTreeSet, io};

use libc::c_long;
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

/// A program that is ready to be installed.
#[derive(Debug)]
pub struct Filter(BpfProgram);

impl Filter {
    /// Compiles the filter for one kind of network, with or without local sockets.
    ///
    /// # Errors
    /// [`SeccompError::Compile`] on a machine that seccompiler does not know.
    pub fn compile(network: &Network, local: bool) -> Result<Self, SeccompError> {
        let arch = TargetArch::try_from(std::env::consts::ARCH)?;
        let refused = [
            (rules::sockets(network, local), libc::EACCES),
            (rules::not_implemented(), libc::ENOSYS),
            (rules::not_permitted(), libc::EPERM),
        ];
        let named = refused.iter().flat_map(|(rules, _)| rules.iter().map(|rule| rule.call));
        let quick = unnamed_calls(named);
        let programs = refused.into_iter().map(|(rules, errno)| program(rules, errno, arch));
        let mut programs = programs.collect::<Result<Vec<_>, _>>()?;
        programs.push(known_calls_only());
        // Without a rule there is but the check of the architecture.
        let native = program(Vec::new(), 0, arch)?;
        Ok(Self(joined([native, [quick, joined(programs)].concat()])))
    }

    /// Installs it for the calling thread and everything that comes of it; sets `no_new_privs`
    /// where it is not set.
    ///
    /// # Errors
    /// [`SeccompError::Install`].
    pub fn install(&self) -> Result<(), SeccompError> {
        apply_filter(&self.0).map_err(|source| SeccompError::Install { source })
    }
}

impl From<seccompiler::BackendError> for SeccompError {
    fn from(source: seccompiler::BackendError) -> Self {
        Self::Compile { source }
    }
}

/// Joins programs: where one allows a call, the next one begins.
///
/// The kernel would take several, too. Each costs a session its compilation, and each call of the
/// tool that is not always allowed a run.
fn joined(programs: impl IntoIterator<Item = BpfProgram>) -> BpfProgram {
    let mut joined = BpfProgram::new();
    for next in programs {
        let end = joined.len();
        for (at, instruction) in joined.iter_mut().enumerate() {
            if *instruction == allow() {
                *instruction = jump(end - at - 1);
            }
        }
        joined.extend(next);
    }
    joined
}

/// Allows at once what none of these rules names; what one names, or is above
/// [`rules::LAST_CALL`], runs on behind it.
///
/// seccompiler compares with one number after the other, and the kernel runs the whole of that for
/// each call there is, to learn which are always allowed: 0.2 ms, which halving the numbers saves.
fn unnamed_calls(named: impl Iterator<Item = c_long>) -> BpfProgram {
    let number = |call| u32::try_from(call).expect("calls have small numbers");
    let named: BTreeSet<u32> = named.map(number).collect();
    let mut program = vec![load_number(), branch(libc::BPF_JGT, rules::LAST_CALL), on()];
    program.extend(halved(&Vec::from_iter(named)));
    let end = program.len();
    for (at, instruction) in program.iter_mut().enumerate() {
        if *instruction == on() {
            *instruction = jump(end - at - 1);
        }
    }
    program
}

/// Looks a number up among some in order: runs on where it is one of them, and allows the others.
fn halved(named: &[u32]) -> BpfProgram {
    const FEW: usize = 3;
    if named.len() <= FEW {
        let found = named.iter().flat_map(|call| [branch(libc::BPF_JEQ, *call), on()]);
        return found.chain([allow()]).collect();
    }
    let (below, rest) = named.split_at(named.len() / 2);
    let below_them = halved(below);
    let mut program = vec![branch(libc::BPF_JGE, rest[0]), jump(below_them.len())];
    program.extend(below_them);
    program.extend(halved(rest));
    program
}

/// Answers ENOSYS to every call number above [`rules::LAST_CALL`].
///
/// seccompiler only compares for equality. One bound covers the calls that a later kernel adds,
/// which nobody has judged yet, and the whole x32 table, whose numbers carry bit 30.
fn known_calls_only() -> BpfProgram {
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.unsigned_abs();
    vec![
        load_number(),
        branch(libc::BPF_JGT, rules::LAST_CALL),
        statement(libc::BPF_RET | libc::BPF_K, refuse),
        allow(),
    ]
}

/// Loads the call's number: the first field of `struct seccomp_data`.
fn load_number() -> sock_filter {
    statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0)
}

/// Allows the call.
fn allow() -> sock_filter {
    statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW)
}

/// Passes over so many instructions.
fn jump(over: usize) -> sock_filter {
    let over = u32::try_from(over).expect("programs are shorter than 4096");
    statement(libc::BPF_JMP | libc::BPF_JA, over)
}

/// Stands for the jump to the end of a program whose length is not known yet.
fn on() -> sock_filter {
    statement(libc::BPF_JMP | libc::BPF_JA, u32::MAX)
}

/// Compares what is loaded: runs on where it holds, passes over one instruction where not.
fn branch(comparison: u32, with: u32) -> sock_filter {
    let code = narrow(libc::BPF_JMP | comparison | libc::BPF_K);
    sock_filter { code, jt: 0, jf: 1, k: with }
}

/// An instruction that does not branch.
fn statement(code: u32, k: u32) -> sock_filter {
    sock_filter { code: narrow(code), jt: 0, jf: 0, k }
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
