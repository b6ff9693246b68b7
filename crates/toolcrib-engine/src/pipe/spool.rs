//! Keeps results that will be cut, and those whose tools ask for it, as artifacts: redacted, and in
//! whole.

use std::{any::Any, sync::Arc, time::Duration};

use tokio::{task::JoinError, time::sleep};

use toolcrib_core::{
    EventKind, KeptEntries, KeptResult, SpoolEntry, SpoolError, SpooledCall, Spooler, Spooling,
    Tool, ToolOutput, panic_text,
};

use super::{Batch, Call, Ended, redact, structured};

/// How long a store may take over one result, beside the time that the call has had.
const KEPT_WITHIN: Duration = Duration::from_secs(30);

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
    /// What there is now, made by the tool's body or here.
    pub(super) artifacts: Vec<SpoolEntry>,
    /// The characters of the artifacts that the text stands for; none where it is the result itself.
    pub(super) stands_for_chars: Option<u64>,
}

/// What the body of a tool is handed to make artifacts with.
pub(super) fn handles(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &Call,
) -> Vec<Arc<dyn Any + Send + Sync>> {
    let (Some(spooler), Some(kept)) = (&batch.engine.spooler, &call.kept) else {
        return Vec::new();
    };
    if tool.spooling() == Spooling::Never {
        return Vec::new();
    }
    let redact = Arc::clone(&batch.engine.redact);
    vec![spooler.handle(of_call(batch, tool, call), redact, kept.clone())]
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
/// for one. Tells of it, and of what the tool's body has kept.
pub(super) async fn spool(batch: &Batch<'_>, call: &Call, ended: &mut Ended, cap: usize) -> Kept {
    let (Some(spooler), Some(tool)) = (&batch.engine.spooler, &ended.tool) else {
        return Kept::default();
    };
    let (of_body, not_kept) = taken(call);
    // A body that makes artifacts has done what its tool asks for.
    let asks = tool.spooling() == Spooling::Always && of_body.is_empty();
    let keeping = keep_what_is_cut(batch, of_call(batch, tool, call), spooler, ended, cap, asks);
    let mut kept = keeping.await;
    if !of_body.is_empty() {
        kept.stands_for_chars = Some(of_body.iter().map(|entry| entry.note.chars).sum());
        kept.artifacts.splice(0..0, of_body);
    }
    tell(
        batch,
        call,
        &kept.artifacts,
        not_kept.iter().map(|why| &**why).chain(kept.cause.as_deref()),
    );
    kept
}

/// Tells of what a body has kept that is run once more: it decides and counts for nothing.
pub(super) fn before_attempt(batch: &Batch<'_>, call: &Call) {
    let (kept, not_kept) = taken(call);
    tell(batch, call, &kept, not_kept.iter().map(|why| &**why));
}

/// What the body has kept, and what it could not.
fn taken(call: &Call) -> (Vec<SpoolEntry>, Vec<Arc<str>>) {
    let (mut kept, mut not_kept) = (Vec::new(), Vec::new());
    for noted in call.kept.as_ref().map(KeptEntries::take).unwrap_or_default() {
        match noted {
            Ok(entry) => kept.push(entry),
            Err(why) => not_kept.push(why),
        }
    }
    (kept, not_kept)
}

async fn keep_what_is_cut(
    batch: &Batch<'_>,
    call: SpooledCall,
    spooler: &Arc<dyn Spooler>,
    ended: &mut Ended,
    cap: usize,
    asks: bool,
) -> Kept {
    let original = match &ended.outcome {
        Ok(output) => output.original.as_deref(),
        Err(_) => None,
    };
    let is_something = original.is_none_or(|bytes| !bytes.is_empty());
    let whole = asks && ended.outcome.is_ok() && is_something;
    let cap = cap.min(ended.own_cap());
    let data = match &ended.outcome {
        Ok(ToolOutput { structured: Some(data), .. }) if structured::json_chars(data) > cap => {
            Some(data.to_string().into_bytes())
        }
        _ => None,
    };
    let text = (whole || ended.needs() > cap).then(|| match original {
        Some(bytes) if !bytes.is_empty() => redact::bytes(batch, ended, bytes),
        _ => readable(ended).into_bytes(),
    });
    let never = ended.tool.as_ref().is_some_and(|tool| tool.spooling() == Spooling::Never);
    if never || (text.is_none() && data.is_none()) {
        return Kept::default();
    }
    let keeping = keep(Arc::clone(spooler), call, text, data);
    let keeping = tokio::task::spawn_blocking(keeping);
    let not_kept = |why: &str| {
        let rest = Rest::NotKept(Some(why.to_owned()));
        let cause = Some(format!("the result was not kept: {why}"));
        (Kept { text: rest.clone(), data: rest, cause, ..Kept::default() }, None)
    };
    let (mut kept, handle) = tokio::select! {
        biased;
        kept = keeping => match kept.map_err(JoinError::try_into_panic) {
            Ok(kept) => kept,
            Err(Ok(panic)) => not_kept(&format!("the store panicked: {}", panic_text(&*panic))),
            Err(Err(error)) => not_kept(&error.to_string()),
        },
        () = batch.cancellation.cancelled() => not_kept("the call was cancelled"),
        () = sleep(KEPT_WITHIN) => not_kept("the store took too long"),
    };
    let chars = whole.then(|| ended.chars() as u64);
    if let (true, Some(handle), Ok(output)) = (whole, handle, &mut ended.outcome) {
        kept.stands_for_chars = chars;
        output.value = handle;
        // What they hold is in the artifact; what has bytes of its own comes along.
        output.blocks.retain(|block| !block.data().is_empty());
    }
    kept
}

fn tell<'a>(
    batch: &Batch<'_>,
    call: &Call,
    kept: &[SpoolEntry],
    not_kept: impl Iterator<Item = &'a str>,
) {
    for SpoolEntry { id, digest, bytes, lines, note, .. } in kept {
        batch.events.emit(Some(batch.iteration), || EventKind::ArtifactKept {
            id: Arc::clone(id),
            call_id: Arc::clone(&call.id),
            tool: Arc::clone(&call.name),
            kind: Arc::clone(&note.kind),
            bytes: *bytes,
            lines: *lines,
            chars: note.chars,
            digest: *digest,
        });
    }
    for why in not_kept {
        batch.events.emit(Some(batch.iteration), || EventKind::ArtifactNotKept {
            call_id: Arc::clone(&call.id),
            tool: Arc::clone(&call.name),
            error: why.into(),
        });
    }
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
    text: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
) -> impl FnOnce() -> (Kept, Option<String>) {
    move || {
        let mut kept = Kept::default();
        let mut handle = None;
        if let Some(text) = &text {
            let outcome = spooler.keep(&call, text);
            handle = outcome.as_ref().ok().map(|kept| kept.handle.clone());
            kept.text = kept.note(outcome);
        }
        if data.is_some() && data == text {
            kept.data = kept.text.clone();
        } else if let Some(data) = data {
            let call = SpooledCall { kind: Some("json".into()), ..call };
            kept.data = kept.note(spooler.keep(&call, &data));
        }
        (kept, handle)
    }
}

impl Kept {
    fn note(&mut self, outcome: Result<KeptResult, SpoolError>) -> Rest {
        match outcome {
            Ok(KeptResult { entry, .. }) => {
                let id = Arc::clone(&entry.id);
                self.artifacts.push(entry);
                Rest::Artifact(id)
            }
            Err(error) => {
                self.cause = Some(error.why_not_kept());
                Rest::NotKept(Some(error.to_string()))
            }
        }
    }
}
