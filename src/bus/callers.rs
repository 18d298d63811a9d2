//! Who calls: by unique name, and whether from inside one of our own sessions.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, OnceLock, PoisonError},
};

use zbus::{fdo::DBusProxy, message::Header, names::BusName};

use super::Error;
use crate::broker::lease::Connection;

/// Verdicts kept at most; a connection that vanishes takes its own with it.
const CAPACITY: usize = 4096;

/// Whether a process runs inside one of our sessions; one that cannot be found is judged to.
pub type IsInside = Box<dyn Fn(u32) -> bool + Send + Sync>;

/// The verdicts on connections.
pub struct Callers {
    is_inside: IsInside,
    /// A private connection has one trusted peer, and no bus to ask.
    private: bool,
    /// The bus to ask, once there is one.
    bus: OnceLock<DBusProxy<'static>>,
    inside: Mutex<HashMap<Connection, bool>>,
}

impl fmt::Debug for Callers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Callers").finish_non_exhaustive()
    }
}

impl Callers {
    /// Judges callers on a bus that is yet to be named by [`Callers::ask`]; until then every call is refused.
    #[must_use]
    pub fn on_bus(is_inside: IsInside) -> Self {
        Self { is_inside, private: false, bus: OnceLock::new(), inside: Mutex::default() }
    }

    /// Trusts the one peer of a private connection.
    #[must_use]
    pub fn of_peer() -> Self {
        Self { private: true, ..Self::on_bus(Box::new(|_| false)) }
    }

    /// Names the bus to ask about callers; the first one stays.
    ///
    /// # Errors
    /// Where it cannot be spoken to.
    pub async fn ask(&self, bus: &zbus::Connection) -> zbus::Result<()> {
        let proxy = DBusProxy::new(bus).await?;
        self.bus.get_or_init(|| proxy);
        Ok(())
    }

    /// The connection that a call came by.
    ///
    /// # Errors
    /// `AccessDenied` for a call without a sender on a bus, which no bus delivers.
    pub fn connection(&self, header: &Header<'_>) -> Result<Connection, Error> {
        match (header.sender(), self.private) {
            (_, true) => Ok(Connection::new(super::PEER)),
            (Some(sender), false) => Ok(Connection::new(sender.as_str())),
            (None, false) => Err(Error::AccessDenied("the call has no sender".to_owned())),
        }
    }

    /// Refuses a caller that runs inside one of our sessions.
    ///
    /// A connection is judged once, by the process that made it (`GetConnectionUnixProcessID`).
    ///
    /// # Errors
    /// `AccessDenied`.
    pub async fn check(&self, header: &Header<'_>) -> Result<(), Error> {
        let connection = self.connection(header)?;
        let known = self.verdicts().get(&connection).copied();
        let inside = match known {
            Some(inside) => inside,
            None => self.judge(connection).await?,
        };
        if inside {
            let text = "a tool in one of this broker's sessions may not call it";
            return Err(Error::AccessDenied(text.to_owned()));
        }
        Ok(())
    }

    /// Forgets a connection that has vanished: its name is never given again.
    pub fn forget(&self, connection: &Connection) {
        self.verdicts().remove(connection);
    }

    /// Whether a connection is on the bus; the peer of a private connection always is.
    ///
    /// # Errors
    /// `Failed` where the bus does not say.
    pub async fn is_present(&self, connection: &Connection) -> Result<bool, Error> {
        if self.private {
            return Ok(true);
        }
        let bus = self.bus()?;
        let present = bus.name_has_owner(bus_name(connection)?).await;
        present.map_err(|error| Error::Failed(format!("the bus does not answer: {error}")))
    }

    async fn judge(&self, connection: Connection) -> Result<bool, Error> {
        if self.private {
            return Ok(false);
        }
        let pid = self.bus()?.get_connection_unix_process_id(bus_name(&connection)?).await;
        // A connection that is gone already is nobody that an answer could reach.
        let Ok(pid) = pid else { return Ok(true) };
        let inside = (self.is_inside)(pid);
        let mut verdicts = self.verdicts();
        if verdicts.len() >= CAPACITY {
            verdicts.clear();
        }
        verdicts.insert(connection, inside);
        Ok(inside)
    }

    fn bus(&self) -> Result<&DBusProxy<'static>, Error> {
        let starting = || Error::AccessDenied("the broker is starting".to_owned());
        self.bus.get().ok_or_else(starting)
    }

    fn verdicts(&self) -> std::sync::MutexGuard<'_, HashMap<Connection, bool>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bus_name(connection: &Connection) -> Result<BusName<'_>, Error> {
    BusName::try_from(connection.as_str())
        .map_err(|error| Error::Failed(format!("{connection} is not a bus name: {error}")))
}
