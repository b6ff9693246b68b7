//! Keeps results that will be cut, and those whose tools ask for it, as artifacts: redacted, and in
//! whole.

use std::{any::Any, sync::Arc};

use toolcrib_core::{
    KeptResult, SpoolError, SpooledCall, Spooler, Spooling, Tool, ToolOutput, panic_text,
};

use super::{Batch, Call, Ended, structured};

/// What became of what a model does not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Rest {
    /// It is lost, and why where there was a place for it.
    NotKept(Option<String>),
    /// It is the artifact of that id, with all the rest.
    Artifact(Arc<str>),
}

impl Default for Rest {
    fn default() -> Self {
        Self::NotKept(None)
    }
}

/// What was kept of a result.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub(super) text: Rest,
    pub(super) data: Rest,
    /// For the operator, when something could not be kept.
    pub(super) cause: Option<String>,
}

/// What the body of a tool is handed to make artifacts with.
pub(super) fn handles(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &Call,
) -> Vec<Arc<dyn Any + Send + Sync>> {
    let spooler = batch.engine.spooler.iter().filter(|_| tool.spooling() != Spooling::Never);
    spooler
        .map(|spooler| spooler.handle(of_call(batch, tool, call), Arc::clone(&batch.engine.redact)))
        .collect()
}

fn of_call(batch: &Batch<'_>, tool: &Tool, call: &Call) -> SpooledCall {
    SpooledCall {
        identity: Arc::clone(batch.events.identity()),
        run_id: Arc::clone(batch.events.run_id()),
        call_id: Arc::clone(&call.id),
        tool: tool.name().as_str().into(),
        kind: tool.artifact_kind().cloned(),
        untrusted: tool.untrusted(),
    }
}

/// Keeps what will not fit, before it is cut; and puts a handle in the place of a text whose tool asks
/// for one.
pub(super) async fn spool(batch: &Batch<'_>, call: &Call, ended: &mut Ended, cap: usize) -> Kept {
    let (Some(spooler), Some(tool)) = (&batch.engine.spooler, &ended.tool) else {
        return Kept::default();
    };
    let whole = tool.spooling() == Spooling::Always && ended.outcome.is_ok();
    let cap = cap.min(ended.own_cap());
    let data = match &ended.outcome {
        Ok(ToolOutput { structured: Some(data), .. }) if structured::json_chars(data) > cap => {
            Some(data.to_string())
        }
        _ => None,
    };
    let text = (whole || ended.needs() > cap).then(|| readable(ended));
    if tool.spooling() == Spooling::Never || (text.is_none() && data.is_none()) {
        return Kept::default();
    }
    let keeping = keep(Arc::clone(spooler), of_call(batch, tool, call), text, data);
    let (kept, handle) = match tokio::task::spawn_blocking(keeping).await {
        Ok(kept) => kept,
        Err(error) => {
            let cause = match error.try_into_panic() {
                Ok(panic) => format!("keeping the result panicked: {}", panic_text(&*panic)),
                Err(error) => error.to_string(),
            };
            (Kept { cause: Some(cause), ..Kept::default() }, None)
        }
    };
    if let (true, Some(handle), Ok(output)) = (whole, handle, &mut ended.outcome) {
        output.value = handle;
        // What they hold is in the artifact; what has bytes of its own comes along.
        output.blocks.retain(|block| !block.data().is_empty());
    }
    kept
}

/// All that a model would read.
fn readable(ended: &Ended) -> String {
    match &ended.outcome {
        Err(failure) => failure.message.clone(),
        Ok(output) => {
            let mut text = output.value.clone();
            for block in &output.blocks {
                if !text.is_empty() {
                    text.push('\n');
                }
                text.push_str(&block.as_read());
            }
            text
        }
    }
}

/// Keeps text and data, once where they are the same; gives the text's handle too.
fn keep(
    spooler: Arc<dyn Spooler>,
    call: SpooledCall,
    text: Option<String>,
    data: Option<String>,
) -> impl FnOnce() -> (Kept, Option<String>) {
    move || {
        let mut kept = Kept::default();
        let mut handle = None;
        if let Some(text) = &text {
            (kept.text, handle) = rest(spooler.keep(&call, text), &mut kept.cause);
        }
        if data.is_some() && data == text {
            kept.data = kept.text.clone();
        } else if let Some(data) = data {
            let call = SpooledCall { kind: Some("json".into()), ..call };
            (kept.data, _) = rest(spooler.keep(&call, &data), &mut kept.cause);
        }
        (kept, handle)
    }
}

fn rest(
    outcome: Result<KeptResult, SpoolError>,
    cause: &mut Option<String>,
) -> (Rest, Option<String>) {
    match outcome {
        Ok(KeptResult { id, handle }) => (Rest::Artifact(id), Some(handle)),
        Err(error) => {
            let source = std::error::Error::source(&error);
            let why = error.to_string();
            *cause = Some(match source {
                Some(source) => format!("the result was not kept: {why}: {source}"),
                None => format!("the result was not kept: {why}"),
            });
            (Rest::NotKept(Some(why)), None)
        }
    }
}
