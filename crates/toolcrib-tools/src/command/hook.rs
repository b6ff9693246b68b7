//! Programs that decide on calls, in the way of coding agents: the call as JSON on stdin, and the
//! decision as exit code or as JSON on stdout.

use std::time::Duration;

use serde_json::Value;
use thiserror::Error;
use tokio::time::timeout;
use toolcrib_capabilities::process::{CapturedOutput, ProcessEnd, ProcessOutput, RunSpec};
use toolcrib_core::{
    __internal::PlainJson, CancellationToken, ToolContext, ToolContextParts, ToolError,
};

use super::{Body, CheckedCommand, DeclaredCommand, Stdin, arguments, prepare};
use crate::{Declaration, FieldError, ProgramPlace, ToolErrors};

/// The exit code of a denial.
const DENIED: i32 = 2;

/// The maximum length of a reason, in characters.
const REASON_CHARS: usize = 1_000;

/// The number of bytes of stderr in an error.
const SHOWN_BYTES: usize = 1_000;

/// A program that decides on calls. Each call starts it once; its child processes end with it.
pub struct HookProgram {
    body: Body,
    timeout: Duration,
}

/// The decision of a [`HookProgram`].
#[derive(Debug, Clone, PartialEq)]
pub enum HookVerdict {
    /// The call may be made.
    Allow,
    /// The call is denied; with the reason for the model.
    Deny(String),
    /// The call is made with these arguments.
    Rewrite(Value),
}

/// The reason why a [`HookProgram`] gave no decision.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct HookError(String);

impl DeclaredCommand {
    /// The program as a hook.
    ///
    /// # Errors
    /// All errors in it, not only the first.
    pub fn build_hook(
        &self,
        declaration: Declaration,
        place: ProgramPlace,
        timeout: Duration,
    ) -> Result<HookProgram, ToolErrors> {
        let mut spec = self.complete(declaration, place);
        spec.stdin = Stdin::Json;
        let CheckedCommand { declaration, body, capabilities, mut found } = prepare(spec, false);
        for name in &capabilities.secrets {
            let message = format!("a hook reads no secrets, and its environment names `{name}`");
            let help = Some(format!("pass the variable on: inherit_env = [\"{name}\"]"));
            let (field, at) = ("/env".to_owned(), declaration.source.value("/env").cloned());
            found.errors.push(FieldError { field, offset: None, at, message, help });
        }
        found.or_made(declaration.name, HookProgram { body, timeout })
    }
}

impl HookProgram {
    /// Runs the program for a call.
    ///
    /// # Errors
    /// [`HookError`] if it gave no decision in time, or one that cannot be read.
    pub async fn decide(&self, input: &Value) -> Result<HookVerdict, HookError> {
        let cancellation = CancellationToken::new();
        let context = ToolContext::from(ToolContextParts {
            cancellation: cancellation.clone(),
            ..ToolContextParts::detached()
        });
        let not_run = |error: String| HookError(format!("it could not be run: {error}"));
        let args = arguments::fill(&self.body.args, &Value::Null);
        let args = args.map_err(|error| not_run(told(error)))?;
        let process = self.body.process(args, &context).await;
        let spec = RunSpec {
            process: process.map_err(|error| not_run(told(error)))?,
            stdin: Some(format!("{input}\n").into_bytes()),
            max_output_bytes: self.body.max_output_bytes,
            whole_stdout: None,
        };
        let running = self.body.processes.run(spec, &cancellation, |_, _| {});
        match timeout(self.timeout, running).await {
            Ok(finished) => verdict(&finished.map_err(|error| not_run(error.to_string()))?),
            Err(_) => Err(HookError(format!("it gave no decision within {:?}", self.timeout))),
        }
    }
}

fn verdict(finished: &ProcessOutput) -> Result<HookVerdict, HookError> {
    match finished.ended {
        ProcessEnd::Code(0) => answer(&finished.stdout),
        ProcessEnd::Code(DENIED) => Ok(HookVerdict::Deny(reason(&text(finished.stderr.head())))),
        ended => {
            let stderr = text(&finished.stderr.last(SHOWN_BYTES));
            Err(HookError(format!(
                "it ended with {ended}; a hook ends with 0, or with {DENIED} to deny: {stderr}"
            )))
        }
    }
}

fn answer(stdout: &CapturedOutput) -> Result<HookVerdict, HookError> {
    if stdout.is_truncated() {
        let (most, total) = (stdout.head().len(), stdout.total());
        return Err(HookError(format!(
            "its stdout has {total} bytes, and at most {most} are read; raise `max_output_bytes`"
        )));
    }
    let written = stdout.head().trim_ascii();
    if written.is_empty() {
        return Ok(HookVerdict::Allow);
    }
    // A key that occurs twice would be two decisions.
    let Ok(Value::Object(mut answer)) = PlainJson::read(written) else {
        let text = "its stdout is not a decision such as {\"decision\":\"allow\"}";
        return Err(HookError(text.to_owned()));
    };
    let decision = answer.remove("decision");
    let (args, why) = (answer.remove("args"), answer.remove("reason"));
    if let Some(key) = answer.keys().next() {
        let key: String = key.chars().take(64).collect();
        let text = format!("its decision has an unknown key `{}`", key.escape_debug());
        return Err(HookError(text));
    }
    let decision = decision.as_ref().and_then(Value::as_str).unwrap_or_default();
    match (decision, args, why) {
        ("allow", None, _) => Ok(HookVerdict::Allow),
        ("deny", None, None) => Ok(HookVerdict::Deny(reason(""))),
        ("deny", None, Some(Value::String(why))) => Ok(HookVerdict::Deny(reason(&why))),
        ("rewrite", Some(args @ Value::Object(_)), _) => Ok(HookVerdict::Rewrite(args)),
        _ => Err(HookError(
            "its decision is none of allow, deny with a text `reason`, and rewrite with an object \
             `args`"
                .to_owned(),
        )),
    }
}

/// A reason that a model may read.
fn reason(text: &str) -> String {
    let shown = |c: &char| !c.is_control() || *c == '\n';
    let text: String = text.trim().chars().filter(shown).take(REASON_CHARS).collect();
    match text.is_empty() {
        true => "a check of this project denies the call".to_owned(),
        false => text,
    }
}

/// For the operator.
fn told(error: ToolError) -> String {
    error.cause_chain().unwrap_or(error.message)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
