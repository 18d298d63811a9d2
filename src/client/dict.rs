//! `a{sv}`: the shape of every option set, row and outcome of the contract.

use std::{
    collections::{BTreeMap, btree_map},
    io,
    os::fd::{AsFd, OwnedFd},
};

use serde::{Deserialize, Serialize};
use zbus::{Array, OwnedVariant, Type, Variant};

/// A dictionary of names and variants, in the order of the names.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize, Type)]
#[zbus(signature = "a{sv}")]
#[serde(transparent)]
pub struct Dict(BTreeMap<String, OwnedVariant>);

impl Dict {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a key to a value of a basic type or an array or dictionary of such.
    ///
    /// # Panics
    /// Never for what this crate puts in: only a descriptor that cannot be duplicated fails.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Variant<'static>>) -> Self {
        let value = OwnedVariant::try_from(value.into()).expect("no descriptor is put in a Dict");
        self.0.insert(key.to_owned(), value);
        self
    }

    /// Sets a key where there is a value for it.
    #[must_use]
    pub fn with_some(self, key: &str, value: Option<impl Into<Variant<'static>>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// The value of a key, whatever its type.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Variant<'static>> {
        self.0.get(key).map(|value| &**value)
    }

    /// The text of a key, where it is a string or an object path.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Variant::Str(text) => Some(text.as_str()),
            Variant::ObjectPath(path) => Some(path.as_str()),
            _ => None,
        }
    }

    /// The number of a key, where it is an unsigned integer of any width.
    #[must_use]
    pub fn number(&self, key: &str) -> Option<u64> {
        match *self.get(key)? {
            Variant::U8(n) => Some(n.into()),
            Variant::U16(n) => Some(n.into()),
            Variant::U32(n) => Some(n.into()),
            Variant::U64(n) => Some(n),
            _ => None,
        }
    }

    /// The signed number of a key.
    #[must_use]
    pub fn signed(&self, key: &str) -> Option<i32> {
        match *self.get(key)? {
            Variant::I32(n) => Some(n),
            _ => None,
        }
    }

    /// The boolean of a key.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<bool> {
        match *self.get(key)? {
            Variant::Bool(flag) => Some(flag),
            _ => None,
        }
    }

    /// A copy of the descriptor of a key.
    ///
    /// # Errors
    /// Where descriptors ran out.
    pub fn descriptor(&self, key: &str) -> io::Result<Option<OwnedFd>> {
        match self.get(key) {
            Some(Variant::Fd(fd)) => fd.as_fd().try_clone_to_owned().map(Some),
            _ => Ok(None),
        }
    }

    /// The strings of a key, where it is an array of them; empty where it is not there.
    #[must_use]
    pub fn texts(&self, key: &str) -> Vec<&str> {
        let Some(Variant::Array(array)) = self.get(key) else { return Vec::new() };
        strings(array)
    }

    /// The dictionary of a key, where it is `a{sv}`.
    #[must_use]
    pub fn dict(&self, key: &str) -> Option<Self> {
        let Variant::Dict(dict) = self.get(key)? else { return None };
        dict.try_clone().ok()?.try_into().ok().map(Self)
    }

    /// The pairs of a key, where it is `a{ss}`; empty where it is not there.
    #[must_use]
    pub fn pairs(&self, key: &str) -> BTreeMap<String, String> {
        let Some(Variant::Dict(pairs)) = self.get(key) else { return BTreeMap::new() };
        pairs.try_clone().ok().and_then(|pairs| pairs.try_into().ok()).unwrap_or_default()
    }

    /// Whether it holds nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Keys and values, in the order of the keys.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Variant<'static>)> {
        self.0.iter().map(|(key, value)| (key.as_str(), &**value))
    }
}

impl From<BTreeMap<String, OwnedVariant>> for Dict {
    fn from(map: BTreeMap<String, OwnedVariant>) -> Self {
        Self(map)
    }
}

impl IntoIterator for Dict {
    type Item = (String, OwnedVariant);
    type IntoIter = btree_map::IntoIter<String, OwnedVariant>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

fn strings<'a>(array: &'a Array<'_>) -> Vec<&'a str> {
    array
        .inner()
        .iter()
        .filter_map(|value| match value {
            Variant::Str(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_given_only_as_its_own_type() {
        let dict = Dict::new()
            .with("text", "a")
            .with("number", 7_u16)
            .with("signed", -1_i32)
            .with("flag", true)
            .with("list", vec!["x".to_owned(), "y".to_owned()])
            .with_some("absent", None::<u32>);
        assert_eq!(dict.text("text"), Some("a"));
        assert_eq!(dict.number("number"), Some(7));
        assert_eq!(dict.signed("signed"), Some(-1));
        assert_eq!(dict.flag("flag"), Some(true));
        assert_eq!(dict.texts("list"), ["x", "y"]);
        assert_eq!(dict.text("number"), None);
        assert_eq!(dict.number("signed"), None);
        assert_eq!(dict.get("absent"), None);
        assert_eq!(dict.dict("text"), None);
        let labels = BTreeMap::from([("task".to_owned(), "t1".to_owned())]);
        assert_eq!(Dict::new().with("labels", labels.clone()).pairs("labels"), labels);
        assert!(dict.pairs("list").is_empty());
    }

    #[test]
    fn a_dictionary_inside_gives_its_values_as_they_are() {
        let inner = Dict::new().with("code", 3_i32).into_iter().collect::<BTreeMap<_, _>>();
        let outer = Dict::new().with("Outcome", inner);
        assert_eq!(outer.get("Outcome").unwrap().value_signature().to_string(), "a{sv}");
        assert_eq!(outer.dict("Outcome").unwrap().signed("code"), Some(3));
    }
}
