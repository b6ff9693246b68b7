//! Takes known secrets out, before anything is cut, stored or shown.

use std::borrow::Cow;

use serde_json::{Value, json};
use toolcrib_core::{dismantle, harmless, is_plain, nests_too_deep};

use super::{Batch, Ended};
use crate::{json::map_texts, redactor::Redactor};

pub(super) fn redact(batch: &Batch<'_>, ended: &mut Ended) {
    let redactor = &batch.engine.redactor;
    let cleaned = ended.fenced_tool().is_some();
    let clean = |text: String| without_secrets(redactor, text, cleaned);
    match &mut ended.outcome {
        Ok(output) => {
            output.value = clean(std::mem::take(&mut output.value));
            output.structured = output.structured.take().map(|data| {
                if nests_too_deep(&data) {
                    dismantle(data);
                    return json!({ "truncated": true, "reason": "nests too deep" });
                }
                let data = redactor.json(data);
                if !cleaned || redactor.knows_nothing() {
                    return data;
                }
                let mut leaf = |leaf| match leaf {
                    Value::String(text) => Value::String(clean(text)),
                    other => other,
                };
                map_texts(data, &mut leaf, &mut |key| clean(key))
            });
            for block in &mut output.blocks {
                *block = block.clone().map_texts(|text| clean(text.to_owned()));
            }
        }
        Err(failure) => {
            failure.message = clean(std::mem::take(&mut failure.message));
            failure.cause = failure.cause.take().map(|cause| redactor.owned(cause));
        }
    }
}

/// What a text was made of, without the secrets that are known now. No secret goes on behind what is
/// no text.
pub(super) fn bytes(batch: &Batch<'_>, ended: &Ended, original: &[u8]) -> Vec<u8> {
    let redactor = &batch.engine.redactor;
    let cleaned = ended.fenced_tool().is_some();
    let mut redacted = Vec::with_capacity(original.len());
    for chunk in original.utf8_chunks() {
        let text = without_secrets(redactor, chunk.valid().to_owned(), cleaned);
        redacted.extend_from_slice(text.as_bytes());
        redacted.extend_from_slice(chunk.invalid());
    }
    redacted
}

/// A text of an untrusted tool that is shown by itself: without secrets, harmless to read, and with at
/// most so many characters. The cut may lie inside a secret, so what could be the beginning of one at
/// the end goes too.
pub(super) fn remark(batch: &Batch<'_>, mut text: String, most_chars: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(most_chars) else {
        let text = without_secrets(&batch.engine.redactor, text, true);
        return harmless(&text).into_owned();
    };
    text.truncate(end);
    let text = batch.engine.redact.redact_start(&text);
    let text = batch.engine.redact.redact_start(&harmless(&text));
    format!("{}…", harmless(&text))
}

/// A text that will be sanitised is also looked at as it will be then: colours or invisible
/// characters inside a secret hide it until they are gone, and full-width letters inside a token
/// until it is defused.
fn without_secrets(redactor: &Redactor, text: String, sanitised: bool) -> String {
    let text = redactor.owned(text);
    if !sanitised || redactor.knows_nothing() {
        return text;
    }
    // All that becomes of a plain text are look-alikes, which are not ASCII.
    if is_plain(&text) && redactor.knows_only_ascii() {
        return text;
    }
    let Cow::Owned(harmless) = harmless(&text) else { return text };
    match redactor.text(&harmless) {
        Cow::Borrowed(_) => text,
        Cow::Owned(redacted) => redacted,
    }
}
