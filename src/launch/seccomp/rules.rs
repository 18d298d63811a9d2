//! Which system calls are refused, and how.
//!
//! The network rules close what Landlock's own leave open: families and protocols that it does not
//! know.

use libc::{AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, c_int, c_long};

use crate::launch::spec::Network;

/// The last system call that was judged: `file_setattr` of Linux 6.17, the same number on every
/// architecture. The later ones, `listns` and `rseq_slice_yield`, are not there for a tool: nothing
/// needs them yet, and the first looks at the namespaces of others.
pub(super) const LAST_CALL: u32 = 469;

/// Calls that libc does not name, the same number on every architecture.
const SYS_OPEN_TREE_ATTR: c_long = 467;

/// Bits of a socket's `type` that hold the type; the others are flags (socket(2)).
const SOCK_TYPE_MASK: u32 = 0xf;

/// `PRIO_USER` of setpriority(2), whose type differs between C libraries.
const PRIO_USER: u32 = 2;

/// `IOPRIO_WHO_USER` of ioprio_set(2), which libc does not name.
const IOPRIO_WHO_USER: u32 = 3;

/// `TIOCSTI` of ioctl_tty(2): types into the terminal.
const TIOCSTI: u32 = 0x5412;

/// `TIOCLINUX` of ioctl_console(2): pastes the selection into the terminal as input.
const TIOCLINUX: u32 = 0x541C;

/// `TIOCSETD` of ioctl_tty(2): puts another line discipline on the terminal, for which the kernel may
/// load a module.
const TIOCSETD: u32 = 0x5423;

/// What of a terminal's requests acts on others than the tool, or on the kernel.
///
/// `TIOCCONS`, `TIOCVHANGUP`, `TIOCSLCKTRMIOS` and stealing by `TIOCSCTTY` need a capability; the
/// requests of ioctl_console(2) but `TIOCLINUX` are for the node of a console, which a pty is not.
const TERMINAL_REQUESTS: [u32; 3] = [TIOCSTI, TIOCLINUX, TIOCSETD];

/// A test of one argument's low 32 bits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    /// Equal.
    Is(u8, u32),
    /// Not equal.
    Not(u8, u32),
    /// Equal under a mask: argument, mask, value.
    Masked(u8, u32, u32),
}

/// When a call is refused: any of the groups holds, each whole; no group is always.
#[derive(Debug)]
pub(super) struct Rule {
    pub(super) call: c_long,
    pub(super) when: Vec<Vec<Test>>,
}

impl Rule {
    fn always(call: c_long) -> Self {
        Self { call, when: Vec::new() }
    }

    fn when<const N: usize>(call: c_long, groups: [Vec<Test>; N]) -> Self {
        Self { call, when: groups.into() }
    }
}

/// Acts on others or on the machine: EPERM, always.
const NOT_PERMITTED: &[c_long] = &[
    // other processes
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // namespaces and mounts
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_mount_setattr,
    // files by number instead of by path
    libc::SYS_open_by_handle_at,
    // the machine
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
];

/// Kernel surface that programs do without: ENOSYS, as on a kernel built without it.
///
/// `clone3` hides its flags behind a pointer; libc falls back to `clone`, whose flags can be read.
/// System V IPC and POSIX queues are named per machine, and Landlock does not know them.
const NOT_IMPLEMENTED: &[c_long] = &[
    libc::SYS_clone3,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    libc::SYS_process_madvise,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_shmget,
    libc::SYS_shmat,
    libc::SYS_shmdt,
    libc::SYS_shmctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_semctl,
    libc::SYS_msgget,
    libc::SYS_msgsnd,
    libc::SYS_msgrcv,
    libc::SYS_msgctl,
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_mq_timedsend,
    libc::SYS_mq_timedreceive,
    libc::SYS_mq_notify,
    libc::SYS_mq_getsetattr,
];

/// As [`NOT_IMPLEMENTED`], of one architecture only.
#[cfg(target_arch = "x86_64")]
const OF_THIS_MACHINE: &[c_long] = &[libc::SYS_modify_ldt, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const OF_THIS_MACHINE: &[c_long] = &[];

/// Calls whose first argument is a process id and that need no right but the same user: allowed on
/// 0, the caller.
///
/// A filter cannot know the caller's own id, so naming oneself by number is refused as well. What
/// runs a command under other settings passes 0 and works (nice, ionice, chrt, taskset, prlimit,
/// node's `os.setPriority`); `renice PID` and `taskset -p PID` do not.
const ON_ITSELF_ONLY: &[c_long] = &[
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
    libc::SYS_prlimit64,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

/// Every namespace that `clone(2)` can make.
const NAMESPACES: [c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// Execution domains that programs use (personality(2)): query, `PER_LINUX`, `PER_LINUX32`, both
/// with `UNAME26`.
const PERSONALITIES: [u32; 5] = [u32::MAX, 0, 0x8, 0x2_0000, 0x2_0008];

/// What is refused with EPERM.
pub(super) fn not_permitted() -> Vec<Rule> {
    let mut rules: Vec<Rule> = NOT_PERMITTED.iter().copied().map(Rule::always).collect();
    rules.extend(ON_ITSELF_ONLY.iter().map(|call| Rule::when(*call, [vec![Test::Not(0, 0)]])));
    rules.extend([
        Rule::when(libc::SYS_setpriority, [vec![Test::Not(1, 0)], vec![Test::Is(0, PRIO_USER)]]),
        Rule::when(
            libc::SYS_ioprio_set,
            [vec![Test::Not(1, 0)], vec![Test::Is(0, IOPRIO_WHO_USER)]],
        ),
        Rule {
            call: libc::SYS_clone,
            when: NAMESPACES.map(|flag| vec![bits(0, flag.cast_unsigned())]).into(),
        },
        Rule::when(libc::SYS_personality, [PERSONALITIES.map(|usual| Test::Not(0, usual)).into()]),
        Rule::when(libc::SYS_ioctl, TERMINAL_REQUESTS.map(|request| vec![Test::Is(1, request)])),
    ]);
    rules
}

/// What is refused with ENOSYS.
pub(super) fn not_implemented() -> Vec<Rule> {
    NOT_IMPLEMENTED.iter().chain(OF_THIS_MACHINE).copied().map(Rule::always).collect()
}

/// What is refused with EACCES, "permission to create a socket of the specified type is denied"
/// (socket(2)); `local` leaves local sockets.
pub(super) fn sockets(network: &Network, local: bool) -> Vec<Rule> {
    let mut rules = vec![socket_pairs(local)];
    match network {
        Network::None if local => {
            rules.push(Rule::when(libc::SYS_socket, [families_other_than(&[AF_UNIX])]));
        }
        Network::None => rules.push(Rule::always(libc::SYS_socket)),
        Network::TcpConnect(_) => rules.extend(tcp_connections_only(local)),
        Network::Loopback | Network::All => rules.push(Rule::when(
            libc::SYS_socket,
            [families_other_than(internet_and(local)), netlink_other_than_route()],
        )),
    }
    rules
}

/// The families of a tool with a network.
fn internet_and(local: bool) -> &'static [c_int] {
    if local { &[AF_INET, AF_INET6, AF_NETLINK, AF_UNIX] } else { &[AF_INET, AF_INET6, AF_NETLINK] }
}

/// Local pairs stay. Where local sockets do not, pairs of datagrams do not either: those can be sent,
/// and connected anew, to any path name (unix(7)). `SOCK_RAW` makes a datagram socket as well.
fn socket_pairs(local: bool) -> Rule {
    let of_type = |kind: c_int| vec![Test::Masked(1, SOCK_TYPE_MASK, kind.cast_unsigned())];
    let mut pairs = Rule::when(libc::SYS_socketpair, [families_other_than(&[AF_UNIX])]);
    if !local {
        pairs.when.extend([of_type(libc::SOCK_DGRAM), of_type(libc::SOCK_RAW)]);
    }
    pairs
}

/// Leaves TCP and UDP sockets, which Landlock judges by port, and takes what would go round its
/// hooks: other protocols (MPTCP and SCTP among them), connecting by sending (TCP Fast Open), upper
/// protocols that replace the socket, and listening without a bound port (which takes listening from
/// local sockets too: listen(2) names no family).
fn tcp_connections_only(local: bool) -> Vec<Rule> {
    let fast_open = libc::MSG_FASTOPEN.cast_unsigned();
    let protocols = [0, libc::IPPROTO_TCP, libc::IPPROTO_UDP];
    let internet = |family: c_int| {
        let mut tests = vec![Test::Is(0, family.cast_unsigned())];
        tests.extend(protocols.map(|protocol| Test::Not(2, protocol.cast_unsigned())));
        tests
    };
    let kinds = [libc::SOCK_RAW, libc::SOCK_RDM, libc::SOCK_SEQPACKET, libc::SOCK_DCCP];
    let mut socket = Rule::when(
        libc::SYS_socket,
        [
            families_other_than(internet_and(local)),
            netlink_other_than_route(),
            internet(AF_INET),
            internet(AF_INET6),
        ],
    );
    socket.when.extend(kinds.map(|kind| {
        let raw = Test::Masked(1, SOCK_TYPE_MASK, kind.cast_unsigned());
        let others = [AF_NETLINK, AF_UNIX].map(|family| Test::Not(0, family.cast_unsigned()));
        [&others[..], &[raw]].concat()
    }));
    vec![
        socket,
        Rule::always(libc::SYS_listen),
        Rule::when(libc::SYS_sendto, [vec![bits(3, fast_open)]]),
        Rule::when(libc::SYS_sendmsg, [vec![bits(2, fast_open)]]),
        Rule::when(libc::SYS_sendmmsg, [vec![bits(3, fast_open)]]),
        Rule::when(
            libc::SYS_setsockopt,
            [vec![
                Test::Is(1, libc::IPPROTO_TCP.cast_unsigned()),
                Test::Is(2, libc::TCP_ULP.cast_unsigned()),
            ]],
        ),
    ]
}

/// Holds for every address family but these.
fn families_other_than(families: &[c_int]) -> Vec<Test> {
    families.iter().map(|family| Test::Not(0, family.cast_unsigned())).collect()
}

/// Holds for netlink protocols but routing, which the C library asks for addresses.
fn netlink_other_than_route() -> Vec<Test> {
    vec![Test::Is(0, AF_NETLINK.cast_unsigned()), Test::Not(2, libc::NETLINK_ROUTE.cast_unsigned())]
}

/// Holds where one bit is set.
fn bits(argument: u8, bit: u32) -> Test {
    Test::Masked(argument, bit, bit)
}
