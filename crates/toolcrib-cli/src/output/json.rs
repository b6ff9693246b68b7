//! The output of `--json`, one shape per command. A path that is not UTF-8 is printed lossily.

use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};
use toolcrib_agent::{EndReason, MenuSummary, ResultChars, RunError, RunOutcome};
use toolcrib_approvals::Review;
use toolcrib_core::{
    __internal::millis, CallPlan, ContentBlock, Digest, ErrorCode, ImageNotice, StopReason,
    ToolDefinition, ToolName, ToolResult, Usage, WithheldTool,
};
use toolcrib_engine::{__internal::is_data_note, Explanation, Iteration, Notice};
use toolcrib_project::{Diagnostic, Diagnostics, McpServer, Project, Severity};

use super::approvals::approval_json;

/// A run, including one that never began.
#[derive(Serialize)]
pub(crate) struct RunJson<'a> {
    answer: Option<&'a str>,
    /// The answer as data; absent without `--schema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a Value>,
    stopped: EndReason,
    error: Option<&'a RunError>,
    errors: Vec<&'a Diagnostic>,
    turn_id: Option<&'a str>,
    /// The id of the session; null if the run is not stored.
    session: Option<&'a str>,
    iterations: u32,
    tool_calls: Vec<CallJson<'a>>,
    result_chars: ResultChars,
    usage: Usage,
    menus: &'a [MenuSummary],
    duration_ms: u64,
    model: Option<&'a str>,
    stop: Option<StopReason>,
    /// The calls that wait for approval.
    approvals: Vec<Value>,
    /// The images that the model may not see.
    image_notices: &'a [ImageNotice],
}

impl<'a> RunJson<'a> {
    /// A run on a model.
    pub(crate) fn new(model: &'a str, session: Option<&'a str>, outcome: &'a RunOutcome) -> Self {
        Self {
            answer: outcome.answer.as_deref(),
            value: None,
            stopped: outcome.end_reason,
            error: outcome.error.as_ref(),
            errors: Vec::new(),
            turn_id: Some(&outcome.turn_id),
            session,
            iterations: outcome.iterations,
            tool_calls: outcome.tool_calls.iter().map(CallJson::from).collect(),
            result_chars: outcome.result_chars(),
            usage: outcome.usage,
            menus: &outcome.menus,
            duration_ms: millis(outcome.duration),
            model: Some(model),
            stop: outcome.stop,
            approvals: Vec::new(),
            image_notices: &outcome.image_notices,
        }
    }

    /// Adds the calls that wait for approval.
    pub(crate) fn waiting(mut self, reviews: &[Review]) -> Self {
        self.approvals = reviews.iter().map(approval_json).collect();
        self
    }

    /// Adds the value of an answer with a schema.
    pub(crate) fn with_value(mut self, value: Option<&'a Value>) -> Self {
        self.value = value;
        self
    }

    /// A run that never began.
    pub(crate) fn never_began(stopped: EndReason, problem: ProblemJson<'a>) -> Self {
        Self {
            answer: None,
            value: None,
            stopped,
            error: Some(problem.error),
            errors: problem.errors,
            turn_id: None,
            session: None,
            iterations: 0,
            tool_calls: Vec::new(),
            result_chars: ResultChars { read: 0, produced: 0 },
            usage: Usage::NOTHING,
            menus: &[],
            duration_ms: 0,
            model: None,
            stop: None,
            approvals: Vec::new(),
            image_notices: &[],
        }
    }
}

/// Why a command could not start: the output of any command except `run`.
#[derive(Serialize)]
pub(crate) struct ProblemJson<'a> {
    error: &'a RunError,
    errors: Vec<&'a Diagnostic>,
}

impl<'a> ProblemJson<'a> {
    /// Without warnings: a list of errors could not distinguish them.
    pub(crate) fn new(error: &'a RunError, diagnostics: &'a [Diagnostic]) -> Self {
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
        Self { error, errors }
    }
}

/// A call. `value` is the text after sanitizing and before the fence.
#[derive(Serialize)]
pub(crate) struct CallJson<'a> {
    name: &'a str,
    args: &'a Value,
    ok: bool,
    code: Option<ErrorCode>,
    /// Present if a dry run did not make the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<&'a CallPlan>,
    value: &'a str,
    /// The whole data; null if there is none, or if it is over the budget: see `truncated`.
    structured: Option<&'a Value>,
    /// The left-out parts of the result, and how to read them; absent if the result is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    truncated: Option<TruncatedJson<'a>>,
    /// The text of each block that is not plain text, as every model reads it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<String>,
    /// The ids of the artifacts created from the result.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [Arc<str>],
    cost_usd: Option<f64>,
    duration_ms: u64,
    untrusted: bool,
    cause: Option<&'a str>,
}

/// The parts that a result lacks because it is over the tool's budget.
#[derive(Serialize)]
struct TruncatedJson<'a> {
    /// Whether `value` is truncated.
    value: bool,
    /// Whether `structured` is left out, or its texts are truncated.
    structured: bool,
    /// The size of the left-out data, in characters of JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_chars: Option<&'a Value>,
    /// Why the data is left out, if its size is not the reason.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a Value>,
    /// The characters of the whole text.
    value_chars: u64,
    /// How to read the rest.
    help: &'a str,
}

const ASK_FOR_LESS: &str = "ask the tool for less, raise its `max_result_chars`, or declare \
    [artifacts] and call it with `--session NAME`";

/// The marker at a cut.
const MARKER: &str = "[truncated — ";

impl<'a> TruncatedJson<'a> {
    fn of(result: &'a ToolResult) -> Option<Self> {
        let note = result.structured.as_ref().filter(|data| is_data_note(data));
        let chars = result.value.chars().count() as u64;
        let value = result.value.contains(MARKER) && result.produced_chars > chars;
        let structured = note.is_some() || result.structured.as_ref().is_some_and(is_cut);
        (value || structured).then(|| Self {
            value,
            structured,
            structured_chars: note.and_then(|note| note.get("chars")),
            reason: note.and_then(|note| note.get("reason")),
            value_chars: result.produced_chars,
            help: ASK_FOR_LESS,
        })
    }
}

/// Whether a text in data ends with the marker of a cut.
fn is_cut(data: &Value) -> bool {
    match data {
        Value::String(text) => text.ends_with(']') && text.contains(MARKER),
        Value::Array(items) => items.iter().any(is_cut),
        Value::Object(entries) => entries.values().any(is_cut),
        _ => false,
    }
}

impl<'a> CallJson<'a> {
    /// Adds why a tool is withheld, if no other field explains the missing result, and how to read
    /// the left-out rest.
    pub(crate) fn with_reason(
        result: &'a ToolResult,
        withheld: Option<&'a WithheldTool>,
        read_on: Option<&'a str>,
    ) -> Self {
        let mut call = Self::from(result);
        call.cause = call.cause.or(withheld.map(|withheld| withheld.reason.as_str()));
        if let (Some(truncated), Some(read_on)) = (&mut call.truncated, read_on) {
            truncated.help = read_on;
        }
        call
    }
}

impl<'a> From<&'a ToolResult> for CallJson<'a> {
    fn from(result: &'a ToolResult) -> Self {
        Self {
            name: &result.name,
            args: &result.args,
            ok: result.is_ok(),
            code: result.code,
            plan: result.plan.as_deref(),
            value: &result.value,
            structured: result.structured.as_ref().filter(|data| !is_data_note(data)),
            truncated: TruncatedJson::of(result),
            blocks: result.blocks.iter().map(ContentBlock::as_read).collect(),
            artifacts: &result.artifacts,
            cost_usd: result.cost_usd,
            duration_ms: millis(result.duration),
            untrusted: result.untrusted,
            cause: result.cause.as_deref(),
        }
    }
}

/// A menu.
#[derive(Serialize)]
pub(crate) struct MenuJson<'a> {
    offered: Vec<Value>,
    /// The names of the deferred tools.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    deferred: Vec<&'a ToolName>,
    withheld: Vec<WithheldTool>,
    /// One list of decisions for each known tool, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Vec<Explanation>>,
    notices: &'a [Notice],
    /// Probable mistakes in the project's files and in imported ones.
    warnings: Vec<&'a Diagnostic>,
    fingerprint: Digest,
    chars: usize,
}

impl<'a> MenuJson<'a> {
    pub(crate) fn new(iteration: &'a Iteration, project: &'a Project, why: bool) -> Self {
        let menu = iteration.menu();
        Self {
            offered: menu.tools().iter().map(|tool| offered(tool.definition())).collect(),
            deferred: menu.deferred().iter().map(|tool| tool.name()).collect(),
            withheld: iteration.withheld().tools().collect(),
            why: why.then(|| iteration.explanations().collect()),
            notices: iteration.notices(),
            warnings: project.warnings().warnings().collect(),
            fingerprint: menu.fingerprint(),
            chars: menu.chars(),
        }
    }
}

fn offered(tool: &ToolDefinition) -> Value {
    json!({
        "name": tool.name(),
        "description": tool.description(),
        "input_schema": tool.input_schema(),
        "toolset": tool.toolset(),
        "annotations": tool.annotations(),
        "untrusted": tool.untrusted(),
        "origin": tool.origin(),
        "plugin": tool.plugin(),
    })
}

/// The databases in files, then those of servers, without user and password.
fn databases(project: &Project) -> Vec<Value> {
    let files = project.databases().iter().map(|database| {
        let file = database.file().to_string_lossy();
        json!({ "name": database.name(), "file": file, "writable": database.is_writable() })
    });
    let servers = project.database_servers().iter().map(|server| {
        let (name, writable) = (server.name(), server.is_writable());
        json!({ "name": name, "server": server.shown(), "writable": writable })
    });
    files.chain(servers).collect()
}

fn mcp_servers(project: &Project) -> Vec<Value> {
    let server = |server: &McpServer| {
        json!({
            "name": server.name().as_str(),
            "origin": server.origin(),
            "plugin": server.plugin(),
            "target": super::text::target(project, server),
            "trusted": server.is_trusted(),
            "on_failure": server.on_failure(),
        })
    };
    project.mcp_servers().iter().map(server).collect()
}

/// A valid project. An invalid one is printed as a problem, with the same `errors`.
pub(crate) fn checked(project: &Project) -> Value {
    let warnings = [project.warnings(), project.program_warnings()];
    let warnings: Vec<_> = warnings.into_iter().flat_map(Diagnostics::warnings).collect();
    let tools = project.tools().iter().map(|tool| {
        json!({
            "name": tool.name(),
            "toolset": tool.toolset(),
            "annotations": tool.annotations(),
            "chars": tool.rendering().chars().count(),
            "origin": tool.origin(),
            "plugin": tool.plugin(),
        })
    });
    let skills = project.skills().iter().map(|skill| {
        json!({
            "id": skill.id.as_str(),
            "plugin": skill.plugin.as_deref(),
            "tools": skill.tools,
            "body_chars": skill.body.chars().count(),
        })
    });
    let hubs = project.hubs().iter().map(|hub| {
        json!({
            "name": hub.name(),
            "origin": hub.origin(),
            "plugin": hub.plugin(),
            "url": hub.url(),
            "on_failure": hub.on_failure(),
        })
    });
    json!({
        "errors": [],
        "warnings": warnings,
        "name": project.name(),
        "root": project.root().to_string_lossy(),
        "state": project.state().to_string_lossy(),
        "model": project.model().map(|model| model.name()),
        "tools": tools.collect::<Vec<_>>(),
        // The number of sources that were not queried for their tools.
        "sources_not_asked": project.mcp_servers().len() + project.hubs().len(),
        "skills": skills.collect::<Vec<_>>(),
        "personalities": project.personalities().map(|one| &*one.id).collect::<Vec<_>>(),
        "plugins": project.plugins().collect::<Vec<_>>(),
        "rules": project.policy().rules.iter().map(|rule| &*rule.label).collect::<Vec<_>>(),
        "databases": databases(project),
        "mcp_servers": mcp_servers(project),
        "hubs": hubs.collect::<Vec<_>>(),
    })
}
