use std::path::Path;

use super::*;
use crate::policy::file;

fn words(text: &str) -> String {
    let text = format!("title = \"t\"\ncommand = [\"x\"]\n{text}");
    match file::parse::<Declaration>(Path::new("x.toml"), &text) {
        Ok(declaration) => panic!("accepted: {declaration:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_a_file_leaves_out_has_its_documented_default() {
    let text = "title = \"t\"\ncommand = [\"x\"]";
    let tool: Declaration = file::parse(Path::new("x.toml"), text).unwrap();
    assert_eq!(tool.arguments, Arguments::None);
    assert_eq!(tool.io, [Io::Pty]);
    assert!(!tool.direct);
    assert_eq!(tool.profile, ProfileNames::one("workspace"));
    assert_eq!(tool.sockets, []);
    assert_eq!((tool.grace_ms, tool.timeout_ms, tool.stop_timeout_ms), (10_000, 0, 2_000));
    assert_eq!((tool.memory_max, tool.tasks_max), (None, None));
    assert_eq!((tool.open_files, tool.umask), (1024, 0o022));
    assert!(
        tool.environment.is_empty() && tool.pass_environment.is_empty() && tool.path.is_empty()
    );
    assert_eq!(tool.grants, Grants::default());
    assert_eq!(tool.workspace, None);
}

#[test]
fn what_breaks_a_rule_is_refused_by_place_and_rule() {
    insta::assert_snapshot!(
        [
            words("colour = 1"),
            words("arguments = \"some\""),
            words("arguments = 1"),
            words("[arguments]\noptions = [\"n\"]"),
            words("[arguments]\noperands = { kind = \"file\" }"),
            words("[arguments]\nmore = 1"),
            words("io = []"),
            words("io = [\"pipes\"]"),
            words("grace_ms = 86400001"),
            words("timeout_ms = -1"),
            words("stop_timeout_ms = 60001"),
            words("memory_max = 1048575"),
            words("memory_max = \"2G\""),
            words("tasks_max = 0"),
            words("open_files = 63"),
            words("umask = \"0022\""),
            words("umask = \"888\""),
            words("umask = 18"),
            words("pass_environment = [\"PATH\"]"),
            words("pass_environment = [\"LD_PRELOAD\"]"),
            words("pass_environment = [\"LC_*\"]"),
            words("[environment]\nST2_SESSION = \"x\""),
            words("[environment]\n\"A-B\" = \"x\""),
            words("[environment]\nA = \"${SHELL}\""),
            words("[environment]\nA = \"${HOME\""),
            words("[grants]\nread = [\"etc\"]"),
            words("[grants]\nread = [\"~ann/x\"]"),
            words("[grants]\nread = [\"/etc/../root\"]"),
            words("[grants]\nread = [\"/etc//x\"]"),
            words("[grants]\nread = [\"/etc/\"]"),
            words("[grants]\nread = [\"${WORKSPACE}/.git\"]"),
            words("[grants]\nread = [\"${USER}\"]"),
            words("[grants]\nread = [\"\"]"),
            words("[grants]\nsockets = []"),
            words("sockets = [\"x11\"]"),
            words("sockets = [\"${WORKSPACE}/x\"]"),
            words("pass_environment = [\"SSH_AUTH_SOCK\"]"),
            words("profile = [\"Git\"]"),
            words("profile = 1"),
            words("workspace = \"${WORKSPACE}\""),
            words("path = [\"${TMPDIR}\"]"),
        ]
        .join("\n"),
        @r#"
        x.toml:3:1: key "colour": unknown field `colour`, expected one of `title`, `command`, `arguments`, `agent`, `io`, `direct`, `profile`, `grants`, `sockets`, `path`, `environment`, `pass_environment`, `workspace`, `grace_ms`, `timeout_ms`, `silence_timeout_ms`, `stop_timeout_ms`, `memory_max`, `tasks_max`, `open_files`, `umask`
        x.toml:3:13: key "arguments": invalid value: string "some", expected "none", "any" or a table with options and operands
        x.toml:3:13: key "arguments": invalid type: integer `1`, expected "none", "any" or a table with options and operands
        x.toml:4:11: key "arguments.options": option "n" is not -x, --name, or one of these with =NUMBER, =WORD, ' NUMBER' or ' WORD'
        x.toml:4:21: key "arguments.operands.kind": unknown variant `file`, expected `any` or `path`
        x.toml:4:1: key "arguments.more": unknown field `more`, expected `options` or `operands`
        x.toml:3:6: key "io": invalid length 0, expected at least one of "pty" and "pipe"
        x.toml:3:7: key "io": unknown variant `pipes`, expected `pty` or `pipe`
        x.toml:3:12: key "grace_ms": 86400001 is outside 0..=86400000
        x.toml:3:14: key "timeout_ms": -1 is outside 0..=2592000000
        x.toml:3:19: key "stop_timeout_ms": 60001 is outside 0..=60000
        x.toml:3:14: key "memory_max": 1048575 is outside 1048576..=9007199254740992
        x.toml:3:14: key "memory_max": invalid type: string "2G", expected i64
        x.toml:3:13: key "tasks_max": 0 is outside 1..=4194304
        x.toml:3:14: key "open_files": 63 is outside 64..=1048576
        x.toml:3:9: key "umask": invalid value: string "0022", expected three octal digits such as "022"
        x.toml:3:9: key "umask": invalid value: string "888", expected three octal digits such as "022"
        x.toml:3:9: key "umask": invalid type: integer `18`, expected a string
        x.toml:3:20: key "pass_environment": PATH cannot be declared: it is set by the broker
        x.toml:3:20: key "pass_environment": LD_PRELOAD never reaches a tool: LD_*
        x.toml:3:20: key "pass_environment": "LC_*" is not the name of an environment variable
        x.toml:4:1: key "environment.ST2_SESSION": ST2_SESSION never reaches a tool: ST2_*
        x.toml:4:1: key "environment.A-B": "A-B" is not the name of an environment variable
        x.toml:4:5: key "environment.A": unknown variable ${SHELL}: known are HOME, USER, WORKSPACE, TMPDIR, XDG_CONFIG_HOME
        x.toml:4:5: key "environment.A": ${ without } in "${HOME": write $${ for the characters themselves
        x.toml:4:8: key "grants.read": path "etc" does not begin with /, ~/ or a variable
        x.toml:4:8: key "grants.read": path "~ann/x" does not begin with /, ~/ or a variable
        x.toml:4:8: key "grants.read": path "/etc/../root" holds an empty, '.' or '..' component
        x.toml:4:8: key "grants.read": path "/etc//x" holds an empty, '.' or '..' component
        x.toml:4:8: key "grants.read": path "/etc/" holds an empty, '.' or '..' component
        x.toml:4:8: key "grants.read": path "${WORKSPACE}/.git" lies beneath ${WORKSPACE} or ${TMPDIR}, where the tool could replace it: grant the whole
        x.toml:4:8: key "grants.read": path "${USER}" begins with ${USER}, which is not a path
        x.toml:4:8: key "grants.read": path "" does not begin with /, ~/ or a variable
        x.toml:4:1: key "grants.sockets": unknown field `sockets`, expected one of `read`, `write`, `execute`, `devices`
        x.toml:3:11: key "sockets": socket "x11" is not ssh-agent, gpg-agent, wayland or an absolute path
        x.toml:3:11: key "sockets": path "${WORKSPACE}/x" lies beneath ${WORKSPACE} or ${TMPDIR}, where the tool could replace it: grant the whole
        x.toml:3:20: key "pass_environment": SSH_AUTH_SOCK cannot be declared: it is set where the profile grants that socket
        x.toml:3:11: key "profile": profile name "Git" is not 1 to 32 of a-z, 0-9 and '-', beginning with a letter or digit, after a '-' where it may be absent
        x.toml:3:11: key "profile": invalid type: integer `1`, expected the name of a profile, or a list of names
        x.toml:3:13: key "workspace": path "${WORKSPACE}" depends on the session, where one is wanted that does not
        x.toml:3:8: key "path": path "${TMPDIR}" depends on the session, where one is wanted that does not
        "#
    );
}

#[test]
fn title_and_command_are_required() {
    for (text, missing) in [("command = []", "title"), ("title = \"t\"", "command")] {
        let error = file::parse::<Declaration>(Path::new("x.toml"), text).unwrap_err().to_string();
        assert!(error.contains(&format!("missing field `{missing}`")), "{error}");
    }
}
