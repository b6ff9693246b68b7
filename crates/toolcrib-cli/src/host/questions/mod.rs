//! Questions of MCP servers to the person at the terminal.

mod form;

use std::{collections::HashMap, io, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use toolcrib_approvals::{TerminalApprover, TerminalPrompts};
use toolcrib_core::EventKind;
use toolcrib_engine::{AnswerError, OpenQuestion, Questions, TurnOptions};

use self::form::Form;
use crate::{output, problem::Problem};

/// The limit of attempts to fill in a form.
const ATTEMPTS: usize = 3;

/// Lets the servers of a turn ask the person at the terminal. Without a terminal, servers learn that
/// there is no person to ask.
pub(crate) fn ask_at(terminal: &TerminalApprover, turn: &mut TurnOptions) -> Result<(), Problem> {
    if !TerminalApprover::is_available() {
        return Ok(());
    }
    let questions = Questions::new();
    turn.questions = Some(questions.clone());
    let terminal = terminal.clone();
    let asking = Mutex::<HashMap<Arc<str>, JoinHandle<()>>>::default();
    turn.events.on("question.*", move |event| match &event.kind {
        EventKind::QuestionAsked { id, .. } => {
            let open = questions.open().into_iter().find(|open| open.question.id == *id);
            let Some(open) = open else { return };
            let (questions, terminal) = (questions.clone(), terminal.clone());
            let asked = tokio::spawn(async move { ask(&questions, &terminal, &open).await });
            asking.lock().insert(Arc::clone(id), asked);
        }
        EventKind::QuestionClosed { id, .. } => {
            // It may have timed out, or its call may have ended.
            if let Some(asked) = asking.lock().remove(id) {
                asked.abort();
            }
        }
        _ => {}
    })?;
    Ok(())
}

/// The reply of the person.
enum Reply {
    Answer(Value),
    Declined,
}

async fn ask(questions: &Questions, terminal: &TerminalApprover, open: &OpenQuestion) {
    let id = &open.question.id;
    // A question that is closed meanwhile needs no reply.
    let _ = match replied(questions, terminal, open).await {
        Ok(Reply::Answer(answer)) => questions.answer(id, answer),
        Ok(Reply::Declined) => questions.reject(id, "the person declined"),
        Err(error) => questions.reject(id, format!("the terminal failed: {error}")),
    };
}

async fn replied(
    questions: &Questions,
    terminal: &TerminalApprover,
    open: &OpenQuestion,
) -> io::Result<Reply> {
    let payload = &open.question.payload;
    let text = |name: &str| payload.get(name).and_then(Value::as_str).unwrap_or_default();
    if text("kind") != "elicitation" {
        return Ok(Reply::Declined);
    }
    let Some(mut terminal) = terminal.prompts().await else { return Ok(Reply::Declined) };
    let (server, message) = (text("server"), text("message"));
    if text("mode") == "url" {
        let url = text("url");
        if !is_yes(terminal.line(output::url_asked(server, message, url)).await?) {
            return Ok(Reply::Declined);
        }
        if let Err(error) = open::that_detached(url) {
            output::question_note(&format!(
                "no browser was started ({error}); open the page yourself"
            ));
        }
        return Ok(Reply::Answer(json!({ "action": "accept" })));
    }
    let schema = payload.get("requested_schema").unwrap_or(&Value::Null);
    let form = match Form::read(schema) {
        Ok(form) => form,
        Err(problem) => {
            let server = output::asked_text(server);
            output::question_note(&format!("a form of MCP server {server} is declined: {problem}"));
            return Ok(Reply::Declined);
        }
    };
    let described: Vec<_> = form.fields().iter().map(form::Field::described).collect();
    if !is_yes(terminal.line(output::form_asked(server, message, &described)).await?) {
        return Ok(Reply::Declined);
    }
    // Notes would appear after the question: the terminal is paused.
    let mut note = String::new();
    for _ in 0..ATTEMPTS {
        let Some(content) = filled(&form, &mut terminal, note).await? else { break };
        let answer = json!({ "action": "accept", "content": content });
        match questions.answer(&open.question.id, answer) {
            Err(AnswerError::Invalid { problems, .. }) => {
                let lines = problems.iter().map(|problem| output::asked_text(problem));
                note = lines.map(|line| format!("  {line}\n")).collect();
            }
            // Answered, or closed meanwhile.
            _ => break,
        }
    }
    // Has no effect on a question that was answered.
    Ok(Reply::Answer(json!({ "action": "cancel" })))
}

/// The content of a form; `None` if the person ends the input. The note precedes the first field.
async fn filled(
    form: &Form,
    terminal: &mut TerminalPrompts<'_>,
    mut note: String,
) -> io::Result<Option<Value>> {
    let mut content = serde_json::Map::new();
    for field in form.fields() {
        let mut attempts = 0;
        loop {
            let prompt = std::mem::take(&mut note) + &field.prompt();
            let Some(line) = terminal.line(prompt).await? else { return Ok(None) };
            match field.parse(line.trim()) {
                Ok(Some(value)) => {
                    content.insert(field.name().to_owned(), value);
                    break;
                }
                Ok(None) => break,
                Err(problem) => note = format!("  {problem}\n"),
            }
            attempts += 1;
            if attempts == ATTEMPTS {
                return Ok(None);
            }
        }
    }
    Ok(Some(content.into()))
}

fn is_yes(line: Option<String>) -> bool {
    let answer = line.unwrap_or_default();
    ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str())
}
