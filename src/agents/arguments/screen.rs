//! Arguments of `screen`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Name;

/// Shows what a person would see on a session's terminal now.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Screen {
    /// The session's id.
    pub session_id: Name,
}
