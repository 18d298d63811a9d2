//! What is typed: bytes, keys, pastes, Enter.

use serde_bytes::ByteBuf;
use zbus::message::Header;

use super::Session;
use crate::{
    broker::access::Need,
    bus::{Error, options::Options},
    engine::{Act, Caller},
    terminal::{TypeError, keys::Keys},
};

impl Session {
    pub(super) async fn write_input(
        &self,
        data: &ByteBuf,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<u64, Error> {
        let eof = options.take("eof")?.unwrap_or(false);
        let caller = self.may_type(header, options.take("token")?).await?;
        let accepted = self.channel.write(data)?;
        if !eof {
            return Ok(accepted);
        }
        self.engine.act(&self.id, caller, Act::EndOfFile).await?;
        Ok(self.channel.stats().bytes_in)
    }

    pub(super) async fn press_keys(
        &self,
        names: &[String],
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<(), Error> {
        let keys = Keys::parse(names).map_err(TypeError::from)?;
        self.may_type(header, options.take("token")?).await?;
        self.terminal()?.press(&keys).await?;
        Ok(())
    }

    pub(super) async fn paste_text(
        &self,
        text: &str,
        mut options: Options,
        header: &Header<'_>,
    ) -> Result<(), Error> {
        let ways = [("auto", None), ("on", Some(true)), ("off", Some(false))];
        let bracketed = options.one_of("bracketed", &ways)?.flatten();
        self.may_type(header, options.take("token")?).await?;
        self.terminal()?.paste(text, bracketed).await?;
        Ok(())
    }

    pub(super) async fn press_enter(&self, header: &Header<'_>) -> Result<(), Error> {
        self.may_type(header, None).await?;
        self.channel.submit()?;
        Ok(())
    }

    /// Checks a caller that wants to type.
    async fn may_type(&self, header: &Header<'_>, token: Option<String>) -> Result<Caller, Error> {
        let caller = self.caller(header, token)?;
        if let Some(outcome) = &self.state.borrow().view.outcome {
            return Err(Error::closed(&self.id, outcome));
        }
        self.engine.find(&self.id, caller.clone(), Need::Control).await?;
        Ok(caller)
    }
}
