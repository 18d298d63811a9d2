//! The options of `Open` and `Explain`, as one request.

use std::{ffi::OsString, os::unix::ffi::OsStringExt};

use super::{Error, options::Options};
use crate::{
    broker::name::UnitName,
    launch::spec::Io,
    policy::request::{LeaseKind, Request, Stdin},
};

/// Reads a request.
///
/// # Errors
/// `InvalidArgs`, naming the option and the rule.
pub fn request(mut options: Options) -> Result<Request, Error> {
    Ok(Request {
        argv: argv(&mut options)?,
        prompt: options.take("prompt")?,
        workspace: options.take::<String>("workspace")?.map(Into::into),
        cwd: options.take::<String>("cwd")?.map(Into::into),
        env: pairs(&mut options, "env")?,
        io: options.one_of("io", &[("pty", Io::Pty), ("pipe", Io::Pipe)])?,
        stdin: options.one_of("stdin", &[("closed", Stdin::Closed), ("open", Stdin::Open)])?,
        io_fallback: options.take("io_fallback")?.unwrap_or_default(),
        columns: options.take("columns")?,
        rows: options.take("rows")?,
        term: options.take("term")?,
        lease: lease(&mut options)?,
        grace: options.duration("grace_ms")?,
        timeout: options.duration("timeout_ms")?,
        silence_timeout: options.duration("silence_timeout_ms")?,
        ring_bytes: options.take("ring_bytes")?,
        memory_max: options.take("memory_max")?,
        tasks_max: options.take("tasks_max")?,
        labels: pairs(&mut options, "labels")?,
        bind_unit: options.take::<String>("bind_unit")?.map(UnitName::foreign),
        private: options.take("private")?.unwrap_or_default(),
        reuse: options.take("reuse")?.unwrap_or_default(),
    })
}

fn argv(options: &mut Options) -> Result<Vec<OsString>, Error> {
    let text = options.take::<Vec<String>>("argv")?;
    let bytes = options.take::<Vec<Vec<u8>>>("argv_bytes")?;
    match (text, bytes) {
        (Some(_), Some(_)) => {
            Err(Error::InvalidArgs("argv and argv_bytes exclude each other".to_owned()))
        }
        (Some(text), None) => Ok(text.into_iter().map(Into::into).collect()),
        (None, Some(bytes)) => Ok(bytes.into_iter().map(OsString::from_vec).collect()),
        (None, None) => Ok(Vec::new()),
    }
}

fn lease(options: &mut Options) -> Result<LeaseKind, Error> {
    let by_token = options.one_of("lease", &[("caller", false), ("token", true)])?;
    let ttl = options.duration("lease_ttl_ms")?;
    match (by_token.unwrap_or(false), ttl) {
        (true, ttl) => Ok(LeaseKind::Token { ttl }),
        (false, None) => Ok(LeaseKind::Caller),
        (false, Some(_)) => {
            Err(Error::InvalidArgs("lease_ttl_ms goes with lease \"token\" only".to_owned()))
        }
    }
}

fn pairs(
    options: &mut Options,
    key: &str,
) -> Result<std::collections::BTreeMap<String, String>, Error> {
    let pairs = options.take::<std::collections::HashMap<String, String>>(key)?;
    Ok(pairs.unwrap_or_default().into_iter().collect())
}
