//! One handshake with a server: connects, lists, calls, and judges the traffic.

use std::{collections::BTreeSet, sync::Arc, time::Instant};

use serde_json::{Map, Value};
use tokio::time::timeout;
use toolcrib_core::{CancellationToken, Catalog, Identity, MissingReason, Reason};
use toolcrib_engine::Redactor;
use toolcrib_lint::Linter;
use toolcrib_mcp::{
    __internal::{AssetKind, McpRequest},
    Handshake, McpClient, McpError, mcp_client,
    server::Transport,
};

use super::{
    definitions::{self, JudgedTools, Withheld},
    lists::{self, OtherList},
    pages, results,
    wire::Recorder,
};
use crate::{
    args::CheckServerArgs,
    output::{CheckedEra, ServerFinding},
};

/// The server's name in the names of its tools.
const NAME: &str = "server";

/// A kind of handshake.
#[derive(Debug, Clone, Copy)]
pub(super) struct Era {
    pub(super) handshake: Handshake,
    /// The protocol versions.
    pub(super) era: &'static str,
    pub(super) method: &'static str,
}

/// The two kinds of handshakes: the version that introduced one, and its method.
pub(super) const ERAS: [Era; 2] = [
    Era { handshake: Handshake::Discover, era: "since 2026-07-28", method: "server/discover" },
    Era { handshake: Handshake::Initialize, era: "before 2026-07-28", method: "initialize" },
];

/// The settings of both handshakes.
pub(super) struct Check<'a> {
    pub(super) transport: &'a Transport,
    pub(super) args: &'a CheckServerArgs,
    pub(super) linter: &'a Linter,
    pub(super) redactor: &'a Redactor,
    pub(super) cancellation: &'a CancellationToken,
}

/// The result of one handshake.
pub(super) struct JudgedEra {
    pub(super) checked: CheckedEra,
    pub(super) findings: Vec<ServerFinding>,
    pub(super) names: BTreeSet<String>,
    pub(super) tools: usize,
    pub(super) tokens: usize,
    /// Whether the permitted calls were made.
    pub(super) has_called: bool,
}

/// Why a handshake is not judged.
pub(super) enum EraError {
    Cancelled,
    /// The server is declared wrongly.
    Invalid(String),
    /// A permitted call is one of a tool that is not listed.
    UnknownTool {
        tool: String,
        known: Vec<String>,
    },
}

/// The observations of the client.
struct Learned {
    /// The tools, or why they cannot be listed, and whether the server is connected.
    catalog: Result<Catalog, String>,
    instructions: Option<String>,
    findings: Vec<ServerFinding>,
    has_called: bool,
}

impl Check<'_> {
    /// Connects with one handshake, and judges the server.
    ///
    /// # Errors
    /// A cancellation, or a call of an unknown tool.
    pub(super) async fn era(&self, era: Era, may_call: bool) -> Result<JudgedEra, EraError> {
        let is_program = matches!(self.transport, Transport::Stdio(_));
        let recorder = Arc::new(Recorder::new(self.redactor.clone(), is_program));
        let observer = Arc::clone(&recorder);
        let client = mcp_client(NAME, self.transport.clone())
            .handshake(era.handshake)
            .start_timeout(self.args.timeout)
            .list_timeout(self.args.timeout)
            .redactor(self.redactor.clone())
            .wire_observer(move |event| observer.record(event))
            .build()
            .map_err(|error| EraError::Invalid(error.to_string()))?;
        let client = client.on_behalf_of(&Identity::conversation("check"));
        let learning = self.learn(&client, &recorder, may_call);
        let learned = tokio::select! {
            biased;
            () = self.cancellation.cancelled() => Err(EraError::Cancelled),
            learned = learning => learned,
        };
        let status = client.status();
        // Only now it is known whether it ends when its input is closed.
        client.close().await;
        let learned = learned?;
        let text = |text: Option<Arc<str>>| text.map(|text| text.to_string());
        let checked = CheckedEra {
            era: era.era,
            method: era.method,
            connected: status.protocol.is_some(),
            protocol: text(status.protocol),
            server: text(status.server),
            version: text(status.server_version),
            error: learned.catalog.as_ref().err().cloned(),
        };
        Ok(self.judged(&client, &recorder, checked, learned))
    }

    async fn learn(
        &self,
        client: &McpClient,
        recorder: &Recorder,
        may_call: bool,
    ) -> Result<Learned, EraError> {
        let began = Instant::now();
        let catalog = client.catalog().await.map_err(|error| reason(&error));
        let mut findings = Vec::new();
        if client.status().protocol.is_none() {
            return Ok(Learned { catalog, instructions: None, findings, has_called: false });
        }
        let listed_after = recorder.listed_at().map(|listed| listed.duration_since(began));
        if let Some(after) = listed_after.filter(|after| *after >= self.args.slow_start) {
            let message =
                format!("its tools were listed {:.1} s after its start", after.as_secs_f64());
            let help = "load models, data and connections when they are first needed: clients wait for \
                        the list, or go on without it. `--slow-start` sets the limit";
            let finding = ServerFinding::warning("slow-start", message, help);
            findings.push(finding.keyed("its tools were listed late"));
        }
        let offers = client.offers().await.ok();
        let instructions = offers.and_then(|offers| offers.instructions);
        let instructions = instructions.and_then(|text| {
            let text = self.redactor.description(Value::from(&*text));
            text.as_str().map(str::to_owned)
        });
        for (list, assets) in OTHER_LISTS {
            match client.assets(assets).await {
                Ok(_) => {}
                // A server may have resources and no templates.
                Err(_) if assets == AssetKind::Templates => {}
                Err(error) => {
                    let why = error.cause_chain().unwrap_or(error.message);
                    if catalog.as_ref().is_err_and(|known| why.contains(known.as_str())) {
                        // The connection was lost before.
                        continue;
                    }
                    let message = format!("its {}s cannot be listed: {why}", list.kind);
                    let help = "answer each list that the server declares in its capabilities";
                    findings.push(ServerFinding::error("list", message, help));
                }
            }
        }
        if listed_after.is_some() && matches!(self.transport, Transport::Stdio(_)) {
            findings.extend(self.ping(client, recorder).await);
        }
        let has_called = may_call && !self.args.call.is_empty();
        if has_called {
            findings.extend(self.calls(client, recorder).await?);
        }
        Ok(Learned { catalog, instructions, findings, has_called })
    }

    /// A server before 2026-07-28 answers `ping`. The official suite checks servers at a URL.
    async fn ping(&self, client: &McpClient, recorder: &Recorder) -> Option<ServerFinding> {
        if recorder.version()?.as_str() >= "2026-07-28" {
            return None;
        }
        let request = McpRequest {
            method: "ping",
            params: Arc::new(Map::new()),
            on_progress: None,
            client: None,
            cancellation: CancellationToken::new(),
        };
        let why = match timeout(self.args.timeout, client.request(request)).await {
            Ok(Ok(_)) => return None,
            Ok(Err(error)) => error.cause_chain().unwrap_or(error.message),
            Err(_) => format!("no answer within {:?}", self.args.timeout),
        };
        let help = "answer `ping` with an empty result; clients end a connection without";
        Some(ServerFinding::error("ping", format!("it does not answer `ping`: {why}"), help))
    }

    async fn calls(
        &self,
        client: &McpClient,
        recorder: &Recorder,
    ) -> Result<Vec<ServerFinding>, EraError> {
        let listed = pages::read(&recorder.pages("tools/list"), "tools", "name", self.redactor);
        let mut findings = Vec::new();
        for call in &self.args.call {
            let names = listed.items.iter().filter_map(|item| item.name.as_deref());
            if !names.clone().any(|name| name == call.tool) {
                return Err(EraError::UnknownTool {
                    tool: call.tool.clone(),
                    known: names.map(str::to_owned).collect(),
                });
            }
            let limits = (self.args.timeout, self.args.max_result_tokens);
            let called = results::call(client, call, &listed.items, limits, self.redactor);
            findings.extend(called.await);
        }
        Ok(findings)
    }

    fn judged(
        &self,
        client: &McpClient,
        recorder: &Recorder,
        checked: CheckedEra,
        learned: Learned,
    ) -> JudgedEra {
        let Learned { catalog, instructions, findings: learned, has_called } = learned;
        let mut findings = recorder.findings();
        findings.extend(learned);
        let mut era = JudgedEra {
            checked,
            findings: Vec::new(),
            names: BTreeSet::new(),
            tools: 0,
            tokens: 0,
            has_called,
        };
        let list = pages::read(&recorder.pages("tools/list"), "tools", "name", self.redactor);
        if let Err(why) = &catalog
            && era.checked.connected
            && !list.has_flawed_cursor()
        {
            let message = format!("its tools cannot be listed: {why}");
            let help = "answer `tools/list` as the protocol's schema says";
            findings.push(ServerFinding::error("tools-list", message, help));
        }
        if !list.items.is_empty() && recorder.declares("tools") == Some(false) {
            let message = "it lists tools, and does not declare the capability `tools`".to_owned();
            let help = "declare it in the handshake; clients do not ask for tools otherwise";
            findings.push(ServerFinding::error("undeclared-tools", message, help));
        }
        findings.extend(list.findings);
        let withheld = catalog.map(|catalog| withheld(&catalog)).unwrap_or_default();
        let version = recorder.version();
        let exposed = |name: &str| client.exposed_name(name);
        let judged =
            definitions::judge(&list.items, version.as_deref(), self.linter, &withheld, exposed);
        let JudgedTools { findings: of_tools, names, count, tokens } = judged;
        findings.extend(of_tools);
        let attacks = self.linter.clone().attacks_only();
        for (list, _) in OTHER_LISTS {
            let read = pages::read(&recorder.pages(list.method), list.field, "name", self.redactor);
            findings.extend(read.findings);
            findings.extend(lists::judge(&list, &read.items, &attacks));
        }
        findings.extend(
            instructions.into_iter().flat_map(|text| lists::of_instructions(text, &attacks)),
        );
        (era.findings, era.names, era.tools, era.tokens) = (findings, names, count, tokens);
        era
    }
}

/// The lists beside tools.
const OTHER_LISTS: [(OtherList, AssetKind); 3] = [
    (lists::PROMPTS, AssetKind::Prompts),
    (lists::RESOURCES, AssetKind::Resources),
    (lists::TEMPLATES, AssetKind::Templates),
];

/// The reason without this client's name of the server.
fn reason(error: &McpError) -> String {
    match error {
        McpError::Unreachable { problem, .. } | McpError::NotListed { problem, .. } => {
            problem.to_string()
        }
        other => other.to_string(),
    }
}

/// The tools that the client withholds. A refused text is a finding of the linter, and a tool that can
/// only run as a task is valid.
fn withheld(catalog: &Catalog) -> Vec<Withheld> {
    let is_of_lint_or_task = |reason: &Reason| match reason {
        Reason::Definition(of, _) => of.is_of_content() || *of == MissingReason::OnlyAsTask,
        _ => false,
    };
    let all = catalog.withheld_by_provider().iter();
    all.filter(|held| !is_of_lint_or_task(&held.reason))
        .map(|held| Withheld {
            name: held.tool.name().as_str().to_owned(),
            reason: held.reason.clone(),
        })
        .collect()
}
