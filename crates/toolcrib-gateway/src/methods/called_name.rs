//! The tool that a client calls by a name.

use std::sync::Arc;

use toolcrib_core::MissingReason;
use toolcrib_engine::TurnError;

use crate::client::{
    names::{DIGITS, ShownNames},
    request::RequestContext,
    session::Purpose,
    step::Step,
};

/// An iteration for the tool that a client calls by a name, and the tool's known name. Only the
/// servers that may have it are queried, except for a name that was cut.
pub(crate) async fn find(
    context: &RequestContext<'_>,
    name: Arc<str>,
) -> Result<(Step, Arc<str>), TurnError> {
    let names = &context.serving.gateway.config.names;
    let step = context.step(Purpose::Call(&name)).await?;
    if is_known(&step, &name) {
        return Ok((step, name));
    }
    let longest = context.caller.access.max_name_chars;
    let may_be_cut = longest == Some(name.len()) && looks_cut(&name);
    for candidate in names.candidates(&name).filter(|_| !may_be_cut) {
        let step = context.step(Purpose::Call(&candidate)).await?;
        if is_known(&step, &candidate) {
            return Ok((step, candidate));
        }
    }
    if may_be_cut {
        let all = context.step(Purpose::Look).await?;
        let menu = all.iteration.menu();
        let position = names.of(menu, longest).iter().position(|shown| **shown == *name);
        let known = position.and_then(|position| menu.tools().get(position));
        let known = known.map(|tool| tool.name().as_str().into());
        let known = known.or_else(|| {
            let mut missing = all.iteration.withheld().missing().iter();
            let cut = missing.find(|tool| *names.of_missing(tool, longest) == *name);
            cut.map(|tool| Arc::clone(&tool.name))
        });
        if let Some(known) = known {
            return Ok((all, known));
        }
    }
    Ok((step, name))
}

/// Why a tool of this name is missing, as far as the caller may know it.
pub(crate) fn missing(step: &Step, name: &str) -> Option<MissingReason> {
    let mut missing = step.iteration.withheld().missing().iter();
    missing.find(|tool| *tool.name == *name).map(|tool| tool.reason)
}

fn is_known(step: &Step, name: &str) -> bool {
    step.iteration.menu().get(name).is_some()
        || step.iteration.withheld().is_away(name)
        || missing(step, name).is_some()
}

/// Whether a name ends like those that were cut.
fn looks_cut(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == DIGITS && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// The known name that a client means, if this iteration knows one.
pub(crate) fn meant(names: &ShownNames, step: &Step, name: &str) -> Option<Arc<str>> {
    if is_known(step, name) {
        return Some(name.into());
    }
    names.candidates(name).find(|candidate| is_known(step, candidate))
}
