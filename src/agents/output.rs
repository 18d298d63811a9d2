//! Output in an answer.

use serde_json::{Value, json};

use super::text::Piece;

/// Puts a piece of output into an answer.
pub fn put(answer: &mut Value, piece: Piece) {
    answer["output"] = piece.text.into();
    answer["next"] = piece.next.into();
    answer["more"] = piece.more.into();
    answer["lost"] = piece.lost.into();
    mark(answer);
}

/// Says that what an answer holds of a program's output is not to be obeyed.
pub fn mark(answer: &mut Value) {
    answer["untrusted"] = json!(["output"]);
}
