//! The bus's values as JSON: keys and numbers unchanged.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};
use zbus::{Signature, Variant};

use crate::client::Dict;

/// A dictionary as an object.
pub(super) fn object(dict: &Dict) -> Value {
    dict.iter().map(|(key, value)| (key.to_owned(), of(value))).collect::<Map<_, _>>().into()
}

/// Dictionaries as an array.
pub(super) fn array(rows: &[Dict]) -> Value {
    rows.iter().map(object).collect()
}

/// Bytes as `{encoding, data}`: `utf-8` where they are, else `base64`; never changed.
pub(super) fn bytes(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "encoding": "utf-8", "data": text }),
        Err(_) => json!({ "encoding": "base64", "data": STANDARD.encode(bytes) }),
    }
}

fn of(value: &Variant<'_>) -> Value {
    match value {
        Variant::U8(n) => json!(n),
        Variant::Bool(b) => json!(b),
        Variant::I16(n) => json!(n),
        Variant::U16(n) => json!(n),
        Variant::I32(n) => json!(n),
        Variant::U32(n) => json!(n),
        Variant::I64(n) => json!(n),
        Variant::U64(n) => json!(n),
        Variant::F64(n) => json!(n),
        Variant::Str(text) => json!(text.as_str()),
        Variant::Signature(signature) => json!(signature.to_string()),
        Variant::ObjectPath(path) => json!(path.as_str()),
        Variant::Variant(inner) => of(inner),
        Variant::Array(array) if *array.element_signature() == Signature::U8 => {
            bytes(&array.inner().iter().filter_map(byte).collect::<Vec<_>>())
        }
        Variant::Array(array) => array.inner().iter().map(of).collect(),
        Variant::Dict(dict) => {
            dict.iter().map(|(key, value)| (key_text(key), of(value))).collect::<Map<_, _>>().into()
        }
        Variant::Structure(structure) => structure.fields().iter().map(of).collect(),
        Variant::Fd(_) => Value::Null,
    }
}

fn byte(value: &Variant<'_>) -> Option<u8> {
    match value {
        Variant::U8(byte) => Some(*byte),
        _ => None,
    }
}

/// A dictionary's key, which D-Bus bounds to basic types.
fn key_text(key: &Variant<'_>) -> String {
    match of(key) {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn numbers_stay_exact_and_keys_as_they_are() {
        let dict = Dict::new()
            .with("BytesOut", u64::MAX)
            .with("Labels", BTreeMap::from([("agent".to_owned(), "a".to_owned())]))
            .with("Command", vec!["ls".to_owned()])
            .with("code", -1_i32);
        assert_eq!(
            object(&dict).to_string(),
            r#"{"BytesOut":18446744073709551615,"Command":["ls"],"Labels":{"agent":"a"},"code":-1}"#
        );
    }

    #[test]
    fn bytes_are_never_changed() {
        assert_eq!(bytes(b"ok"), json!({ "encoding": "utf-8", "data": "ok" }));
        assert_eq!(bytes(&[0xff, 0]), json!({ "encoding": "base64", "data": "/wA=" }));
        let dict = Dict::new().with("raw", vec![0xff_u8]);
        assert_eq!(object(&dict)["raw"], json!({ "encoding": "base64", "data": "/w==" }));
    }
}
