//! Approval by the person at the terminal.

mod bounds;
mod difference;
mod fields;
mod input;
mod prompt;

use std::{
    any::Any,
    collections::HashSet,
    fmt, io,
    io::{IsTerminal as _, Write as _},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{self, Notify},
    time::timeout,
};
use toolcrib_core::{
    Approval, ApprovalRequest, Approver, BoxFuture, CallPreview, Clarification,
    ClarificationOutcome, Digest, StoredArguments,
};

use self::bounds::{Bounds, Permission};
pub use self::fields::shown_arguments;
use crate::binding::{scope_of, tool_scope_of};

/// How long a question waits for the next of the other calls that the model makes at the same time.
const NEXT_CALL: Duration = Duration::from_millis(300);

const NO_TERMINAL: &str = "standard input and standard error are not a terminal";

/// A guard that ends the pause of other output when it is dropped.
type Pause = Box<dyn Any + Send>;

/// An [`Approver`] that asks at the terminal: it prints the whole call to standard error and reads
/// the answer from standard input. One question at a time; calls of one tool that the model makes at
/// the same time are one question, which shows all of them.
///
/// The person may permit the calls once, or the same tool with exactly the same arguments in the same
/// run, or the same tool within bounds (arguments, count, time) for as long
/// as this approver exists in the same conversation, or refuse. Everything else than `y`, `yes`, `r`,
/// `a` and numbers of calls refuses, as does the end of the input. Text that was typed before the
/// question does not answer it. Without a terminal on both streams each call is refused.
///
/// Clones share what was permitted.
#[derive(Clone)]
pub struct TerminalApprover(Arc<Shared>);

struct Shared {
    /// Stops other output while a question is open.
    pause: Option<Box<dyn Fn() -> Pause + Send + Sync>>,
    /// One question at a time.
    asking: sync::Mutex<()>,
    /// The calls that the person permitted for a run, by its id.
    permitted: Mutex<HashSet<(Arc<str>, Digest)>>,
    /// The permissions of the person for the session.
    permissions: Mutex<Vec<Permission>>,
    /// The calls without an answer, and those whose answer is not read yet.
    waiting: Mutex<Vec<WaitingCall>>,
    /// Another call waits.
    arrived: Notify,
}

/// A call that waits for an answer.
struct WaitingCall {
    id: u64,
    /// Its position among the calls that the model makes at the same time.
    position: usize,
    /// Tool, identity and conversation.
    of: Digest,
    /// The call's own scope.
    scope: Digest,
    shown: ShownCall,
    answer: Option<TerminalAnswer>,
}

/// The part of a call that a person sees.
#[derive(Clone)]
struct ShownCall {
    arguments: StoredArguments,
    preview: Option<CallPreview>,
}

/// Removes a call that no longer waits.
struct Registered<'a> {
    shared: &'a Shared,
    id: u64,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.shared.waiting.lock().retain(|call| call.id != self.id);
    }
}

impl Registered<'_> {
    /// The answer, once another question was about this call too.
    fn answer(&self) -> Option<TerminalAnswer> {
        let waiting = self.shared.waiting.lock();
        waiting.iter().find(|call| call.id == self.id).and_then(|call| call.answer)
    }
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
        Self(Arc::new(Shared {
            pause,
            asking: sync::Mutex::default(),
            permitted: Mutex::default(),
            permissions: Mutex::default(),
            waiting: Mutex::default(),
            arrived: Notify::new(),
        }))
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

    /// Asks the person at the terminal. Dropping the future ends the question.
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
        let registered = self.0.register(WaitingCall {
            id: 0,
            position: request.position,
            of: tool_scope_of(request),
            scope,
            shown: ShownCall { arguments: arguments.clone(), preview: request.preview.clone() },
            answer: None,
        });
        let _one = self.0.asking.lock().await;
        if let Some(answer) = registered.answer() {
            return Ok(answer);
        }
        let of_run = (Arc::clone(request.turn_id), scope);
        if self.0.permitted.lock().contains(&of_run) || self.uses_permission(request, arguments) {
            return Ok(TerminalAnswer::Yes);
        }
        self.0.gather(&registered, request.alike).await;
        let _quiet = self.0.pause.as_ref().map(|pause| pause());
        self.ask_about(request, &registered).await?;
        Ok(registered.answer().unwrap_or(TerminalAnswer::No))
    }

    /// Uses what the person has permitted for the session, and says so.
    fn uses_permission(&self, request: &ApprovalRequest<'_>, arguments: &StoredArguments) -> bool {
        let of = tool_scope_of(request);
        let left = {
            let mut permissions = self.0.permissions.lock();
            permissions.retain(Permission::is_open);
            permissions.iter_mut().find_map(|one| one.used_by(of, arguments))
        };
        let Some((calls, time)) = left else { return false };
        let _quiet = self.0.pause.as_ref().map(|pause| pause());
        let line = prompt::permitted(request.tool.name(), calls, time);
        let _ = anstream::stderr().write_all(line.as_bytes());
        true
    }

    /// Asks about all calls like one that wait now, and notes their answers.
    async fn ask_about(
        &self,
        request: &ApprovalRequest<'_>,
        registered: &Registered<'_>,
    ) -> io::Result<()> {
        loop {
            let calls = self.0.alike(registered);
            let shown: Vec<_> = calls.iter().map(|(_, _, shown)| shown).collect();
            let arguments: Vec<_> = shown.iter().map(|shown| &shown.arguments).collect();
            let line = input::ask(prompt::prompt(request, &shown, prompt::width())).await?;
            let answer = line.unwrap_or_default().trim().to_ascii_lowercase();
            let chosen = match answer.as_str() {
                "y" | "yes" => vec![true; calls.len()],
                "r" => {
                    let run = request.turn_id;
                    let scopes = calls.iter().map(|(_, scope, _)| (Arc::clone(run), *scope));
                    self.0.permitted.lock().extend(scopes);
                    vec![true; calls.len()]
                }
                "a" => match self.permitted_within(request, &arguments).await? {
                    Some(permission) => {
                        self.0.permissions.lock().push(permission);
                        vec![true; calls.len()]
                    }
                    None => continue,
                },
                other => numbers(other, calls.len()),
            };
            let ids = calls.iter().map(|(id, ..)| *id);
            self.0.answer(ids.zip(chosen));
            return Ok(());
        }
    }

    /// Lets the person set the bounds of a permission; `None` if they do not accept any.
    async fn permitted_within(
        &self,
        request: &ApprovalRequest<'_>,
        calls: &[&StoredArguments],
    ) -> io::Result<Option<Permission>> {
        let mut bounds = Bounds::of(calls);
        let mut problem = None;
        loop {
            let name = request.tool.name();
            let asked = prompt::bounds(name, &bounds, problem.as_deref(), prompt::width());
            let line = input::ask(asked).await?.unwrap_or_default();
            problem = match line.trim() {
                "" | "n" | "N" | "no" => return Ok(None),
                "y" | "Y" | "yes" => match bounds.accepted(tool_scope_of(request), calls) {
                    Some(permission) => return Ok(Some(permission)),
                    None => {
                        bounds = Bounds::of(calls);
                        Some("the calls that were asked about are not within these bounds".into())
                    }
                },
                change => bounds.change(change).err(),
            };
        }
    }
}

impl Shared {
    fn register(&self, mut call: WaitingCall) -> Registered<'_> {
        let mut waiting = self.waiting.lock();
        let id = waiting.iter().map(|call| call.id).max().unwrap_or_default() + 1;
        call.id = id;
        waiting.push(call);
        self.arrived.notify_one();
        Registered { shared: self, id }
    }

    /// Waits for the other calls that the model makes at the same time: until all are there, or none
    /// came for a while, as some may be decided otherwise.
    async fn gather(&self, registered: &Registered<'_>, alike: usize) {
        while self.alike(registered).len() < alike {
            if timeout(NEXT_CALL, self.arrived.notified()).await.is_err() {
                return;
            }
        }
    }

    /// The calls like a registered one that have no answer: id, scope, and what is shown of it.
    fn alike(&self, registered: &Registered<'_>) -> Vec<(u64, Digest, ShownCall)> {
        let waiting = self.waiting.lock();
        let of = waiting.iter().find(|call| call.id == registered.id).map(|call| call.of);
        let alike = waiting.iter().filter(|call| Some(call.of) == of && call.answer.is_none());
        let mut alike: Vec<_> = alike.collect();
        alike.sort_by_key(|call| call.position);
        alike.into_iter().map(|call| (call.id, call.scope, call.shown.clone())).collect()
    }

    fn answer(&self, answers: impl Iterator<Item = (u64, bool)>) {
        let mut waiting = self.waiting.lock();
        for (id, is_yes) in answers {
            if let Some(call) = waiting.iter_mut().find(|call| call.id == id) {
                let answer = if is_yes { TerminalAnswer::Yes } else { TerminalAnswer::No };
                call.answer = Some(answer);
            }
        }
    }
}

/// The calls that an answer names by their numbers, from 1; none if it is anything else.
fn numbers(answer: &str, calls: usize) -> Vec<bool> {
    let mut chosen = vec![false; calls];
    if calls == 1 {
        return chosen;
    }
    let words = answer.split(|c: char| c == ',' || c.is_whitespace()).filter(|w| !w.is_empty());
    for word in words {
        let number = word.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        match number.and_then(|number| chosen.get_mut(number)) {
            Some(one) => *one = true,
            None => return vec![false; calls],
        }
    }
    chosen
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
            match prompts.line(prompt::question(question, prompt::width())).await {
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
    fn numbers_choose_calls_and_anything_else_refuses_all() {
        assert_eq!(numbers("1 3", 3), [true, false, true]);
        assert_eq!(numbers("2,3", 3), [false, true, true]);
        for refused in ["", "n", "4", "0", "1 x", "yea"] {
            assert_eq!(numbers(refused, 3), [false; 3], "{refused}");
        }
        assert_eq!(numbers("1", 1), [false]);
    }

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
