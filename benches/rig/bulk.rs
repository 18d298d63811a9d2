//! A tool that writes much when it is told to, and what it costs to have all of it.

use std::{
    fs,
    io::{BufWriter, Write},
    path::Path,
};

use super::{
    cost::Cost,
    report::{Metric, Report, Subject},
};

/// What the tool says after all of it.
pub const END: &str = "THE-END";

/// How much it writes at once.
pub const BYTES: usize = 16 << 20;

/// A file of text: lines of up to 79 characters, no two alike. The kernel makes CR LF of their ends.
pub const TEXT: &str = "text";

/// A file of zeros.
pub const ZEROS: &str = "zeros";

/// Lays the files in a directory.
///
/// # Errors
/// As write(2).
pub fn lay_out(directory: &Path) -> anyhow::Result<()> {
    let mut text = BufWriter::new(fs::File::create(directory.join(TEXT))?);
    let mut written = 0;
    for number in 0_u64.. {
        let mut line = format!("{number:>8} ");
        let mut seed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        while line.len() < 40 + usize::try_from(number % 38)? {
            line.push(char::from(b'a' + u8::try_from(seed % 26)?));
            seed = seed.rotate_left(7).wrapping_mul(31);
        }
        line.push('\n');
        line.truncate(BYTES - written);
        written += line.len();
        text.write_all(line.as_bytes())?;
        if written == BYTES {
            break;
        }
    }
    text.flush()?;
    Ok(fs::write(directory.join(ZEROS), vec![0; BYTES])?)
}

/// Adds what so much output took.
///
/// # Errors
/// As [`Cost::so_far`].
pub fn add(
    report: &mut Report,
    subject: Subject,
    [rate, cpu]: [Metric; 2],
    (seconds, cost): (f64, Cost),
) -> anyhow::Result<()> {
    let megabytes = BYTES as f64 / 1e6;
    report.add(subject, rate, megabytes / seconds);
    report.add(subject, cpu, cost.so_far()?.as_secs_f64() * 1000.0 / megabytes);
    Ok(())
}
