//! Where and when something was measured.

use std::{collections::BTreeMap, fmt, fs, process::Command};

use serde::Serialize;

/// A machine, as far as it decides about figures.
#[derive(Debug, Clone, Serialize)]
pub struct Machine {
    /// UTC, RFC 3339.
    pub date: String,
    /// The model of the first CPU.
    pub cpu: String,
    /// CPUs that may be used.
    pub cpus: usize,
    /// Release of the kernel.
    pub kernel: String,
    /// Of the user manager.
    pub systemd: String,
    /// Of the bus: the first line of `dbus-daemon --version`.
    pub bus: String,
    /// Versions of the peers that are installed.
    pub peers: BTreeMap<&'static str, String>,
    /// Processes that wanted a CPU in the last minute, others' included: how noisy the figures are.
    pub load: String,
}

impl Machine {
    /// Looks around; what cannot be learnt is empty.
    pub fn look() -> Self {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model =
            cpuinfo.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            date: first_line("date", &["--utc", "+%Y-%m-%dT%H:%M:%SZ"]),
            cpu: model.map(|(_, model)| model.to_owned()).unwrap_or_default(),
            cpus: std::thread::available_parallelism().map_or(0, usize::from),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            systemd: first_line("systemctl", &["--version"]),
            bus: first_line("dbus-daemon", &["--version"]),
            peers: [
                ("dtach", first_line("dtach", &["--version"])),
                ("tmux", first_line("tmux", &["-V"])),
                ("shpool", first_line("shpool", &["version"])),
            ]
            .into_iter()
            .filter(|(_, version)| !version.is_empty())
            .collect(),
            load: read("/proc/loadavg").split(' ').next().unwrap_or_default().to_owned(),
        }
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { date, cpu, cpus, kernel, systemd, bus, peers, load } = self;
        write!(f, "{date}: {cpus} × {cpu}, Linux {kernel}, {systemd}, {bus}, load {load}")?;
        peers.values().try_for_each(|version| write!(f, ", {version}"))
    }
}

fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    text.unwrap_or_default().lines().next().unwrap_or_default().to_owned()
}
