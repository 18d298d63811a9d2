//! Whatever a client sends, in whatever pieces, is understood alike and in bounded memory.
#![no_main]

use libfuzzer_sys::fuzz_target;
use st2_tools::terminal::framing::{Decoder, Request};

/// What was typed, how many other requests there were, and whether it ended in an error.
fn read(bytes: &[u8], piece: usize) -> (Vec<u8>, usize, bool) {
    let (mut decoder, mut typed, mut others) = (Decoder::default(), Vec::new(), 0);
    for mut arrived in bytes.chunks(piece) {
        loop {
            match decoder.next(&mut arrived) {
                Ok(Some(Request::Data(data))) => typed.extend(data),
                Ok(Some(_)) => others += 1,
                Ok(None) => break,
                Err(_) => return (typed, others, true),
            }
        }
    }
    (typed, others, false)
}

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (piece, bytes) = input;
    assert_eq!(read(&bytes, usize::from(piece).max(1)), read(&bytes, bytes.len().max(1)));
});
