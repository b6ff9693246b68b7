//! `toolcrib check-server`: an MCP server as its author wants to see it. No tool is called.

mod suite;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Map, Value};
use toolcrib_config::suggest;
use toolcrib_core::{
    CancellationToken, Catalog, DefinitionCheck, Identity, MissingReason, Reason, Tool,
    WithheldTool,
};
use toolcrib_engine::{Engine, Redactor, TurnOptions};
use toolcrib_lint::{Finding, LintTool, Linter};
use toolcrib_mcp::{
    __internal::{AssetKind, renamed},
    Handshake, McpClient, McpClientBuilder, mcp_client,
    server::{Http, Stdio, Transport, expand},
};

use super::{
    Problem,
    install::here,
    lint::linter,
    mcp::unless_cancelled,
    server_words::{self, Target},
};
use crate::{
    args::{CheckServerArgs, GlobalArgs},
    exit::{self, Exit},
    output::{self, CheckedEra, CheckedSuite, ServerFinding, ServerReport},
};

/// The server's name in the names of its tools.
const NAME: &str = "server";

/// The two kinds of handshakes: the version that introduced one, and its method.
const ERAS: [(Handshake, &str, &str); 2] = [
    (Handshake::Discover, "since 2026-07-28", "server/discover"),
    (Handshake::Initialize, "before 2026-07-28", "initialize"),
];

pub(super) async fn check_server(
    global: &GlobalArgs,
    args: CheckServerArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    if global.project.is_some() || !global.imports.is_empty() {
        return Err(Problem::usage(
            "`check-server` checks one server by its URL or program; leave out `--project` and \
             `--import`",
        ));
    }
    let linter = linter(args.max_tokens, &args.allow)?;
    let redactor = Redactor::from_environment();
    let transport = transport(&args, &redactor)?;
    let mut report = ServerReport::new(&args.words);
    let mut listings = Vec::new();
    // One after the other: a server may keep a file locked.
    for (handshake, era, method) in ERAS {
        let seen = Arc::<Mutex<BTreeMap<String, LintTool>>>::default();
        let names = Arc::<Mutex<BTreeSet<String>>>::default();
        let client =
            client(transport.clone(), handshake, &args, Arc::clone(&seen), Arc::clone(&names))
                .redactor(redactor.clone())
                .build()
                .map_err(|error| Problem::usage(error.to_string()))?;
        let client = client.on_behalf_of(&Identity::conversation("check"));
        let listed = unless_cancelled(listing(&client, &redactor), &cancellation).await;
        let status = client.status();
        let text = |text: Option<Arc<str>>| text.map(|text| text.to_string());
        let error = listed.as_ref().ok().and_then(|listed| listed.as_ref().err().cloned());
        let connected = status.protocol.is_some();
        report.eras.push(CheckedEra {
            era,
            method,
            connected,
            protocol: text(status.protocol),
            server: text(status.server),
            version: text(status.server_version),
            error,
        });
        let listed = match listed {
            Ok(listed) => listed,
            Err(cancelled) => {
                client.close().await;
                return Err(cancelled);
            }
        };
        match listed {
            Ok(listed) => listings.push(CheckedListing {
                texts: listed.texts,
                unlisted: listed.unlisted,
                withheld: withheld(&client, &listed.catalog, &redactor).await,
                tools: std::mem::take(&mut *seen.lock()),
                renamed: std::mem::take(&mut *names.lock()),
            }),
            Err(reason) if connected => report.findings.push(ServerFinding::error(
                "tools-list",
                format!("its tools cannot be listed after `{method}`: {reason}"),
                "answer `tools/list` as the protocol's schema says",
            )),
            Err(_) => {}
        }
        client.close().await;
    }
    judge(&mut report, &linter, &listings);
    let is_connected = |n: usize| report.eras.get(n).is_some_and(|era| era.connected);
    let eras = (is_connected(0), is_connected(1));
    report.suite = match &transport {
        _ if eras == (false, false) => CheckedSuite::not_run("no client can connect"),
        Transport::Stdio(_) => CheckedSuite::not_run("it needs a server at a URL"),
        _ if !args.set.is_empty() => CheckedSuite::not_run("it cannot send the headers of `--set`"),
        _ => {
            let url = args.words.first().map_or("", String::as_str);
            let suite = suite::suite(url, eras, args.timeout, &mut report.findings);
            unless_cancelled(suite, &cancellation).await?
        }
    };
    let is_fine = report.is_fine(args.strict);
    if global.json {
        output::json(&report);
    } else {
        output::server_report(&report, global.quiet);
    }
    Ok(if is_fine { exit::FINE } else { exit::FAILED })
}

/// A listing as the server gives it.
struct Listing {
    catalog: Catalog,
    texts: Vec<DescribedText>,
    /// The lists that the server declares and does not give, with the reason.
    unlisted: Vec<String>,
}

/// Something beside tools that the server describes, in the form that the linter reads.
struct DescribedText {
    /// `prompt`, `resource`, `template` or `instructions`.
    kind: &'static str,
    text: LintTool,
}

/// The same, checked.
struct CheckedListing {
    /// The definitions before they are sanitized, by name.
    tools: BTreeMap<String, LintTool>,
    texts: Vec<DescribedText>,
    unlisted: Vec<String>,
    /// The names that this client had to change.
    renamed: BTreeSet<String>,
    /// Tools that cannot be used, with the reason.
    withheld: Vec<(String, String)>,
}

fn client(
    transport: Transport,
    handshake: Handshake,
    args: &CheckServerArgs,
    seen: Arc<Mutex<BTreeMap<String, LintTool>>>,
    names: Arc<Mutex<BTreeSet<String>>>,
) -> McpClientBuilder {
    let look = DefinitionCheck::new(move |tool: &Tool| {
        let name = own_name(tool.name().as_str()).to_owned();
        if let Some(own) = renamed(tool) {
            names.lock().insert(own.to_owned());
        }
        let described = LintTool::from(tool.definition());
        seen.lock().insert(name.clone(), LintTool { name, origin: None, ..described });
        None
    });
    mcp_client(NAME, transport)
        .handshake(handshake)
        .definition_check(look)
        .start_timeout(args.timeout)
        .list_timeout(args.timeout)
}

async fn listing(client: &McpClient, redactor: &Redactor) -> Result<Listing, String> {
    let catalog = client.catalog().await.map_err(|error| error.to_string())?;
    let offers = client.offers().await.map_err(|error| error.to_string())?;
    let (mut texts, mut unlisted) = (Vec::new(), Vec::new());
    for (kind, list) in OTHER_LISTS {
        match client.assets(list).await {
            Ok(items) => texts.extend(items.iter().filter_map(|item| {
                let item = redactor.description(Value::Object(item.clone()));
                Some(DescribedText::of(kind, item.as_object()?))
            })),
            // A server may have resources and no templates.
            Err(_) if list == AssetKind::Templates => {}
            Err(error) => unlisted.push(format!("its {kind}s cannot be listed: {}", error.message)),
        }
    }
    texts.extend(offers.instructions.map(|instructions| DescribedText {
        kind: "instructions",
        text: LintTool {
            description: match redactor.description(Value::from(&*instructions)) {
                Value::String(text) => text,
                _ => String::new(),
            },
            ..LintTool::default()
        },
    }));
    Ok(Listing { catalog, texts, unlisted })
}

/// The lists beside tools, with the word for one item.
const OTHER_LISTS: [(&str, AssetKind); 3] = [
    ("prompt", AssetKind::Prompts),
    ("resource", AssetKind::Resources),
    ("template", AssetKind::Templates),
];

impl DescribedText {
    fn of(kind: &'static str, item: &Map<String, Value>) -> Self {
        let text = |key: &str| item.get(key).and_then(Value::as_str);
        let others = item.iter().filter(|(key, _)| !TEXTS_OF_TOOLS.contains(&key.as_str()));
        let others: Map<_, _> = others.map(|(key, value)| (key.clone(), value.clone())).collect();
        let text = LintTool {
            name: text("name").unwrap_or_default().to_owned(),
            title: text("title").map(str::to_owned),
            description: text("description").unwrap_or_default().to_owned(),
            // All other texts: arguments, the URI, annotations.
            input_schema: Some(Value::Object(others)),
            ..LintTool::default()
        };
        Self { kind, text }
    }

    /// The attacks in its texts.
    fn attacks(&self, linter: &Linter) -> Vec<ServerFinding> {
        let findings = linter.lint(std::slice::from_ref(&self.text)).findings;
        let named = match self.kind {
            "instructions" => "instructions".to_owned(),
            kind => format!("{kind} {}", self.text.name),
        };
        let found = |mut finding: Finding| {
            // The linter knows only tools.
            finding.message = finding.message.replace("`input_schema/", "`");
            ServerFinding::of_lint(&finding).of(&named)
        };
        findings.into_iter().map(found).collect()
    }
}

/// The keys of an item that the linter has a field for, and those that no model reads.
const TEXTS_OF_TOOLS: [&str; 4] = ["name", "title", "description", "icons"];

/// The tools that an engine does not offer: an invalid definition, or a schema that cannot be
/// enforced.
async fn withheld(
    client: &McpClient,
    catalog: &Catalog,
    redactor: &Redactor,
) -> Vec<(String, String)> {
    let by_client = catalog.withheld_by_provider().iter();
    let mut all: Vec<(String, String)> = by_client
        .filter(|held| !is_of_lint_or_task(&held.reason))
        .map(|held| (own_name(held.tool.name().as_str()).to_owned(), held.reason.to_string()))
        .collect();
    let known: Vec<_> =
        catalog.withheld_by_provider().iter().map(|held| held.tool.name().as_str()).collect();
    let by_engine = by_engine(client, redactor).await.unwrap_or_default();
    let more = by_engine.into_iter().filter(|held| !known.contains(&&*held.name));
    all.extend(more.map(|held| (own_name(&held.name).to_owned(), held.reason)));
    all
}

/// Whether the linter reports it; or a tool that can only run as a task, which is valid and only not
/// supported by Toolcrib.
fn is_of_lint_or_task(reason: &Reason) -> bool {
    let Reason::Definition(of, _) = reason else { return false };
    of.is_of_content() || *of == MissingReason::OnlyAsTask
}

async fn by_engine(client: &McpClient, redactor: &Redactor) -> Option<Vec<WithheldTool>> {
    let builder = Engine::builder().redactor(redactor.clone());
    let engine = builder.provider(Arc::new(client.clone())).build().ok()?;
    let mut turn = engine.turn(TurnOptions::default()).ok()?;
    let iteration = turn.iteration().await.ok()?;
    Some(iteration.withheld().tools().collect())
}

fn judge(report: &mut ServerReport, linter: &Linter, listings: &[CheckedListing]) {
    if report.eras.iter().all(|era| !era.connected) {
        let reasons: Vec<_> = report.eras.iter().filter_map(|era| era.error.clone()).collect();
        report.findings.push(ServerFinding::error(
            "handshake",
            format!("no client can connect: {}", reasons.join("; ")),
            "answer `initialize`, or `server/discover` since 2026-07-28",
        ));
    }
    if let [new, old] = listings {
        let differ = |a: &CheckedListing, b: &CheckedListing| {
            let missing: Vec<_> =
                a.tools.keys().filter(|name| !b.tools.contains_key(*name)).collect();
            (!missing.is_empty()).then(|| suggest::quoted(missing.iter().map(|name| name.as_str())))
        };
        for (first, second, method) in [(new, old, "initialize"), (old, new, "server/discover")] {
            if let Some(missing) = differ(first, second) {
                report.findings.push(ServerFinding::warning(
                    "versions-differ",
                    format!("these tools are not listed after `{method}`: {missing}"),
                    "list the same tools in all versions of the protocol",
                ));
            }
        }
    }
    let Some(checked) = listings.iter().max_by_key(|checked| checked.tools.len()) else { return };
    let tools: Vec<LintTool> = checked.tools.values().cloned().collect();
    let linted = linter.lint(&tools);
    for (tool, reason) in &checked.withheld {
        // The linter has said it better.
        if linted.findings.iter().any(|found| found.tool.as_ref() == Some(tool)) {
            continue;
        }
        let finding = ServerFinding::error(
            "definition",
            reason.clone(),
            "correct the definition; clients that check it cannot call the tool",
        );
        report.findings.push(finding.of(tool));
    }
    let unread = checked.withheld.iter().filter(|(name, _)| !checked.tools.contains_key(name));
    report.tools = linted.totals.tools + unread.count();
    report.tokens = linted.totals.tokens;
    report.findings.extend(linted.findings.iter().map(ServerFinding::of_lint));
    for name in &checked.renamed {
        let shown = suggest::quoted([&**name]);
        let help = "use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`";
        let finding = if is_name_of_mcp(name) {
            let message = format!("model APIs refuse the name {shown}, so that clients change it");
            ServerFinding::warning("name", message, help)
        } else {
            ServerFinding::error("name", format!("MCP does not permit the name {shown}"), help)
        };
        report.findings.push(finding.of(name));
    }
    let unlisted: BTreeSet<_> = listings.iter().flat_map(|checked| &checked.unlisted).collect();
    report.findings.extend(unlisted.into_iter().map(|problem| {
        let help = "answer each list that the server declares in its capabilities";
        ServerFinding::error("list", problem.clone(), help)
    }));
    let attacks = linter.clone().attacks_only();
    let texts = listings.iter().max_by_key(|checked| checked.texts.len());
    for text in texts.into_iter().flat_map(|checked| &checked.texts) {
        report.findings.extend(text.attacks(&attacks));
    }
}

/// Whether MCP permits a name: 1 to 128 of its characters.
fn is_name_of_mcp(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    (1..=128).contains(&name.len()) && name.bytes().all(is_plain)
}

/// The server's own name of a tool.
fn own_name(name: &str) -> &str {
    name.strip_prefix("mcp__server__").unwrap_or(name)
}

fn transport(args: &CheckServerArgs, redactor: &Redactor) -> Result<Transport, Problem> {
    let mut pairs = Vec::new();
    for pair in &args.set {
        let (name, value) = server_words::pair(pair)?;
        let value = expand(value, |name| std::env::var(name).ok())
            .map_err(|error| Problem::usage(format!("`--set {name}`: {error}")))?;
        // A short one is refused: too many texts contain it by chance.
        for secret in &value.secrets {
            let _ = redactor.learn(secret);
        }
        pairs.push((name, value.text));
    }
    let (first, rest) = match Target::of(&args.words)? {
        Target::Url(url) => {
            let http = Http::new(url);
            let http = pairs.into_iter().fold(http, |http, (name, value)| http.header(name, value));
            return Ok(http.into());
        }
        Target::Program(first, rest) => (first, rest),
    };
    if rest.is_empty() && first.contains(' ') {
        return Err(Problem::usage("write the program and its arguments as separate words"));
    }
    // A person checks their own program, also where its child processes cannot be guaranteed to
    // end with it.
    let stdio = Stdio::new(first).args(rest).working_dir(here()?).allow_stray_children();
    let stdio = pairs.into_iter().fold(stdio, |stdio, (name, value)| stdio.env(name, value));
    stdio.find_program().map_err(|error| Problem::usage(format!("`{first}`: {error}")))?;
    Ok(stdio.into())
}
