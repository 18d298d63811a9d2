//! A display of the test's own: Xvfb(1), what it shows, and hands on its keyboard.

use std::{
    env, fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use crate::support::soon;

/// A colour, as 24 bits.
pub type Colour = u32;

/// A display server, ended when dropped.
#[derive(Debug)]
pub struct Display {
    pub name: String,
    server: Child,
    shots: AtomicU32,
}

/// What a display shows.
#[derive(Debug)]
pub struct Picture {
    width: usize,
    pixels: Vec<Colour>,
}

/// The pixels of one colour: how many, and the rectangle that holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Area {
    pub count: usize,
    pub width: usize,
    pub height: usize,
}

impl Display {
    /// Starts one of 1000 × 800 pixels.
    pub fn start() -> Self {
        let mut server = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "1000x800x24",
                "-nolisten",
                "tcp",
                "-noreset",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is installed");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        assert!(!number.is_empty(), "the display server did not start");
        let name = format!(":{}", number.trim());
        Self { name, server, shots: AtomicU32::new(0) }
    }

    /// Takes a picture. With `ST2_PICTURES=DIR` it is kept there too.
    pub fn picture(&self) -> Picture {
        let taken = Command::new("xwd").args(["-root", "-silent", "-display", &self.name]).output();
        let taken = taken.expect("xwd is installed");
        assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
        if let Some(directory) = env::var_os("ST2_PICTURES") {
            let number = self.shots.fetch_add(1, Ordering::Relaxed);
            let file = format!("display{}-{number:03}.xwd", &self.name[1..]);
            fs::write(Path::new(&directory).join(file), &taken.stdout).unwrap();
        }
        Picture::read(&taken.stdout)
    }

    /// Takes pictures until one is as described; gives the area of this colour on it.
    pub async fn shows(
        &self,
        what: &str,
        colour: Colour,
        is_right: impl Fn(Option<Area>) -> bool,
    ) -> Option<Area> {
        soon(what, async {
            loop {
                let area = self.picture().area(colour);
                if is_right(area) {
                    return area;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    }

    /// Does what a person at the display would; xdotool(1).
    pub fn act(&self, arguments: &[&str]) -> String {
        let done = Command::new("xdotool").args(arguments).env("DISPLAY", &self.name).output();
        let done = done.expect("xdotool is installed");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    }

    /// Waits for a window with this in its title; gives its id.
    pub async fn window(&self, title: &str) -> String {
        soon("the window", async {
            loop {
                let mut search = Command::new("xdotool");
                search.args(["search", "--onlyvisible", "--name", title]);
                let found = search.env("DISPLAY", &self.name).output().unwrap();
                let found = String::from_utf8(found.stdout).unwrap();
                if let Some(window) = found.lines().next() {
                    return window.to_owned();
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Picture {
    /// Reads an X window dump: a header of 25 big-endian numbers (XWDFile.h), a table of colours, and the pixels, of 32 bits
    /// or, where windows differ in their depth, of 24.
    fn read(dump: &[u8]) -> Self {
        let field = |index: usize| {
            let bytes = dump[4 * index..4 * index + 4].try_into().unwrap();
            usize::try_from(u32::from_be_bytes(bytes)).unwrap()
        };
        let (header, format, width, height) = (field(0), field(2), field(4), field(5));
        let (order, bits, line, colours) = (field(7), field(11), field(12), field(19));
        assert_eq!((format, order), (2, 0), "Z format, the lowest byte first");
        assert!([24, 32].contains(&bits), "{bits} bits a pixel");
        let (pixels, bytes) = (&dump[header + 12 * colours..], bits / 8);
        let row = |y: usize| pixels[y * line..y * line + bytes * width].chunks_exact(bytes);
        let colour = |pixel: &[u8]| u32::from_le_bytes([pixel[0], pixel[1], pixel[2], 0]);
        Self { width, pixels: (0..height).flat_map(row).map(colour).collect() }
    }

    /// Where this colour is.
    pub fn area(&self, colour: Colour) -> Option<Area> {
        let found = || self.pixels.iter().enumerate().filter(|(_, pixel)| **pixel == colour);
        let columns = || found().map(|(at, _)| at % self.width);
        let rows = || found().map(|(at, _)| at / self.width);
        let (left, right) = (columns().min()?, columns().max()?);
        let (top, bottom) = (rows().min()?, rows().max()?);
        Some(Area { count: found().count(), width: right - left + 1, height: bottom - top + 1 })
    }
}

impl Area {
    /// A rectangle that has the colour everywhere.
    pub fn full(width: usize, height: usize) -> Self {
        Self { count: width * height, width, height }
    }

    /// Whether it is one.
    pub fn is_full(self) -> bool {
        self == Self::full(self.width, self.height)
    }
}

#[test]
fn a_dump_is_read_and_its_colours_are_found() {
    let mut dump = Vec::new();
    let header: [u32; 25] =
        [104, 7, 2, 24, 3, 2, 0, 0, 32, 0, 32, 32, 12, 4, 0, 0, 0, 8, 0, 1, 3, 2, 0, 0, 0];
    dump.extend(header.iter().flat_map(|number| number.to_be_bytes()));
    dump.extend(*b"pic\0");
    dump.extend([0; 12]);
    for pixel in [1_u32, 0xff00_0002, 2, 1, 2, 2] {
        dump.extend(pixel.to_le_bytes());
    }
    let picture = Picture::read(&dump);
    assert_eq!(picture.area(2), Some(Area::full(2, 2)));
    assert_eq!(picture.area(1), Some(Area { count: 2, width: 1, height: 2 }));
    assert_eq!(picture.area(3), None);
}
