use std::{fs, os::unix::net::UnixListener};

use super::*;
use crate::policy::bed::{Bed, PROFILE, refusal, resolved};

/// A bed whose kernel gives a tier, with a tool for each of these sockets by itself.
fn bed(tier: Tier, sockets: &[&str]) -> Bed {
    let mut bed = Bed::new();
    bed.surroundings.kernel.mounts = tier == Tier::Mounts;
    bed.surroundings.kernel.landlock_abi = if tier == Tier::ResolveUnix { 9 } else { 7 };
    for (number, socket) in sockets.iter().enumerate() {
        let socket = socket.replace("BED", &bed.root.to_string_lossy());
        let tool = "title = \"t\"\ncommand = [\"true\"]";
        bed.tool(&format!("t{number}"), &format!("{tool}\nsockets = [{socket:?}]"));
    }
    bed
}

/// Listens at a path of the bed for as long as the result lives.
fn listen(bed: &Bed, path: &str) -> UnixListener {
    let path = bed.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    UnixListener::bind(path).unwrap()
}

fn set(bed: &mut Bed, name: &str, value: &str) {
    let value = value.replace("BED", &bed.root.to_string_lossy());
    bed.surroundings.environment.insert(name.into(), value.into());
}

/// The sockets that a tool gets, as `PATH at PLACE`, and the variable by which it finds one.
fn granted(bed: &Bed, tool: &str, variable: &str) -> (Vec<String>, Option<String>) {
    let spec = resolved(bed, tool, |_| {}).spec;
    let sockets = spec.confinement.sockets.iter();
    let sockets = sockets.map(|it| format!("{} at {}", it.path.display(), it.at.display()));
    let value = spec.environment.get(OsStr::new(variable));
    (
        sockets.map(|line| bed.words(&line)).collect(),
        value.map(|value| bed.words(&value.to_string_lossy())),
    )
}

#[test]
fn each_named_socket_is_found_where_the_broker_has_it() {
    let mut bed = bed(Tier::Mounts, &["ssh-agent", "gpg-agent", "wayland", "BED/x/foo.sock"]);
    let _listeners = ["agents/ssh", "run/gnupg/S.gpg-agent.extra", "run/wayland-1", "x/foo.sock"]
        .map(|path| listen(&bed, path));
    set(&mut bed, "SSH_AUTH_SOCK", "BED/agents/ssh");
    set(&mut bed, "WAYLAND_DISPLAY", "wayland-1");
    let one = |line: &str| vec![line.to_owned()];
    assert_eq!(
        granted(&bed, "t0", "SSH_AUTH_SOCK"),
        (one("BED/agents/ssh at BED/agents/ssh"), Some("BED/agents/ssh".into()))
    );
    assert_eq!(
        granted(&bed, "t1", "SSH_AUTH_SOCK"),
        (one("BED/run/gnupg/S.gpg-agent.extra at BED/run/gnupg/S.gpg-agent"), None)
    );
    assert_eq!(
        granted(&bed, "t2", "WAYLAND_DISPLAY"),
        (one("BED/run/wayland-1 at BED/run/wayland-1"), Some("BED/run/wayland-1".into()))
    );
    assert_eq!(granted(&bed, "t3", "X").0, one("BED/x/foo.sock at BED/x/foo.sock"));
    assert_eq!(granted(&bed, "true", "SSH_AUTH_SOCK"), (vec![], None), "not without a declaration");

    set(&mut bed, "WAYLAND_DISPLAY", "BED/x/foo.sock");
    assert_eq!(granted(&bed, "t2", "WAYLAND_DISPLAY").1, Some("BED/x/foo.sock".into()));
    fs::rename(bed.path("run/gnupg"), bed.path("home/.gnupg")).unwrap();
    assert_eq!(
        granted(&bed, "t1", "X").0,
        one("BED/home/.gnupg/S.gpg-agent.extra at BED/home/.gnupg/S.gpg-agent")
    );
}

#[test]
fn what_is_not_there_is_refused_or_passed_over() {
    let required = ["ssh-agent", "gpg-agent", "wayland", "BED/x.sock", "~/x.sock"];
    let mut bed = bed(Tier::Mounts, &required);
    for (number, socket) in required.iter().enumerate() {
        let socket = format!("-{}", socket.replace("BED", &bed.root.to_string_lossy()));
        let tool = "title = \"t\"\ncommand = [\"true\"]";
        bed.tool(&format!("o{number}"), &format!("{tool}\nsockets = [{socket:?}]"));
        assert_eq!(granted(&bed, &format!("o{number}"), "SSH_AUTH_SOCK"), (vec![], None));
    }
    let mut words: Vec<String> =
        (0..required.len()).map(|number| refusal(&bed, &format!("t{number}"), |_| {})).collect();
    set(&mut bed, "SSH_AUTH_SOCK", "agent");
    set(&mut bed, "GNUPGHOME", "/elsewhere");
    words.extend(["t0", "t1"].map(|tool| refusal(&bed, tool, |_| {})));
    set(&mut bed, "SSH_AUTH_SOCK", "BED/gone");
    words.push(refusal(&bed, "t0", |_| {}));
    insta::assert_snapshot!(words.join("\n"), @r#"
        NotPermitted: socket "ssh-agent" cannot be found (SSH_AUTH_SOCK of the broker is not an absolute path): a leading '-' lets it be absent
        NotPermitted: socket "gpg-agent" cannot be found ("BED/home/.gnupg/S.gpg-agent.extra": no such file or directory): a leading '-' lets it be absent
        NotPermitted: socket "wayland" cannot be found (WAYLAND_DISPLAY of the broker leads to no path): a leading '-' lets it be absent
        NotPermitted: socket "BED/x.sock" cannot be found ("BED/x.sock": no such file or directory): a leading '-' lets it be absent
        NotPermitted: socket "~/x.sock" cannot be found ("BED/home/x.sock": no such file or directory): a leading '-' lets it be absent
        NotPermitted: socket "ssh-agent" cannot be found (SSH_AUTH_SOCK of the broker is not an absolute path): a leading '-' lets it be absent
        NotPermitted: socket "gpg-agent" cannot be found (GNUPGHOME of the broker is not ~/.gnupg): a leading '-' lets it be absent
        NotPermitted: socket "ssh-agent" cannot be found ("BED/gone": no such file or directory): a leading '-' lets it be absent
        "#);
}

#[test]
fn a_tier_grants_what_it_can_and_is_named_where_it_cannot() {
    let sockets = ["BED/x.sock", "-BED/x.sock", "gpg-agent", "-gpg-agent"];
    let found = [Tier::Mounts, Tier::ResolveUnix, Tier::Seccomp].map(|tier| {
        let bed = bed(tier, &sockets);
        let _listeners = ["x.sock", "home/.gnupg/S.gpg-agent.extra"].map(|it| listen(&bed, it));
        let found: Vec<String> = (0..sockets.len())
            .map(|number| {
                let resolved = bed.resolve(&format!("t{number}"), &bed.request());
                let count =
                    |it: crate::policy::resolved::Resolved| it.spec.confinement.sockets.len();
                resolved.map_or_else(|refused| bed.words(&refused), |it| count(it).to_string())
            })
            .collect();
        format!("{}:\n  {}", tier.as_str(), found.join("\n  "))
    });
    insta::assert_snapshot!(found.join("\n"), @r#"
        mounts:
          1
          1
          1
          1
        resolve-unix:
          1
          1
          socket "gpg-agent" cannot be granted in the tier "resolve-unix"
          0
        seccomp:
          socket "BED/x.sock" cannot be granted in the tier "seccomp"
          0
          socket "gpg-agent" cannot be granted in the tier "seccomp"
          0
        "#);
}

#[test]
fn some_sockets_nobody_gets_by_whatever_name() {
    let mut bed = bed(
        Tier::Mounts,
        &[
            "BED/run/bus",
            "-BED/run/bus",
            "BED/home/link",
            "BED/run/hard",
            "BED/run/systemd/private",
            "BED/run/systemd/inner/notify",
            "BED/elsewhere/bus",
            "BED/tmp/session/x",
            "ssh-agent",
            "BED/work/link",
            "BED/x/link/agent",
            "BED/x/up",
            "BED/home/.config",
            "BED/home/loop",
        ],
    );
    let _listeners = [
        "run/bus",
        "run/systemd/private",
        "run/systemd/inner/notify",
        "elsewhere/bus",
        "tmp/session/x",
        "agent",
        "x/real",
    ]
    .map(|path| listen(&bed, path));
    bed.link(bed.path("run/bus"), "home/link");
    fs::hard_link(bed.path("run/bus"), bed.path("run/hard")).unwrap();
    set(&mut bed, "SSH_AUTH_SOCK", "BED/run/bus");
    set(&mut bed, "DBUS_SESSION_BUS_ADDRESS", "unix:abstract=x;unix:guid=1,path=BED/elsewhere/bus");
    bed.link(bed.path("agent"), "work/link");
    bed.link(bed.path(""), "x/link");
    bed.link("../agent", "x/up");
    bed.link("loop", "home/loop");
    let words: Vec<String> =
        (0..14).map(|number| refusal(&bed, &format!("t{number}"), |_| {})).collect();
    insta::assert_snapshot!(words.join("\n"), @r#"
        NotPermitted: socket "BED/run/bus" cannot be granted: "BED/run/bus" is a bus, by which a tool leaves every confinement
        NotPermitted: socket "BED/run/bus" cannot be granted: "BED/run/bus" is a bus, by which a tool leaves every confinement
        NotPermitted: socket "BED/home/link" cannot be granted: "BED/run/bus" is a bus, by which a tool leaves every confinement
        NotPermitted: socket "BED/run/hard" cannot be granted: "BED/run/hard" is a bus, by which a tool leaves every confinement
        NotPermitted: socket "BED/run/systemd/private" cannot be granted: "BED/run/systemd/private" is the service manager's, which starts programs unconfined
        NotPermitted: socket "BED/run/systemd/inner/notify" cannot be granted: "BED/run/systemd/inner/notify" is the service manager's, which starts programs unconfined
        NotPermitted: socket "BED/elsewhere/bus" cannot be granted: "BED/elsewhere/bus" is a bus, by which a tool leaves every confinement
        NotPermitted: socket "BED/tmp/session/x" cannot be granted: "BED/tmp/session/x" is the broker's own
        NotPermitted: socket "ssh-agent" cannot be granted: "BED/run/bus" is a bus, by which a tool leaves every confinement
        NotPermitted: socket "BED/work/link" cannot be granted: "BED/work/link" is a symlink that a tool may have put there
        NotPermitted: socket "BED/x/link/agent" cannot be granted: "BED/x/link" is a symlink that a tool may have put there
        NotPermitted: socket "BED/x/up" cannot be granted: "BED/x/up" is a symlink that a tool may have put there
        NotPermitted: socket "BED/home/.config" cannot be granted: "BED/home/.config" is not a socket
        NotPermitted: socket "BED/home/loop" cannot be found ("BED/home/loop": filesystem loop or indirection limit (e.g. symlink loop)): a leading '-' lets it be absent
        "#);
}

#[test]
fn a_symlink_counts_where_no_tool_can_have_put_it() {
    let bed = bed(Tier::Mounts, &["~/agent", "BED/x/stays", "~/deep"]);
    let _listener = listen(&bed, "x/real");
    bed.link(bed.path("x/real"), "home/agent");
    bed.link("real", "x/stays");
    bed.link("agent", "home/deep");
    for (tool, name) in [("t0", "home/agent"), ("t1", "x/stays"), ("t2", "home/deep")] {
        let confinement = resolved(&bed, tool, |_| {}).spec.confinement;
        assert_eq!(confinement.sockets[0].at, bed.path("x/real"));
        assert_eq!(confinement.root.links[&bed.path(name)], bed.path("x/real"), "{name}");
    }
}

#[test]
fn sockets_of_profiles_and_tool_add_up() {
    let bed = bed(Tier::Mounts, &[]);
    let _listeners = ["a", "b"].map(|path| listen(&bed, path));
    let path = |name: &str| bed.path(name).display().to_string();
    let sockets = format!("sockets = [{:?}]", path("a"));
    bed.write(
        "policy/profiles.d/one.toml",
        &PROFILE.replace("[grants]", &format!("{sockets}\n[grants]")),
    );
    let tool = "title = \"t\"\ncommand = [\"true\"]\nprofile = \"one\"";
    bed.tool("x", &format!("{tool}\nsockets = [{:?}, {:?}]", path("a"), path("b")));
    let expected = ["BED/a at BED/a", "BED/b at BED/b"].map(str::to_owned).to_vec();
    assert_eq!(granted(&bed, "x", "X").0, expected);
}
