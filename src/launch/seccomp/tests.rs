//! Runs the compiled program as the kernel would, on every rule: what this kernel cannot show
//! (x32, aarch64 tables) is shown as well. That the kernel agrees is for the launcher's tests.

use libc::{c_int, c_long};

use super::*;
use crate::launch::spec::Network;

const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
#[cfg(target_arch = "x86_64")]
const NATIVE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const NATIVE: u32 = 0xc000_00b7;

fn errno(errno: c_int) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.unsigned_abs()
}

/// The instructions that the program uses, over `struct seccomp_data`: number, architecture,
/// instruction pointer, arguments.
fn evaluate(program: &BpfProgram, data: &[u32; 16]) -> u32 {
    let (mut at, mut accumulator) = (0, 0);
    loop {
        let instruction = &program[at];
        let (code, k) = (u32::from(instruction.code), instruction.k);
        let jump = |holds: bool| usize::from(if holds { instruction.jt } else { instruction.jf });
        at += 1;
        match code {
            0x20 => accumulator = data[usize::try_from(k / 4).unwrap()],
            0x54 => accumulator &= k,
            0x05 => at += usize::try_from(k).unwrap(),
            0x15 => at += jump(accumulator == k),
            0x25 => at += jump(accumulator > k),
            0x35 => at += jump(accumulator >= k),
            0x06 => return k,
            other => panic!("instruction {other:#x} is not used"),
        }
    }
}

fn judge(filter: &Filter, arch: u32, call: u32, arguments: &[u64]) -> u32 {
    evaluate(&filter.0, &data(arch, call, arguments))
}

fn native() -> TargetArch {
    std::env::consts::ARCH.try_into().unwrap()
}

fn data(arch: u32, call: u32, arguments: &[u64]) -> [u32; 16] {
    let mut data = [0; 16];
    (data[0], data[1]) = (call, arch);
    for (index, argument) in arguments.iter().enumerate() {
        data[4 + 2 * index] = u32::try_from(argument & 0xffff_ffff).unwrap();
        data[5 + 2 * index] = u32::try_from(argument >> 32).unwrap();
    }
    data
}

fn answer_on(arch: u32, network: &Network, call: u32, arguments: &[u64]) -> u32 {
    judge(&Filter::compile(network, false).unwrap(), arch, call, arguments)
}

/// The answer where local sockets are left.
fn local_answer(network: &Network, call: c_long, arguments: &[c_int]) -> u32 {
    let arguments: Vec<u64> = arguments.iter().copied().map(signed).collect();
    let filter = Filter::compile(network, true).unwrap();
    judge(&filter, NATIVE, u32::try_from(call).unwrap(), &arguments)
}

fn answer(network: &Network, call: c_long, arguments: &[u64]) -> u32 {
    answer_on(NATIVE, network, u32::try_from(call).unwrap(), arguments)
}

fn signed(value: c_int) -> u64 {
    value.cast_unsigned().into()
}

#[test]
fn a_foreign_architecture_ends_the_process() {
    let i386 = 0x4000_0003;
    for call in [0, 20, 102, 359] {
        let answer = answer_on(i386, &Network::None, call, &[]);
        assert_eq!(answer, libc::SECCOMP_RET_KILL_PROCESS);
    }
}

#[test]
fn x32_and_unknown_calls_are_not_implemented() {
    for call in [0x4000_0000, 0x4000_0000 + 41, 512, rules::LAST_CALL + 1, u32::MAX] {
        assert_eq!(answer_on(NATIVE, &Network::All, call, &[]), errno(libc::ENOSYS), "{call:#x}");
    }
    assert_eq!(answer_on(NATIVE, &Network::All, rules::LAST_CALL, &[]), ALLOW);
}

#[test]
fn what_no_rule_names_is_allowed_and_what_one_names_is_judged() {
    for (network, local) in [(Network::None, false), (Network::All, true)] {
        let filter = Filter::compile(&network, local).unwrap();
        let rules =
            [rules::not_permitted(), rules::not_implemented(), rules::sockets(&network, local)];
        let named: Vec<c_long> = rules.iter().flatten().map(|rule| rule.call).collect();
        // As many programs without the quick way there.
        let slow = [
            program(rules::sockets(&network, local), libc::EACCES, native()).unwrap(),
            program(rules::not_implemented(), libc::ENOSYS, native()).unwrap(),
            program(rules::not_permitted(), libc::EPERM, native()).unwrap(),
            known_calls_only(),
        ];
        for call in (0..rules::LAST_CALL + 100).chain([0x4000_0000, u32::MAX]) {
            for arguments in [[0; 6], [1; 6], [u64::MAX; 6]] {
                let data = data(NATIVE, call, &arguments);
                let strictest = slow.iter().map(|program| evaluate(program, &data));
                let expected = strictest.into_iter().find(|answer| *answer != ALLOW);
                let got = evaluate(&filter.0, &data);
                assert_eq!(got, expected.unwrap_or(ALLOW), "{call} {arguments:?}");
                if !named.contains(&c_long::from(call)) && call <= rules::LAST_CALL {
                    assert_eq!(got, ALLOW, "{call}");
                }
            }
        }
    }
}

#[test]
fn every_unconditional_rule_refuses_with_its_errno() {
    for (rules, expected) in
        [(rules::not_permitted(), libc::EPERM), (rules::not_implemented(), libc::ENOSYS)]
    {
        for rule in rules.iter().filter(|rule| rule.when.is_empty()) {
            assert_eq!(answer(&Network::All, rule.call, &[]), errno(expected), "{}", rule.call);
        }
    }
}

#[test]
fn the_launcher_and_ordinary_programs_keep_their_calls() {
    for call in [
        libc::SYS_execve,
        libc::SYS_sendmsg,
        libc::SYS_write,
        libc::SYS_mmap,
        libc::SYS_openat,
        libc::SYS_kill,
        libc::SYS_seccomp,
        libc::SYS_inotify_init1,
        libc::SYS_exit_group,
    ] {
        assert_eq!(answer(&Network::None, call, &[]), ALLOW, "{call}");
    }
}

#[test]
fn typing_into_a_terminal_is_refused_whatever_the_upper_half_says() {
    for request in [0x5412, 0x541c, 0x5423] {
        for upper in [0, 1 << 32, 0xffff_ffff << 32] {
            let refused = answer(&Network::None, libc::SYS_ioctl, &[0, request | upper]);
            assert_eq!(refused, errno(libc::EPERM));
        }
    }
    assert_eq!(answer(&Network::None, libc::SYS_ioctl, &[0, libc::TIOCGWINSZ]), ALLOW);
}

#[test]
fn clone_makes_threads_and_children_but_no_namespace() {
    let thread = libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_SIGHAND | libc::CLONE_THREAD;
    for flags in [libc::SIGCHLD, thread, libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD] {
        assert_eq!(answer(&Network::None, libc::SYS_clone, &[signed(flags)]), ALLOW);
    }
    for flag in
        [0x2_0000, 0x200_0000, 0x400_0000, 0x800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000]
    {
        let flags = flag | signed(libc::SIGCHLD) | 1 << 40;
        assert_eq!(answer(&Network::None, libc::SYS_clone, &[flags]), errno(libc::EPERM));
    }
}

#[test]
fn others_are_not_reached_by_number() {
    let by_first = [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
        libc::SYS_prlimit64,
        libc::SYS_move_pages,
        libc::SYS_migrate_pages,
    ];
    for call in by_first {
        assert_eq!(answer(&Network::None, call, &[0]), ALLOW, "{call}");
        assert_eq!(answer(&Network::None, call, &[1]), errno(libc::EPERM), "{call}");
    }
    for (call, user) in [(libc::SYS_setpriority, 2), (libc::SYS_ioprio_set, 3)] {
        assert_eq!(answer(&Network::None, call, &[user - 1, 0]), ALLOW, "{call}");
        assert_eq!(answer(&Network::None, call, &[0, 7]), errno(libc::EPERM), "{call}");
        assert_eq!(answer(&Network::None, call, &[user, 0]), errno(libc::EPERM), "{call}");
    }
}

#[test]
fn usual_personalities_stay() {
    for usual in [0xffff_ffff, 0, 8, 0x2_0000] {
        assert_eq!(answer(&Network::None, libc::SYS_personality, &[usual]), ALLOW);
    }
    let read_implies_exec = 0x40_0000;
    let refused = answer(&Network::None, libc::SYS_personality, &[read_implies_exec]);
    assert_eq!(refused, errno(libc::EPERM));
}

#[test]
fn socket_families_follow_the_network() {
    let tcp = Network::TcpConnect(vec![443]);
    let route = signed(libc::NETLINK_ROUTE);
    let stream = signed(libc::SOCK_STREAM | libc::SOCK_CLOEXEC);
    let dgram = signed(libc::SOCK_DGRAM);
    let mptcp = 262;
    // family, type, protocol; whether TcpConnect and All allow it. None allows nothing.
    let rows = [
        (libc::AF_UNIX, stream, 0, false, false),
        (libc::AF_UNIX, dgram, 0, false, false),
        (libc::AF_PACKET, dgram, 0, false, false),
        (libc::AF_VSOCK, stream, 0, false, false),
        (libc::AF_ALG, stream, 0, false, false),
        (libc::AF_NETLINK, signed(libc::SOCK_RAW), route, true, true),
        (libc::AF_NETLINK, signed(libc::SOCK_RAW), 15, false, false),
        (libc::AF_INET, stream, 0, true, true),
        (libc::AF_INET6, stream, signed(libc::IPPROTO_TCP), true, true),
        (libc::AF_INET, dgram, 0, true, true),
        (libc::AF_INET, stream, mptcp, false, true),
        (libc::AF_INET6, stream, mptcp, false, true),
        (libc::AF_INET, signed(libc::SOCK_SEQPACKET), 0, false, true),
        (libc::AF_INET, signed(libc::SOCK_RAW), 0, false, true),
    ];
    for (family, kind, protocol, in_tcp, in_all) in rows {
        for (network, allowed) in [
            (&Network::None, false),
            (&tcp, in_tcp),
            (&Network::Loopback, in_all),
            (&Network::All, in_all),
        ] {
            let got = answer(network, libc::SYS_socket, &[signed(family), kind, protocol]);
            let expected = if allowed { ALLOW } else { errno(libc::EACCES) };
            assert_eq!(got, expected, "{network:?} {family} {kind} {protocol}");
        }
    }
}

#[test]
fn local_pairs_stay_unless_they_could_be_readdressed() {
    let unix = signed(libc::AF_UNIX);
    for network in [Network::None, Network::TcpConnect(vec![]), Network::All] {
        for (family, kind, allowed) in [
            (unix, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, true),
            (unix, libc::SOCK_SEQPACKET, true),
            (unix, libc::SOCK_DGRAM, false),
            (unix, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK, false),
            (unix, libc::SOCK_RAW, false),
            (signed(libc::AF_TIPC), libc::SOCK_STREAM, false),
        ] {
            let got = answer(&network, libc::SYS_socketpair, &[family, signed(kind)]);
            assert_eq!(got, if allowed { ALLOW } else { errno(libc::EACCES) }, "{family} {kind}");
        }
    }
}

#[test]
fn ways_round_landlocks_ports_are_closed_where_ports_are_granted() {
    let tcp = Network::TcpConnect(vec![443]);
    let fast_open = signed(libc::MSG_FASTOPEN | libc::MSG_NOSIGNAL);
    let ulp = [0, signed(libc::IPPROTO_TCP), signed(libc::TCP_ULP)];
    let rows: [(c_long, &[u64]); 5] = [
        (libc::SYS_listen, &[3, 1]),
        (libc::SYS_sendto, &[3, 0, 0, fast_open]),
        (libc::SYS_sendmsg, &[3, 0, fast_open]),
        (libc::SYS_sendmmsg, &[3, 0, 0, fast_open]),
        (libc::SYS_setsockopt, &ulp),
    ];
    for (call, arguments) in rows {
        assert_eq!(answer(&tcp, call, arguments), errno(libc::EACCES), "{call}");
        assert_eq!(answer(&Network::All, call, arguments), ALLOW, "{call}");
    }
    assert_eq!(answer(&tcp, libc::SYS_sendto, &[3, 0, 0, 0]), ALLOW);
}

#[test]
fn local_sockets_are_left_where_the_tier_allows_and_no_other_family_with_them() {
    let refused = errno(libc::EACCES);
    for network in [Network::None, Network::TcpConnect(vec![443]), Network::All] {
        for kind in [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_SEQPACKET] {
            for call in [libc::SYS_socket, libc::SYS_socketpair] {
                let answer = local_answer(&network, call, &[libc::AF_UNIX, kind, 0]);
                assert_eq!(answer, ALLOW, "{network:?} {call} {kind}");
            }
        }
        for family in [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG] {
            let answer = local_answer(&network, libc::SYS_socket, &[family, libc::SOCK_STREAM, 0]);
            assert_eq!(answer, refused, "{network:?} {family}");
        }
    }
    let internet = [libc::AF_INET, libc::SOCK_STREAM, 0];
    assert_eq!(local_answer(&Network::None, libc::SYS_socket, &internet), refused);
    assert_eq!(local_answer(&Network::All, libc::SYS_socket, &internet), ALLOW);
}
