//! A user manager that does not answer.

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use zbus::{Connection, fdo::DBusProxy};

/// The user manager of a bus, stopped until this is dropped.
#[derive(Debug)]
pub struct Stopped(Pid);

impl Stopped {
    pub async fn manager(connection: &Connection) -> Self {
        let dbus = DBusProxy::new(connection).await.unwrap();
        let name = "org.freedesktop.systemd1".try_into().unwrap();
        let pid = dbus.get_connection_unix_process_id(name).await.unwrap();
        let pid = Pid::from_raw(pid.cast_signed());
        kill(pid, Signal::SIGSTOP).unwrap();
        Self(pid)
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill(self.0, Signal::SIGCONT).unwrap();
    }
}
