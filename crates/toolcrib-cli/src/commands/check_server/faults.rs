//! The kinds of faults in the messages of a server.

use crate::output::{ServerFinding, ServerSeverity};

/// A kind of fault. It is reported once, with its first example.
#[derive(Debug, PartialEq)]
pub(super) struct FaultKind {
    rule: &'static str,
    severity: ServerSeverity,
    what: &'static str,
    help: &'static str,
}

impl FaultKind {
    const fn error(rule: &'static str, what: &'static str, help: &'static str) -> Self {
        Self { rule, severity: ServerSeverity::Error, what, help }
    }

    const fn warning(rule: &'static str, what: &'static str, help: &'static str) -> Self {
        Self { rule, severity: ServerSeverity::Warning, what, help }
    }

    pub(super) fn finding(&self, count: usize, first: &str) -> ServerFinding {
        let Self { rule, severity, what, help } = self;
        let message = match (count, first) {
            (_, "") => (*what).to_owned(),
            (1, first) => format!("{what}: {first}"),
            (count, first) => format!("{what}, {count} times; the first: {first}"),
        };
        // The example may contain a time or a process id.
        ServerFinding::new(*severity, rule, message, help).keyed(what)
    }
}

const TO_STDERR: &str =
    "write logs to standard error; standard output is only for messages, each on one line";
const ONE_LINE: &str =
    "write each message as one line of JSON in UTF-8, and end it with a line feed";
const SHAPE: &str = "send `jsonrpc: \"2.0\"` and either `method`, or the `id` of the request with \
                     `result` or with `error`";
const ANSWER: &str = "answer each request once, with the `id` that it has, and of the same type; answer no notification";

pub(super) const STDOUT_TEXT: FaultKind =
    FaultKind::error("stdout-text", "it writes text to standard output", TO_STDERR);
pub(super) const NOT_JSON: FaultKind = FaultKind::error(
    "invalid-json",
    "a response contains text in place of a message",
    "respond with one JSON-RPC message, or with a stream of events that are such messages",
);
pub(super) const BYTE_ORDER_MARK: FaultKind = FaultKind::error(
    "byte-order-mark",
    "a message begins with a byte order mark",
    "write UTF-8 without a byte order mark; JSON does not permit one",
);
pub(super) const NOT_UTF8: FaultKind =
    FaultKind::error("invalid-json", "a message is not UTF-8", ONE_LINE);
pub(super) const SEVERAL_LINES: FaultKind =
    FaultKind::error("invalid-json", "a message is spread over several lines", ONE_LINE);
pub(super) const JOINED: FaultKind =
    FaultKind::error("invalid-json", "a line contains more than one message", ONE_LINE);
pub(super) const NOT_A_NUMBER: FaultKind = FaultKind::error(
    "invalid-json",
    "a message contains `NaN` or `Infinity`, which is not JSON",
    "send `null` or a text instead; in Python, `json.dumps(…, allow_nan=False)` finds them",
);
pub(super) const INVALID_JSON: FaultKind =
    FaultKind::error("invalid-json", "a message is not valid JSON", ONE_LINE);
pub(super) const BATCH: FaultKind = FaultKind::error(
    "batch",
    "it sends several messages as a list",
    "send each message by itself; only version 2025-03-26 of the protocol has batches",
);
pub(super) const NO_VERSION: FaultKind =
    FaultKind::error("invalid-message", "a message lacks `jsonrpc: \"2.0\"`", SHAPE);
pub(super) const UNCLEAR_KIND: FaultKind = FaultKind::error(
    "invalid-message",
    "a message is neither a request, nor a notification, nor a response",
    SHAPE,
);
pub(super) const UNUSABLE_ID: FaultKind = FaultKind::error(
    "invalid-message",
    "the `id` of a request is neither a text nor a number",
    "give each request a text or an integer, and a notification no `id`",
);
pub(super) const INVALID_ERROR: FaultKind = FaultKind::error(
    "invalid-message",
    "an error lacks an integer as `code` or a text as `message`",
    "send `error: {\"code\": -32603, \"message\": \"…\"}`",
);
pub(super) const INVALID_RESULT: FaultKind = FaultKind::error(
    "invalid-message",
    "the `result` of a response is not an object",
    "send an object as `result`, also an empty one",
);
pub(super) const NO_ID: FaultKind =
    FaultKind::error("unknown-id", "a response lacks the `id` of its request", ANSWER);
pub(super) const TEXT_ID: FaultKind =
    FaultKind::error("unknown-id", "a response has the number of its request as a text", ANSWER);
pub(super) const UNKNOWN_ID: FaultKind =
    FaultKind::error("unknown-id", "a response has the `id` of no request", ANSWER);
pub(super) const ANSWERED_TWICE: FaultKind =
    FaultKind::error("answered-twice", "a request has more than one response", ANSWER);
pub(super) const EARLY_REQUEST: FaultKind = FaultKind::warning(
    "early-request",
    "it sends a request before `notifications/initialized`",
    "wait for the notification; only `ping` is permitted before",
);
pub(super) const UNDECLARED_REQUEST: FaultKind = FaultKind::error(
    "undeclared-request",
    "it sends a request that the client has not declared as a capability",
    "look for `sampling`, `elicitation` or `roots` in the client's capabilities first",
);
pub(super) const UNDECLARED_NOTIFICATION: FaultKind = FaultKind::warning(
    "undeclared-notification",
    "it sends a notification of a capability that it does not declare",
    "declare `logging`, `listChanged` or `subscribe` in the capabilities; clients ignore it otherwise",
);
pub(super) const KEEPS_RUNNING: FaultKind = FaultKind::warning(
    "keeps-running",
    "it does not end when its standard input is closed",
    "end at the end of standard input; a client that crashes leaves the process behind otherwise",
);
