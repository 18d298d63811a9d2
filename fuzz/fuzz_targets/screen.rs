//! Whatever a tool writes, in whatever sizes, is drawn, and what is painted of it draws the same screen.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use st2_tools::{host::pty::Size, terminal::screen::Screen};

/// Columns and rows, and what is written in that size.
type Step = (u8, u8, Vec<u8>);

fuzz_target!(|input: (Step, Vec<Step>)| {
    let (first, more) = input;
    let late = Instant::now() + Duration::from_secs(1000);
    let mut screen = Screen::new(Size::new(1, 1));
    for (columns, rows, bytes) in std::iter::once(first).chain(more) {
        screen.resize(Size::new(columns.into(), rows.max(1).into()));
        for piece in bytes.chunks(64) {
            screen.draw(piece, true, late);
        }
        let baseline = screen.baseline();
        let mut again = Screen::new(screen.size());
        again.draw(&baseline, false, late);
        assert_eq!(again.view(), screen.view());
    }
});
