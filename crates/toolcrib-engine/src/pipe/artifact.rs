//! Keeps results as artifacts, redacted and whole: those that will be cut, and those whose tools
//! request it.

use std::{any::Any, borrow::Cow, sync::Arc, time::Duration};

use tokio::{task::JoinError, time::sleep};
use toolcrib_core::{
    __internal::panic_text, ArtifactCall, ArtifactEntry, ArtifactLog, ArtifactPolicy, ArtifactPort,
    ArtifactStoreError, ContentBlock, EventKind, StoredResult, Tool, ToolOutput,
};

use super::{
    call::{Batch, Call, RawResult},
    redact,
    stored_parts::{Remainder, StoredParts},
    structured,
};

/// Time limit for storing one result, in addition to the call's time.
const KEPT_WITHIN: Duration = Duration::from_secs(30);

/// The handle with which a tool's body makes artifacts.
pub(super) fn handles(
    batch: &Batch<'_>,
    tool: &Tool,
    call: &Call,
) -> Vec<Arc<dyn Any + Send + Sync>> {
    let (Some(artifact_port), Some(kept)) = (batch.artifact_port(), &call.kept) else {
        return Vec::new();
    };
    if tool.artifact_policy() == ArtifactPolicy::Never {
        return Vec::new();
    }
    let redact = Arc::clone(&batch.engine.redact);
    vec![artifact_port.handle(of_call(batch, tool, call), redact, kept.clone())]
}

fn of_call(batch: &Batch<'_>, tool: &Tool, call: &Call) -> ArtifactCall {
    ArtifactCall {
        identity: Arc::clone(batch.events.identity()),
        turn_id: Arc::clone(batch.events.turn_id()),
        call_id: Arc::clone(&call.id),
        tool: tool.name().as_str().into(),
        kind: tool.artifact_kind().cloned(),
        untrusted: tool.untrusted(),
        text_origin: tool.text_origin(),
    }
}

/// Stores a result that will not fit before it is cut; replaces a text by a handle if its tool
/// requests it. Reports this, and the artifacts of the tool's body.
pub(super) async fn artifact_store(
    batch: &Batch<'_>,
    call: &Call,
    ended: &mut RawResult,
    cap: usize,
) -> StoredParts {
    let (Some(artifact_port), Some(tool)) = (batch.artifact_port(), &ended.tool) else {
        return StoredParts::default();
    };
    let (of_body, not_kept) = taken(call);
    // A body that makes artifacts has fulfilled the tool's policy.
    let asks = tool.artifact_policy() == ArtifactPolicy::Always && of_body.is_empty();
    let untrusted = tool.untrusted() || ended.fenced_tool().is_some();
    let text_origin = ended.text_origin();
    let of_call = ArtifactCall { untrusted, text_origin, ..of_call(batch, tool, call) };
    let mut kept = keep_what_is_cut(batch, of_call, artifact_port, ended, cap, asks).await;
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

/// Reports the artifacts of a body that is run again: they do not count for the result.
pub(super) fn before_attempt(batch: &Batch<'_>, call: &Call) {
    let (kept, not_kept) = taken(call);
    tell(batch, call, &kept, not_kept.iter().map(|why| &**why));
}

/// The artifacts of the body, and those that could not be stored.
fn taken(call: &Call) -> (Vec<ArtifactEntry>, Vec<Arc<str>>) {
    let (mut kept, mut not_kept) = (Vec::new(), Vec::new());
    for noted in call.kept.as_ref().map(ArtifactLog::take).unwrap_or_default() {
        match noted {
            Ok(entry) => kept.push(entry),
            Err(why) => not_kept.push(why),
        }
    }
    (kept, not_kept)
}

async fn keep_what_is_cut(
    batch: &Batch<'_>,
    call: ArtifactCall,
    artifact_port: &Arc<dyn ArtifactPort>,
    ended: &mut RawResult,
    cap: usize,
    asks: bool,
) -> StoredParts {
    let source =
        ended.tool.as_ref().map(|tool| Arc::clone(tool.shared_origin())).unwrap_or_default();
    let original = match &ended.outcome {
        Ok(output) => output.original.as_ref(),
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
    let text = match original {
        _ if !whole && ended.needs() <= cap => None,
        Some(bytes) if !bytes.is_empty() => {
            let (redactor, bytes) = (batch.engine.redactor.clone(), Arc::clone(bytes));
            let (length, cleaned) = (bytes.len(), ended.cleaned_as());
            let work = move || redact::bytes(&redactor, cleaned, &bytes);
            batch.engine.validators.aside(&source, length, work).await.ok()
        }
        _ => Some(match &ended.outcome {
            Ok(output) => readable(&output.value, &output.blocks).into_owned().into_bytes(),
            Err(failure) => readable(&failure.message, failure.blocks()).into_owned().into_bytes(),
        }),
    };
    let never =
        ended.tool.as_ref().is_some_and(|tool| tool.artifact_policy() == ArtifactPolicy::Never);
    if never || (text.is_none() && data.is_none()) {
        return StoredParts::default();
    }
    let keeping = keep(Arc::clone(artifact_port), call, text, data);
    let (mut kept, handle) = in_time(batch, keeping).await;
    let chars = whole.then(|| ended.chars() as u64);
    if let (true, Some(handle), Ok(output)) = (whole, handle, &mut ended.outcome) {
        kept.stands_for_chars = chars;
        output.value = handle;
        // The artifact contains the texts of the blocks; blocks with bytes are passed on.
        output.blocks.retain(|block| !block.data().is_empty());
    }
    kept
}

/// Runs the work of a store on a thread, and stops waiting for it after a while.
async fn in_time(
    batch: &Batch<'_>,
    keeping: impl FnOnce() -> (StoredParts, Option<String>) + Send + 'static,
) -> (StoredParts, Option<String>) {
    let not_kept = |why: &str| {
        let rest = Remainder::NotKept(Some(why.to_owned()));
        let cause = Some(format!("the result was not kept: {why}"));
        (StoredParts { text: rest.clone(), data: rest, cause, ..StoredParts::default() }, None)
    };
    tokio::select! {
        biased;
        kept = tokio::task::spawn_blocking(keeping) => {
            match kept.map_err(JoinError::try_into_panic) {
                Ok(kept) => kept,
                Err(Ok(panic)) => not_kept(&format!("the store panicked: {}", panic_text(&*panic))),
                Err(Err(error)) => not_kept(&error.to_string()),
            }
        }
        () = batch.cancellation.cancelled() => not_kept("the call was cancelled"),
        () = sleep(KEPT_WITHIN) => not_kept("the store took too long"),
    }
}

fn tell<'a>(
    batch: &Batch<'_>,
    call: &Call,
    kept: &[ArtifactEntry],
    not_kept: impl Iterator<Item = &'a str>,
) {
    for ArtifactEntry { id, digest, bytes, lines, note, .. } in kept {
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

/// The whole text that a model would read.
pub(super) fn readable<'a>(text: &'a str, blocks: &[ContentBlock]) -> Cow<'a, str> {
    if blocks.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut text = text.to_owned();
    for block in blocks {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&block.as_read());
    }
    Cow::Owned(text)
}

/// Stores text and data, once if they are equal; also returns the text's handle.
fn keep(
    artifact_port: Arc<dyn ArtifactPort>,
    call: ArtifactCall,
    text: Option<Vec<u8>>,
    data: Option<Vec<u8>>,
) -> impl FnOnce() -> (StoredParts, Option<String>) {
    move || {
        let mut kept = StoredParts::default();
        let mut handle = None;
        if let Some(text) = &text {
            let outcome = artifact_port.keep(&call, text);
            handle = outcome.as_ref().ok().map(|kept| kept.handle.clone());
            kept.text = kept.note(outcome);
        }
        if data.is_some() && data == text {
            kept.data = kept.text.clone();
        } else if let Some(data) = data {
            let call = ArtifactCall { kind: Some("json".into()), ..call };
            kept.data = kept.note(artifact_port.keep(&call, &data));
        }
        (kept, handle)
    }
}

impl StoredParts {
    fn note(&mut self, outcome: Result<StoredResult, ArtifactStoreError>) -> Remainder {
        match outcome {
            Ok(StoredResult { entry, .. }) => {
                let id = Arc::clone(&entry.id);
                self.artifacts.push(entry);
                Remainder::Artifact(id)
            }
            Err(error) => {
                self.cause = Some(error.operator_text());
                Remainder::NotKept(Some(error.to_string()))
            }
        }
    }
}
