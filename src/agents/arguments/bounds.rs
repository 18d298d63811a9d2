//! Values with bounds that the schema tells and the parser keeps.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize, de};

/// A whole number within bounds, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Whole<const LEAST: u64, const MOST: u64>(pub u64);

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for Whole<LEAST, MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u64::deserialize(deserializer)?;
        if (LEAST..=MOST).contains(&number) {
            Ok(Self(number))
        } else {
            Err(de::Error::custom(format_args!("{number} is outside {LEAST}..={MOST}")))
        }
    }
}

impl<const LEAST: u64, const MOST: u64> JsonSchema for Whole<LEAST, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Whole{LEAST}To{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "integer", "minimum": LEAST, "maximum": MOST })
    }
}

/// A text of at most so many characters, whichever they are: what is typed goes to the bus as bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Bounded<const MOST: usize>(pub String);

impl<'de, const MOST: usize> Deserialize<'de> for Bounded<MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let length = text.chars().count();
        if length <= MOST {
            Ok(Self(text))
        } else {
            Err(de::Error::custom(format_args!("{length} characters are more than {MOST}")))
        }
    }
}

impl<const MOST: usize> JsonSchema for Bounded<MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Text{MOST}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": MOST })
    }
}

/// A text of at most so many bytes of UTF-8, and without NUL: what a string on the bus can be.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Text<const BYTES: usize>(pub String);

impl<'de, const BYTES: usize> Deserialize<'de> for Text<BYTES> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = without_nul(String::deserialize(deserializer)?)?;
        if text.len() <= BYTES {
            Ok(Self(text))
        } else {
            Err(de::Error::custom(format_args!("{} bytes are more than {BYTES}", text.len())))
        }
    }
}

impl<const BYTES: usize> JsonSchema for Text<BYTES> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Text{BYTES}Bytes").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "maxLength": BYTES })
    }
}

/// The text, where it has no NUL: the bus disconnects whoever sends a string with one, and execve(2) would end an
/// argument there.
///
/// # Errors
/// Where it has one: at which byte.
pub fn without_nul<E: de::Error>(text: String) -> Result<String, E> {
    match memchr::memchr(0, text.as_bytes()) {
        None => Ok(text),
        Some(at) => Err(E::custom(format_args!("NUL, at byte {at}, cannot be in this text"))),
    }
}

/// A list of at most so many.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Few<T, const MOST: usize>(pub Vec<T>);

impl<T, const MOST: usize> Default for Few<T, MOST> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for Few<T, MOST> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let list = Vec::deserialize(deserializer)?;
        if list.len() <= MOST {
            Ok(Self(list))
        } else {
            Err(de::Error::custom(format_args!("{} entries are more than {MOST}", list.len())))
        }
    }
}

impl<T: JsonSchema, const MOST: usize> JsonSchema for Few<T, MOST> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("Few{MOST}{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "array", "maxItems": MOST, "items": generator.subschema_for::<T>() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_are_kept() {
        type Rows = Whole<1, 200>;
        assert_eq!(serde_json::from_str::<Rows>("200").unwrap(), Whole(200));
        for wrong in ["0", "201", "-1", "1.5", "\"1\"", "null"] {
            assert!(serde_json::from_str::<Rows>(wrong).is_err(), "{wrong}");
        }
        let error = serde_json::from_str::<Rows>("201").unwrap_err().to_string();
        assert!(error.starts_with("201 is outside 1..=200"), "{error}");
        assert!(serde_json::from_str::<Bounded<2>>("\"éé\"").is_ok());
        assert!(serde_json::from_str::<Bounded<2>>("\"abc\"").is_err());
        assert!(serde_json::from_str::<Text<4>>("\"éé\"").is_ok());
        let error = serde_json::from_str::<Text<4>>("\"ééa\"").unwrap_err().to_string();
        assert!(error.starts_with("5 bytes are more than 4"), "{error}");
        assert!(serde_json::from_str::<Few<u8, 2>>("[1, 2]").is_ok());
        assert!(serde_json::from_str::<Few<u8, 2>>("[1, 2, 3]").is_err());
    }

    #[test]
    fn nul_is_only_in_what_goes_as_bytes() {
        let nul = r#""ab\u0000""#;
        let error = serde_json::from_str::<Text<9>>(nul).unwrap_err().to_string();
        assert!(error.starts_with("NUL, at byte 2, cannot be in this text"), "{error}");
        assert_eq!(serde_json::from_str::<Bounded<9>>(nul).unwrap().0, "ab\0");
    }
}
