//! What the broker bounds, and by how much.

use std::{collections::BTreeMap, fmt, ops::RangeInclusive, time::Duration};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed},
};

use crate::{broker::registry::Quotas, terminal::Bounds};

/// Declares each limit once: its meaning, default and bounds.
macro_rules! limits {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident = $default:literal, $least:literal..=$most:literal;
    )+) => {
        /// What the broker bounds: counts, bytes (`_bytes`) and milliseconds (`_ms`).
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Limits {
            $(
                $(#[doc = $doc])+
                #[doc = concat!(
                    "\nDefault ", stringify!($default),
                    "; within ", stringify!($least), "..=", stringify!($most), ".",
                )]
                pub $name: u64,
            )+
        }

        impl Default for Limits {
            fn default() -> Self {
                Self { $($name: $default,)+ }
            }
        }

        impl Limits {
            /// Name and value of each, as the `Limits` property shows them.
            #[must_use]
            pub fn to_map(&self) -> BTreeMap<&'static str, u64> {
                BTreeMap::from([$((stringify!($name), self.$name),)+])
            }

            /// The value of a name, to be set within its bounds.
            fn slot(&mut self, name: &str) -> Option<(&mut u64, RangeInclusive<u64>)> {
                match name {
                    $(stringify!($name) => Some((&mut self.$name, $least..=$most)),)+
                    _ => None,
                }
            }
        }
    };
}

limits! {
    /// Live sessions of one owner.
    live_sessions_per_owner = 64, 1..=4096;
    /// Live sessions in all.
    live_sessions = 512, 1..=4096;
    /// Closed sessions that are kept, the oldest going first.
    retained_sessions = 64, 0..=4096;
    /// How long a closed session is kept.
    retention_ms = 600_000, 0..=86_400_000;
    /// Attached streams of one session.
    attached_streams = 4, 1..=64;
    /// argv and environment of one session, as execve(2) counts them.
    argv_env_bytes = 131_072, 4_096..=131_072;
    /// One `Write`.
    write_bytes = 65_536, 1_024..=1_048_576;
    /// One `Read`.
    read_bytes = 262_144, 1_024..=1_048_576;
    /// How long a `Read` may wait.
    read_wait_ms = 120_000, 0..=120_000;
    /// Input of one session that the tool has not read yet.
    input_queue_bytes = 1_048_576, 4_096..=16_777_216;
    /// The output ring of a session that asks for no size.
    ring_default_bytes = 262_144, 4_096..=4_194_304;
    /// The largest output ring of one session.
    ring_max_bytes = 4_194_304, 4_096..=4_194_304;
    /// The rings of all sessions together.
    rings_bytes = 67_108_864, 4_194_304..=4_294_967_296;
    /// Opens of one owner that are under way; more wait their turn.
    opens_in_flight_per_owner = 32, 1..=512;
    /// Shares of one session.
    shares_per_session = 16, 0..=64;
    /// Events kept for `ListEvents`; with all the labels that they may have, 1024 are 8 MiB.
    events = 1_024, 16..=65_536;
    /// The longest grace, of a request or a tool.
    grace_max_ms = 300_000, 0..=86_400_000;
    /// How long a token lease lasts that asks for no time.
    lease_ttl_default_ms = 60_000, 1_000..=86_400_000;
    /// The longest a token lease may ask for.
    lease_ttl_max_ms = 3_600_000, 1_000..=86_400_000;
    /// Labels of one session.
    labels = 16, 0..=64;
    /// Name and value of one label, each.
    label_bytes = 256, 1..=1_024;
}

impl Limits {
    /// The core's share of them.
    #[must_use]
    pub fn quotas(&self) -> Quotas {
        Quotas {
            sessions_per_owner: count(self.live_sessions_per_owner),
            sessions: count(self.live_sessions),
            retained: count(self.retained_sessions),
            retention: Duration::from_millis(self.retention_ms),
            opens_per_owner: count(self.opens_in_flight_per_owner),
            shares: count(self.shares_per_session),
            events: count(self.events),
        }
    }

    /// A terminal's share of them, with the output ring of a session that asks for no size.
    #[must_use]
    pub fn terminal_bounds(&self) -> Bounds {
        Bounds {
            ring_bytes: count(self.ring_default_bytes),
            input_queue_bytes: count(self.input_queue_bytes),
            write_bytes: count(self.write_bytes),
            streams: u32::try_from(self.attached_streams).unwrap_or(u32::MAX),
            direct: false,
        }
    }
}

/// A limit as a count in memory; what does not fit means no limit.
fn count(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// Least size of an output ring, bytes.
pub const RING_MIN_BYTES: u64 = 4_096;

impl<'de> Deserialize<'de> for Limits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Visitor)
    }
}

struct Visitor;

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Limits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table of limits")
    }

    fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Limits, A::Error> {
        let mut limits = Limits::default();
        while let Some(name) = map.next_key_seed(Name)? {
            if let Some((value, bounds)) = limits.slot(&name) {
                *value = map.next_value_seed(Within(bounds))?;
            }
        }
        Ok(limits)
    }
}

/// A key, refused where it stands so that the error is placed at it.
struct Name;

impl<'de> DeserializeSeed<'de> for Name {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let name = String::deserialize(deserializer)?;
        match Limits::default().slot(&name) {
            Some(_) => Ok(name),
            None => Err(de::Error::custom(format_args!("unknown limit {name:?}"))),
        }
    }
}

/// A number within bounds, refused where it stands.
struct Within(RangeInclusive<u64>);

impl<'de> DeserializeSeed<'de> for Within {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        let number = i64::deserialize(deserializer)?;
        let inside = u64::try_from(number).ok().filter(|number| self.0.contains(number));
        inside.ok_or_else(|| {
            let (least, most) = (self.0.start(), self.0.end());
            de::Error::custom(format_args!("{number} is outside {least}..={most}"))
        })
    }
}
