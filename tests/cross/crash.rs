//! The command as a client that crashes.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Command, Stdio},
};

use st2_tools::client::{Dict, session::SessionProxy};

use crate::support::{
    Broker, Client, lives, manager, outcome, output_until, owner_state, program, soon, workspace,
};

/// The command, run by somebody at a terminal that types nothing.
fn run(arguments: &[&str], place: &std::path::Path) -> Child {
    Command::new(program("st2-tools"))
        .arg("run")
        .args(arguments)
        .current_dir(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// The one session that there is.
async fn only_session(client: &Client) -> SessionProxy<'static> {
    let rows = client.manager.list_sessions(&Dict::new()).await.unwrap();
    assert_eq!(rows.len(), 1, "{rows:?}");
    let id = rows[0].text("Id").unwrap();
    client.session(&format!("/org/st2/Tools/session/{id}")).await
}

#[tokio::test]
async fn a_command_that_is_killed_ends_nothing_before_its_grace_and_everything_after() {
    let (broker, place) = (Broker::unit().await, workspace());
    let script = "trap '' HUP TERM; echo $$ is here; while :; do sleep 1000; done";
    let mut command = run(&["--grace", "5s", "--", "sh", "-c", script], place.path());
    let mut line = String::new();
    BufReader::new(command.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let pid: i32 = line.split(' ').next().unwrap().parse().unwrap();
    let watcher = broker.client().await;
    let session = only_session(&watcher).await;
    let group = manager::group(&session.unit().await.unwrap());
    assert!(manager::members(&group).contains(&pid));
    command.kill().unwrap();
    command.wait().unwrap();
    owner_state(&session, "grace").await;
    let deadline = session.grace_deadline_usec().await.unwrap();
    assert!(lives(pid));
    let outcome = outcome(&session).await;
    assert_eq!(outcome.text("reason"), Some("owner-vanished"));
    assert!(outcome.number("ended_usec").unwrap() >= deadline);
    assert!(!lives(pid) && manager::is_empty(&group));
}

#[tokio::test]
async fn a_command_passes_what_is_typed_and_the_status_of_its_tool() {
    let (broker, place) = (Broker::unit().await, workspace());
    let script = "read line; echo read $line; exit 7";
    let mut command = run(&["--", "sh", "-c", script], place.path());
    command.stdin.as_mut().unwrap().write_all(b"a line\n").unwrap();
    let mut output = String::new();
    command.stdout.as_mut().unwrap().read_to_string(&mut output).unwrap();
    assert_eq!(command.wait().unwrap().code(), Some(7), "{output}");
    assert!(output.contains("read a line"), "{output}");
    let watcher = broker.client().await;
    let session = only_session(&watcher).await;
    output_until(&session, "read a line").await;
    let closed = soon("Wait", session.wait(0)).await.unwrap().1;
    assert_eq!(closed.text("reason"), Some("exit"));
}
