//! Arguments of `process`: one set for each action, told to the client as one flat object.
//!
//! Clients of several hosts refuse a schema whose root is a choice. So the schema is the union of all actions' properties,
//! each saying which actions take it; the parser takes the properties of the action alone.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Few, Input, Label, Name, Pasted, TwoTargets, Whole, one_target};

/// One action.
#[derive(Debug, Deserialize)]
#[serde(tag = "action", rename_all = "kebab-case")]
pub enum Process {
    /// The sessions of this server.
    List(List),
    /// What is new.
    Poll(Poll),
    /// Output by line.
    Log(Log),
    /// Input, as it is.
    Write(Write),
    /// Keys by name.
    SendKeys(SendKeys),
    /// A text, as if pasted.
    Paste(Paste),
    /// Enter.
    Submit(Submit),
    /// The end.
    Kill(Kill),
    /// Forget those that have ended.
    Clear(Clear),
    /// End and forget one.
    Remove(Remove),
}

/// Sessions of this server, newest first.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct List {
    /// Only those of this task.
    #[serde(default)]
    pub task: Option<Label>,
    /// Only those of this part of the task.
    #[serde(default)]
    pub subtask: Option<Label>,
}

/// What is new since the last poll.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Poll {
    /// The session's id.
    pub session_id: Name,
    /// How long to wait for output or the end, milliseconds. Default 0.
    #[serde(default = "at_once")]
    pub timeout: Whole<0, 120_000>,
    /// Acknowledges output up to here: `next` of the last poll that arrived. What came after it is delivered again.
    /// Default: all that the last answered poll delivered.
    #[serde(default)]
    pub ack: Option<u64>,
}

/// Output by line; reading changes nothing.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Log {
    /// The session's id.
    pub session_id: Name,
    /// First line, counted from 0. Default: so that the last `limit` lines are given.
    #[serde(default)]
    pub offset: Option<u64>,
    /// Most lines. Default 200.
    #[serde(default)]
    pub limit: Option<Whole<1, 2000>>,
}

/// Input, as it is.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Write {
    /// The session's id.
    pub session_id: Name,
    /// What to type, as it is: a terminal's Enter is "\r".
    #[serde(default = "nothing")]
    pub data: Input,
    /// No more input follows: closes a pipe, or gives a terminal its end-of-file character. A program that reads single
    /// keys has none: use send-keys C-d.
    #[serde(default)]
    pub eof: bool,
}

/// Keys by name.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct SendKeys {
    /// The session's id.
    pub session_id: Name,
    /// Text, sent first, as it is.
    #[serde(default)]
    pub literal: Option<Input>,
    /// Bytes, sent second: two hexadecimal digits each, such as "1b".
    #[serde(default)]
    pub hex: Few<Name, 1024>,
    /// Key names, sent last, case-insensitive: enter, tab, escape, backspace, delete, up, down, left, right, home, end,
    /// pageup, pagedown, f1 to f12, a single character; with C-, M- or S- before it, or ^ for control. An unknown name is
    /// an error, and nothing is sent.
    #[serde(default)]
    pub keys: Few<Name, 256>,
    /// Pause between keys, milliseconds.
    #[serde(default)]
    pub delay_ms: Option<Whole<1, 1000>>,
}

/// A text, as if pasted.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Paste {
    /// The session's id.
    pub session_id: Name,
    /// The text, at most 65524 bytes: more goes in several pastes.
    pub text: Pasted,
    /// Mark it as pasted even where the program did not ask for that (true), or never (false). Default: as the program
    /// asked.
    #[serde(default)]
    pub bracketed: Option<bool>,
}

/// Enter, as its own write after everything before it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Submit {
    /// The session's id.
    pub session_id: Name,
}

/// Ends every process of a session at once, and confirms it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Kill {
    /// The session's id.
    #[serde(default)]
    pub session_id: Option<Name>,
    /// In place of sessionId: all sessions of this task.
    #[serde(default)]
    pub task: Option<Label>,
    /// In place of sessionId: all sessions of this part of the task.
    #[serde(default)]
    pub subtask: Option<Label>,
}

/// Forgets the sessions that have ended.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Clear {}

/// Ends a session, if it runs, and forgets it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Remove {
    /// The session's id.
    pub session_id: Name,
}

impl Process {
    /// Refuses what would be passed over: a task beside a session.
    ///
    /// # Errors
    /// [`TwoTargets`].
    pub fn check(&self) -> Result<(), TwoTargets> {
        let Self::Kill(kill) = self else { return Ok(()) };
        one_target(kill.session_id.as_ref(), kill.task.as_ref(), kill.subtask.as_ref())
    }

    /// The action's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::List(_) => "list",
            Self::Poll(_) => "poll",
            Self::Log(_) => "log",
            Self::Write(_) => "write",
            Self::SendKeys(_) => "send-keys",
            Self::Paste(_) => "paste",
            Self::Submit(_) => "submit",
            Self::Kill(_) => "kill",
            Self::Clear(_) => "clear",
            Self::Remove(_) => "remove",
        }
    }
}

/// The schema of all actions as one object.
#[must_use]
pub fn schema() -> Map<String, Value> {
    let actions = [
        ("list", of::<List>()),
        ("poll", of::<Poll>()),
        ("log", of::<Log>()),
        ("write", of::<Write>()),
        ("send-keys", of::<SendKeys>()),
        ("paste", of::<Paste>()),
        ("submit", of::<Submit>()),
        ("kill", of::<Kill>()),
        ("clear", of::<Clear>()),
        ("remove", of::<Remove>()),
    ];
    let names: Vec<_> = actions.iter().map(|(name, _)| *name).collect();
    let mut properties = Map::new();
    for (action, schema) in &actions {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let known = properties.entry(name.clone()).or_insert_with(|| property.clone());
            note(known, action);
        }
    }
    properties.insert("action".into(), json!({ "type": "string", "enum": names }));
    let object = json!({
        "type": "object",
        "properties": properties,
        "required": ["action"],
        "additionalProperties": false,
    });
    match object {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

fn of<T: JsonSchema>() -> Value {
    let settings =
        SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if schema.get("properties").is_none() {
        schema["properties"] = json!({});
    }
    schema
}

/// Adds an action to those that a property's description begins with.
fn note(property: &mut Value, action: &str) {
    let text = property["description"].as_str().unwrap_or_default();
    let noted = match text.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((actions, rest)) => format!("[{actions}, {action}] {rest}"),
        None => format!("[{action}] {text}"),
    };
    property["description"] = noted.into();
}

fn nothing() -> Input {
    super::Bounded(String::new())
}

fn at_once() -> Whole<0, 120_000> {
    Whole(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Process, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn an_action_takes_its_own_arguments_only() {
        assert!(parse(r#"{"action":"poll","sessionId":"s","timeout":120000}"#).is_ok());
        assert!(parse(r#"{"action":"poll","sessionId":"s","timeout":120001}"#).is_err());
        assert!(
            parse(r#"{"action":"poll","sessionId":"s","data":"x"}"#).unwrap_err().contains("data")
        );
        assert!(parse(r#"{"action":"poll"}"#).unwrap_err().contains("sessionId"));
        assert!(parse(r#"{"action":"list","sessionId":"s"}"#).is_err());
        assert!(parse(r#"{"action":"restart"}"#).unwrap_err().contains("restart"));
        assert!(parse(r#"{"action":"clear"}"#).is_ok());
    }

    #[test]
    fn a_kill_is_of_a_session_or_of_a_task() {
        let check = |text: &str| parse(text).unwrap().check();
        assert!(check(r#"{"action":"kill","sessionId":"s"}"#).is_ok());
        assert!(check(r#"{"action":"kill","task":"t","subtask":"u"}"#).is_ok());
        for task in ["task", "subtask"] {
            let both = format!(r#"{{"action":"kill","sessionId":"s","{task}":"t"}}"#);
            assert!(check(&both).is_err());
        }
    }

    #[test]
    fn the_schema_tells_which_action_takes_what() {
        let schema = schema();
        assert_eq!(schema["additionalProperties"], json!(false));
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties["action"]["enum"].as_array().unwrap().len(), 10);
        let described = properties["sessionId"]["description"].as_str().unwrap();
        assert!(
            described.starts_with("[poll, log, write, send-keys, paste, submit, kill, remove] "),
            "{described}"
        );
        assert_eq!(properties["timeout"]["maximum"], json!(120_000));
        assert!(!Value::Object(schema.clone()).to_string().contains("$ref"));
    }
}
