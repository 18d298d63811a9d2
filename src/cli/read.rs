//! `st2-tools read`.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::{Value, json};

use super::{
    connect::Reach,
    control::{Reached, Target},
    error::{CliError, say},
    json,
    output::{Output, write},
    status::Status,
};
use crate::client::{Chunk, READ_MAX, ReadOptions, Stream};

/// Print a session's output as it is, from what is retained; works after its end as well
///
/// With --json: {begin, next, eof, encoding, data}. `begin` above the cursor asked for is a gap; `next`
/// is the cursor to go on from; `encoding` is `utf-8`, or `base64` where the bytes are not.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    target: Target,

    /// Begin at this offset, counted in bytes since the session began
    #[arg(long, value_name = "N", default_value_t = 0)]
    cursor: u64,

    /// One output of a session on pipes, with offsets of its own [default: both, in order]
    #[arg(long, value_name = "STREAM", value_parser = stream())]
    stream: Option<Stream>,

    /// Go on until the session ends
    #[arg(long, conflicts_with = "json")]
    follow: bool,

    /// Print at most so many bytes
    #[arg(long, value_name = "N")]
    max: Option<u64>,
}

/// How long one question of --follow waits for output.
const POLL: Duration = Duration::from_secs(60);
/// Most bytes of one JSON document: more than a session retains.
const DOCUMENT_MAX: u64 = 8 * 1024 * 1024;

/// Reads a session.
pub(super) async fn read(args: Args, reach: &Reach, output: Output) -> Result<Status, CliError> {
    let reached = args.target.reach(reach).await?;
    let mut reader = Reader {
        reached: &reached,
        cursor: args.cursor,
        left: args.max.unwrap_or(u64::MAX),
        options: ReadOptions { wait: args.follow.then_some(POLL), stream: args.stream },
    };
    if output.json {
        reader.left = reader.left.min(DOCUMENT_MAX);
        let whole = reader.whole().await?;
        output.print(|| document(&whole), String::new)?;
    } else {
        reader.print(args.follow).await?;
    }
    Ok(Status::SUCCESS)
}

fn stream() -> impl TypedValueParser<Value = Stream> {
    let words = PossibleValuesParser::new([Stream::Output, Stream::Stderr].map(Stream::as_str));
    words.map(|word| if word == Stream::Stderr.as_str() { Stream::Stderr } else { Stream::Output })
}

/// Reads on from a cursor.
struct Reader<'a> {
    reached: &'a Reached,
    cursor: u64,
    left: u64,
    options: ReadOptions,
}

impl Reader<'_> {
    async fn next(&mut self) -> Result<Chunk, CliError> {
        let max = u32::try_from(self.left).unwrap_or(READ_MAX).min(READ_MAX);
        let chunk = self.reached.session.read(self.cursor, max, &self.options).await;
        let chunk = self.reached.told(chunk).await?;
        self.left = self.left.saturating_sub(chunk.data.len().try_into().unwrap_or(u64::MAX));
        Ok(chunk)
    }

    async fn print(&mut self, follow: bool) -> Result<(), CliError> {
        while self.left > 0 {
            let chunk = self.next().await?;
            if chunk.begin > self.cursor {
                say(&format!("{} bytes are no longer retained", chunk.begin - self.cursor));
            }
            write(&chunk.data)?;
            self.cursor = chunk.next;
            if chunk.eof || (chunk.data.is_empty() && !follow) {
                break;
            }
        }
        Ok(())
    }

    /// All that is there, without a gap inside.
    async fn whole(&mut self) -> Result<Chunk, CliError> {
        let mut whole = self.next().await?;
        while !whole.eof && self.left > 0 {
            self.cursor = whole.next;
            let more = self.next().await?;
            if more.begin > self.cursor {
                break;
            }
            whole.eof = more.eof;
            if more.data.is_empty() {
                break;
            }
            whole.data.extend(more.data);
            whole.next = more.next;
        }
        Ok(whole)
    }
}

fn document(chunk: &Chunk) -> Value {
    let mut document = json::bytes(&chunk.data);
    document["begin"] = json!(chunk.begin);
    document["next"] = json!(chunk.next);
    document["eof"] = json!(chunk.eof);
    document
}
