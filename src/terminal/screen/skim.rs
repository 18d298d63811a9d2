//! Plain text that scrolls out of sight before anybody can have seen it, and need not be drawn.

/// Bytes looked at together.
const BLOCK: usize = 256;

/// Text and the controls that end a line: what changes nothing but the screen, and that by its own lines only.
fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')
}

/// Where the plain text at the end begins.
pub(super) fn plain_from(bytes: &[u8]) -> usize {
    let mut from = bytes.len();
    for block in bytes.rchunks(BLOCK) {
        // Without a branch for each byte, so that many are compared at once.
        let all_plain = block.iter().fold(true, |all, byte| all & is_plain(*byte));
        if !all_plain {
            let last_other = block.iter().rposition(|byte| !is_plain(*byte));
            return from - block.len() + last_other.map_or(0, |at| at + 1);
        }
        from -= block.len();
    }
    from
}

/// How much of plain text need not be drawn on a screen of so many lines, all of which scroll.
///
/// What is left begins at the beginning of a line, and has line feeds enough to bring the cursor to the last line
/// from wherever it is, and then to scroll every line out that was on the screen before.
pub(super) fn unseen(text: &[u8], lines: usize) -> usize {
    let needed = 2 * lines;
    match memchr::memrchr_iter(b'\n', text).nth(needed) {
        Some(at) if at > 0 && text[at - 1] == b'\r' => at + 1,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_found_from_the_end() {
        assert_eq!(plain_from(b""), 0);
        assert_eq!(plain_from(b"all plain\r\n\t"), 0);
        for other in [&b"\x1b"[..], b"\x0e", b"\x08", "é".as_bytes(), b"\x7f"] {
            for after in [0, 1, 255, 256, 257, 1000] {
                let bytes = [&[b'a'; 300], other, &vec![b'b'; after]].concat();
                assert_eq!(plain_from(&bytes), 300 + other.len(), "{other:?} {after}");
            }
        }
    }

    #[test]
    fn two_screens_of_line_feeds_are_left() {
        let lines = |count: usize| "x\r\n".repeat(count);
        assert_eq!(unseen(lines(48).as_bytes(), 24), 0);
        assert_eq!(unseen(lines(49).as_bytes(), 24), 3);
        assert_eq!(unseen(lines(1000).as_bytes(), 24), 3 * 952);
        assert_eq!(unseen("x\n".repeat(1000).as_bytes(), 24), 0, "the column is not known");
    }
}
