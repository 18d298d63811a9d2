//! One side of the suite: no confinement, or one tier of it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use st2_tools::{client::session::SessionProxy, config::MAX_TIER_VARIABLE};
use tempfile::TempDir;

use super::{
    attempt::Attempt,
    control::Control,
    from::{From, PROFILES, TOOLS},
    judge::{NOT_OPENED, Verdict},
    scene::{LEAK, Scene, in_home, text},
    victims::TREASURE,
};
use crate::support::{
    Broker, Client, Start, all_output, error_of,
    keys::{SshAgent, variable},
    outcome, output_until, program, short,
    tools::policy_of,
    until,
};

/// Variables that no tool may see, and that the broker of a scene has.
pub const NEVER: [&str; 6] = [
    "ST2_AGENT",
    "SSH_AUTH_SOCK",
    "CLAUDE_SESSION",
    "GIT_CONFIG_COUNT",
    "LD_BIND_NOW",
    "NOTIFY_SOCKET",
];

/// Those of them that the manager sets, or that name the agent.
const SET_OTHERWISE: [&str; 2] = ["NOTIFY_SOCKET", "SSH_AUTH_SOCK"];

/// No confinement, or one tier of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// The same program as a plain one of the user's.
    Unconfined,
    /// As a tool, in this tier.
    Tier(String),
}

impl std::fmt::Display for Side {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unconfined => f.write_str("unconfined"),
            Self::Tier(tier) => f.write_str(tier),
        }
    }
}

/// A broker of one side, and the scene around it.
pub struct Stage {
    pub side: Side,
    pub scene: Scene,
    pub client: Client,
    /// A session that has been granted the agent, where the tier can.
    _holder: Option<SessionProxy<'static>>,
    _broker: Broker,
    _policy: TempDir,
}

/// What the probe says of one attempt.
#[derive(Debug, Deserialize)]
struct Line {
    attempt: usize,
    said: String,
    why: String,
}

impl Stage {
    /// Sets one up.
    pub async fn new(side: Side) -> Self {
        let outside = in_home("outside");
        let leak = outside.path().join(LEAK);
        fs::write(&leak, TREASURE).unwrap();
        let mut start = Start::default();
        if let Side::Tier(tier) = &side {
            start = start.env(MAX_TIER_VARIABLE, tier);
        }
        for name in NEVER.iter().filter(|name| !SET_OTHERWISE.contains(*name)) {
            start = start.env(name, "0");
        }
        let agent = SshAgent::start();
        let policy = policy_of(&TOOLS, &PROFILES);
        fs::create_dir_all(variable("HOME").join(".coder")).unwrap();
        start = start.policy(policy.path()).env("SSH_AUTH_SOCK", text(&agent.socket()));
        // A broker that was started with a file open, which is not closed when it executes a launcher.
        let (leak, broker) = (text(&leak), text(&program("st2-toolsd")));
        let leaky = format!("ExecStart=sh -c 'exec 9>>\"{leak}\" \"{broker}\"'");
        let broker = start.setting("ExecStart=").setting(&leaky).unit().await;
        let client = broker.client().await;
        let scene = Scene::new(&broker, &client, outside, agent).await;
        let holder = Self::hold_agent(&side, &client, &scene).await;
        Self { side, scene, client, _holder: holder, _broker: broker, _policy: policy }
    }

    async fn hold_agent(
        side: &Side,
        client: &Client,
        scene: &Scene,
    ) -> Option<SessionProxy<'static>> {
        let Side::Tier(tier) = side else { return None };
        if From::Keys.refused_in(tier).is_some() {
            return None;
        }
        let argv = ["sh", "-c", "ssh-add -l; read line"].map(str::to_owned).to_vec();
        let options = From::Keys.options(scene, argv);
        let (session, _) = client.open(From::Keys.tool(), options).await.ok()?;
        output_until(&session, "ED25519").await;
        Some(session)
    }

    /// Makes all attempts, and gives a verdict on each, in their order.
    pub async fn try_all(&self, attempts: &[Attempt]) -> Vec<Verdict> {
        let mut verdicts: Vec<Option<Verdict>> = attempts.iter().map(|_| None).collect();
        for from in From::ALL {
            let some: Vec<usize> =
                (0..attempts.len()).filter(|number| attempts[*number].from == from).collect();
            let words: Vec<_> =
                some.iter().map(|number| (attempts[*number].words)(&self.scene)).collect();
            let (lines, gaps) = self.run(from, &words).await;
            self.scene.settle();
            for (line, number) in lines.iter().zip(some) {
                let attempt = &attempts[number];
                let effect = self.effect(attempt).await;
                let said = (line.said.clone(), line.why.clone());
                verdicts[number] = Some(Verdict { said, effect, gaps: gaps.clone() });
            }
        }
        verdicts.into_iter().map(|verdict| verdict.expect("each is tried")).collect()
    }

    /// Whether an attempt has had its effect. Unconfined, it may take its time; a tool's has had it.
    async fn effect(&self, attempt: &Attempt) -> Option<bool> {
        let trace = attempt.trace.as_ref()?;
        if self.side == Side::Unconfined {
            let patience = std::time::Duration::from_secs(20);
            let seen = until(attempt.name, || trace(&self.scene));
            return Some(tokio::time::timeout(patience, seen).await.is_ok());
        }
        Some(trace(&self.scene))
    }

    /// Has the probe try some, in one go; gives also what the session says is open.
    async fn run(&self, from: From, words: &[Vec<String>]) -> (Vec<Line>, Vec<String>) {
        let place = self.scene.place(from);
        let file = place.join(format!("attempts-{from:?}.json"));
        fs::write(&file, serde_json::to_vec(words).unwrap()).unwrap();
        let file = text(&file);
        let (output, gaps) = match &self.side {
            Side::Unconfined => (self.run_unconfined(&place, file).await, Vec::new()),
            Side::Tier(tier) => match self.run_confined(tier, from, &file).await {
                Ok(ran) => ran,
                Err(refused) => return (Line::refused(&refused, words.len()), Vec::new()),
            },
        };
        let lines: Vec<Line> = output
            .lines()
            .filter(|line| line.starts_with("{\"attempt\""))
            .map(|line| serde_json::from_str(line.trim()).unwrap())
            .collect();
        let complete = lines.iter().enumerate().all(|(number, line)| line.attempt == number);
        assert!(complete && lines.len() == words.len(), "{from:?} in {:?}: {output}", self.side);
        (lines, gaps)
    }

    async fn run_unconfined(&self, place: &Path, file: String) -> String {
        let (place, leak) = (place.to_owned(), PathBuf::from(self.scene.out(LEAK)));
        let probe = text(&self.scene.probe);
        let run = move || Control::start(&place, &leak, &[&probe, "batch", &file]).output();
        tokio::task::spawn_blocking(run).await.unwrap()
    }

    /// Gives the error, and its text, where no session is opened.
    async fn run_confined(
        &self,
        tier: &str,
        from: From,
        file: &str,
    ) -> Result<(String, Vec<String>), (String, String)> {
        let argv = [&text(&self.scene.probe), "batch", file].map(str::to_owned).to_vec();
        let opened = self.client.open(from.tool(), from.options(&self.scene, argv)).await;
        let (session, _) = match opened {
            Ok(opened) => opened,
            Err(refused) => {
                return Err(error_of(Err::<(), _>(refused)));
            }
        };
        let stated = session.confinement().await.unwrap();
        assert_eq!(stated.text("tier"), Some(tier));
        let output = all_output(&session).await;
        outcome(&session).await;
        Ok((output, stated.texts("gaps").into_iter().map(str::to_owned).collect()))
    }
}

impl Line {
    /// Of attempts for which no session was opened.
    fn refused((error, text): &(String, String), count: usize) -> Vec<Self> {
        let said = format!("{NOT_OPENED}{}", short(error));
        (0..count).map(|attempt| Self { attempt, said: said.clone(), why: text.clone() }).collect()
    }
}
