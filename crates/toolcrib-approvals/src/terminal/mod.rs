//! Approval by the person at the terminal.

mod fields;
mod input;
mod prompt;

use std::{any::Any, collections::HashSet, fmt, io, io::IsTerminal as _, sync::Arc};

use parking_lot::Mutex;
use tokio::sync;
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, BoxFuture, Clarification, ClarificationOutcome, Digest,
};

pub use self::fields::shown_arguments;
use crate::binding::scope_of;

const NO_TERMINAL: &str = "standard input and standard error are not a terminal";

/// A guard that ends the pause of other output when it is dropped.
type Pause = Box<dyn Any + Send>;

/// An [`Approver`] that asks at the terminal: it prints the whole call to standard error and reads
/// the answer from standard input. One question at a time.
///
/// The person may permit the call once, or the same tool with exactly the same arguments for as
/// long as this approver exists, or refuse. Everything else than `y`, `yes` and `r` refuses, as does
/// the end of the input. Text that was typed before the question does not answer it. Without a
/// terminal on both streams each call is refused.
///
/// Clones share the calls that were permitted for the run.
#[derive(Clone)]
pub struct TerminalApprover(Arc<Shared>);

struct Shared {
    /// Stops other output while a question is open.
    pause: Option<Box<dyn Fn() -> Pause + Send + Sync>>,
    /// One question at a time.
    asking: sync::Mutex<()>,
    /// The calls that the person permitted for the run.
    permitted: Mutex<HashSet<Digest>>,
}

/// The terminal for other questions than approvals, from [`TerminalApprover::prompts`]. Other output
/// and approvals wait until it is dropped.
pub struct TerminalPrompts<'a> {
    _quiet: Option<Pause>,
    _one: sync::MutexGuard<'a, ()>,
}

impl TerminalPrompts<'_> {
    /// Prints a question, and reads one line; `None` at the end of the input. Foreign text in the
    /// question must not control the terminal. Dropping the future ends the question.
    ///
    /// # Errors
    /// The system's error if the terminal cannot be read or written.
    pub async fn line(&mut self, question: String) -> io::Result<Option<String>> {
        input::ask(question).await
    }
}

impl fmt::Debug for TerminalPrompts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TerminalPrompts")
    }
}

/// The answer of the person at the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TerminalAnswer {
    /// The call may run, now or as a repetition of one that was permitted for the run.
    Yes,
    /// The call may not run.
    No,
    /// There is no terminal.
    NoTerminal,
}

impl TerminalApprover {
    /// An approver at the process's terminal.
    pub fn new() -> Self {
        Self::with(None)
    }

    /// The same for a program that writes to the terminal by itself, such as a progress indicator:
    /// `pause` is called before a question, and its result is dropped after the answer. In between
    /// the program must neither write to the terminal nor read from it, and the terminal must be in
    /// its usual mode, in which it returns whole lines.
    pub fn pausing<P: Any + Send>(pause: impl Fn() -> P + Send + Sync + 'static) -> Self {
        Self::with(Some(Box::new(move || Box::new(pause()))))
    }

    fn with(pause: Option<Box<dyn Fn() -> Pause + Send + Sync>>) -> Self {
        let (asking, permitted) = (sync::Mutex::default(), Mutex::default());
        Self(Arc::new(Shared { pause, asking, permitted }))
    }

    /// Whether a person can be asked: standard input and standard error are a terminal.
    pub fn is_available() -> bool {
        io::stdin().is_terminal() && io::stderr().is_terminal()
    }

    /// The terminal for other questions; `None` without a terminal.
    pub async fn prompts(&self) -> Option<TerminalPrompts<'_>> {
        if !Self::is_available() {
            return None;
        }
        let one = self.0.asking.lock().await;
        let quiet = self.0.pause.as_ref().map(|pause| pause());
        Some(TerminalPrompts { _quiet: quiet, _one: one })
    }

    /// Asks. Dropping the future ends the question.
    ///
    /// # Errors
    /// The system's error if the terminal cannot be read or written.
    pub async fn ask(&self, request: &ApprovalRequest<'_>) -> io::Result<TerminalAnswer> {
        // A call that cannot be shown as it is cannot be judged.
        let Ok(arguments) = request.arguments else { return Ok(TerminalAnswer::No) };
        if !Self::is_available() {
            return Ok(TerminalAnswer::NoTerminal);
        }
        let scope = scope_of(request, arguments);
        let _one = self.0.asking.lock().await;
        if self.0.permitted.lock().contains(&scope) {
            return Ok(TerminalAnswer::Yes);
        }
        let _quiet = self.0.pause.as_ref().map(|pause| pause());
        let line = input::ask(prompt::prompt(request, arguments)).await?;
        let answer = line.unwrap_or_default().trim().to_ascii_lowercase();
        if answer == "r" {
            self.0.permitted.lock().insert(scope);
        }
        Ok(match answer.as_str() {
            "y" | "yes" | "r" => TerminalAnswer::Yes,
            _ => TerminalAnswer::No,
        })
    }
}

impl Default for TerminalApprover {
    fn default() -> Self {
        Self::new()
    }
}

toolcrib_core::__internal::debug_fields!(TerminalApprover);

impl Approver for TerminalApprover {
    fn approve<'a>(&'a self, request: ApprovalRequest<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(async move {
            let answer = self.ask(&request).await;
            decision(&request, answer)
        })
    }

    /// Prints the question and reads one line: an answer, or the number of a suggested one. An empty
    /// line declines.
    fn clarify<'a>(&'a self, question: &'a Clarification) -> BoxFuture<'a, ClarificationOutcome> {
        Box::pin(async move {
            let Some(mut prompts) = self.prompts().await else {
                return ClarificationOutcome::NoPerson(NO_TERMINAL.into());
            };
            match prompts.line(prompt::question(question)).await {
                Ok(line) => answer(question, line.unwrap_or_default().trim()),
                Err(error) => {
                    ClarificationOutcome::NoPerson(format!("the terminal failed: {error}").into())
                }
            }
        })
    }
}

/// The answer that a line means.
fn answer(question: &Clarification, line: &str) -> ClarificationOutcome {
    if line.is_empty() {
        return ClarificationOutcome::Declined;
    }
    let position = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    let option = position.and_then(|position| question.options.get(position));
    ClarificationOutcome::Answered(option.map_or_else(|| line.into(), Arc::clone))
}

/// The decision that follows from an answer.
fn decision(request: &ApprovalRequest<'_>, answer: io::Result<TerminalAnswer>) -> Approval {
    let tool = request.tool.name();
    match (answer, request.arguments) {
        (_, Err(error)) => Approval::Refused(format!("`{tool}` was not called: {error}")),
        (Ok(TerminalAnswer::Yes), _) => Approval::Approved,
        (Ok(TerminalAnswer::No), _) => Approval::Refused(format!(
            "the user refused this call of `{tool}`; do not repeat it, ask what they want instead"
        )),
        (Ok(TerminalAnswer::NoTerminal), _) => Approval::Failed {
            message: format!("calling `{tool}` needs approval, and no person can be asked"),
            cause: NO_TERMINAL.to_owned(),
        },
        (Err(error), _) => Approval::Failed {
            message: format!("calling `{tool}` needs approval, and no person could be asked"),
            cause: format!("the terminal failed: {error}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_answer_a_number_or_nothing() {
        let question = Clarification::new("Which?").options(["red", "blue"]);
        let answered = |line| answer(&question, line);
        assert_eq!(answered("2"), ClarificationOutcome::Answered("blue".into()));
        assert_eq!(answered("3"), ClarificationOutcome::Answered("3".into()));
        assert_eq!(answered("0"), ClarificationOutcome::Answered("0".into()));
        assert_eq!(answered("green"), ClarificationOutcome::Answered("green".into()));
        assert_eq!(answered(""), ClarificationOutcome::Declined);
    }
}
