//! Options as they are read from the bus: unknown keys are ignored, a known key of a wrong type is an error.

use std::{collections::HashMap, time::Duration};

use zbus::{OwnedVariant, Variant};

use super::Error;
use crate::host::pty::Size;

/// An `a{sv}` of a call.
#[derive(Debug)]
pub struct Options(HashMap<String, OwnedVariant>);

impl Options {
    /// Takes a call's options.
    #[must_use]
    pub fn new(options: HashMap<String, OwnedVariant>) -> Self {
        Self(options)
    }

    /// Takes an option's value, if it is there.
    ///
    /// # Errors
    /// `InvalidArgs` where its type is another.
    pub fn take<T: Wire>(&mut self, key: &str) -> Result<Option<T>, Error> {
        let Some(value) = self.0.remove(key) else { return Ok(None) };
        let found = value.value_signature().to_string();
        let wrong = || Error::InvalidArgs(format!("{key} has type {found}, not {}", T::SIGNATURE));
        T::read(value.into()).map(Some).ok_or_else(wrong)
    }

    /// Takes an option that is one of a closed set.
    ///
    /// # Errors
    /// `InvalidArgs` where it is none of them.
    pub fn one_of<T: Copy>(&mut self, key: &str, set: &[(&str, T)]) -> Result<Option<T>, Error> {
        let Some(word) = self.take::<String>(key)? else { return Ok(None) };
        let found = set.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        let words: Vec<_> = set.iter().map(|(name, _)| *name).collect();
        let wrong =
            || Error::InvalidArgs(format!("{key} {word:?} is none of {}", words.join(", ")));
        found.map(Some).ok_or_else(wrong)
    }

    /// Takes a time in milliseconds.
    ///
    /// # Errors
    /// `InvalidArgs` where its type is another.
    pub fn duration(&mut self, key: &str) -> Result<Option<Duration>, Error> {
        Ok(self.take(key)?.map(Duration::from_millis))
    }

    /// The keys that nobody took.
    pub fn rest(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// A type that an option can have.
pub trait Wire: Sized {
    /// Its signature.
    const SIGNATURE: &'static str;
    /// Reads it, if the value has its signature.
    fn read(value: Variant<'static>) -> Option<Self>;
}

macro_rules! wire {
    ($($type:ty = $signature:literal;)+) => {$(
        impl Wire for $type {
            const SIGNATURE: &'static str = $signature;

            fn read(value: Variant<'static>) -> Option<Self> {
                value.try_into().ok()
            }
        }
    )+};
}

wire! {
    bool = "b";
    u16 = "q";
    u64 = "t";
    String = "s";
    Vec<String> = "as";
    Vec<Vec<u8>> = "aay";
    HashMap<String, String> = "a{ss}";
}

/// Takes the size of a terminal, if it is there.
///
/// # Errors
/// `InvalidArgs` where it is half there or out of bounds.
pub fn size(options: &mut Options) -> Result<Option<Size>, Error> {
    match (options.take("columns")?, options.take("rows")?) {
        (None, None) => Ok(None),
        (Some(columns), Some(rows)) => {
            Ok(Some(Size::new(in_bounds("columns", columns)?, in_bounds("rows", rows)?)))
        }
        _ => Err(Error::InvalidArgs("columns and rows go together".to_owned())),
    }
}

/// Checks a number of columns or rows, 1..=1000.
///
/// # Errors
/// `InvalidArgs` where it is another.
pub fn in_bounds(what: &str, count: u16) -> Result<u16, Error> {
    if (1..=1000).contains(&count) {
        Ok(count)
    } else {
        Err(Error::InvalidArgs(format!("{what} {count} is outside 1..=1000")))
    }
}
