//! What a frame of an attached stream is, written from the protocol alone.

pub const DATA: u8 = 0;
pub const ATTACH: u8 = 1;
pub const DETACH: u8 = 2;
pub const RESIZE: u8 = 3;
pub const EXIT: u8 = 4;
pub const SCREEN: u8 = 5;
pub const PEEK: u8 = 6;
pub const STATUS: u8 = 7;
pub const GEOMETRY: u8 = 10;
pub const RESET_INPUT_MODES: u8 = 11;
pub const CONNECTION_ERROR: u8 = 12;

/// The payload of a size.
pub fn size(columns: u16, rows: u16) -> Vec<u8> {
    [rows.to_be_bytes(), columns.to_be_bytes()].concat()
}

/// A frame as it is sent.
pub fn encode(kind: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&[kind][..], &length, payload].concat()
}
