//! Redacts known secrets before a text is cut, stored or shown.

use std::{borrow::Cow, mem, sync::Arc};

use serde_json::{Map, Value, json};
use toolcrib_core::{
    __internal::{dismantle, is_plain, nests_too_deep, without_invisible},
    ContentBlock, ErrorCode, TextOrigin, ToolOutput,
};

use super::{
    arguments::InvalidArguments,
    call::{Batch, Failure, RawResult},
    sanitize,
    structured::json_chars,
};
use crate::{
    json::{map_texts, text_bytes},
    secrets::{Redactor, without},
    validators::off::is_large_text,
};

/// Redacts a call's outcome; a large one off the async workers. An outcome that cannot be redacted
/// is omitted.
pub(super) async fn redact(batch: &Batch<'_>, ended: &mut RawResult) {
    let redactor = &batch.engine.redactor;
    let cleaned = ended.cleaned_as();
    let bytes = if redactor.knows_nothing() { 0 } else { bytes_of(ended) };
    let placeholder =
        Failure::refused(ErrorCode::ExecutionFailed, "the result could not be redacted");
    let outcome = mem::replace(&mut ended.outcome, Err(placeholder));
    let source = ended.tool.as_ref().map(|tool| Arc::clone(tool.shared_origin()));
    let owned = redactor.clone();
    let work = move || without_known(&owned, cleaned, outcome);
    match batch.engine.validators.aside(&source.unwrap_or_default(), bytes, work).await {
        Ok(redacted) => ended.outcome = redacted,
        Err(broken) => {
            if let Err(failure) = &mut ended.outcome {
                failure.cause = Some(broken);
            }
        }
    }
}

fn bytes_of(ended: &RawResult) -> usize {
    match &ended.outcome {
        Ok(output) => output.value.len() + bytes_of_parts(output),
        Err(failure) => {
            let details = failure.details.as_deref().map_or(0, bytes_of_parts);
            failure.message.len() + failure.cause.as_ref().map_or(0, String::len) + details
        }
    }
}

/// The size of all but the text.
fn bytes_of_parts(output: &ToolOutput) -> usize {
    let data = output.structured.as_ref().filter(|data| !nests_too_deep(data));
    let blocks = output.blocks.iter().map(ContentBlock::chars);
    let meta = output.meta.iter().flat_map(|meta| meta.iter());
    let meta = meta.filter(|(_, value)| !nests_too_deep(value));
    let meta = meta.map(|(key, value)| key.len() + text_bytes(value));
    blocks.sum::<usize>() + meta.sum::<usize>() + data.map_or(0, text_bytes)
}

fn without_known(
    redactor: &Redactor,
    cleaned: Option<TextOrigin>,
    mut outcome: Result<ToolOutput, Failure>,
) -> Result<ToolOutput, Failure> {
    let clean = |text: String| without_secrets(redactor, text, cleaned);
    match &mut outcome {
        Ok(output) => {
            output.value = clean(mem::take(&mut output.value));
            parts_without_known(redactor, cleaned, output);
        }
        Err(failure) => {
            failure.message = clean(mem::take(&mut failure.message));
            failure.cause = failure.cause.take().map(|cause| redactor.owned(cause));
            if let Some(details) = &mut failure.details {
                parts_without_known(redactor, cleaned, details);
            }
        }
    }
    outcome
}

/// Redacts all but the text.
fn parts_without_known(redactor: &Redactor, cleaned: Option<TextOrigin>, output: &mut ToolOutput) {
    let clean = |text: String| without_secrets(redactor, text, cleaned);
    let data_without = |data: Value| {
        if nests_too_deep(&data) {
            dismantle(data);
            return json!({ "truncated": true, "reason": "nests too deep" });
        }
        let data = redactor.json(data);
        if cleaned.is_none() || redactor.knows_nothing() {
            return data;
        }
        let mut leaf = |leaf| match leaf {
            Value::String(text) => Value::String(clean(text)),
            other => other,
        };
        map_texts(data, &mut leaf, &mut |key| clean(key))
    };
    output.structured = output.structured.take().map(data_without);
    output.meta = output.meta.take().map(|meta| match data_without(Value::Object(*meta)) {
        Value::Object(meta) => Box::new(meta),
        _ => Box::default(),
    });
    for block in &mut output.blocks {
        *block = block.clone().map_texts(|text| clean(text.to_owned()));
    }
}

/// Redacted arguments: as data, or as the original text. Large ones are redacted off the async
/// workers; those that cannot be redacted are omitted.
pub(super) async fn arguments(batch: &Batch<'_>, args: &Result<Value, InvalidArguments>) -> Value {
    let args = passed(args);
    if batch.engine.redactor.knows_nothing() {
        return args;
    }
    let (bytes, redactor) = (text_bytes(&args), batch.engine.redactor.clone());
    let work = move || redactor.json(args);
    batch.engine.validators.aside(batch.events.turn_id(), bytes, work).await.unwrap_or_default()
}

/// Whether arguments are too large to redact on an async worker.
pub(super) fn is_large(args: &Result<Value, InvalidArguments>) -> bool {
    match args {
        Ok(args) => is_large_text(text_bytes(args)),
        Err(not_json) => is_large_text(not_json.text.len()),
    }
}

/// The arguments: as data, or as the original text.
pub(super) fn passed(args: &Result<Value, InvalidArguments>) -> Value {
    match args {
        Ok(args) => args.clone(),
        Err(not_json) => Value::String(not_json.text.clone()),
    }
}

/// The original bytes of a text, without the secrets that are known now. No secret continues after
/// a part that is not text.
pub(super) fn bytes(redactor: &Redactor, cleaned: Option<TextOrigin>, original: &[u8]) -> Vec<u8> {
    let mut redacted = Vec::with_capacity(original.len());
    for chunk in original.utf8_chunks() {
        let text = without_secrets(redactor, chunk.valid().to_owned(), cleaned);
        redacted.extend_from_slice(text.as_bytes());
        redacted.extend_from_slice(chunk.invalid());
    }
    redacted
}

/// A text of an untrusted tool that is shown separately: without secrets, sanitized, and limited to
/// `most_chars` characters. The cut may be inside a secret, so a possible beginning of one at the
/// end is removed too; it is searched for without invisible characters, which could split it.
pub(super) fn remark(
    batch: &Batch<'_>,
    mut text: String,
    most_chars: usize,
    origin: TextOrigin,
) -> String {
    let Some((end, _)) = text.char_indices().nth(most_chars) else {
        let text = without_secrets(&batch.engine.redactor, text, Some(origin));
        return origin.harmless(&text).into_owned();
    };
    text.truncate(end);
    let text = batch.engine.redact.redact_start(&text);
    let text = batch.engine.redact.redact_start(&without_invisible(&text).text);
    let text = batch.engine.redact.redact_start(&origin.harmless(&text));
    format!("{}…", origin.harmless(&text))
}

/// Metadata that is shown separately: without secrets, and sanitized. None if it has more than
/// `most_chars` characters.
pub(super) fn metadata(
    batch: &Batch<'_>,
    meta: Box<Map<String, Value>>,
    most_chars: usize,
) -> Option<Box<Map<String, Value>>> {
    let mut output = ToolOutput { meta: Some(meta), ..ToolOutput::default() };
    parts_without_known(&batch.engine.redactor, Some(TextOrigin::Foreign), &mut output);
    let meta = Value::Object(*output.meta?);
    match json_chars(&meta) <= most_chars {
        true => sanitize::metadata(meta),
        false => None,
    }
}

/// A text that will be sanitized is also searched without what is invisible, which could hide a
/// secret inside it, and in its sanitized form, since a token that is defused has plain letters.
fn without_secrets(redactor: &Redactor, text: String, cleaned: Option<TextOrigin>) -> String {
    let mut text = redactor.owned(text);
    let Some(origin) = cleaned.filter(|_| !redactor.knows_nothing()) else { return text };
    // In a plain text, defusing inserts only look-alikes, which are not ASCII.
    if is_plain(&text) && redactor.knows_only_ascii() {
        return text;
    }
    let searched = without_invisible(&text);
    if !searched.changes.is_empty() {
        let split = redactor.places(&searched.text);
        let split: Vec<_> = split.into_iter().map(|place| searched.real(place)).collect();
        if !split.is_empty() {
            text = without(&text, &split);
        }
    }
    let Cow::Owned(harmless) = origin.harmless(&text) else { return text };
    match redactor.text(&harmless) {
        Cow::Borrowed(_) => text,
        Cow::Owned(redacted) => redacted,
    }
}
