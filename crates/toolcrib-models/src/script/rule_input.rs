//! The input of a scripted model.

use std::fmt;

use indexmap::IndexMap;
use serde_json::Value;
use toolcrib_core::{Message, ModelRequest, ToolChoice, ToolName, unfence};

/// The input of rules. Created once per request.
pub(super) struct RuleInput<'r> {
    pub(super) request: &'r ModelRequest,
    /// The last user text; empty if there is none.
    pub(super) user: &'r str,
    /// The last result of each tool since the last user message, by the name that was called, in
    /// the order of the calls.
    pub(super) results: IndexMap<&'r str, LastResult>,
    /// The number of the requested answer since the last user message, from 1.
    pub(super) step: usize,
    /// The number of calls in the conversation so far.
    pub(super) calls: usize,
}

/// A tool's last result, without its fence.
pub(super) struct LastResult {
    /// The model's text. A truncation marker after the fence is included.
    pub(super) text: String,
    /// The JSON inside the fence; a string of the text if it is not JSON.
    pub(super) data: Value,
    pub(super) is_error: bool,
}

impl<'r> RuleInput<'r> {
    pub(super) fn of(request: &'r ModelRequest) -> Self {
        let mut user = "";
        let mut step = 1;
        let mut results = IndexMap::new();
        // From the end: the first one found for a tool is its last result.
        for message in request.messages.iter().rev() {
            match message {
                // Notices of the tool layer are not the user's.
                message if message.as_notice().is_some() => {}
                Message::User { text, .. } => {
                    user = text;
                    break;
                }
                Message::Tool { name, text, is_error, .. } => {
                    results.entry(&**name).or_insert_with(|| LastResult::new(text, *is_error));
                }
                Message::Assistant { .. } => step += 1,
                _ => {}
            }
        }
        results.reverse();
        let calls = request.messages.iter().map(|message| match message {
            Message::Assistant { calls, .. } => calls.len(),
            _ => 0,
        });
        Self { request, user, results, step, calls: calls.sum() }
    }

    /// The first of the last results that is an error, in the order of the calls.
    pub(super) fn first_error(&self) -> Option<(&'r str, &LastResult)> {
        let mut results = self.results.iter().map(|(tool, result)| (*tool, result));
        results.find(|(_, result)| result.is_error)
    }

    pub(super) fn is_offered(&self, tool: &str) -> bool {
        self.request.menu.get(tool).is_some()
    }

    pub(super) fn offered(&self) -> Vec<&str> {
        self.request.menu.names().map(ToolName::as_str).collect()
    }

    pub(super) fn tools_allowed(&self) -> bool {
        self.request.tool_choice != ToolChoice::None
    }
}

impl LastResult {
    fn new(text: &str, is_error: bool) -> Self {
        let (inside, after) = unfence(text);
        let text = match after {
            "" => inside.to_owned(),
            after => format!("{inside}\n{after}"),
        };
        let data = serde_json::from_str(inside).unwrap_or_else(|_| text.as_str().into());
        Self { text, data, is_error }
    }
}

impl fmt::Display for RuleInput<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let offered = self.offered();
        let offered = if offered.is_empty() { "nothing".to_owned() } else { offered.join(", ") };
        write!(f, "\n  user: {}", shown(self.user))?;
        write!(f, "\n  step: {}", self.step)?;
        write!(f, "\n  offered: {offered}")?;
        write!(f, "\n  tools allowed: {}", self.tools_allowed())?;
        if self.results.is_empty() {
            write!(f, "\n  no results since the last user message")?;
        }
        for (tool, result) in &self.results {
            let error = if result.is_error { " (error)" } else { "" };
            write!(f, "\n  result of `{}`{error}: {}", tool.escape_debug(), shown(&result.text))?;
        }
        Ok(())
    }
}

/// A text for messages to the operator: its first 200 characters in quotes. Unprintable characters
/// are escaped, because the text may come from anywhere.
pub(super) fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut shown = String::from("\"");
    for character in text.chars().take(LONGEST) {
        match character {
            // Escaped quotes would make JSON hard to read.
            '"' | '\'' | '\\' => shown.push(character),
            other => shown.extend(other.escape_debug()),
        }
    }
    shown.push('"');
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}
