//! Every program, unconfined and in each tier.

use std::{
    fmt::Write as _,
    fs::{self, File},
    io::{self, Write as _},
    process::{Command, Stdio},
};

use st2_tools::config::MAX_TIER_VARIABLE;

use super::{
    programs::{ALL, Program, TOOLS},
    toolchain,
};
use crate::support::{
    Client, Start, all_output, keys::variable, outcome, tiers, tools::policy_with, within,
    workspace,
};

/// How many seconds a program may take.
const AT_MOST: &str = "30";

/// Says what a program said, where it did not do its work.
type Said = Result<(), String>;

fn unconfined(program: &Program) -> Said {
    let place = workspace();
    let said = place.path().join(".said");
    let mut command = Command::new("timeout");
    // Into a file: what a failing program leaves running would keep a pipe open.
    let errors = File::create(&said).unwrap();
    command.args([AT_MOST, "sh", "-ec", program.script]).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(errors).current_dir(place.path()).env("TMPDIR", place.path());
    command.env("PATH", toolchain::path());
    let status = command.status().unwrap();
    if status.success() { Ok(()) } else { Err(fs::read_to_string(said).unwrap()) }
}

async fn confined(client: &Client, tier: &str, program: &Program) -> Said {
    let place = workspace();
    // The tools of the test's own are timeout(1) already.
    let first = usize::from(program.tool != "command");
    let argv = ["timeout", AT_MOST, "sh", "-ec", program.script].map(str::to_owned);
    let options = within(place.path()).with("argv", argv[first..].to_vec());
    let (session, _) = match client.open(program.tool, options).await {
        Ok(opened) => opened,
        Err(refused) => return Err(refused.to_string()),
    };
    assert_eq!(session.confinement().await.unwrap().text("tier"), Some(tier));
    let said = all_output(&session).await;
    if outcome(&session).await.signed("code") == Some(0) { Ok(()) } else { Err(said) }
}

/// What is not as it should be.
fn judge(side: &str, program: &Program, said: &Said) -> Option<String> {
    let broken = program.broken_in.contains(&side);
    match said {
        Err(said) if !broken => Some(format!("{} in {side}: {said}", program.name)),
        Ok(()) if broken => Some(format!("{} works in {side}", program.name)),
        Ok(()) | Err(_) => None,
    }
}

#[tokio::test]
async fn ordinary_programs_work_in_every_tier() {
    let mut wrong = Vec::new();
    let mut table = String::from("\n");
    let policy = policy_with(TOOLS);
    toolchain::install();
    fs::create_dir(variable("HOME").join(".coder")).unwrap();
    for program in ALL {
        wrong.extend(judge("unconfined", program, &unconfined(program)));
    }
    for tier in tiers().await {
        let broker =
            Start::default().policy(policy.path()).env(MAX_TIER_VARIABLE, &tier).unit().await;
        let client = broker.client().await;
        for program in ALL {
            let said = confined(&client, &tier, program).await;
            let word = if said.is_ok() { "works" } else { "does not work" };
            let _ = writeln!(table, "{tier:<12} {word:<14} {}", program.name);
            wrong.extend(judge(&tier, program, &said));
        }
    }
    // Past the capture of tests that pass.
    io::stderr().write_all(table.as_bytes()).unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
