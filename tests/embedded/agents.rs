//! `st2-tools mcp` with no bus: an agent host gets a broker with its server, and it is gone with it.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Child, Stdio},
    sync::mpsc::{self, Receiver},
    thread,
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    place::{Place, until},
    program::{DEADLINE, start, wait},
    support::lives,
};

/// An agent host: what it says and hears is JSON-RPC, one message a line.
struct Host {
    server: Child,
    heard: Receiver<String>,
    asked: u64,
}

impl Host {
    fn begin(place: &Place) -> Self {
        let mut server = start(place.command(&["mcp"]).stdin(Stdio::piped()));
        let (sender, heard) = mpsc::channel();
        let lines = BufReader::new(server.stdout.take().unwrap()).lines();
        thread::spawn(move || lines.map_while(Result::ok).all(|line| sender.send(line).is_ok()));
        let mut host = Self { server, heard, asked: 0 };
        let begun = host.ask(
            "initialize",
            json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "embedded", "version": "1" },
            }),
        );
        assert_eq!(begun["serverInfo"]["name"], "st2-tools");
        host.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        host
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.server.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    /// Asks, and waits for the answer.
    fn ask(&mut self, method: &str, parameters: Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }));
        let line = self.heard.recv_timeout(DEADLINE).expect("no answer");
        let mut answer: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(answer["id"], id, "{line}");
        answer["result"].take()
    }

    /// Calls a tool that is to succeed.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let mut result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(result["structuredContent"]["ok"], true, "{result}");
        result["structuredContent"].take()
    }

    /// Starts the probe; waits until so many processes have said who they are. They live.
    fn processes(&mut self, place: &Place, what: &str, count: usize) -> Vec<i32> {
        let command = json!({ "command": [place.probe(), what], "background": true });
        let running = self.call("exec", command);
        let id = &running["sessionId"];
        let mut output = running["output"].as_str().unwrap().to_owned();
        while output.matches('\n').count() < count {
            let poll = json!({ "action": "poll", "sessionId": id, "timeout": 5000 });
            let answer = self.call("process", poll);
            output.push_str(answer["output"].as_str().unwrap());
            assert_eq!(answer["ended"], false, "{output}");
        }
        let pids = output.lines().map(|line| line.strip_prefix("pid ").unwrap().parse().unwrap());
        let pids: Vec<i32> = pids.collect();
        assert!(pids.iter().all(|pid| lives(*pid)), "{pids:?}");
        pids
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.server.id().cast_signed())
    }
}

#[test]
fn an_agent_host_without_a_bus_gets_a_broker_of_its_own() {
    let place = Place::new();
    let mut host = Host::begin(&place);
    let done = host.call("exec", json!({ "command": ["sh", "-c", "pwd; exit 3"], "pty": true }));
    let output = format!("{}\n", place.workspace().canonicalize().unwrap().display());
    assert_eq!((&done["output"], &done["session"]["exitCode"]), (&json!(output), &json!(3)));
    let root = place.workspace().to_str().unwrap();
    let opened =
        host.call("coordinate_agents_session_open", json!({ "root": root, "agent": "shell" }));
    let session = json!({ "root": root, "sessionId": opened["sessionId"] });
    let closed = host.call("coordinate_agents_session_close", session);
    assert_eq!(closed["session"]["survivors"], 0);
    // What still runs ends with the host: a server whose host says no more has nothing to do.
    let pids = host.processes(&place, "escape-and-hold", 5);
    let server = host.pid();
    drop(host.server.stdin.take());
    assert_eq!(wait(host.server).status, Some(0));
    assert!(!pids.iter().any(|pid| lives(*pid)), "{pids:?}");
    place.nothing_is_left_of(server);
}

#[test]
fn a_server_with_a_broker_of_its_own_that_is_ended_leaves_no_process() {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        let place = Place::new();
        let mut host = Host::begin(&place);
        let pids = host.processes(&place, "escape-and-hold", 5);
        let server = host.pid();
        kill(server, signal).unwrap();
        wait(host.server);
        until("all five are dead", || !pids.iter().any(|pid| lives(*pid)));
        until("the supervisor is gone", || place.processes().is_empty());
        // A directory may be left where it was killed, and goes with the next broker.
        assert_eq!(place.run(&["run", "true"]).status, Some(0));
        place.nothing_is_left_of(server);
    }
}
