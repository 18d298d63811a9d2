//! A bus of a test's own.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

/// A `dbus-daemon` that knows no service to start, gone when dropped.
pub struct Bus {
    daemon: Child,
    place: TempDir,
    /// What `DBUS_SESSION_BUS_ADDRESS` is for it.
    pub address: String,
}

impl Bus {
    /// Starts one; `services` are files that it can start services by.
    pub fn start(services: &[(&str, &str)]) -> Self {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in services {
            fs::write(place.path().join(name), text).unwrap();
        }
        let config = place.path().join("bus.conf");
        fs::write(&config, configuration(place.path())).unwrap();
        let mut daemon = Command::new("dbus-daemon")
            .arg("--nofork")
            .arg("--print-address")
            .arg(format!("--config-file={}", config.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // It complains of limits that it cannot raise, and of services that are meant to fail.
            .stderr(Stdio::null())
            .spawn()
            .expect("dbus-daemon is needed for this test");
        let mut address = String::new();
        let stdout = daemon.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut address).unwrap();
        Self { daemon, place, address: address.trim().to_owned() }
    }

    /// A directory that goes with the bus.
    pub fn place(&self) -> &Path {
        self.place.path()
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

fn configuration(place: &Path) -> String {
    let place = place.display();
    format!(
        "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN\"\n \
         \"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n\
         <busconfig><type>session</type><listen>unix:path={place}/socket</listen>\n\
         <servicedir>{place}</servicedir><policy context=\"default\">\n\
         <allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/>\n\
         <allow own=\"*\"/></policy></busconfig>"
    )
}
