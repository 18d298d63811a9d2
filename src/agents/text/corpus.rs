//! What real programs wrote: `tests/output`, each with the text that comes of it, and the screens of `tests/recordings`.

use std::{fs, path::PathBuf};

use super::{Text, ignorable::is_ignorable};

fn files(directory: &str) -> Vec<PathBuf> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let mut files: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        file.extension().is_none() && file.file_name().is_some_and(|name| name != "record")
    });
    files.sort();
    files
}

fn text(bytes: &[u8], piece: usize) -> String {
    let mut text = Text::new();
    let lines: String = bytes.chunks(piece).map(|piece| text.feed(piece)).collect();
    lines + &text.finish()
}

#[test]
fn what_programs_write_reads_as_expected() {
    let files = files("output");
    assert!(files.len() >= 6);
    for file in files {
        let expected = fs::read_to_string(file.with_extension("txt")).unwrap();
        assert_eq!(text(&fs::read(&file).unwrap(), 4096), expected, "{}", file.display());
    }
}

#[test]
fn screens_are_text_however_they_are_read() {
    let files = files("recordings");
    assert!(files.len() >= 15);
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let whole = text(&bytes, bytes.len().max(1));
        assert!(!whole.is_empty(), "{}", file.display());
        let odd =
            whole.chars().find(|&c| (c.is_control() && c != '\n' && c != '\t') || is_ignorable(c));
        assert_eq!(odd, None, "{}", file.display());
        for piece in [1, 7, 4096] {
            assert_eq!(text(&bytes, piece), whole, "{} by {piece}", file.display());
        }
    }
}

#[test]
fn a_progress_bar_is_its_last_state() {
    let file =
        files("recordings").into_iter().find(|file| file.ends_with("progress-80x24")).unwrap();
    let text = text(&fs::read(file).unwrap(), 4096);
    let first: Vec<&str> = text.lines().take(5).collect();
    assert_eq!(first, ["step 0 done", "step 1 done", "step 2 done", "step 3 done", "step 4 done"]);
}

#[test]
fn a_spinner_is_what_it_came_to() {
    let file = files("output").into_iter().find(|file| file.ends_with("spinner")).unwrap();
    let bytes = fs::read(file).unwrap();
    let drawn = String::from_utf8_lossy(&bytes);
    assert!(drawn.matches("Resolving packages").count() > 5 && drawn.contains('⠋'));
    assert_eq!(text(&bytes, 4096), "✔ Fetched 12 packages\n✖ Linking failed\n");
}
