//! What goes into a session and comes out of it by single calls.

use std::time::Duration;

use serde_bytes::ByteBuf;
use zbus::message::Header;

use super::Session;
use crate::{
    broker::access::Need,
    bus::{Error, options::Options},
    engine::Act,
    terminal::Source,
};

impl Session {
    /// Reads a piece of output: the bytes, where they begin and end, and whether nothing follows.
    pub(super) async fn read_piece(
        &self,
        cursor: u64,
        max_bytes: u32,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<(ByteBuf, u64, u64, bool), Error> {
        let wait: u64 = options.take("wait_ms")?.unwrap_or_default();
        let most = self.limits.read_wait_ms;
        if wait > most {
            return Err(Error::InvalidArgs(format!("wait_ms {wait} is above {most}")));
        }
        let sources = [("output", Source::Output), ("stderr", Source::Stderr)];
        let source = options.one_of("stream", &sources)?;
        self.admit(header, &mut options, Need::Observe).await?;
        let max = u64::from(max_bytes).min(self.limits.read_bytes);
        let max = usize::try_from(max).unwrap_or(usize::MAX);
        let wait = Duration::from_millis(wait);
        let chunk = self.channel.read_wait(source, cursor, max, wait).await?;
        Ok((ByteBuf::from(chunk.bytes), chunk.begin, chunk.next, chunk.eof))
    }

    /// Writes input, and where asked for its end; gives how many bytes were accepted so far.
    pub(super) async fn write_piece(
        &self,
        data: &[u8],
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<u64, Error> {
        let eof = options.take("eof")?.unwrap_or(false);
        let caller = self.caller(header, options.take("token")?)?;
        if let Some(outcome) = self.ending() {
            return Err(Error::closed(&self.id, &outcome));
        }
        self.engine.find(&self.id, caller.clone(), Need::Control).await?;
        let accepted = self.channel.write(data)?;
        if !eof {
            return Ok(accepted);
        }
        self.engine.act(&self.id, caller, Act::EndOfFile).await?;
        Ok(self.channel.stats().bytes_in)
    }
}
