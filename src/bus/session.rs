//! `org.st2.Tools.Session1`: one session.

use std::{collections::HashMap, time::Duration};

use serde_bytes::ByteBuf;
use zbus::{OwnedFd, OwnedVariant, interface, message::Header, object_server::SignalEmitter};

use self::calls::signal;
use super::{
    Error,
    dict::{self, Dict},
    options::Options,
    properties,
};
use crate::engine::{Act, EndWish};

mod calls;
mod direct;
mod input;
mod object;
mod streams;

pub use object::Session;

/// The interface's name.
pub const INTERFACE: &str = "org.st2.Tools.Session1";

type Input = HashMap<String, OwnedVariant>;

#[interface(name = "org.st2.Tools.Session1")]
impl Session {
    /// Attach a stream to the terminal: one end of a fresh socket pair. NotATerminal on pipes.
    ///
    /// Options: mode s ("control", the default, or "observe"), framing s ("raw", the default, "pty" or "direct"), columns
    /// q and rows q (control only), token s. Raw carries plain bytes both ways; it begins with the bytes that paint the
    /// screen and set its modes on a reset terminal (replay "screen", the default), with nothing (replay "none") or
    /// at an absolute offset (cursor t), then follows live, and the session's end is its end of file. Pty carries
    /// the frames of compoundingtech/pty: it begins with GEOMETRY and SCREEN once ATTACH or PEEK was sent (with control,
    /// DATA is typed before that too), and ends with EXIT. Closing a stream detaches, and never ends the session. At most
    /// 4 streams a session; one that is 8 MiB behind is closed, of pty with CONNECTION_ERROR as its last frame. That
    /// frame, or EXIT, waits 60 s to be read.
    /// Info: begin t (where the stream begins with output), columns q, rows q.
    ///
    /// Columns and rows are the size of the client's terminal, of pty where ATTACH tells none: of each axis the least
    /// that attached controlling streams tell is in force, and it stays when none is attached. What the tool asks of
    /// terminals is for the terminal behind a controlling stream to answer: where there are several, each is shown it,
    /// and only one is to answer. What lies before a stream was attached, as with a cursor in the past, is answered.
    ///
    /// Direct, where the tool declares it: info has controller h as well, the controller end of the pty, which the
    /// caller reads, writes and sizes itself (no cursor, no replay). One holder a session: every other stream is
    /// closed, and none is attached until the holder closes the stream, vanishes, or has the session claimed from it.
    /// The stream carries nothing; its end of file is the end of the hold. What the holder reads is in no Read and no
    /// count (see UnseenAt) and on no screen: after a hold the screen is blank until the tool draws again.
    #[zbus(out_args("stream", "info"))]
    async fn attach(
        &self,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(OwnedFd, Dict), Error> {
        self.open_stream(Options::new(options), &header).await
    }

    /// Show the screen as text; NotATerminal on pipes. Options: formatted b (also the bytes that paint it), token s.
    /// Gives rows as, cursor (qq) (column and row, from 0 on), columns q, rows_count q, title s, alternate b,
    /// formatted ay (on request). LimitReached while the session is held directly: nobody else knows the screen.
    #[zbus(out_args("screen"))]
    async fn screen(
        &self,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Dict, Error> {
        self.show_screen(Options::new(options), &header).await
    }

    /// Read output from an absolute byte offset on. A begin beyond the cursor means a gap of that many bytes that
    /// were dropped. Options: wait_ms t (wait so long for output or the end; at most 120000), stream s (of pipes:
    /// "output" or "stderr" alone, with offsets of its own; without, both in the order in which they were read, the
    /// cursor counting the bytes of both), token s. At most 256 KiB an answer. Eof says that nothing will follow. Works
    /// the same after the end, on what is retained.
    #[zbus(out_args("data", "begin", "next", "eof"))]
    async fn read(
        &self,
        cursor: u64,
        max_bytes: u32,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(ByteBuf, u64, u64, bool), Error> {
        let chunk = self.read_output(cursor, max_bytes, Options::new(options), &header).await?;
        Ok((ByteBuf::from(chunk.bytes), chunk.begin, chunk.next, chunk.eof))
    }

    /// Write input, all of it or, with an error, none; gives how many bytes were accepted since the session began.
    /// At most 64 KiB a call. Options: eof b (the terminal's end-of-file character follows; an error where the
    /// program reads in raw mode; of pipes: stdin is closed after what was written), token s. NotPermitted where stdin
    /// is closed. A client that sends several waits for each answer, or their order is not kept.
    #[zbus(out_args("accepted"))]
    async fn write(
        &self,
        data: ByteBuf,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<u64, Error> {
        self.write_input(&data, Options::new(options), &header).await
    }

    /// Press keys, all or, with an error, none: names in any case (enter, tab, escape, space, backspace, delete, insert,
    /// up, down, left, right, home, end, pageup, pagedown, btab, f1 to f12, kp0 to kp9, kpenter, kp+ and others),
    /// single characters, ^X; each after C-, M-, S- at most once. At most 1024 a call. Cursor keys and the keypad follow
    /// the modes that the tool has set. Options: token s.
    async fn send_keys(
        &self,
        keys: Vec<String>,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Error> {
        self.press_keys(&keys, Options::new(options), &header).await
    }

    /// Paste a text, whole or not at all; at most 64 KiB a call, the marks included. Options: bracketed s ("auto", the
    /// default: where the tool has asked for it; "on", "off": ends of lines are then what Enter sends), token s. A text
    /// that holds the end of a paste is refused.
    async fn paste(
        &self,
        text: &str,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Error> {
        self.paste_text(text, Options::new(options), &header).await
    }

    /// Press Enter: a carriage return, in a write of its own, once the tool has taken what was written before, or
    /// after 250 ms.
    async fn submit(&self, #[zbus(header)] header: Header<'_>) -> Result<(), Error> {
        self.press_enter(&header).await
    }

    /// Set the terminal's size, each 1 to 1000; NotATerminal on pipes. Options: pixel_width q, pixel_height q, token s.
    /// It is in force at once, until an attached stream tells another size or one that told any leaves; and it is what
    /// the caller's own raw streams tell from then on. The same size sends no SIGWINCH; after the end nothing happens.
    async fn resize(
        &self,
        columns: u16,
        rows: u16,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<(), Error> {
        self.resize_terminal(columns, rows, Options::new(options), &header).await
    }

    /// Send a signal to the terminal's foreground process group, of pipes to that of the leader, by name: "SIGTERM" or
    /// "TERM".
    async fn signal(&self, name: &str, #[zbus(header)] header: Header<'_>) -> Result<(), Error> {
        self.act(&header, Act::Signal(signal(name)?)).await
    }

    /// Do what Ctrl-C would: a SIGINT where the terminal makes one of it, the character where the program reads it; of
    /// pipes, a SIGINT to the leader's process group.
    async fn interrupt(&self, #[zbus(header)] header: Header<'_>) -> Result<(), Error> {
        self.act(&header, Act::Interrupt).await
    }

    /// End the session: HUP and TERM, then KILL; answers with the outcome once nothing of it runs. Options:
    /// timeout_ms t (KILL after so long; only shortens the tool's own), token s. A closed session answers with its
    /// outcome.
    #[zbus(out_args("outcome"))]
    async fn close(
        &self,
        options: Input,
        #[zbus(header)] header: Header<'_>,
    ) -> Result<Dict, Error> {
        let mut options = Options::new(options);
        let within = options.duration("timeout_ms")?;
        let caller = self.caller(&header, options.take("token")?)?;
        self.end(caller, EndWish::Close(within)).await
    }

    /// End the session at once, by KILL; answers with the outcome once nothing of it runs.
    #[zbus(out_args("outcome"))]
    async fn kill(&self, #[zbus(header)] header: Header<'_>) -> Result<Dict, Error> {
        self.end(self.caller(&header, None)?, EndWish::Kill).await
    }

    /// Wait for the end, at most so many milliseconds; gives whether it came, and the outcome.
    #[zbus(out_args("closed", "outcome"))]
    async fn wait(&self, timeout_ms: u64) -> Result<(bool, Dict), Error> {
        self.wait_for_end(Duration::from_millis(timeout_ms)).await
    }

    /// Freeze every process of the session.
    async fn pause(&self, #[zbus(header)] header: Header<'_>) -> Result<(), Error> {
        self.act(&header, Act::Freeze(true)).await
    }

    /// Thaw it.
    async fn resume(&self, #[zbus(header)] header: Header<'_>) -> Result<(), Error> {
        self.act(&header, Act::Freeze(false)).await
    }

    /// Make a token with which another connection may, as option token of a call, observe the session ("observe") or
    /// control it as well ("control"). Only for its owner; at most 16. It is good until the session is forgotten or
    /// its lease claimed.
    #[zbus(out_args("token"))]
    async fn share(&self, mode: &str, #[zbus(header)] header: Header<'_>) -> Result<String, Error> {
        self.share_with(mode, &header).await
    }

    /// Drop a closed session from those retained.
    async fn forget(&self, #[zbus(header)] header: Header<'_>) -> Result<(), Error> {
        Ok(self.engine.forget(&self.id, self.caller(&header, None)?).await?)
    }

    /// The session ended, and every byte before its end can be read.
    #[zbus(signal)]
    pub async fn closed(emitter: &SignalEmitter<'_>, outcome: Dict) -> zbus::Result<()>;

    /// Short and opaque; the last part of the object's path.
    #[zbus(property(emits_changed_signal = "const"))]
    fn id(&self) -> String {
        self.id.as_str().to_owned()
    }

    /// The entry of the catalogue that it is an instance of.
    #[zbus(property(emits_changed_signal = "const"))]
    fn tool(&self) -> String {
        self.state.borrow().view.facts.tool.as_str().to_owned()
    }

    /// The whole argv; bytes that are not UTF-8 are replaced.
    #[zbus(property(emits_changed_signal = "const"))]
    fn command(&self) -> Vec<String> {
        dict::texts(&self.state.borrow().view.facts.command)
    }

    /// Canonical path of the workspace.
    #[zbus(property(emits_changed_signal = "const"))]
    fn workspace(&self) -> String {
        dict::text(&self.state.borrow().view.facts.workspace)
    }

    /// Canonical path of the first working directory.
    #[zbus(property(emits_changed_signal = "const"))]
    fn cwd(&self) -> String {
        dict::text(&self.state.borrow().view.facts.cwd)
    }

    /// The scope: what systemctl(1) knows the session by, where the backend is systemd.
    #[zbus(property(emits_changed_signal = "const"))]
    fn unit(&self) -> String {
        self.state.borrow().view.facts.unit.as_str().to_owned()
    }

    /// "pty" or "pipe".
    #[zbus(property(emits_changed_signal = "const"))]
    fn io(&self) -> &'static str {
        self.state.borrow().io.as_str()
    }

    /// When it was asked for, µs since the epoch.
    #[zbus(property(emits_changed_signal = "const"))]
    fn created_usec(&self) -> u64 {
        self.state.borrow().view.facts.created_usec
    }

    /// Attribution, as given to Open.
    #[zbus(property(emits_changed_signal = "const"))]
    fn labels(&self) -> std::collections::BTreeMap<String, String> {
        self.state.borrow().view.facts.labels.clone()
    }

    /// What the kernel accepted of the confinement: tier s, landlock_abi u, read as, write as, execute as,
    /// devices as, protect as (what beneath the writable paths can only be read), network s, unix_sockets s,
    /// sockets as (of others), signals s, syscalls s, capabilities s, gaps as.
    #[zbus(property(emits_changed_signal = "const"))]
    fn confinement(&self) -> Dict {
        let state = self.state.borrow();
        state.view.ran.as_ref().map(|ran| dict::confinement(&ran.confinement)).unwrap_or_default()
    }

    /// "opening", "running", "closing" or "closed".
    #[zbus(property)]
    fn phase(&self) -> &'static str {
        self.state.borrow().view.phase
    }

    /// "busy", or "idle" after 350 ms without output; what a direct holder reads counts not.
    #[zbus(property)]
    fn activity(&self) -> &'static str {
        properties::activity(&self.state.borrow())
    }

    /// Unique name of the owner; empty for a token lease.
    #[zbus(property)]
    fn owner(&self) -> String {
        self.state.borrow().view.owner.clone()
    }

    /// "present", "grace", "token" or "gone".
    #[zbus(property)]
    fn owner_state(&self) -> &'static str {
        self.state.borrow().view.owner_state.as_str()
    }

    /// When the grace ends, µs since the epoch; 0 while none runs.
    #[zbus(property)]
    fn grace_deadline_usec(&self) -> u64 {
        self.state.borrow().view.grace_deadline_usec
    }

    /// Columns of the terminal; 0 without one. While it is held directly, a change is not announced before the hold ends.
    #[zbus(property)]
    fn columns(&self) -> u16 {
        self.channel.size().columns
    }

    /// Rows of the terminal, likewise.
    #[zbus(property)]
    fn rows_count(&self) -> u16 {
        self.channel.size().rows
    }

    /// The title that the tool has set; empty where it has not, and from a hold on until it does again. Of titles set
    /// in quick succession one is told every 100 ms, and the last always.
    #[zbus(property)]
    fn title(&self) -> String {
        self.state.borrow().title.clone()
    }

    /// Whether its processes are frozen.
    #[zbus(property)]
    fn paused(&self) -> bool {
        self.state.borrow().paused
    }

    /// Streams attached to it, that of a direct holder included.
    #[zbus(property)]
    fn attached(&self) -> u32 {
        self.state.borrow().attached
    }

    /// Whether a direct holder reads its output.
    #[zbus(property)]
    fn direct(&self) -> bool {
        self.state.borrow().held
    }

    /// Offsets of the output at which direct holders read bytes that are not in it, nobody knows how many: the
    /// newest 64.
    #[zbus(property(emits_changed_signal = "false"))]
    fn unseen_at(&self) -> Vec<u64> {
        let terminal = self.channel.terminal();
        terminal.map(|it| it.holds().borrow().unseen_at().to_vec()).unwrap_or_default()
    }

    /// How it ended; empty before.
    #[zbus(property, name = "Outcome")]
    fn outcome(&self) -> Dict {
        dict::outcome(self.state.borrow().view.outcome.as_ref())
    }

    /// Bytes of output since it began, without those of UnseenAt.
    #[zbus(property(emits_changed_signal = "false"))]
    fn bytes_out(&self) -> u64 {
        self.channel.stats().bytes_out
    }

    /// Bytes of input accepted since it began.
    #[zbus(property(emits_changed_signal = "false"))]
    fn bytes_in(&self) -> u64 {
        self.channel.stats().bytes_in
    }

    /// Bytes of output that no reader can have any more.
    #[zbus(property(emits_changed_signal = "false"))]
    fn bytes_dropped(&self) -> u64 {
        self.channel.stats().bytes_dropped
    }

    /// Whether it waits for somebody: it runs, has written nothing for 15 s, and its foreground process group reads the
    /// terminal, as far as the kernel shows that.
    #[zbus(property(emits_changed_signal = "false"))]
    async fn waiting_for_input(&self) -> bool {
        self.waits_for_input().await
    }

    /// When bytes last went either way, µs since the epoch.
    #[zbus(property(emits_changed_signal = "false"))]
    fn last_activity_usec(&self) -> u64 {
        self.channel.stats().last_activity_usec
    }
}
