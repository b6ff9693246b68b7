//! What `--json` prints, one shape per command. A path that is not UTF-8 is printed as near to it
//! as text can be.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde::Serialize;
use serde_json::Value;
use toolcrib_agent::{MenuSummary, ResultChars, RunError, RunOutcome, Stopped};
use toolcrib_core::{
    Annotations, ContentBlock, Digest, ErrorCode, StopReason, ToolDefinition, ToolName, ToolResult,
    Usage,
};
use toolcrib_engine::{Iteration, Notice, OnFailure, Personality, Why, WithheldTool};
use toolcrib_project::{Diagnostic, Project, Severity};

/// A run, also one that never began.
#[derive(Serialize)]
pub(crate) struct RunJson<'a> {
    answer: Option<&'a str>,
    stopped: Stopped,
    error: Option<&'a RunError>,
    errors: Vec<&'a Diagnostic>,
    run_id: Option<&'a str>,
    iterations: u32,
    tool_calls: Vec<CallJson<'a>>,
    result_chars: ResultChars,
    usage: Usage,
    menus: &'a [MenuSummary],
    duration_ms: u64,
    model: Option<&'a str>,
    stop: Option<StopReason>,
}

impl<'a> RunJson<'a> {
    /// A run on a model.
    pub(crate) fn new(model: &'a str, outcome: &'a RunOutcome) -> Self {
        Self {
            answer: outcome.answer.as_deref(),
            stopped: outcome.stopped,
            error: outcome.error.as_ref(),
            errors: Vec::new(),
            run_id: Some(&outcome.run_id),
            iterations: outcome.iterations,
            tool_calls: outcome.tool_calls.iter().map(CallJson::from).collect(),
            result_chars: outcome.result_chars(),
            usage: outcome.usage,
            menus: &outcome.menus,
            duration_ms: whole_ms(outcome.duration),
            model: Some(model),
            stop: outcome.stop,
        }
    }

    /// A run that never began.
    pub(crate) fn never_began(stopped: Stopped, problem: ProblemJson<'a>) -> Self {
        Self {
            answer: None,
            stopped,
            error: Some(problem.error),
            errors: problem.errors,
            run_id: None,
            iterations: 0,
            tool_calls: Vec::new(),
            result_chars: ResultChars { read: 0, produced: 0 },
            usage: Usage::NOTHING,
            menus: &[],
            duration_ms: 0,
            model: None,
            stop: None,
        }
    }
}

/// Why a command could not begin its work: what any command but `run` prints then.
#[derive(Serialize)]
pub(crate) struct ProblemJson<'a> {
    error: &'a RunError,
    errors: Vec<&'a Diagnostic>,
}

impl<'a> ProblemJson<'a> {
    /// Warnings stay out: in a list of errors nobody could tell them apart.
    pub(crate) fn new(error: &'a RunError, diagnostics: &'a [Diagnostic]) -> Self {
        let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error).collect();
        Self { error, errors }
    }
}

/// A call. `value` is the text after sanitising and before the fence.
#[derive(Serialize)]
pub(crate) struct CallJson<'a> {
    name: &'a str,
    args: &'a Value,
    ok: bool,
    code: Option<ErrorCode>,
    value: &'a str,
    structured: Option<&'a Value>,
    /// What every model reads of each block that is not plain text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    blocks: Vec<String>,
    /// The ids of the artifacts that were made of the result.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    artifacts: &'a [Arc<str>],
    cost_usd: Option<f64>,
    duration_ms: u64,
    untrusted: bool,
    cause: Option<&'a str>,
}

impl<'a> CallJson<'a> {
    /// With why a tool is withheld, where nothing else says why there is no result.
    pub(crate) fn with_reason(result: &'a ToolResult, withheld: Option<&'a WithheldTool>) -> Self {
        let call = Self::from(result);
        let reason = withheld.map(|withheld| withheld.reason.as_str());
        Self { cause: call.cause.or(reason), ..call }
    }
}

impl<'a> From<&'a ToolResult> for CallJson<'a> {
    fn from(result: &'a ToolResult) -> Self {
        Self {
            name: &result.name,
            args: &result.args,
            ok: result.is_ok(),
            code: result.code,
            value: &result.value,
            structured: result.structured.as_ref(),
            blocks: result.blocks.iter().map(ContentBlock::as_read).collect(),
            artifacts: &result.artifacts,
            cost_usd: result.cost_usd,
            duration_ms: whole_ms(result.duration),
            untrusted: result.untrusted,
            cause: result.cause.as_deref(),
        }
    }
}

/// A menu.
#[derive(Serialize)]
pub(crate) struct MenuJson<'a> {
    offered: Vec<ToolJson<'a>>,
    withheld: Vec<WithheldTool>,
    /// One chain of causes for each known tool, where it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<Vec<Why>>,
    notices: &'a [Notice],
    fingerprint: Digest,
    chars: usize,
}

impl<'a> MenuJson<'a> {
    pub(crate) fn new(iteration: &'a Iteration, why: bool) -> Self {
        let menu = iteration.menu();
        Self {
            offered: menu.tools().iter().map(|tool| ToolJson::from(tool.definition())).collect(),
            withheld: iteration.withheld().explain().collect(),
            why: why.then(|| iteration.whys().collect()),
            notices: iteration.notices(),
            fingerprint: menu.fingerprint(),
            chars: menu.chars(),
        }
    }
}

#[derive(Serialize)]
struct ToolJson<'a> {
    name: &'a ToolName,
    description: &'a str,
    input_schema: &'a Value,
    toolset: Option<&'a str>,
    annotations: Annotations,
    untrusted: bool,
    origin: &'a str,
    plugin: Option<&'a str>,
}

impl<'a> From<&'a ToolDefinition> for ToolJson<'a> {
    fn from(tool: &'a ToolDefinition) -> Self {
        Self {
            name: tool.name(),
            description: tool.description(),
            input_schema: tool.input_schema(),
            toolset: tool.toolset(),
            annotations: tool.annotations(),
            untrusted: tool.untrusted(),
            origin: tool.origin(),
            plugin: tool.plugin(),
        }
    }
}

/// A sound project. One that is not is printed as a problem, with the same `errors`.
#[derive(Serialize)]
pub(crate) struct CheckJson<'a> {
    errors: [Diagnostic; 0],
    warnings: Vec<&'a Diagnostic>,
    name: &'a str,
    root: Cow<'a, str>,
    state: Cow<'a, str>,
    model: Option<&'a str>,
    /// Those that the project declares.
    tools: Vec<CheckedTool<'a>>,
    /// How many sources have tools that are not among them: nobody was asked.
    sources_not_asked: usize,
    skills: Vec<CheckedSkill<'a>>,
    personalities: Vec<&'a str>,
    plugins: Vec<&'a str>,
    rules: Vec<&'a str>,
    databases: Vec<CheckedDatabase<'a>>,
    mcp_servers: Vec<CheckedServer<'a>>,
    hubs: Vec<CheckedHub<'a>>,
}

#[derive(Serialize)]
struct CheckedHub<'a> {
    name: &'a str,
    origin: &'a str,
    plugin: Option<&'a str>,
    url: &'a str,
    on_failure: OnFailure,
}

#[derive(Serialize)]
struct CheckedServer<'a> {
    name: &'a str,
    origin: &'a str,
    plugin: Option<&'a str>,
    target: Option<String>,
    trusted: bool,
    on_failure: OnFailure,
}

#[derive(Serialize)]
struct CheckedTool<'a> {
    name: &'a ToolName,
    toolset: Option<&'a str>,
    annotations: Annotations,
    chars: usize,
    origin: &'a str,
    plugin: Option<&'a str>,
}

#[derive(Serialize)]
struct CheckedSkill<'a> {
    id: &'a str,
    plugin: Option<&'a str>,
    tools: &'a [ToolName],
    body_chars: usize,
}

#[derive(Serialize)]
struct CheckedDatabase<'a> {
    name: &'a str,
    file: Cow<'a, str>,
}

impl<'a> From<&'a Project> for CheckJson<'a> {
    fn from(project: &'a Project) -> Self {
        Self {
            errors: [],
            warnings: project.warnings().warnings().collect(),
            name: project.name(),
            root: project.root().to_string_lossy(),
            state: project.state().to_string_lossy(),
            model: project.model().map(|model| model.name()),
            tools: project
                .tools()
                .iter()
                .map(|tool| CheckedTool {
                    name: tool.name(),
                    toolset: tool.toolset(),
                    annotations: tool.annotations(),
                    chars: tool.rendering().chars().count(),
                    origin: tool.origin(),
                    plugin: tool.plugin(),
                })
                .collect(),
            sources_not_asked: project.mcp_servers().len() + project.hubs().len(),
            skills: project
                .skills()
                .iter()
                .map(|skill| CheckedSkill {
                    id: skill.id.as_str(),
                    plugin: skill.plugin.as_deref(),
                    tools: &skill.tools,
                    body_chars: skill.body.chars().count(),
                })
                .collect(),
            personalities: project.personalities().map(Personality::id).collect(),
            plugins: project.plugins().collect(),
            rules: project.policy().rules.iter().map(|rule| &*rule.label).collect(),
            databases: project
                .databases()
                .iter()
                .map(|database| CheckedDatabase {
                    name: database.name(),
                    file: database.file().to_string_lossy(),
                })
                .collect(),
            mcp_servers: project
                .mcp_servers()
                .iter()
                .map(|server| CheckedServer {
                    name: server.name().as_str(),
                    origin: server.origin(),
                    plugin: server.plugin(),
                    target: super::target(project, server),
                    trusted: server.is_trusted(),
                    on_failure: server.on_failure(),
                })
                .collect(),
            hubs: project
                .hubs()
                .iter()
                .map(|hub| CheckedHub {
                    name: hub.name(),
                    origin: hub.origin(),
                    plugin: hub.plugin(),
                    url: hub.url(),
                    on_failure: hub.on_failure(),
                })
                .collect(),
        }
    }
}

/// A project that was begun.
#[derive(Serialize)]
pub(crate) struct InitJson<'a> {
    dir: Cow<'a, str>,
    created: Vec<Cow<'a, str>>,
}

impl<'a> InitJson<'a> {
    pub(crate) fn new(dir: &'a Path, created: &'a [PathBuf]) -> Self {
        Self {
            dir: dir.to_string_lossy(),
            created: created.iter().map(|path| path.to_string_lossy()).collect(),
        }
    }
}

/// As events have it, so that one call has one duration.
pub(super) fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
