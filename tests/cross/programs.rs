//! Programs that people use in a terminal.

use std::fs;

use st2_tools::client::{Dict, session::SessionProxy};

use crate::support::{Broker, Client, outcome, screen::Screen, soon, within, workspace};

async fn open(client: &Client, place: &std::path::Path, argv: &[&str]) -> SessionProxy<'static> {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let options = within(place).with("argv", argv);
    client.open("command", options).await.unwrap().0
}

async fn exits(session: &SessionProxy<'_>) {
    let outcome = outcome(session).await;
    assert_eq!((outcome.text("kind"), outcome.signed("code")), (Some("exited"), Some(0)));
    assert_eq!(outcome.text("reason"), Some("exit"));
}

#[tokio::test]
async fn an_editor_edits_a_file_of_the_workspace() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let file = place.path().join("letter.txt");
    fs::write(&file, "first line\n").unwrap();
    let session = open(&client, place.path(), &["vim", "-u", "NONE", "-N", "letter.txt"]).await;
    let mut screen = Screen::attach(&session).await;
    screen.shows("first line").await;
    screen.press("osecond line").await;
    screen.shows("second line").await;
    screen.press("\x1b:wq\r").await;
    exits(&session).await;
    assert_eq!(fs::read_to_string(&file).unwrap(), "first line\nsecond line\n");
}

#[tokio::test]
async fn a_pager_pages_and_follows_a_resize() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let text: String = (1..=500).map(|number| format!("row {number}\n")).collect();
    fs::write(place.path().join("long.txt"), text).unwrap();
    let session = open(&client, place.path(), &["less", "long.txt"]).await;
    let mut screen = Screen::attach(&session).await;
    screen.shows("row 23").await;
    screen.press("G").await;
    screen.shows("row 500").await;
    screen.press("g").await;
    screen.hides("row 500").await;
    screen.resize(60, 40).await;
    screen.shows("row 39").await;
    screen.press("q").await;
    exits(&session).await;
}

#[tokio::test]
async fn a_monitor_draws_and_is_closed() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let session = open(&client, place.path(), &["htop"]).await;
    let mut screen = Screen::attach(&session).await;
    screen
        .until("a table", |screen| {
            let text = screen.contents();
            text.contains("PID") && text.contains("htop")
        })
        .await;
    let outcome = soon("Close", session.close(&Dict::new())).await.unwrap();
    assert_eq!(outcome.text("reason"), Some("closed-by-owner"));
}

#[tokio::test]
async fn an_interpreter_answers_and_is_interrupted() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let session = open(&client, place.path(), &["/usr/bin/python3", "-q"]).await;
    let mut screen = Screen::attach(&session).await;
    screen.shows(">>>").await;
    screen.press("6 * 7\r").await;
    screen.shows("\n42").await;
    screen.press("import time; print('run' + 'ning'); time.sleep(1000)\r").await;
    screen.shows("\nrunning").await;
    session.interrupt().await.unwrap();
    screen.shows("KeyboardInterrupt").await;
    screen.press("exit()\r").await;
    exits(&session).await;
}
