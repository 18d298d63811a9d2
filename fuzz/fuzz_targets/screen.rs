//! Whatever a tool writes is drawn, and what is painted of it draws the same screen.
#![no_main]

use std::time::{Duration, Instant};

use libfuzzer_sys::fuzz_target;
use st2_tools::{host::pty::Size, terminal::screen::Screen};

fuzz_target!(|input: (u8, u8, Vec<u8>)| {
    let (columns, rows, bytes) = input;
    let late = Instant::now() + Duration::from_secs(10);
    let mut screen = Screen::new(Size::new(columns.into(), rows.max(1).into()));
    for piece in bytes.chunks(64) {
        screen.draw(piece, true, late);
    }
    let baseline = screen.baseline();
    let mut again = Screen::new(screen.size());
    again.draw(&baseline, false, late);
    assert_eq!(again.view(), screen.view());
});
