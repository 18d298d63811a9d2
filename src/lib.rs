//! A session broker: opens short-lived interactive tools in a workspace for a client on the user bus, each on a pty of its
//! own, in a systemd scope of its own, confined, and gone when its owner is gone.
//!
//! # The map
//!
//! ```text
//!            D-Bus                                   systemd --user, the kernel
//!              │                                                │
//!   bus ───────┤ reads calls, writes answers          host ─────┤ ptys, scopes, cgroups, pidfds
//!              ▼                                                ▲
//!   engine ──── one task: owns the state, has effects performed ┘
//!              │                                                ▲
//!   broker ──── the core: sessions, leases, quotas              │ spawns, places, releases
//!              │                                                ▼
//!   policy ──── declarations × request = what is launched     launch ── the launcher, in its own program
//!
//!   terminal ── the controller's bytes ⇄ ring, streams; past the engine, never through it
//! ```
//!
//! Dependencies run `bus → engine → broker ← host` and `terminal ← host`. [`broker`] is pure and synchronous: each call
//! changes the state and gives the effects that it caused, and knows neither D-Bus nor the operating system. [`engine`] is
//! the one task that owns it; what takes time is done by tasks that report back, so nothing waits for a launcher, a
//! service manager or a terminal. [`bus`] translates, [`policy`] is data until the last step. [`daemon`] composes these
//! for `st2-toolsd`, and for the broker that the command brings where there is no bus.
//!
//! [`client`] stands alone: the contract as another program sees it. [`agents`] is the MCP server for agents, and [`cli`] the
//! command, both made of that. [`config`] is what the broker may be told. [`doctor`] looks at the machine as a broker would
//! and says what sessions get on it.
//!
//! # The life of a session
//!
//! `opening → running → closing(reason) → closed(outcome)`, one exhaustive match over phase and event.
//!
//! 1. The policy judges the request. The session is in the state before anything of it exists, so that a vanishing owner
//!    finds it.
//! 2. A pty is opened, and the launcher spawned with the user end as its output and a control socket as its input. It
//!    waits, and forks nothing.
//! 3. The launcher confines itself while it is placed in its scope, and only then it is released. It becomes the tool; end
//!    of file on the socket says so, and `Open` is answered.
//! 4. However it ends, it ends by one path: hang up, stop the scope, kill what is left, read the terminal to its end, see
//!    that the cgroup is empty. Then the outcome is announced, and retained for a while.
//!
//! # Invariants
//!
//! - **A session is its leader's life, and its owner's.** When the leader ends, or the owner has vanished and its grace is
//!   over, every process of it is ended: by cgroup, or below a supervisor by descent; never by name or by a number that may
//!   have come to mean another.
//! - **Nothing outlives the broker.** Scopes are bound to its unit, supervisors to its socket. A new one sweeps and adopts
//!   nothing.
//! - **A request narrows.** What a tool may touch, run and be given is declared; a request chooses within that.
//! - **Fail closed.** What the profile needs and the kernel does not enforce is refused; what no kernel enforces is a
//!   [`Gap`](launch::report::Gap), and told.
//! - **Nothing is inherited.** A tool's environment, descriptors, signals, limits and capabilities are made for it.
//! - **The first forced reason wins.** No later event changes why a session ended.
//! - **The end comes last.** Every byte of output can be read before the end is announced; what was dropped is counted.
//! - **Everything is bounded**: by [`Limits`](config::Limits), or by a constant where it is used.
//! - **Nothing in the broker waits for a tool, a client or a manager** with the state in its hands.
//! - **`unsafe` is in [`host`] and [`launch`] only**, each block with the reason why it is sound.
#![deny(unsafe_code)]

pub mod agents;
pub mod broker;
pub mod bus;
pub mod cli;
pub mod client;
pub mod config;
pub mod daemon;
pub mod doctor;
pub mod engine;
#[allow(unsafe_code)]
pub mod host;
#[allow(unsafe_code)]
pub mod launch;
pub mod policy;
pub mod terminal;
