use std::{fs, os::unix::fs::PermissionsExt};

use crate::policy::bed::{Bed, refusal, resolved, strings};

const AGENT: &str = r#"
title = "an agent"
command = ["true", "--declared"]
arguments = "any"
[agent]
prompt = "argument"
prompt_option = "--"
project_executables = ["false", "/usr/bin/env"]
"#;

fn bed() -> Bed {
    let bed = Bed::new();
    bed.tool("agent", AGENT);
    bed
}

fn of_project(bed: &Bed, command: &str) {
    bed.write("work/.st2-tools/agents.toml", &format!("[agents.agent]\ncommand = {command}\n"));
}

fn of_user(bed: &Bed, command: &str) {
    let text = format!("[agents.agent]\ncommand = {command}\n");
    let file = bed.write("home/.config/st2-tools/agents.toml", &text);
    fs::set_permissions(file, PermissionsExt::from_mode(0o644)).unwrap();
}

/// The command, and the file that decided.
fn command(bed: &Bed) -> (Vec<std::ffi::OsString>, String) {
    let resolved = resolved(bed, "agent", |_| {});
    let source = resolved.command_source.strip_prefix(&bed.root).unwrap();
    (resolved.spec.argv, source.display().to_string())
}

#[test]
fn the_project_goes_before_the_user_and_the_user_before_the_declaration() {
    let bed = bed();
    let declared = (strings(["true", "--declared"]), "policy/tools.d/agent.toml".to_owned());
    assert_eq!(command(&bed), declared);
    of_user(&bed, r#"["/usr/bin/agent", "--mine"]"#);
    let mine = "home/.config/st2-tools/agents.toml".to_owned();
    assert_eq!(command(&bed), (strings(["/usr/bin/agent", "--mine"]), mine.clone()));
    of_project(&bed, r#"["/usr/bin/env"]"#);
    let its = "work/.st2-tools/agents.toml".to_owned();
    assert_eq!(command(&bed), (strings(["/usr/bin/env"]), its));
    // A file that does not name it says nothing of it.
    bed.write("work/.st2-tools/agents.toml", "[agents.other]\ncommand = [\"x\"]\n");
    assert_eq!(command(&bed).1, mine);
}

#[test]
fn a_tool_that_is_no_agent_reads_none_of_the_files() {
    let bed = bed();
    bed.write("work/.st2-tools/agents.toml", "not TOML");
    bed.write("home/.config/st2-tools/agents.toml", "not TOML");
    assert_eq!(resolved(&bed, "true", |_| {}).spec.argv, strings(["true"]));
}

#[test]
fn a_project_chooses_only_what_the_declaration_lists() {
    let bed = bed();
    for (command, words) in [
        (r#"["sh"]"#, "\"sh\" is not among the agent's project_executables"),
        (r#"["true"]"#, "\"true\" is not among the agent's project_executables"),
        (r#"["./false"]"#, "\"./false\" is not among the agent's project_executables"),
        (
            r#"["/usr/bin/../bin/env"]"#,
            "\"/usr/bin/../bin/env\" is not among the agent's project_executables",
        ),
        (r#"["false", "-c"]"#, "a project chooses an executable, and gives no arguments"),
        ("[]", "it is not 1 to 64 words without NUL, of at most 4096 bytes each"),
    ] {
        of_project(&bed, command);
        let expected = format!(
            "NotPermitted: \"BED/work/.st2-tools/agents.toml\" names no command for agent \"agent\" that can be used: {words}"
        );
        assert_eq!(refusal(&bed, "agent", |_| {}), expected);
    }
}

#[test]
fn a_user_names_a_path_or_a_name_and_none_that_a_tool_could_replace() {
    let bed = bed();
    bed.write("work/agent", "");
    bed.link(bed.path("work/agent"), "home/agent");
    let [inside, behind] =
        ["work/agent", "home/agent"].map(|path| bed.path(path).display().to_string());
    let form = "is neither an absolute path without '.' and '..' nor a name without '/', of 1 to 4096 bytes";
    for (command, words) in [
        (r#"["bin/agent"]"#.to_owned(), format!("\"bin/agent\" {form}")),
        (r#"["/usr/./agent"]"#.to_owned(), format!("\"/usr/./agent\" {form}")),
        (r#"[""]"#.to_owned(), format!("\"\" {form}")),
        (
            format!("[{inside:?}]"),
            "\"BED/work/agent\" lies in the workspace, where a tool can replace it".to_owned(),
        ),
        (
            format!("[{behind:?}]"),
            "\"BED/home/agent\" lies in the workspace, where a tool can replace it".to_owned(),
        ),
    ] {
        of_user(&bed, &command);
        let refused = refusal(&bed, "agent", |_| {});
        assert!(refused.ends_with(&format!("that can be used: {words}")), "{refused}");
    }
}

#[test]
fn a_file_that_cannot_be_trusted_refuses_and_is_not_passed_over() {
    let words = |bed: &Bed| {
        let refused = refusal(bed, "agent", |_| {});
        refused.split_once("agents.toml\": ").map(|(_, fault)| fault.to_owned()).unwrap_or(refused)
    };
    let user = "home/.config/st2-tools/agents.toml";
    let bed = bed();
    of_user(&bed, r#"["agent"]"#);
    fs::set_permissions(bed.path(user), PermissionsExt::from_mode(0o664)).unwrap();
    assert_eq!(words(&bed), "can be written by others (mode 664)");
    fs::remove_file(bed.path(user)).unwrap();
    bed.write("home/elsewhere.toml", "[agents.agent]\ncommand = [\"agent\"]\n");
    bed.link("../../elsewhere.toml", user);
    assert_eq!(words(&bed), "is reached through a symlink that is not followed");
    fs::remove_file(bed.path(user)).unwrap();
    fs::create_dir(bed.path(user)).unwrap();
    assert_eq!(words(&bed), "is no regular file");
    fs::remove_dir(bed.path(user)).unwrap();
    bed.link("nowhere.toml", user);
    assert_eq!(words(&bed), "is a symlink that leads nowhere");
    fs::remove_file(bed.path(user)).unwrap();
    of_user(&bed, "\"agent\"");
    assert!(words(&bed).starts_with("2:11: key \"agents.agent.command\": "), "{}", words(&bed));
    of_user(&bed, r#"["agent"]"#);
    assert_eq!(command(&bed).0, strings(["agent"]));

    // A symlink stays one where the user's own dotfiles are beneath the same directory.
    bed.write("home/.config/dotfiles.toml", "[agents.agent]\ncommand = [\"mine\"]\n");
    fs::set_permissions(bed.path("home/.config/dotfiles.toml"), PermissionsExt::from_mode(0o600))
        .unwrap();
    fs::remove_file(bed.path(user)).unwrap();
    bed.link("../dotfiles.toml", user);
    assert_eq!(command(&bed).0, strings(["mine"]));

    bed.write("work/real.toml", "[agents.agent]\ncommand = [\"false\"]\n");
    fs::create_dir(bed.path("work/.st2-tools")).unwrap();
    bed.link("../real.toml", "work/.st2-tools/agents.toml");
    assert_eq!(words(&bed), "is reached through a symlink that is not followed");
    fs::remove_file(bed.path("work/.st2-tools/agents.toml")).unwrap();
    bed.write("work/.st2-tools/agents.toml", &format!("#{}", "x".repeat(65_536)));
    assert_eq!(words(&bed), "is longer than 65536 bytes");
    nix::unistd::mkfifo(&bed.path("home/pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600))
        .unwrap();
    fs::rename(bed.path("home/pipe"), bed.path("work/.st2-tools/agents.toml")).unwrap();
    assert_eq!(words(&bed), "is no regular file");
}

#[test]
fn a_prompt_is_the_last_argument_of_an_agent_that_takes_it_so() {
    let bed = bed();
    let argv = |tool: &str, prompt: &str| {
        let resolved = resolved(&bed, tool, |request| {
            request.argv = strings(["-x"]);
            request.prompt = Some(prompt.into());
        });
        resolved.spec.argv
    };
    let option = "-p $(x)";
    assert_eq!(argv("agent", option), strings(["true", "--declared", "-x", "--", option]));
    bed.tool("joined", &AGENT.replace("\"--\"", "\"--prompt=\""));
    assert_eq!(argv("joined", option), strings(["true", "--declared", "-x", "--prompt=-p $(x)"]));
    bed.tool("plain", &AGENT.replace("prompt_option = \"--\"", ""));
    assert_eq!(argv("plain", "$(x) -p"), strings(["true", "--declared", "-x", "$(x) -p"]));
    let refused = |tool: &str, prompt: &str| {
        refusal(&bed, tool, |request| request.prompt = Some(prompt.into()))
    };
    assert_eq!(
        refused("plain", option),
        "NotPermitted: tool \"plain\" takes a prompt that begins with '-' for an option: its declaration has no agent.prompt_option"
    );
    assert_eq!(
        refused("true", "p"),
        "NotPermitted: tool \"true\" takes no prompt: its declaration has no agent.prompt"
    );
    bed.tool("typed", "title = \"t\"\ncommand = [\"true\"]\n[agent]\nprompt = \"terminal\"\n");
    assert_eq!(
        refused("typed", "p"),
        "NotPermitted: tool \"typed\" takes its prompt on its terminal: write it there once the tool is up"
    );
    assert_eq!(refused("agent", "a\0b"), "InvalidArgs: prompt \"a\\0b\" holds a NUL byte");
}

#[test]
fn a_table_that_contradicts_itself_disables_the_tool() {
    let bed = bed();
    for (table, words) in [
        ("prompt_option = \"--p\"", "prompt_option needs prompt = \"argument\""),
        (
            "prompt = \"terminal\"\nprompt_option = \"--p\"",
            "prompt_option needs prompt = \"argument\"",
        ),
        (
            "prompt = \"argument\"\nprompt_option = \"p\"",
            "prompt_option \"p\" is not 1 to 64 bytes beginning with '-'",
        ),
        ("project_executables = [\"./x\"]", "\"./x\" is neither an absolute path"),
        ("prompts = \"argument\"", "unknown field"),
    ] {
        bed.tool("agent", &format!("title = \"t\"\ncommand = [\"true\"]\n[agent]\n{table}\n"));
        let refused = refusal(&bed, "agent", |_| {});
        assert!(
            refused.starts_with("NotPermitted: tool \"agent\" is disabled: ")
                && refused.contains(words),
            "{refused}"
        );
    }
}

#[test]
fn the_list_of_tools_says_which_are_agents_and_how_they_take_a_prompt() {
    let bed = bed();
    let rows = bed.catalogue().rows();
    let facts = |name: &str| {
        let row = rows.iter().find(|row| row.name == name).unwrap();
        (row.agent, row.prompt.as_str())
    };
    assert_eq!((facts("agent"), facts("true")), ((true, "argument"), (false, "")));
}
