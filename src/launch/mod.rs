//! What the launcher is made of, and the words in which the broker speaks to it.
//!
//! | file | what |
//! |---|---|
//! | [`spec`], [`report`], [`wire`] | what goes over the control socket, shared with the broker |
//! | [`environment`] | the tool's environment, built by the broker |
//! | [`run`] | the one sequence: terminal, confinement, gate, `execve` |
//! | [`inherited`], [`exec`] | what the tool does not inherit; how it is executed |
//! | [`confine`], [`mounts`], [`capability`], [`seccomp`] | what the kernel enforces |
//! | [`supervise`], [`descendants`] | watching over a tool where no service manager does |
//!
//! The launcher has one thread and one way: each step throws away what the later ones do not need.

pub mod capability;
pub mod confine;
pub mod control;
pub mod descendants;
pub mod environment;
pub mod exec;
pub mod failure;
pub mod inherited;
pub mod mounts;
pub mod report;
pub mod run;
pub mod seccomp;
pub mod spec;
pub mod supervise;
pub mod wire;

pub use confine::landlock_abi;
pub use seccomp::has_seccomp;
