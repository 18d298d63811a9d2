//! Other processes: ended, traced, read, changed by their number.

use std::{cell::RefCell, fs, path::Path, rc::Rc};

use crate::{
    hostile::{
        attempt::{Attempt, words},
        from::From,
        scene::Scene,
        victims::{TREASURE, Victim},
    },
    support::lives,
};

pub fn attempts() -> Vec<Attempt> {
    [signalled(), seen(), traced(), changed(), sessions(), broker()].into_iter().flatten().collect()
}

fn sleeper(scene: &Scene, name: &str) -> i32 {
    scene.victim(name, Victim::sleeper).pid()
}

/// Ends a process in some way.
fn ended(name: &'static str, word: &'static str) -> Attempt {
    Attempt::new(name, move |s| words![word, sleeper(s, word)])
        .trace(move |s| s.known_victim(word).is_dead())
}

fn signalled() -> Vec<Attempt> {
    vec![
        ended("kill a process", "kill"),
        ended("signal a process with a value", "queue-signal"),
        ended("kill a process by pidfd", "kill-by-pidfd"),
        ended("signal as the owner of a pipe (F_SETOWN)", "signal-by-owner"),
        ended("signal as the owner of a socket (FIOSETOWN)", "signal-by-socket"),
        Attempt::new("signal everybody: kill(-1)", |s| {
            let (mark, settled) = (s.out("signalled"), s.out("settled"));
            s.victim("alert", || Victim::alert(Path::new(&mark), Path::new(&settled)));
            words!["signal-all", "urg"]
        })
        .trace(|s| s.is_there("signalled")),
    ]
}

/// What anybody may see of a process in /proc.
fn seen() -> Vec<Attempt> {
    let path = |s: &Scene, file: &str| format!("/proc/{}/{file}", sleeper(s, "read"));
    let all = vec![
        Attempt::new("read the command line of a process", move |s| {
            words!["read-has", path(s, "cmdline"), "1000"]
        }),
        Attempt::new("read the status of a process", move |s| {
            words!["read-has", path(s, "status"), "sleep"]
        }),
        Attempt::new("count the descriptors of a process", move |s| words!["list", path(s, "fd")]),
    ];
    all.into_iter().map(|attempt| attempt.gap(&["processes-visible"])).collect()
}

fn traced() -> Vec<Attempt> {
    let treasurer = |s: &Scene, word: &str| {
        let victim = s.victim(word, Victim::treasurer);
        words![word, victim.pid(), victim.address]
    };
    let stolen = |s: &Scene, word: &str| {
        let victim = s.known_victim(word);
        let memory = fs::File::open(format!("/proc/{}/mem", victim.pid())).unwrap();
        let mut found = [0; TREASURE.len()];
        let address = victim.address.try_into().unwrap();
        std::os::unix::fs::FileExt::read_exact_at(&memory, &mut found, address).unwrap();
        found != TREASURE.as_bytes()
    };
    let of = |name, file: &'static str| {
        Attempt::new(name, move |s| {
            words!["read-some", format!("/proc/{}/{file}", sleeper(s, "read"))]
        })
    };
    vec![
        Attempt::new("trace a process", |s| words!["seize", sleeper(s, "traced")]),
        Attempt::new("write memory (process_vm_writev)", move |s| treasurer(s, "write-memory"))
            .trace(move |s| stolen(s, "write-memory")),
        Attempt::new("read memory (process_vm_readv)", move |s| treasurer(s, "read-memory")),
        Attempt::new("write /proc/PID/mem", move |s| treasurer(s, "write-memory-file"))
            .trace(move |s| stolen(s, "write-memory-file")),
        Attempt::new("read /proc/PID/environ", |s| {
            let environment = format!("/proc/{}/environ", sleeper(s, "read"));
            words!["read-has", environment, TREASURE]
        }),
        of("read /proc/PID/maps", "maps"),
        of("read /proc/PID/auxv", "auxv"),
        of("read /proc/PID/exe", "exe"),
        Attempt::new("read where /proc/PID/fd leads", |s| {
            words!["read-link", format!("/proc/{}/fd/0", sleeper(s, "read"))]
        }),
        Attempt::new("list /proc/PID/root", |s| {
            words!["list", format!("/proc/{}/root/", sleeper(s, "read"))]
        }),
        Attempt::new("compare with a process (kcmp)", |s| words!["compare", sleeper(s, "read")]),
    ]
}

/// Changes something of a process, which `look` shows: it is not as it was.
fn by_number(name: &'static str, word: &'static str, look: fn(&Victim) -> String) -> Attempt {
    let before = Rc::new(RefCell::new(String::new()));
    let noted = Rc::clone(&before);
    let words = move |s: &Scene| {
        let victim = s.victim(word, Victim::sleeper);
        *noted.borrow_mut() = look(&victim);
        words![word, victim.pid()]
    };
    Attempt::new(name, words).trace(move |s| look(&s.known_victim(word)) != *before.borrow())
}

/// Field `number` of proc_pid_stat(5).
fn stat(victim: &Victim, number: usize) -> String {
    let line = victim.shows("stat", "");
    let rest = line.rsplit_once(") ").map(|(_, rest)| rest.to_owned()).unwrap_or_default();
    rest.split(' ').nth(number - 3).unwrap_or_default().to_owned()
}

fn changed() -> Vec<Attempt> {
    vec![
        by_number("pin to a processor (sched_setaffinity)", "pin", |victim| {
            victim.shows("status", "Cpus_allowed_list:")
        }),
        by_number("lower its priority (setpriority)", "lower-priority", |victim| stat(victim, 19)),
        by_number("limit it (prlimit)", "limit", |victim| victim.shows("limits", "Max processes")),
        by_number("schedule it as a batch (sched_setscheduler)", "schedule", |victim| {
            stat(victim, 41)
        }),
        by_number("schedule it as a batch (sched_setattr)", "schedule-by-attributes", |victim| {
            stat(victim, 41)
        }),
        Attempt::new("make its input and output idle (ioprio_set)", |s| {
            words!["make-idle", sleeper(s, "idle")]
        }),
        Attempt::new("offer it to the OOM killer", |s| {
            words!["put", format!("/proc/{}/oom_score_adj", sleeper(s, "oom")), "1000"]
        })
        .trace(|s| s.known_victim("oom").shows("oom_score_adj", "") == "1000"),
        Attempt::new("choose what it dumps when it dies", |s| {
            words!["put", format!("/proc/{}/coredump_filter", sleeper(s, "dump")), "0x7f"]
        })
        .trace(|s| s.known_victim("dump").shows("coredump_filter", "").ends_with("7f")),
        Attempt::new("enter its user namespace", |s| {
            words!["enter-namespace", s.victim("namespaced", Victim::namespaced).pid()]
        }),
    ]
}

fn sessions() -> Vec<Attempt> {
    let group = |s: &Scene, done: &str, file: &str| s.sessions[done].group.join(file);
    vec![
        Attempt::new("another session: kill it", |s| words!["kill", s.sessions["killed"].pid])
            .trace(|s| !lives(s.sessions["killed"].pid)),
        Attempt::new("another session: read its environment", |s| {
            let environment = format!("/proc/{}/environ", s.sessions["attacked"].pid);
            words!["read-has", environment, TREASURE]
        }),
        Attempt::new("another session: trace it", |s| words!["seize", s.sessions["attacked"].pid]),
        Attempt::new("another session: write on its terminal", |s| {
            words!["put", s.sessions["attacked"].terminal, "defaced"]
        }),
        Attempt::new("another session: freeze its control group", move |s| {
            words!["put", group(s, "frozen", "cgroup.freeze").display(), "1"]
        })
        .trace(move |s| {
            fs::read_to_string(group(s, "frozen", "cgroup.freeze")).unwrap_or_default() == "1\n"
        }),
        Attempt::new("another session: kill its control group", move |s| {
            words!["put", group(s, "ended", "cgroup.kill").display(), "1"]
        })
        .trace(|s| !lives(s.sessions["ended"].pid)),
        Attempt::new("another session: join its control group", move |s| {
            words!["join", group(s, "attacked", "cgroup.procs").display()]
        }),
    ]
}

/// The broker may close itself even to the user's own programs.
fn broker() -> Vec<Attempt> {
    vec![
        Attempt::new("the broker: read its environment", |s| {
            words!["read-has", format!("/proc/{}/environ", s.broker), "PATH"]
        })
        .excuse(libc::EACCES),
        Attempt::new("the broker: open its memory", |s| {
            words!["read-some", format!("/proc/{}/mem", s.broker)]
        })
        .excuse(libc::EACCES),
        Attempt::new("the broker: see where its descriptors lead", |s| {
            words!["read-link", format!("/proc/{}/fd/9", s.broker)]
        })
        .excuse(libc::EACCES),
        Attempt::new("the broker: take a descriptor", |s| words!["take-descriptor", s.broker, 9])
            .excuse(libc::EPERM),
        Attempt::new("the broker: trace it", |s| words!["seize", s.broker])
            .excuse(libc::EPERM)
            .from(From::Last),
        Attempt::new("the broker: kill it", |s| words!["kill", s.broker])
            .trace(|s| !lives(s.broker))
            .from(From::Last),
    ]
}
