//! The parts that commands share: approver, questions, conversations, stored runs, lists of servers.

pub(crate) mod agent;
pub(crate) mod approver;
pub(crate) mod attachments;
pub(crate) mod budget;
pub(crate) mod call_arguments;
pub(crate) mod candidate;
pub(crate) mod catalog;
pub(crate) mod conversation;
pub(crate) mod default_answers;
pub(crate) mod gateway_calls;
pub(crate) mod iteration;
pub(crate) mod json_lines;
pub(crate) mod questions;
pub(crate) mod recording;
pub(crate) mod run_session;
pub(crate) mod secret_value;
pub(crate) mod server_words;
pub(crate) mod servers;
pub(crate) mod stored;
pub(crate) mod stored_trace;
