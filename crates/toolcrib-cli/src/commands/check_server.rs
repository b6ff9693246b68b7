//! `toolcrib check-server`: an MCP server as its author wants to see it. No tool is called, except those of
//! `--call`.

mod definitions;
mod era;
mod faults;
mod hints;
mod lists;
mod merge;
mod pages;
mod results;
mod schemas;
mod suite;
mod wire;

use toolcrib_config::suggest;
use toolcrib_core::CancellationToken;
use toolcrib_engine::Redactor;
use toolcrib_mcp::server::{Http, Stdio, Transport, expand};

use self::era::{Check, ERAS, EraError, JudgedEra};
use super::lint::linter;
use crate::{
    args::{CheckServerArgs, GlobalArgs},
    exit::{self, Exit},
    host::server_words::{self, Target},
    output::{self, CheckedSuite, ServerFinding, ServerReport},
    problem::Problem,
    project::load::{here, unless_cancelled},
};

pub(super) async fn check_server(
    global: &GlobalArgs,
    args: CheckServerArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let linter = linter(args.max_tokens, &args.allow)?;
    let redactor = Redactor::from_environment();
    let transport = transport(&args, &redactor)?;
    let check = Check {
        transport: &transport,
        args: &args,
        linter: &linter,
        redactor: &redactor,
        cancellation: &cancellation,
    };
    let mut judged = Vec::<JudgedEra>::new();
    // One after the other: a server may keep a file locked.
    for era in ERAS {
        // A call is made once: it may have an effect.
        let has_called = judged.iter().any(|era| era.has_called);
        judged.push(check.era(era, !has_called).await.map_err(problem)?);
    }
    let mut report = ServerReport::new(&args.words);
    let mut of_suite = Vec::new();
    let eras = (is_connected(&judged, 0), is_connected(&judged, 1));
    report.suite = match &transport {
        _ if eras == (false, false) => CheckedSuite::not_run("no client can connect"),
        Transport::Stdio(_) => CheckedSuite::not_run("it needs a server at a URL"),
        _ if !args.set.is_empty() => CheckedSuite::not_run("it cannot send the headers of `--set`"),
        _ => {
            let url = args.words.first().map_or("", String::as_str);
            let suite = suite::suite(url, eras, args.timeout, &mut of_suite);
            unless_cancelled(suite, &cancellation).await?
        }
    };
    conclude(&mut report, judged);
    report.findings.extend(of_suite);
    let is_fine = report.is_fine(args.strict);
    if global.json {
        output::json(&report);
    } else {
        output::server_report(&report, global.quiet);
    }
    Ok(if is_fine { exit::FINE } else { exit::FAILED })
}

fn problem(error: EraError) -> Problem {
    match error {
        EraError::Cancelled => Problem::cancelled(),
        EraError::Invalid(problem) => Problem::usage(problem),
        EraError::UnknownTool { tool, known } => {
            Problem::unknown("tool", &tool, known.iter().map(String::as_str))
        }
    }
}

fn is_connected(judged: &[JudgedEra], position: usize) -> bool {
    judged.get(position).is_some_and(|era| era.checked.connected)
}

/// Writes the results of all handshakes into the report.
fn conclude(report: &mut ServerReport, judged: Vec<JudgedEra>) {
    let is_reached = judged.iter().any(|era| era.checked.connected);
    if !is_reached {
        let mut reasons: Vec<_> =
            judged.iter().filter_map(|era| era.checked.error.clone()).collect();
        reasons.dedup();
        report.findings.push(ServerFinding::error(
            "handshake",
            format!("no client can connect: {}", reasons.join("; ")),
            "answer `initialize`, or `server/discover` since 2026-07-28",
        ));
    }
    report.findings.extend(differences(&judged));
    report.tools = judged.iter().map(|era| era.tools).max().unwrap_or_default();
    report.tokens = judged.iter().map(|era| era.tokens).max().unwrap_or_default();
    let mut findings = Vec::new();
    for JudgedEra { checked, findings: of_era, .. } in judged {
        // Of a handshake that the server does not support, nothing is expected, unless it supports none.
        if checked.connected || !is_reached {
            findings.push((checked.method, of_era));
        }
        report.eras.push(checked);
    }
    report.findings.extend(merge::merge(findings));
}

/// The tools that are listed after one handshake and not after the other.
fn differences(judged: &[JudgedEra]) -> Vec<ServerFinding> {
    let [new, old] = judged else { return Vec::new() };
    let is_listed = |era: &JudgedEra| era.checked.connected && era.checked.error.is_none();
    if !is_listed(new) || !is_listed(old) {
        return Vec::new();
    }
    let missing = |from: &JudgedEra, known: &JudgedEra| {
        let missing: Vec<_> = known.names.difference(&from.names).map(String::as_str).collect();
        (!missing.is_empty()).then(|| {
            let (method, missing) = (from.checked.method, suggest::quoted(missing));
            ServerFinding::warning(
                "versions-differ",
                format!("these tools are not listed after `{method}`: {missing}"),
                "list the same tools in all versions of the protocol",
            )
        })
    };
    missing(old, new).into_iter().chain(missing(new, old)).collect()
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
