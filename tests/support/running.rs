//! How a broker runs: as a child of the test, or as the shipped unit of the real user manager.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{
    PATIENCE,
    manager::{property, systemctl},
};

/// The unit of the broker.
pub const UNIT: &str = "st2-tools.service";

/// A broker that was started.
#[derive(Debug)]
pub enum Running {
    /// By the test itself.
    Child(Child),
    /// By the user manager, when the bus was asked for its name.
    Unit(Installed),
}

impl Running {
    /// Its process id; 0 while the unit has none.
    pub fn pid(&self) -> i32 {
        match self {
            Self::Child(child) => child.id().cast_signed(),
            Self::Unit(_) => property(UNIT, "MainPID").parse().unwrap(),
        }
    }

    /// How a child ended, once it has.
    pub fn try_exit(&mut self) -> Option<ExitStatus> {
        match self {
            Self::Child(child) => child.try_wait().unwrap(),
            Self::Unit(_) => panic!("the manager waits for its units"),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The unit is stopped when it is uninstalled.
        let Self::Child(child) = self else { return };
        let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if matches!(child.try_wait(), Ok(Some(_))) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// The shipped units and the activation file in the test user's own directories, with a drop-in that names the
/// programs under test. Stopped and removed when dropped.
#[derive(Debug)]
pub struct Installed {
    files: Vec<PathBuf>,
}

impl Installed {
    /// Installs them. `settings` are lines of the drop-in's `[Service]` section.
    pub fn new(executable: &Path, settings: &[String]) -> Self {
        let checkout = Path::new(env!("CARGO_MANIFEST_DIR"));
        let home = PathBuf::from(env::var_os("HOME").expect("the test runs in the bed"));
        let units = home.join(".config/systemd/user");
        let services = home.join(".local/share/dbus-1/services");
        let mut installed = Self { files: Vec::new() };
        for unit in [UNIT, "app-st2tools.slice"] {
            let text = fs::read_to_string(checkout.join("units").join(unit)).unwrap();
            installed.write(&units.join(unit), &text);
        }
        let lines = settings.join("\n");
        let dropin =
            format!("[Service]\nExecStart=\nExecStart=\"{}\"\n{lines}\n", executable.display());
        installed.write(&units.join(format!("{UNIT}.d/under-test.conf")), &dropin);
        let activation = "packaging/dbus/org.st2.Tools.service";
        let text = fs::read_to_string(checkout.join(activation)).unwrap();
        installed.write(&services.join("org.st2.Tools.service"), &text);
        systemctl(&["daemon-reload"]);
        // A unit that is started often in a short time, as by these tests, would be refused.
        systemctl(&["reset-failed", UNIT]);
        installed
    }

    fn write(&mut self, file: &Path, text: &str) {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
        self.files.push(file.to_owned());
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        systemctl(&["stop", UNIT]);
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        systemctl(&["daemon-reload"]);
    }
}

/// A variable of the broker's environment, as a line of a unit file (systemd.exec(5), `Environment=`).
pub fn environment_line(name: &str, value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("Environment=\"{name}={value}\"")
}
