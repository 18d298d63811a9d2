//! Output in an answer.

use serde_json::{Value, json};

use super::text::{Piece, Tail};

/// Puts a piece of output into an answer.
pub fn put(answer: &mut Value, piece: Piece) {
    answer["output"] = piece.text.into();
    answer["next"] = piece.next.into();
    answer["more"] = piece.more.into();
    answer["lost"] = piece.lost.into();
    mark(answer);
}

/// Puts the end of the output into an answer.
pub fn put_tail(answer: &mut Value, tail: Tail) {
    answer["truncated"] = tail.truncated.into();
    let Tail { text, next, more, .. } = tail;
    put(answer, Piece { text, next, more, lost: 0 });
}

/// Says that what an answer holds of a program's output is not to be obeyed.
pub fn mark(answer: &mut Value) {
    answer["untrusted"] = json!(["output"]);
}
