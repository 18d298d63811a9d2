use std::{
    io::{Read, Write},
    os::{fd::AsFd, unix::net::UnixStream},
};

use futures_util::FutureExt;
use proptest::prelude::*;

use super::*;

#[test]
fn a_write_is_accepted_whole_or_not_at_all() {
    let input = Input::new(&Bounds::default());
    for n in 1..=15 {
        assert_eq!(input.push(&[0; 65_536]), Ok(n * 65_536));
    }
    assert_eq!(input.push(&[0; 65_535]), Ok((1 << 20) - 1));
    let full = WriteError::InputFull { queued: (1 << 20) - 1, len: 2, limit: 1 << 20 };
    assert_eq!(input.push(&[0; 2]), Err(full));
    assert_eq!(input.accepted(), (1 << 20) - 1);
    assert_eq!(input.push(&[0]), Ok(1 << 20));
    assert_eq!(input.push(&[]), Ok(1 << 20), "nothing always fits");
}

#[test]
fn a_write_above_the_limit_is_refused() {
    let long = WriteError::TooLong { len: 65_537, limit: 65_536 };
    assert_eq!(Input::new(&Bounds::default()).push(&[0; 65_537]), Err(long));
}

#[test]
fn a_stream_types_what_there_is_room_for_and_waits_for_as_much_again() {
    for limit in [4096, 5000, 1 << 20] {
        let input = Input::new(&Bounds { input_queue_bytes: limit, ..Bounds::default() });
        let (mut typed, mut got) = (0, Vec::new());
        for _ in 0..100 {
            while input.room().now_or_never().is_some() {
                let count = input.offer(&[0; 4091]).unwrap();
                assert!(count > 0, "who was woken finds room");
                typed += count;
            }
            assert_eq!(input.accepted(), typed as u64);
            assert!(give(&input, &mut got));
        }
    }
    let closed = Input::new(&Bounds::default());
    closed.close(WriteError::Closed);
    assert_eq!(closed.offer(b"x"), Err(WriteError::Closed));
}

#[test]
fn a_closed_queue_drops_what_it_holds_and_accepts_nothing() {
    let input = Input::new(&Bounds::default());
    input.push(b"lost").unwrap();
    assert_eq!(input.close(WriteError::Closed), 4);
    assert_eq!(input.push(b"x"), Err(WriteError::Closed));
    assert!(input.queued().now_or_never().is_none());
    assert!(input.room().now_or_never().is_some());
}

#[test]
fn an_ended_queue_gives_what_it_holds_and_accepts_nothing() {
    let (input, written) = (Input::new(&Bounds::default()), WriteError::NoStdin(StdinEnd::Written));
    assert!(input.more().now_or_never().is_none());
    input.push(b"last").unwrap();
    assert_eq!(input.end(written), Ok(4));
    assert_eq!((input.push(b"x"), input.end(WriteError::Closed)), (Err(written), Err(written)));
    let mut got = Vec::new();
    assert_eq!(input.more().now_or_never(), Some(true));
    give(&input, &mut got);
    assert_eq!((got, input.more().now_or_never()), (b"last".to_vec(), Some(false)));
    assert_eq!(written.to_string(), "stdin is closed: its end was written");
}

#[test]
fn a_stream_is_not_read_while_the_queue_is_full() {
    let (mut client, ours) = UnixStream::pair().unwrap();
    let input = Input::new(&Bounds::default());
    for _ in 0..16 {
        input.push(&[0; 65_536]).unwrap();
    }
    client.write_all(b"waits").unwrap();
    assert_eq!(input.take_from(ours.as_fd()).unwrap(), Taken::Full);
    assert!(input.room().now_or_never().is_none());
    let mut got = Vec::new();
    while input.room().now_or_never().is_none() {
        assert!(give(&input, &mut got));
    }
    assert_eq!(got.len(), 1 << 17, "an eighth, and no stream is read before that");
    assert_eq!(input.take_from(ours.as_fd()).unwrap(), Taken::Bytes(5));
    let none = input.take_from(ours.as_fd()).unwrap_err();
    assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
    drop(client);
    assert_eq!(input.take_from(ours.as_fd()).unwrap(), Taken::End);
}

/// Lets the tool read once, if there is anything.
fn give(input: &Input, got: &mut Vec<u8>) -> bool {
    let queued = input.queued().now_or_never().is_some();
    if queued {
        input.take_break();
        let (mut tool, ours) = UnixStream::pair().unwrap();
        let mut piece = vec![0; input.give_to(ours.as_fd()).unwrap()];
        tool.read_exact(&mut piece).unwrap();
        got.extend(piece);
    }
    queued
}

#[test]
fn a_piece_that_is_to_be_alone_is_given_alone_and_after_a_look_at_the_tool() {
    let input = Input::new(&Bounds::default());
    input.push(b"pasted").unwrap();
    let enter = Piece { bytes: b"\r", alone: true };
    assert_eq!(input.push_all(&[enter]), Ok(7));
    assert_eq!(input.push_all(&[enter]), Ok(8));
    input.push(b"more").unwrap();
    let mut given = Vec::new();
    for looks in [false, true, true, true] {
        assert_eq!(input.take_break(), looks);
        assert!(!input.take_break(), "once");
        given.push(Vec::new());
        assert!(give(&input, given.last_mut().unwrap()));
    }
    assert_eq!(given, [&b"pasted"[..], b"\r", b"\r", b"more"]);
}

#[test]
fn pieces_are_accepted_together_or_not_at_all() {
    let input = Input::new(&Bounds::default());
    let piece = Piece { bytes: &[0; 40_000], alone: true };
    let long = WriteError::TooLong { len: 80_000, limit: 65_536 };
    assert_eq!(input.push_all(&[piece, piece]), Err(long));
    assert_eq!(input.accepted(), 0);
    assert!(input.queued().now_or_never().is_none());
}

proptest! {
    #[test]
    fn the_tool_gets_what_was_accepted_in_order(
        writes in prop::collection::vec((0_usize..9000, any::<bool>(), any::<bool>()), 0..40),
    ) {
        let (input, mut written, mut got) = (Input::new(&Bounds::default()), Vec::new(), Vec::new());
        for (count, alone, gives) in writes {
            let from = written.len();
            written.extend((from..from + count).map(|n| (n % 251) as u8));
            let piece = Piece { bytes: &written[from..], alone };
            prop_assert_eq!(input.push_all(&[piece]), Ok(written.len() as u64));
            if gives {
                give(&input, &mut got);
            }
        }
        while give(&input, &mut got) {}
        prop_assert_eq!(got, written);
    }
}
