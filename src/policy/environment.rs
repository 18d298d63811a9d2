//! The environment of one session: the built base, what may pass, what the tool sets.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::{OsStr, OsString},
    path::Path,
};

use crate::{
    launch::environment::{self, Base},
    policy::{
        grants::SessionValues,
        narrow::{no_nul, term},
        refusal::{NotPermitted, Refusal},
        request::Request,
        surroundings::Surroundings,
        tool::{Declaration, Tool},
    },
};

/// Builds it. The tool's own value goes before that of a profile, either before the broker's; for a
/// name that may pass it is only the default.
pub(super) fn build(
    tool: &Tool,
    request: &Request,
    surroundings: &Surroundings,
    values: &SessionValues,
    (path, cwd, tmpdir): (OsString, &Path, &Path),
) -> Result<BTreeMap<OsString, OsString>, Refusal> {
    for (name, value) in &request.env {
        no_nul("env", OsStr::new(name))?;
        no_nul("env", OsStr::new(value))?;
    }
    let base = Base {
        home: surroundings.home.clone(),
        user: surroundings.user.clone(),
        shell: surroundings.shell.clone(),
        path,
        term: term(request.term.as_deref())?.into(),
        tmpdir: tmpdir.to_owned(),
        cwd: cwd.to_owned(),
    };
    let Declaration { environment: own, pass_environment, .. } = &tool.declaration;
    let passing: BTreeSet<String> =
        pass_environment.iter().map(|name| name.as_str().to_owned()).collect();
    let mut built = environment::build(&base, &passing, &surroundings.environment, &request.env)
        .map_err(NotPermitted::from)?;
    let mut declared = tool.profile.environment();
    declared.extend(own);
    for (name, value) in declared {
        let is_default = passing.contains(name.as_str());
        if !(is_default && built.contains_key(OsStr::new(name.as_str()))) {
            built.insert(name.as_str().into(), value.expand(values));
        }
    }
    Ok(built)
}
