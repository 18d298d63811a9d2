//! Each network that a profile may declare, against real listeners outside and a listener of the tool's own.

use std::{collections::BTreeMap, fs};

use st2_tools::config::{LANDLOCK_ABI_VARIABLE, MAX_TIER_VARIABLE};

use super::policy::{refused, run, script_with, start};
use crate::support::{
    Broker, Start, listeners::Listener, program, ran::Ran, tiers, tools, workspace,
};

/// Listeners outside, by what they are.
struct Outside {
    listeners: BTreeMap<&'static str, (Listener, String)>,
    port: u16,
}

impl Outside {
    /// Listens: on one port that is to be granted, and elsewhere.
    fn new() -> Self {
        let granted = Listener::tcp("127.0.0.1:0");
        let port = granted.1.rsplit(':').next().unwrap().parse().unwrap();
        let name = format!("st2-network-{}-{port}", std::process::id());
        let listeners = BTreeMap::from([
            ("tcp", granted),
            ("tcp6", Listener::tcp(&format!("[::1]:{port}"))),
            ("tcp-other", Listener::tcp("127.0.0.1:0")),
            ("udp", Listener::udp("127.0.0.1:0")),
            ("udp6", Listener::udp("[::1]:0")),
            ("abstract", (Listener::hidden(&name), name)),
        ]);
        Self { listeners, port }
    }

    /// Has a session speak to all of them, and to itself; gives who was heard, and what the session said.
    async fn meet(&self, broker: &Broker) -> (Vec<&'static str>, Ran) {
        let probe = tools::install(&program("st2-tools-probe"));
        let word = |name: &str| match name {
            "udp" | "udp6" => "send-udp",
            "abstract" => "send-abstract",
            _ => "send-tcp",
        };
        let speak = |(name, (_, address)): (&&str, &(Listener, String))| {
            format!("echo {name}; $0 try {} {address}; ", word(name))
        };
        let script: String = self.listeners.iter().map(speak).collect();
        let script = script
            + "echo itself by tcp: $($0 try meet-tcp); echo itself by udp: $($0 try meet-udp)";
        let argv = [script.as_str(), probe.to_str().unwrap()];
        let ran = run(broker, workspace().path(), &argv).await;
        let heard = |(name, (listener, _)): (&&'static str, &(Listener, String))| {
            listener.settle();
            listener.heard().then_some(*name)
        };
        (self.listeners.iter().filter_map(heard).collect(), ran)
    }
}

fn meets_itself(ran: &Ran) -> [bool; 2] {
    ["tcp", "udp"].map(|kind| ran.said.contains(&format!("itself by {kind}: ok")))
}

#[tokio::test]
async fn without_a_network_nobody_is_reached() {
    let policy = script_with("network = 'none'");
    for tier in tiers().await {
        let broker = start(&tier, policy.path()).unit().await;
        let (heard, ran) = Outside::new().meet(&broker).await;
        assert_eq!((heard, meets_itself(&ran)), (vec![], [false; 2]), "{tier}: {ran:?}");
        assert_eq!(ran.confinement.text("network"), Some("none"));
        assert!(!ran.has_gap("udp-open"), "{tier}: {ran:?}");
    }
}

#[tokio::test]
async fn with_a_port_that_port_alone_is_reached_and_what_udp_does_is_stated() {
    for tier in tiers().await {
        let outside = Outside::new();
        let policy = script_with(&format!("network = 'tcp:{}'", outside.port));
        let broker = start(&tier, policy.path()).unit().await;
        let (heard, ran) = outside.meet(&broker).await;
        let udp = ran.has_gap("udp-open");
        let expected = if udp { vec!["tcp", "tcp6", "udp", "udp6"] } else { vec!["tcp", "tcp6"] };
        assert_eq!((heard, meets_itself(&ran)), (expected, [false, udp]), "{tier}: {ran:?}");
    }
}

#[tokio::test]
async fn with_all_everybody_is_reached_who_has_a_port() {
    let policy = script_with("network = 'all'");
    for tier in tiers().await {
        let broker = start(&tier, policy.path()).unit().await;
        let (heard, ran) = Outside::new().meet(&broker).await;
        let everybody = vec!["tcp", "tcp-other", "tcp6", "udp", "udp6"];
        assert_eq!((heard, meets_itself(&ran)), (everybody, [true; 2]), "{tier}: {ran:?}");
    }
}

#[tokio::test]
async fn a_loopback_of_its_own_leads_nowhere_else_or_is_refused() {
    let policy = script_with("network = 'loopback'");
    for tier in tiers().await {
        let broker = start(&tier, policy.path()).unit().await;
        if tier == "mounts" {
            let (heard, ran) = Outside::new().meet(&broker).await;
            assert_eq!((heard, meets_itself(&ran)), (vec![], [true; 2]), "{tier}: {ran:?}");
            assert_eq!(ran.confinement.text("network"), Some("loopback"));
            assert!(!ran.has_gap("udp-open"), "{ran:?}");
        } else {
            let (name, text) = refused(&broker.client().await, workspace().path()).await;
            assert_eq!(name, "ConfinementUnavailable", "{text}");
            assert!(text.contains("loopback"), "{text}");
        }
    }
}

#[tokio::test]
async fn on_a_kernel_that_knows_no_ports_they_are_refused_or_stated_as_open() {
    let outside = Outside::new();
    let policy = script_with(&format!("network = 'tcp:{}'", outside.port));
    let old = |tier: &str| {
        let start = Start::default().env(MAX_TIER_VARIABLE, tier).policy(policy.path());
        start.env(LANDLOCK_ABI_VARIABLE, "3")
    };
    for tier in tiers().await.into_iter().filter(|tier| tier != "resolve-unix") {
        let settings = policy.path().join("broker.toml");
        let broker = old(&tier).unit().await;
        let (name, text) = refused(&broker.client().await, workspace().path()).await;
        assert_eq!(name, "ConfinementUnavailable", "{text}");
        drop(broker);
        fs::write(&settings, "allow_degraded = true\n").unwrap();
        let broker = old(&tier).unit().await;
        let (heard, ran) = outside.meet(&broker).await;
        assert!(ran.has_gap("tcp-open"), "{tier}: {ran:?}");
        assert!(heard.contains(&"tcp-other"), "{tier}: {heard:?} {ran:?}");
        fs::remove_file(&settings).unwrap();
    }
}
