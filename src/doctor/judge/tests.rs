use std::path::PathBuf;

use nix::unistd::Uid;

use super::*;
use crate::{
    config::Settings,
    doctor::{
        Verdict,
        facts::{Broker, GPG_AGENT, Groups, OnBus, Policy, Socket, Sysctls},
    },
    host::systemd::look::UserManager,
    policy::{
        file::{Fault, FileError},
        surroundings::{Kernel, Surroundings},
    },
};

/// A machine that has everything.
fn whole() -> Facts {
    let kernel = Kernel { landlock_abi: 10, seccomp: true, mounts: true };
    let mut surroundings = Surroundings::gather(kernel).unwrap();
    surroundings.uid = Uid::from_raw(1000);
    let manager = UserManager {
        version: "257".into(),
        controllers: ["cpu", "memory", "pids"].map(String::from).into(),
    };
    Facts {
        surroundings,
        release: "6.18.2-arch1".into(),
        modules: Some(["landlock", "yama"].map(String::from).into()),
        launcher: Ok("/usr/libexec/st2-tools/st2-tools-launch".into()),
        no_mounts: None,
        sysctls: Sysctls { max_user_namespaces: Some(1), ..Sysctls::default() },
        groups: Ok(Groups { own: "/sys/fs/cgroup/x".into(), lacks: Some(Vec::new()) }),
        bus: Ok(OnBus { manager: Ok(manager), broker: Broker::Activatable }),
        policy: Ok(Policy {
            settings: Settings::default(),
            directories: vec!["/usr/share/st2-tools".into()],
            tools: 5,
            faults: Vec::new(),
            masked: Vec::new(),
        }),
        variables: Vec::new(),
        sockets: vec![Socket { name: "ssh-agent", place: Ok("/run/agent".into()) }],
    }
}

/// The whole machine, but for this.
fn but(change: impl FnOnce(&mut Facts)) -> Diagnosis {
    let mut facts = whole();
    change(&mut facts);
    judge(&facts)
}

fn forbidden(sysctls: Sysctls) -> impl FnOnce(&mut Facts) {
    move |facts| {
        facts.surroundings.kernel.mounts = false;
        facts.surroundings.kernel.landlock_abi = 7;
        facts.no_mounts = Some("cannot make a user and mount namespace: no".into());
        facts.sysctls = sysctls;
    }
}

fn check<'d>(diagnosis: &'d Diagnosis, name: &str) -> &'d Check {
    let check = diagnosis.checks.iter().find(|check| check.name == name);
    check.unwrap_or_else(|| panic!("{name} is not in {:?}", diagnosis.checks))
}

/// The checks that are not good.
fn wrong(diagnosis: &Diagnosis) -> Vec<&'static str> {
    let wrong = diagnosis.checks.iter().filter(|check| check.verdict != Verdict::Good);
    wrong.map(|check| check.name).collect()
}

#[test]
fn a_whole_machine_has_nothing_to_mend() {
    let diagnosis = judge(&whole());
    assert_eq!(wrong(&diagnosis), Vec::<&str>::new());
    assert_eq!(diagnosis.tier.as_deref(), Some("mounts"));
    assert_eq!(diagnosis.summary, "sessions here get the tier mounts");
    let mended = diagnosis.checks.iter().find(|check| check.cost.is_some());
    assert_eq!(mended, None, "what is good costs nothing");
}

#[test]
fn each_sysctl_that_forbids_user_namespaces_is_named_with_its_cure() {
    let each = [
        (
            Sysctls { max_user_namespaces: Some(0), ..Sysctls::default() },
            "user.max_user_namespaces is 0",
            "echo user.max_user_namespaces=15000 | sudo tee",
        ),
        (
            Sysctls { unprivileged_userns_clone: Some(0), ..Sysctls::default() },
            "kernel.unprivileged_userns_clone is 0",
            "echo kernel.unprivileged_userns_clone=1 | sudo tee",
        ),
        (
            Sysctls { apparmor_restrict: Some(1), ..Sysctls::default() },
            "kernel.apparmor_restrict_unprivileged_userns is 1",
            "sudo install -m 644 /usr/share/st2-tools/apparmor/st2-tools-launch /etc/apparmor.d/",
        ),
        (Sysctls::default(), "by no known sysctl", "look for a container's system call filter"),
    ];
    for (sysctls, reason, advice) in each {
        let diagnosis = but(forbidden(sysctls));
        assert_eq!(diagnosis.tier.as_deref(), Some("seccomp"), "{reason}");
        assert!(diagnosis.summary.contains(reason), "{}", diagnosis.summary);
        assert_eq!(wrong(&diagnosis), ["user-namespaces", "resolve-unix", "ssh-agent"]);
        let check = check(&diagnosis, "user-namespaces");
        assert!(check.found.contains("the launcher says: cannot make a user"), "{check:?}");
        assert!(check.advice.as_ref().unwrap().starts_with(advice), "{check:?}");
    }
}

#[test]
fn what_is_forbidden_to_ordinary_users_is_not_what_keeps_root_out() {
    let sysctls = Sysctls {
        max_user_namespaces: Some(9),
        unprivileged_userns_clone: Some(0),
        apparmor_restrict: Some(1),
    };
    let diagnosis = but(|facts| {
        forbidden(sysctls)(facts);
        facts.surroundings.uid = Uid::from_raw(0);
    });
    assert!(diagnosis.summary.ends_with("by no known sysctl"), "{}", diagnosis.summary);
}

#[test]
fn without_landlock_or_with_an_old_one_nothing_opens_unless_the_settings_say_so() {
    let of = |abi, modules: Option<&str>, degraded| {
        but(|facts| {
            facts.surroundings.kernel.landlock_abi = abi;
            facts.modules = modules.map(|names| names.split(',').map(String::from).collect());
            facts.policy.as_mut().unwrap().settings.allow_degraded = degraded;
        })
    };
    let absent = of(0, Some("capability,yama"), false);
    assert_eq!(absent.tier, None);
    assert_eq!(absent.summary, "no tool can be opened here: the kernel offers no landlock");
    let advice = check(&absent, "landlock").advice.clone().unwrap();
    assert_eq!(advice, "add to the kernel's command line: lsm=landlock,capability,yama");
    let advice = check(&of(0, None, false), "landlock").advice.clone().unwrap();
    assert!(advice.contains("CONFIG_SECURITY_LANDLOCK=y"), "{advice}");

    let old = of(5, None, false);
    assert!(old.summary.contains("landlock ABI 5 is below 6"), "{}", old.summary);
    assert_eq!(check(&old, "landlock").verdict, Verdict::Missing);
    let accepted = of(5, None, true);
    assert_eq!(accepted.tier.as_deref(), Some("mounts"));
    assert_eq!(check(&accepted, "landlock").verdict, Verdict::Lesser);
    assert_eq!(check(&of(6, None, false), "landlock").verdict, Verdict::Lesser);
    assert_eq!(check(&of(7, None, false), "landlock").verdict, Verdict::Good);
}

#[test]
fn without_filters_or_without_a_launcher_nothing_opens() {
    let diagnosis = but(|facts| facts.surroundings.kernel.seccomp = false);
    assert_eq!(
        diagnosis.summary,
        "no tool can be opened here: the kernel offers no seccomp filters"
    );
    assert!(wrong(&diagnosis).contains(&"seccomp"));
    let diagnosis = but(|facts| {
        facts.launcher = Err("it is nowhere".into());
        facts.surroundings.kernel.mounts = false;
    });
    assert_eq!((diagnosis.tier.as_deref(), wrong(&diagnosis).len()), (None, 3));
    assert_eq!(diagnosis.summary, "no tool can be opened here: it is nowhere");
}

#[test]
fn an_old_kernel_and_half_a_hierarchy_are_lesser() {
    for (release, verdict) in [
        ("6.11.9", Verdict::Lesser),
        ("5.15.0-91", Verdict::Lesser),
        ("6.12", Verdict::Good),
        ("7.0", Verdict::Good),
    ] {
        let diagnosis = but(|facts| facts.release = release.into());
        assert_eq!(check(&diagnosis, "kernel").verdict, verdict, "{release}");
    }
    let diagnosis = but(|facts| facts.groups.as_mut().unwrap().lacks = Some(vec!["cgroup.kill"]));
    assert!(check(&diagnosis, "cgroup2").found.ends_with("without cgroup.kill"));
    assert_eq!(wrong(&but(|facts| facts.groups = Err("none".into()))), ["cgroup2"]);
}

#[test]
fn without_a_bus_tools_can_still_be_opened() {
    let diagnosis = but(|facts| facts.bus = Err("no address".into()));
    assert_eq!(wrong(&diagnosis), ["user-bus", "user-manager", "broker"]);
    assert_eq!(diagnosis.tier.as_deref(), Some("mounts"));
}

#[test]
fn a_manager_without_controllers_enforces_no_limits() {
    let diagnosis = but(|facts| {
        let bus = facts.bus.as_mut().unwrap();
        bus.manager.as_mut().unwrap().controllers = vec!["pids".into()];
    });
    assert_eq!(wrong(&diagnosis), ["user-manager"]);
    let check = check(&diagnosis, "user-manager");
    assert!(check.found.ends_with("without the controllers memory"), "{check:?}");
    assert!(check.advice.as_ref().unwrap().contains("user@1000.service"), "{check:?}");
}

fn running(version: &str, backend: &str, tier: &str) -> Diagnosis {
    let [version, backend, tier] = [version, backend, tier].map(String::from);
    but(|facts| facts.bus.as_mut().unwrap().broker = Broker::Running { version, backend, tier })
}

#[test]
fn a_broker_that_runs_has_the_last_word() {
    let own = env!("CARGO_PKG_VERSION");
    assert_eq!(wrong(&running(own, "systemd", "mounts")), Vec::<&str>::new());
    let lesser = running(own, "systemd", "seccomp");
    assert_eq!(lesser.tier.as_deref(), Some("seccomp"));
    let cost = check(&lesser, "broker").cost.clone().unwrap();
    assert_eq!(cost, "a broker that is started now has the tier mounts");
    let none = running(own, "systemd", "none");
    assert_eq!(none.tier, None);
    assert!(none.summary.ends_with("one started now has mounts"), "{}", none.summary);
    assert_eq!(wrong(&running("0.0.0", "systemd", "mounts")), ["broker"]);
    assert_eq!(wrong(&running(own, "portable", "mounts")), ["broker"]);
}

#[test]
fn a_broker_that_is_absent_or_silent_is_missing() {
    for broker in [Broker::Absent, Broker::Silent("no answer within 5s".into())] {
        let diagnosis = but(|facts| facts.bus.as_mut().unwrap().broker = broker);
        assert_eq!(check(&diagnosis, "broker").verdict, Verdict::Missing);
        assert_eq!(diagnosis.tier.as_deref(), Some("mounts"));
    }
}

#[test]
fn faults_of_the_policy_are_told_one_by_one() {
    let fault = FileError::whole(&PathBuf::from("/etc/st2-tools/broker.toml"), Fault::NotUtf8);
    let diagnosis = but(|facts| {
        let policy = facts.policy.as_mut().unwrap();
        policy.settings.fault = Some(fault);
        policy.faults = vec!["/a.toml: not UTF-8".into(), "/b.toml: not UTF-8".into()];
        policy.masked = vec!["/home/u/tools.d/lazygit.toml".into()];
    });
    assert_eq!(wrong(&diagnosis), ["settings", "policy-file", "policy-file", "ssh-agent"]);
    assert_eq!(
        diagnosis.summary,
        "no tool can be opened here: /etc/st2-tools/broker.toml: not UTF-8"
    );
    assert_eq!(check(&diagnosis, "masked").found, "/home/u/tools.d/lazygit.toml");
    let none = but(|facts| facts.policy.as_mut().unwrap().tools = 0);
    assert_eq!(none.summary, "no tool can be opened here: the policy declares no tool");
    let refused = but(|facts| facts.policy = Err("ST2_TOOLS_MAX_TIER is \"x\"".into()));
    assert_eq!(refused.tier, None);
    assert_eq!(wrong(&refused), ["policy", "ssh-agent"]);
}

#[test]
fn the_socket_of_gpg_needs_a_root_of_a_tool_s_own() {
    let of = |tier: &str| {
        let [version, backend, tier] =
            [env!("CARGO_PKG_VERSION"), "systemd", tier].map(String::from);
        but(|facts| {
            facts.bus.as_mut().unwrap().broker = Broker::Running { version, backend, tier };
            facts.sockets.push(Socket { name: GPG_AGENT, place: Ok("/run/gpg".into()) });
        })
    };
    let verdicts = |tier: &str| {
        let diagnosis = of(tier);
        ["ssh-agent", GPG_AGENT].map(|name| check(&diagnosis, name).verdict)
    };
    assert_eq!(verdicts("mounts"), [Verdict::Good, Verdict::Good]);
    assert_eq!(verdicts("resolve-unix"), [Verdict::Good, Verdict::Lesser]);
    assert_eq!(verdicts("seccomp"), [Verdict::Lesser, Verdict::Lesser]);
}

#[test]
fn variables_in_force_are_named_and_those_that_lower_the_tier_blamed() {
    let diagnosis = but(|facts| {
        let most = crate::config::MaxTier::Most(crate::launch::report::Tier::Seccomp);
        facts.policy.as_mut().unwrap().settings.overrides.max_tier = most;
        facts.variables =
            vec![("ST2_TOOLS_MAX_TIER", "seccomp".into()), ("ST2_TOOLS_POLICY_PATH", "/p".into())];
    });
    assert_eq!(
        diagnosis.summary,
        "sessions here get the tier seccomp: ST2_TOOLS_MAX_TIER is seccomp"
    );
    assert_eq!(wrong(&diagnosis), ["override", "ssh-agent"]);
    let socket = check(&diagnosis, "ssh-agent").cost.clone().unwrap();
    assert_eq!(socket, "it cannot be granted in the tier seccomp");
}
