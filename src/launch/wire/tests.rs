use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::File,
    io::{Read, Write},
    os::{
        fd::AsFd,
        unix::{ffi::OsStringExt, net::UnixStream},
    },
    path::PathBuf,
};

use nix::{
    fcntl::{FcntlArg, FdFlag, fcntl},
    poll::{PollFd, PollFlags, PollTimeout, poll},
};
use proptest::prelude::*;

use super::*;
use crate::launch::{
    report::Tier,
    spec::{
        Access, ConfinementSpec, Grant, Io, LaunchSpec, Network, OwnRoot, Slot, Target, ToLauncher,
    },
};

fn spec() -> LaunchSpec {
    LaunchSpec {
        argv: vec!["sh".into(), OsString::from_vec(vec![0xff, 0x80])],
        environment: BTreeMap::from([("A".into(), OsString::from_vec(vec![0xfe]))]),
        io: Io::Pty,
        confinement: ConfinementSpec {
            tier: Tier::Seccomp,
            grants: vec![Grant {
                target: Target::Descriptor(Slot::Workspace, PathBuf::from("/ä")),
                access: Access { read: true, write: true, execute: false, device: false },
                optional: false,
            }],
            sockets: Vec::new(),
            network: Network::TcpConnect(vec![443]),
            root: OwnRoot::default(),
            no_user_namespace: false,
            landlock_abi_cap: Some(6),
            allow_degraded: false,
        },
        umask: 0o077,
        nofile_soft: 1024,
        oom_score_adj: 200,
        supervise: None,
    }
}

#[test]
fn a_specification_survives_the_wire_in_single_bytes() {
    let message = ToLauncher::Spec(Box::new(spec()));
    let mut decoder = Decoder::default();
    let mut got = Vec::new();
    for byte in encode(&message).unwrap().into_iter().chain(encode(&ToLauncher::Release).unwrap()) {
        decoder.extend(&[byte]);
        got.extend(decoder.message::<ToLauncher>().unwrap());
    }
    assert_eq!(got, [message, ToLauncher::Release]);
    assert!(decoder.is_empty());
}

#[test]
fn a_long_frame_is_refused_on_both_sides() {
    let mut long = spec();
    long.argv = vec![OsString::from("x".repeat(FRAME_MAX))];
    let error = encode(&ToLauncher::Spec(Box::new(long))).unwrap_err();
    assert!(matches!(error, WireError::TooLong(length) if length > FRAME_MAX), "{error}");

    let mut decoder = Decoder::default();
    decoder.extend(&u32::MAX.to_le_bytes());
    let error = decoder.message::<ToLauncher>().unwrap_err();
    assert!(matches!(error, WireError::TooLong(_)), "{error}");
}

#[test]
fn bytes_after_the_message_in_its_frame_are_refused() {
    let mut frame = encode(&ToLauncher::Release).unwrap();
    frame.push(0);
    frame[0] += 1;
    let mut decoder = Decoder::default();
    decoder.extend(&frame);
    assert!(matches!(decoder.message::<ToLauncher>(), Err(WireError::Trailing(1))));
}

#[test]
fn descriptors_ride_with_the_first_byte_and_are_close_on_exec() {
    let (here, there) = UnixStream::pair().unwrap();
    let file = File::open("/proc/self/stat").unwrap();
    let frame = encode(&ToLauncher::Release).unwrap();
    let sent = send_with_descriptors(here.as_fd(), &frame, &[file.as_fd(), file.as_fd()]).unwrap();
    assert_eq!(sent, frame.len());

    let (mut decoder, mut descriptors) = (Decoder::default(), Vec::new());
    let message = receive(there.as_fd(), &mut decoder, &mut descriptors).unwrap();
    assert_eq!(message, Some(ToLauncher::Release));
    assert_eq!(descriptors.len(), 2);
    for descriptor in &descriptors {
        let flags = FdFlag::from_bits_retain(fcntl(descriptor, FcntlArg::F_GETFD).unwrap());
        assert!(flags.contains(FdFlag::FD_CLOEXEC));
    }
    let mut text = String::new();
    File::from(descriptors.remove(0)).read_to_string(&mut text).unwrap();
    assert!(!text.is_empty());
}

#[test]
fn a_descriptor_too_many_is_refused_and_none_is_kept() {
    let (here, there) = UnixStream::pair().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    send_with_descriptors(here.as_fd(), &[0], &[writer.as_fd(); 5]).unwrap();
    drop(writer);
    drop(here);

    let (mut decoder, mut descriptors) = (Decoder::default(), Vec::new());
    let error =
        receive_with_descriptors(there.as_fd(), &mut decoder, &mut descriptors).unwrap_err();
    assert!(matches!(error, WireError::TooManyDescriptors), "{error}");
    assert!(descriptors.is_empty());
    let mut fds = [PollFd::new(reader.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).unwrap();
    assert_eq!(
        fds[0].revents(),
        Some(PollFlags::POLLHUP),
        "every copy of the writing end is closed"
    );
}

#[test]
fn end_of_file_is_none_between_frames_and_an_error_within_one() {
    for (bytes, clean) in [(&[][..], true), (&[9, 0][..], false)] {
        let (mut here, there) = UnixStream::pair().unwrap();
        here.write_all(bytes).unwrap();
        drop(here);
        let got = receive::<ToLauncher>(there.as_fd(), &mut Decoder::default(), &mut Vec::new());
        assert_eq!(got.is_ok_and(|message| message.is_none()), clean);
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..512)) {
        let mut decoder = Decoder::default();
        decoder.extend(&bytes);
        while let Ok(Some(_)) = decoder.message::<ToLauncher>() {}
    }

    #[test]
    fn arguments_and_environment_are_kept_byte_for_byte(
        argv in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..8),
        value in prop::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut sent = spec();
        sent.argv = argv.into_iter().map(OsString::from_vec).collect();
        sent.environment.insert("V".into(), OsString::from_vec(value));
        let mut decoder = Decoder::default();
        decoder.extend(&encode(&sent).unwrap());
        prop_assert_eq!(decoder.message::<LaunchSpec>().unwrap(), Some(sent));
    }
}
