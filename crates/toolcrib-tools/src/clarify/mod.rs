//! A tool with which a model asks the person that it works for.
//!
//! The question goes the way of approvals: to the turn's
//! [approver](toolcrib_core::Approver::clarify), otherwise to the client that answers the questions of
//! the turn. Where no person can answer, the call fails at once.

mod table;

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_core::{
    Annotations, Capabilities, Clarification, ClarificationOutcome, ErrorCode, Tool, ToolContext,
    ToolError, ToolOutput, harmless,
};

pub(crate) use self::table::KIND;
use crate::{
    Declaration, ToolErrors,
    arguments::text,
    declaration::{closed, prefixed},
    findings::Findings,
};

/// The usual name of the tool.
pub const CLARIFY: &str = "clarify";

/// The label of the toolset, unless a project gives it another one.
pub const TOOLSET: &str = "person";

const QUESTION: &str = "question";
const OPTIONS: &str = "options";

/// The most characters of a question, and of a suggested answer.
const MOST_CHARS: usize = 2_000;
const MOST_OPTION_CHARS: usize = 200;

/// The most suggested answers.
const MOST_OPTIONS: usize = 9;

/// How long the person may take, unless the declaration says otherwise.
const ANSWERS_WITHIN: Duration = Duration::from_mins(15);

/// The declaration of the tool: its name, description and parameters, and all else as in `base`, whose
/// timeout is the time for an answer.
pub fn declaration(base: &Declaration, prefix: Option<&str>) -> Declaration {
    let does = "Asks the user a question and waits for the answer. Use it only if the work cannot go \
        on, or would go wrong, without the answer.";
    let question = json!({
        "type": "string", "minLength": 1, "maxLength": MOST_CHARS,
        "description": "One question, with all that the user needs to answer it.",
    });
    let option = json!({ "type": "string", "minLength": 1, "maxLength": MOST_OPTION_CHARS });
    let options = json!({
        "type": "array", "maxItems": MOST_OPTIONS, "items": option,
        "description": "Suggested answers, if there are some; the user may give another one.",
    });
    Declaration {
        name: prefixed(prefix, CLARIFY),
        description: base.described(does),
        annotations: Annotations { read_only: true, destructive: false, idempotent: false },
        input_schema: closed((vec![QUESTION], vec![(QUESTION, question), (OPTIONS, options)])),
        untrusted: false,
        ..base.in_toolset(TOOLSET)
    }
}

/// Makes the tool, of its [`declaration`].
///
/// # Errors
/// All that is wrong with it.
pub fn build(declaration: Declaration) -> Result<Tool, ToolErrors> {
    let found = Findings::of(&declaration).finish();
    let name = declaration.name.clone();
    let within = declaration.timeout.unwrap_or(ANSWERS_WITHIN);
    let builder = declaration.into_builder().capabilities(Capabilities::none().person());
    let made = builder.handler(move |args: Value, cx| call(args, cx, within));
    found.or_tool(name, made)
}

async fn call(args: Value, cx: ToolContext, within: Duration) -> Result<ToolOutput, ToolError> {
    let options = args.get(OPTIONS).and_then(Value::as_array);
    let options = options.into_iter().flatten().filter_map(Value::as_str);
    let question = text(&args, QUESTION).unwrap_or_default();
    let question = Clarification::new(&*question).options(options);
    let asked = timeout(within, cx.clarifier()?.clarify(question));
    let clarified = tokio::select! {
        biased;
        () = cx.cancellation().cancelled() => {
            return Err(ToolError::new(ErrorCode::Cancelled, "the question was withdrawn"));
        }
        clarified = asked => clarified,
    };
    match clarified {
        Ok(ClarificationOutcome::Answered(answer)) => {
            let answer: String = harmless(&answer).chars().take(MOST_CHARS * 5).collect();
            Ok(ToolOutput::text(format!("The user answers: {answer}")))
        }
        Ok(ClarificationOutcome::NoPerson(reason)) => {
            let told = "no person can be asked here; go on with what you know, and say what you \
                assume, or end with the question as your answer";
            Err(ToolError::new(ErrorCode::NotAvailable, told).caused_by(&*reason))
        }
        Ok(_) => {
            let told = "the user does not answer; do not ask again; go on with what you know, and say \
                what you assume";
            Err(ToolError::new(ErrorCode::Denied, told))
        }
        Err(_) => {
            let told = format!(
                "no answer within {within:?}; go on with what you know, and say what you assume"
            );
            Err(ToolError::new(ErrorCode::Timeout, told))
        }
    }
}
