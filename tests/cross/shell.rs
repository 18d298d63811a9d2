//! A shell with job control.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::support::{Broker, lives, manager, outcome, screen::Screen, within, workspace};

/// Has a shell do something on an empty screen, and waits until it has; gives what the screen shows then.
async fn ask(screen: &mut Screen<'_>, command: &str) -> String {
    static MARKS: AtomicU32 = AtomicU32::new(0);
    let mark = format!("={}=", MARKS.fetch_add(1, Ordering::Relaxed));
    screen.press(&format!("clear; {command}; echo {mark}\r")).await;
    let text = screen.line(&mark).await;
    text.split(&mark).next().unwrap().to_owned()
}

/// Waits until the shell asks for the next command, after a word.
async fn prompt(screen: &mut Screen<'_>, word: &str) {
    let asks = |screen: &vt100::Screen| {
        let text = screen.contents();
        text.contains(word) && text.trim_end().ends_with('$')
    };
    screen.until(&format!("a prompt after {word:?}"), asks).await;
}

/// Waits until a word is there so many times.
async fn counts(screen: &mut Screen<'_>, word: &str, count: usize) {
    let what = format!("{word:?} {count} times");
    screen.until(&what, |screen| screen.contents().matches(word).count() == count).await;
}

#[tokio::test]
async fn a_session_is_a_real_terminal() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let options = within(place.path()).with("columns", 90u16).with("rows", 20u16);
    let (session, _) = client.open("shell", options).await.unwrap();
    let mut screen = Screen::attach(&session).await;
    let text = ask(&mut screen, "tty; stty size; echo $(ps -o pid=,sid=,tpgid= $$)").await;
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("/dev/pts/") && lines[1] == "20 90", "{text}");
    let ids: Vec<_> = lines[2].split(' ').collect();
    assert!(ids.len() == 3 && ids[0] == ids[1] && ids[0] == ids[2], "{text}");
    assert!(ask(&mut screen, "echo >/dev/tty reached").await.contains("reached\n"));

    // A job is stopped by ^Z, is listed, comes back and ends by ^C.
    screen.press("clear; echo begin; cat\r").await;
    screen.line("begin").await;
    screen.press("typed\r").await;
    counts(&mut screen, "typed", 2).await;
    screen.press("\x1a").await;
    prompt(&mut screen, "[1]+  Stopped").await;
    let text = ask(&mut screen, "jobs").await;
    assert!(text.contains("[1]+  Stopped") && text.contains("cat"), "{text}");
    screen.press("clear; fg\r").await;
    screen.line("cat").await;
    screen.press("again\r").await;
    counts(&mut screen, "again", 2).await;
    screen.press("\x03").await;
    // What is typed before the shell asks again is lost: it throws away what was meant for the job.
    prompt(&mut screen, "^C").await;
    screen.press("echo status $?\r").await;
    screen.shows("status 130").await;
    assert_eq!(ask(&mut screen, "jobs").await, "");

    // In the background it may write, and is stopped when it reads.
    screen.press("clear; (echo back''ground; cat) &\r").await;
    screen.shows("background").await;
    let text = ask(&mut screen, "until jobs | grep -q Stopped; do :; done; jobs").await;
    assert!(text.contains("[1]+  Stopped"), "{text}");
    let killed = "kill -KILL %1; while kill -0 $! 2>/dev/null; do :; done; jobs";
    let text = ask(&mut screen, killed).await;
    assert!(text.contains("Killed"), "{text}");

    // A size reaches the shell and its jobs.
    screen.resize(100, 30).await;
    assert_eq!(ask(&mut screen, "stty size; echo $COLUMNS").await, "30 100\n100\n");

    // Modes: what is typed is not shown.
    screen.press("clear; read -s -p 'secret''? ' x; echo; echo got ${#x}\r").await;
    screen.shows("secret? ").await;
    screen.press("hidden\r").await;
    let text = screen.shows("got 6").await;
    assert!(!text.contains("hidden"), "{text}");

    screen.press("exit 3\r").await;
    let ended = outcome(&session).await;
    assert_eq!((ended.text("kind"), ended.signed("code")), (Some("exited"), Some(3)));
    assert_eq!(ended.text("reason"), Some("exit"));
}

#[tokio::test]
async fn the_end_of_input_ends_a_shell_and_its_jobs_with_it() {
    let (broker, place) = (Broker::unit().await, workspace());
    let client = broker.client().await;
    let (session, _) = client.open("shell", within(place.path())).await.unwrap();
    let mut screen = Screen::attach(&session).await;
    let text = ask(&mut screen, "set +m; (setsid sleep 1000 &); sleep 1000 & echo pid $!").await;
    let pid = text.rsplit("pid ").next().unwrap().trim().parse().unwrap();
    assert!(lives(pid));
    let group = manager::group(&session.unit().await.unwrap());
    assert_eq!(manager::members(&group).len(), 3);
    screen.press("\x04").await;
    let ended = outcome(&session).await;
    assert_eq!((ended.text("kind"), ended.signed("code")), (Some("exited"), Some(0)));
    assert_eq!(ended.text("reason"), Some("exit"));
    assert_eq!(ended.number("survivors"), Some(0));
    assert!(manager::is_empty(&group) && !lives(pid));
}
