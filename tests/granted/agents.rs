//! Agents that keep keys: real ones sign for a session, and give away no key.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::policy::{WITH_SOCKETS, refused, run, script_with, start};
use crate::support::{
    Broker,
    keys::{GpgAgent, SshAgent, variable},
    listeners::Listener,
    program, tiers, tools, workspace,
};

async fn broker_of(tier: &str, policy: &Path, agent: &SshAgent) -> Broker {
    let socket = agent.socket().to_str().unwrap().to_owned();
    start(tier, policy).env("SSH_AUTH_SOCK", socket).unit().await
}

/// Whether a file `letter` bears a signature of the agent's key, ssh-keygen(1).
fn is_signed(place: &Path, agent: &SshAgent) -> bool {
    let signers = place.join("signers");
    fs::write(&signers, format!("somebody {}", agent.public_key())).unwrap();
    let Ok(letter) = fs::File::open(place.join("letter")) else { return false };
    let mut verify = Command::new("ssh-keygen");
    verify.args(["-q", "-Y", "verify", "-I", "somebody", "-n", "file", "-f"]).arg(signers);
    verify.arg("-s").arg(place.join("letter.sig")).stdin(letter);
    verify.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

/// Signs a letter with the agent.
const SIGN: &str = "echo letter >letter; ssh-keygen -q -Y sign -n file -f key.pub letter";

#[tokio::test]
async fn with_a_granted_ssh_agent_a_session_signs() {
    let agent = SshAgent::start();
    let policy = script_with("sockets = ['ssh-agent']");
    for tier in tiers().await {
        let broker = broker_of(&tier, policy.path(), &agent).await;
        let place = workspace();
        fs::write(place.path().join("key.pub"), agent.public_key()).unwrap();
        if !WITH_SOCKETS.contains(&tier.as_str()) {
            let (name, text) = refused(&broker.client().await, place.path()).await;
            assert_eq!(name, "NotPermitted", "{text}");
            assert!(text.contains("ssh-agent") && text.contains(&tier), "{text}");
            continue;
        }
        let ran = run(&broker, place.path(), &[SIGN]).await;
        assert_eq!(ran.code, Some(0), "{tier}: {ran:?}");
        assert!(is_signed(place.path(), &agent), "{tier}: {ran:?}");
        assert!(ran.has_gap("granted-sockets"), "{tier}: {ran:?}");
        let sockets = ran.confinement.texts("sockets");
        assert_eq!(sockets, [agent.socket().to_str().unwrap()], "{tier}");
    }
}

#[tokio::test]
async fn without_the_grant_a_session_finds_no_agent_while_another_one_signs() {
    let agent = SshAgent::start();
    let granted = script_with("sockets = ['-ssh-agent']");
    let bare = "title = 'script'\ncommand = ['sh', '-ec']\narguments = 'any'\n";
    fs::write(granted.path().join("tools.d/bare.toml"), bare).unwrap();
    for tier in tiers().await {
        let broker = broker_of(&tier, granted.path(), &agent).await;
        let place = workspace();
        fs::write(place.path().join("key.pub"), agent.public_key()).unwrap();
        let client = broker.client().await;
        let argv = vec!["echo ${SSH_AUTH_SOCK-none}; echo there; read line".to_owned()];
        let options = crate::support::within(place.path()).with("argv", argv);
        let (other, _) = client.open("script", options).await.unwrap();
        let said = crate::support::output_until(&other, "there").await;
        assert_eq!(said.contains("none"), !WITH_SOCKETS.contains(&tier.as_str()), "{said}");

        let socket = agent.socket().to_str().unwrap().to_owned();
        let script =
            format!("echo agent: ${{SSH_AUTH_SOCK-none}}; export SSH_AUTH_SOCK={socket}; {SIGN}");
        let options = crate::support::within(place.path()).with("argv", vec![script.clone()]);
        let (session, _) = client.open("bare", options).await.unwrap();
        let said = crate::support::all_output(&session).await;
        assert!(said.contains("agent: none"), "{tier}: {said}");
        assert!(!is_signed(place.path(), &agent), "{tier}: {said}");
        // The script is right: outside it signs.
        let outside = Command::new("sh").args(["-ec", &script]).current_dir(place.path()).status();
        assert!(outside.unwrap().success() && is_signed(place.path(), &agent));
    }
}

#[tokio::test]
async fn a_granted_agent_brings_nothing_of_its_directory_along() {
    let agent = SshAgent::start();
    let policy = script_with("sockets = ['ssh-agent']");
    let probe = tools::install(&program("st2-tools-probe"));
    let beside = agent.directory().join("beside");
    let listener = Listener::stream(&beside);
    for tier in tiers().await {
        if !WITH_SOCKETS.contains(&tier.as_str()) {
            continue;
        }
        let broker = broker_of(&tier, policy.path(), &agent).await;
        let place = workspace();
        let script = "cat $0/key && echo reached; ls $0/beside && echo listed; \
                      $1 try send-stream $0/beside; echo x >$0/new && echo reached; \
                      rm $0/agent && echo reached; mv $0/agent $0/moved && echo reached; true";
        let argv = [script, agent.directory().to_str().unwrap(), probe.to_str().unwrap()];
        let ran = run(&broker, place.path(), &argv).await;
        assert_eq!(ran.code, Some(0), "{tier}: {ran:?}");
        assert!(!ran.said.contains("reached") && !ran.said.contains("PRIVATE"), "{tier}: {ran:?}");
        assert!(!ran.said.contains("listed") || tier != "mounts", "{tier}: {ran:?}");
        listener.settle();
        assert!(!listener.heard(), "{tier}: {ran:?}");
        assert!(agent.socket().exists(), "{tier}");
    }
}

#[tokio::test]
async fn an_agent_that_is_not_there_refuses_or_is_passed_over() {
    for tier in tiers().await {
        let place = workspace();
        let policy = script_with("sockets = ['ssh-agent']");
        let broker = start(&tier, policy.path()).unit().await;
        let (name, text) = refused(&broker.client().await, place.path()).await;
        assert_eq!(name, "NotPermitted", "{text}");
        assert!(text.contains("ssh-agent"), "{text}");
        drop(broker);
        let policy = script_with("sockets = ['-ssh-agent', '-wayland', '-/run/none']");
        let broker = start(&tier, policy.path()).unit().await;
        let ran = run(&broker, place.path(), &["echo ${SSH_AUTH_SOCK-none}"]).await;
        assert!(ran.said.contains("none") && !ran.has_gap("granted-sockets"), "{tier}: {ran:?}");
    }
}

/// Reading the public half of the keyring is the profile's to declare.
const GPG: &str =
    "sockets = ['gpg-agent']\ngrants.read = ['~/.gnupg/pubring.kbx', '-~/.gnupg/trustdb.gpg']";

#[tokio::test]
async fn with_a_granted_gpg_agent_a_session_signs_and_takes_no_key() {
    let agent = GpgAgent::start();
    let policy = script_with(GPG);
    for tier in tiers().await {
        let broker = start(&tier, policy.path()).unit().await;
        let place = workspace();
        if tier != "mounts" {
            let (name, text) = refused(&broker.client().await, place.path()).await;
            assert_eq!(name, "NotPermitted", "{text}");
            assert!(text.contains("gpg-agent") && text.contains(&tier), "{text}");
            continue;
        }
        let script = "echo letter >letter; gpg --batch --lock-never --detach-sign letter";
        let ran = run(&broker, place.path(), &[script]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let mut verify = Command::new("gpg");
        verify.args(["--batch", "--verify", "letter.sig", "letter"]).current_dir(place.path());
        assert!(verify.status().unwrap().success(), "{ran:?}");

        let export = "gpg --batch --lock-never --pinentry-mode loopback --passphrase '' --armor --export-secret-keys";
        let ran = run(&broker, place.path(), &[export]).await;
        assert!(!ran.said.contains("PRIVATE KEY"), "{ran:?}");
        // By the socket that is not restricted, outside, the same command gives the key away.
        let outside = Command::new("sh").args(["-c", export]).output().unwrap();
        assert!(String::from_utf8_lossy(&outside.stdout).contains("PRIVATE KEY"), "{outside:?}");

        let keys = "cat ~/.gnupg/private-keys-v1.d/* && echo reached; true";
        assert!(!run(&broker, place.path(), &[keys]).await.said.contains("reached"));
        assert!(variable("HOME").join(".gnupg/private-keys-v1.d").read_dir().unwrap().count() > 0);
    }
    drop(agent);
}
