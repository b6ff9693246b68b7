//! The result of a program that ran.

use serde_json::json;
use toolcrib_artifacts::Artifact;
use toolcrib_capabilities::process::{CapturedOutput, MovedFile, ProcessEnd, ProcessOutput};
use toolcrib_core::{ToolContext, ToolOutput};

use super::{limits::ended_by, run::Body};

/// The length of the end of an output in an error, in characters.
const SHOWN_CHARS: usize = 2000;

/// A text with the report about the files that the sandbox moved away. It comes first, where no later
/// cut removes it.
pub(crate) fn with_moved(text: String, moved: &[MovedFile]) -> String {
    const MOST: usize = 20;
    if moved.is_empty() {
        return text;
    }
    let mut lines: Vec<_> = moved.iter().take(MOST).map(ToString::to_string).collect();
    if moved.len() > MOST {
        lines.push(format!("[protected] and {} more files", moved.len() - MOST));
    }
    if !text.is_empty() {
        lines.push(text);
    }
    lines.join("\n")
}

/// The result of a program that ended as it should.
pub(super) fn success(
    finished: &ProcessOutput,
    kept: Option<Result<Artifact, String>>,
    cx: &ToolContext,
) -> ToolOutput {
    let ProcessOutput { ended, stdout, stderr, .. } = finished;
    let code = match ended {
        ProcessEnd::Code(code) => Some(code),
        ProcessEnd::Signal(_) | ProcessEnd::Exceeded(_) => None,
    };
    let kept = match kept {
        Some(Ok(artifact)) => {
            let shown = with_moved(artifact.handle(), &finished.moved);
            return ToolOutput::text(shown).structured(json!({
                "exit_code": code,
                "artifact": &**artifact.id(),
                "stderr": text(stderr, cx).0,
                "truncated": true,
            }));
        }
        Some(Err(why)) => Some(why),
        None => None,
    };
    let shown = if stdout.total() == 0 { stderr } else { stdout };
    let value = match shown.total() {
        0 => "done, without output".to_owned(),
        _ => readable(shown, kept.as_deref(), cx),
    };
    let value = with_moved(value, &finished.moved);
    let output = ToolOutput::text(value).structured(json!({
        "exit_code": code,
        "stdout": text(stdout, cx).0,
        "stderr": text(stderr, cx).0,
        "truncated": stdout.is_truncated() || stderr.is_truncated(),
    }));
    if stdout.is_truncated() { output } else { output.original(stdout.head()) }
}

/// The error of a program that failed. All of its output may help to see why.
pub(super) fn failure(
    body: &Body,
    finished: &ProcessOutput,
    kept: Option<Result<Artifact, String>>,
    cx: &ToolContext,
) -> String {
    let said = with_moved(failed(body, finished, cx), &finished.moved);
    match kept {
        Some(Ok(artifact)) => format!("{said}\nAll of its stdout:\n{}", artifact.handle()),
        Some(Err(why)) => format!("{said}\n[not all of its stdout was kept: {why}]"),
        None => said,
    }
}

fn failed(body: &Body, finished: &ProcessOutput, cx: &ToolContext) -> String {
    let program = body.name();
    let ended = match finished.ended {
        ProcessEnd::Code(code) => format!("`{program}` failed with exit code {code}"),
        end => format!("`{program}` was ended by {}", ended_by(end, body.limits)),
    };
    let ending = |captured| ending(captured, usize::MAX, cx);
    match (ending(&finished.stderr), ending(&finished.stdout)) {
        (Some(stderr), Some(stdout)) => {
            format!("{ended}; it wrote to stderr:\n{stderr}\nand to stdout:\n{stdout}")
        }
        (Some(stderr), None) => format!("{ended}; it wrote to stderr:\n{stderr}"),
        (None, Some(stdout)) => format!("{ended}; it wrote:\n{stdout}"),
        (None, None) => format!("{ended}, without output"),
    }
}

/// The error of a program that was cut off.
pub(super) fn cut_off(program: &str, finished: &ProcessOutput, cx: &ToolContext) -> String {
    let mut said = format!("`{program}` was stopped before it was done");
    for (output, captured) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        if let Some(written) = ending(captured, usize::MAX, cx) {
            said += &format!("; until then it wrote to {output}:\n{written}\n");
        }
    }
    said.truncate(said.trim_end().len());
    with_moved(said, &finished.moved)
}

/// An output as a model reads it; a line in brackets says what it does not show, and why that was not
/// kept where it should have been. It comes first, where no later cut removes it.
fn readable(captured: &CapturedOutput, not_kept: Option<&str>, cx: &ToolContext) -> String {
    let (mut shown, replaced) = text(captured, cx);
    shown.truncate(shown.trim_end_matches(['\n', '\r']).len());
    let mut notes = Vec::new();
    if captured.is_truncated() {
        let (head, total) = (captured.head().len(), captured.total());
        notes.push(match not_kept {
            Some(why) => format!("the first {head} of {total} bytes; not all was kept: {why}"),
            None => format!("the first {head} of {total} bytes"),
        });
    }
    if not_kept.is_some()
        && let Some(ending) = ending(captured, beyond(captured), cx)
    {
        shown += &format!("\n[…]\n{ending}");
    }
    if replaced {
        notes.push("bytes that are no UTF-8 are shown as \u{FFFD}".to_owned());
    }
    if !notes.is_empty() {
        shown = format!("[{}]\n{shown}", notes.join("; "));
    }
    shown
}

/// The head as text, and whether bytes of it had to be replaced. Where the cut went through a
/// character or a secret, what is left of it is dropped.
fn text(captured: &CapturedOutput, cx: &ToolContext) -> (String, bool) {
    let head = captured.head();
    let (text, replaced) = match str::from_utf8(head) {
        Ok(text) => (text.to_owned(), false),
        Err(error) if captured.is_truncated() && error.error_len().is_none() => {
            let whole = head.get(..error.valid_up_to()).unwrap_or_default();
            (String::from_utf8_lossy(whole).into_owned(), false)
        }
        Err(_) => (String::from_utf8_lossy(head).into_owned(), true),
    };
    if captured.is_truncated() { (cx.redacted_start(&text), replaced) } else { (text, replaced) }
}

/// How many bytes of an output its head does not have.
fn beyond(captured: &CapturedOutput) -> usize {
    let head = captured.head().len() as u64;
    usize::try_from(captured.total() - head).unwrap_or(usize::MAX)
}

/// The last characters of an output, of at most this number of bytes; none of a blank one.
fn ending(captured: &CapturedOutput, most: usize, cx: &ToolContext) -> Option<String> {
    let bytes = captured.last(most);
    let text = String::from_utf8_lossy(&bytes);
    let from_its_start = bytes.len() as u64 == captured.total();
    let text = if from_its_start {
        &*text
    } else {
        // The first word may be what is left of a secret.
        text.find(char::is_whitespace).and_then(|at| text.get(at..)).unwrap_or_default()
    };
    let text = cx.redacted(text);
    let text = text.trim();
    let cut = text.char_indices().rev().nth(SHOWN_CHARS - 1).map_or(0, |(at, _)| at);
    let shown = text.get(cut..).unwrap_or_default();
    match shown {
        "" if from_its_start => None,
        _ if cut == 0 && from_its_start => Some(shown.to_owned()),
        _ => Some(format!("…{shown}")),
    }
}
