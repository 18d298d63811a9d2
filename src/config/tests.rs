use std::fs;

use super::*;
use crate::policy::search_path::SearchPath;

fn load(text: &str) -> Settings {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join(FILE_NAME), text).unwrap();
    Settings::load(&SearchPath::new(vec![directory.path().into()]), Overrides::default())
}

#[test]
fn limits_have_the_documented_defaults() {
    let limits = Settings::load(&SearchPath::new(vec![]), Overrides::default()).limits;
    insta::assert_snapshot!(
        limits.to_map().iter().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("\n"),
        @r"
        argv_env_bytes 131072
        attached_streams 4
        events 1024
        grace_max_ms 300000
        input_queue_bytes 1048576
        label_bytes 256
        labels 16
        lease_ttl_default_ms 60000
        lease_ttl_max_ms 3600000
        live_sessions 512
        live_sessions_per_owner 64
        opens_in_flight_per_owner 32
        read_bytes 262144
        read_wait_ms 120000
        retained_sessions 64
        retention_ms 600000
        ring_default_bytes 262144
        ring_max_bytes 4194304
        rings_bytes 67108864
        shares_per_session 16
        write_bytes 65536
        "
    );
}

#[test]
fn a_file_sets_what_it_names_and_leaves_the_rest() {
    let settings =
        load("allow_degraded = true\npath = [\"/opt/x/bin\"]\n[limits]\nlive_sessions = 4096\n");
    assert_eq!(settings.fault, None);
    assert!(settings.allow_degraded);
    assert_eq!(settings.path.len(), 1);
    assert_eq!(settings.limits, Limits { live_sessions: 4096, ..Limits::default() });
}

#[test]
fn a_broken_file_is_a_fault_with_the_defaults() {
    for (text, expected) in [
        (
            "[limits]\nlive_sessions = 4097",
            "2:17: key \"limits.live_sessions\": 4097 is outside 1..=4096",
        ),
        (
            "[limits]\ngrace_max_ms = -1",
            "2:16: key \"limits.grace_max_ms\": -1 is outside 0..=86400000",
        ),
        ("[limits]\nsessions = 1", "2:1: key \"limits.sessions\": unknown limit \"sessions\""),
        (
            "allow_degraded = 1",
            "1:18: key \"allow_degraded\": invalid type: integer `1`, expected a boolean",
        ),
        (
            "path = [\"bin\"]",
            "1:8: key \"path\": path \"bin\" does not begin with /, ~/ or a variable",
        ),
        (
            "tier = 1",
            "1:1: key \"tier\": unknown field `tier`, expected one of `path`, `allow_degraded`, `limits`",
        ),
    ] {
        let settings = load(text);
        let fault = settings.fault.unwrap().to_string();
        assert!(fault.ends_with(&format!("broker.toml:{expected}")), "{fault}");
        assert_eq!(settings.limits, Limits::default());
        assert!(!settings.allow_degraded);
    }
}

#[test]
fn the_strongest_file_counts_alone_and_a_mask_leaves_the_defaults() {
    let directory = tempfile::tempdir().unwrap();
    let [weak, strong] = ["weak", "strong"].map(|name| directory.path().join(name));
    for (path, text) in [(&weak, "allow_degraded = true"), (&strong, "[limits]\nlabels = 3")] {
        fs::create_dir(path).unwrap();
        fs::write(path.join(FILE_NAME), text).unwrap();
    }
    let search = SearchPath::new(vec![weak, strong.clone()]);
    let settings = Settings::load(&search, Overrides::default());
    assert_eq!((settings.allow_degraded, settings.limits.labels), (false, 3));

    fs::remove_file(strong.join(FILE_NAME)).unwrap();
    std::os::unix::fs::symlink("/dev/null", strong.join(FILE_NAME)).unwrap();
    assert_eq!(Settings::load(&search, Overrides::default()), Settings::default());

    fs::remove_file(strong.join(FILE_NAME)).unwrap();
    assert!(Settings::load(&search, Overrides::default()).allow_degraded);
}

#[test]
fn an_override_that_is_not_understood_is_refused() {
    let read = |name: &str, value: &str| {
        Overrides::from_environment(&BTreeMap::from([(name.into(), value.into())]))
    };
    assert_eq!(Overrides::from_environment(&BTreeMap::new()), Ok(Overrides::default()));
    assert_eq!(read(MAX_TIER_VARIABLE, "none").unwrap().max_tier, MaxTier::Nothing);
    assert_eq!(read(MAX_TIER_VARIABLE, "mounts").unwrap().max_tier, MaxTier::Most(Tier::Mounts));
    assert_eq!(read(MAX_TIER_VARIABLE, "seccomp").unwrap().max_tier, MaxTier::Most(Tier::Seccomp));
    assert_eq!(read(LANDLOCK_ABI_VARIABLE, "5").unwrap().landlock_abi_cap, Some(5));
    for (name, value, expected) in [
        (
            MAX_TIER_VARIABLE,
            "",
            "ST2_TOOLS_MAX_TIER is \"\", not none, seccomp, resolve-unix or mounts",
        ),
        (
            MAX_TIER_VARIABLE,
            "Seccomp",
            "ST2_TOOLS_MAX_TIER is \"Seccomp\", not none, seccomp, resolve-unix or mounts",
        ),
        (
            LANDLOCK_ABI_VARIABLE,
            "256",
            "ST2_TOOLS_LANDLOCK_ABI is \"256\", not a number in 0..=255",
        ),
        (LANDLOCK_ABI_VARIABLE, "-1", "ST2_TOOLS_LANDLOCK_ABI is \"-1\", not a number in 0..=255"),
        (LANDLOCK_ABI_VARIABLE, "", "ST2_TOOLS_LANDLOCK_ABI is \"\", not a number in 0..=255"),
    ] {
        assert_eq!(read(name, value).unwrap_err().to_string(), expected);
    }
}

/// The table of limits in the manual, row by row.
#[test]
fn the_manual_names_every_limit_with_its_default() {
    let manual = include_str!("../../policy/README.md");
    for (name, value) in Limits::default().to_map() {
        let row = manual
            .lines()
            .find(|line| line.starts_with(&format!("| `{name}` |")))
            .unwrap_or_else(|| panic!("{name} is not in the manual"));
        let default = row.split('|').nth(2).unwrap().replace(' ', "");
        assert_eq!(default, value.to_string(), "{name}");
    }
}
