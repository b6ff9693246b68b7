//! A rule as data: its conditions and its answer.

use std::{fmt, sync::Arc, time::Duration};

use regex::Regex;
use serde_json::Value;

use super::template::Template;

/// One rule. An absent condition is true.
#[derive(Debug)]
pub(super) struct Rule {
    /// `rule 3`, or `rule "its name"`.
    pub(super) label: String,
    /// The line in which it begins, from 1.
    pub(super) line: usize,
    /// All of these are found in the last user text.
    pub(super) user: Vec<Regex>,
    /// The rule applies if these named groups do not all contain the same text.
    pub(super) differ: Vec<Arc<str>>,
    /// The number of this answer since the last user message, from 1.
    pub(super) step: Option<usize>,
    /// All of these are offered.
    pub(super) offered: Vec<Arc<str>>,
    /// None of these is offered.
    pub(super) not_offered: Vec<Arc<str>>,
    /// All of these have a result since the last user message.
    pub(super) called: Vec<Arc<str>>,
    /// None of these has a result since the last user message.
    pub(super) not_called: Vec<Arc<str>>,
    /// Whether the request lets the model call tools.
    pub(super) tools_allowed: Option<bool>,
    /// All of these are true.
    pub(super) when: Vec<Condition>,
    /// The delay of the answer.
    pub(super) delay: Duration,
    /// The text of the answer.
    pub(super) text: Option<Template>,
    /// The calls of the answer.
    pub(super) calls: Vec<Call>,
    /// The stated usage of the answer.
    pub(super) usage: StatedUsage,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (line {})", self.label, self.line)
    }
}

/// A condition on results since the last user message.
#[derive(Debug)]
pub(super) enum Condition {
    /// Some tool's last result is an error.
    AnyError,
    /// A condition on the last result of one tool.
    Result(ResultCondition),
}

/// A condition on the last result of a tool.
#[derive(Debug)]
pub(super) struct ResultCondition {
    pub(super) tool: String,
    /// A JSON pointer to a part of the result; absent for the whole result.
    pub(super) pointer: Option<String>,
    pub(super) check: Check,
}

/// The check of a result, or of a part of it.
#[derive(Debug)]
pub(super) enum Check {
    Exists(bool),
    Equals(Value),
    Matches(Regex),
    Contains(String),
    MinItems(u64),
    MaxItems(u64),
    IsError(bool),
}

/// A call that a rule makes.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) even_if_not_offered: bool,
    pub(super) arguments: CallArguments,
}

/// The arguments of a call.
#[derive(Debug)]
pub(super) enum CallArguments {
    /// Data: an object.
    Args(Arg),
    /// Text as a model might write it, not necessarily JSON.
    Raw(Template),
}

/// A value in a call's arguments, with templates in it.
#[derive(Debug)]
pub(super) enum Arg {
    Constant(Value),
    Template(Template),
    List(Vec<Arg>),
    Table(Vec<(String, Arg)>),
}

/// The usage that a rule states; the rest is estimated.
#[derive(Debug, Default)]
pub(super) struct StatedUsage {
    pub(super) input_tokens: Option<u64>,
    pub(super) cached_input_tokens: Option<u64>,
    pub(super) cache_write_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cost_usd: Option<f64>,
}
