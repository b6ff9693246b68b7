//! The report on an MCP server for its author.

use serde::Serialize;
use toolcrib_lint::{Finding, Severity};

use super::{
    say,
    text::{BAD, DIM, GOOD, STRONG, WARN, count, safe},
};

/// A checked server.
#[derive(Serialize)]
pub(crate) struct ServerReport {
    /// The program with its arguments, or the URL.
    target: String,
    pub(crate) eras: Vec<CheckedEra>,
    pub(crate) suite: CheckedSuite,
    /// The number of its tools.
    pub(crate) tools: usize,
    /// Their estimated cost in each request to a model.
    pub(crate) tokens: usize,
    pub(crate) findings: Vec<ServerFinding>,
}

/// One kind of handshake.
#[derive(Serialize)]
pub(crate) struct CheckedEra {
    /// The protocol versions.
    pub(crate) era: &'static str,
    /// The method of the handshake.
    pub(crate) method: &'static str,
    pub(crate) connected: bool,
    pub(crate) protocol: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) version: Option<String>,
    /// Why it is not connected, or cannot list its tools.
    pub(crate) error: Option<String>,
}

/// The official conformance suite.
#[derive(Serialize, Default)]
pub(crate) struct CheckedSuite {
    /// The number of its checks that ran.
    checks: usize,
    /// Why it did not run.
    not_run: Option<String>,
}

impl CheckedSuite {
    pub(crate) fn run(checks: usize) -> Self {
        Self { checks, not_run: None }
    }

    pub(crate) fn not_run(why: &str) -> Self {
        Self { checks: 0, not_run: Some(why.to_owned()) }
    }
}

/// One problem.
#[derive(Serialize)]
pub(crate) struct ServerFinding {
    rule: String,
    severity: Severity,
    tool: Option<String>,
    message: String,
    help: String,
}

impl ServerReport {
    pub(crate) fn new(words: &[String]) -> Self {
        Self {
            target: words.join(" "),
            eras: Vec::new(),
            suite: CheckedSuite::default(),
            tools: 0,
            tokens: 0,
            findings: Vec::new(),
        }
    }

    /// Whether there are no errors; if `strict`, also no warnings.
    pub(crate) fn is_fine(&self, strict: bool) -> bool {
        !self.findings.iter().any(|found| strict || found.severity == Severity::Error)
    }
}

impl ServerFinding {
    pub(crate) fn error(rule: &str, message: String, help: &str) -> Self {
        Self::new(Severity::Error, rule, message, help)
    }

    pub(crate) fn warning(rule: &str, message: String, help: &str) -> Self {
        Self::new(Severity::Warning, rule, message, help)
    }

    fn new(severity: Severity, rule: &str, message: String, help: &str) -> Self {
        Self { rule: rule.to_owned(), severity, tool: None, message, help: help.to_owned() }
    }

    pub(crate) fn of(mut self, tool: &str) -> Self {
        self.tool = Some(tool.to_owned());
        self
    }

    pub(crate) fn of_lint(found: &Finding) -> Self {
        Self {
            rule: found.rule.clone(),
            severity: found.severity,
            tool: found.tool.clone(),
            message: found.message.clone(),
            help: found.help.clone(),
        }
    }
}

/// Prints the report.
pub(crate) fn server_report(report: &ServerReport, quiet: bool) {
    say!("{STRONG}{}{STRONG:#}", safe(&report.target));
    for era in &report.eras {
        let CheckedEra { era, method, protocol, server, version, error, .. } = era;
        let named = server.as_ref().map(|server| {
            let named = format!("{server} {}", version.as_deref().unwrap_or_default());
            format!("  {DIM}{}{DIM:#}", safe(named.trim_end()))
        });
        match (protocol, error) {
            (Some(protocol), _) => say!(
                "  {GOOD}✓{GOOD:#} {method} ({era}): {}{}",
                safe(protocol),
                named.unwrap_or_default()
            ),
            (None, Some(error)) => say!("  {DIM}–{DIM:#} {method} ({era}): {}", safe(error)),
            (None, None) => say!("  {DIM}–{DIM:#} {method} ({era})"),
        }
    }
    match &report.suite {
        CheckedSuite { not_run: Some(why), .. } => {
            say!("  {DIM}– conformance suite, not run: {}{DIM:#}", safe(why));
        }
        CheckedSuite { checks, .. } => {
            say!("  {GOOD}✓{GOOD:#} conformance suite: {}", count(*checks, "check"));
        }
    }
    for found in &report.findings {
        let (style, word) = match found.severity {
            Severity::Error => (BAD, "error"),
            Severity::Warning => (WARN, "warning"),
        };
        let tool = found.tool.as_ref().map(|tool| format!("{}: ", safe(tool)));
        say!(
            "  {style}{word}{style:#}{DIM}[{}]{DIM:#} {}{}",
            safe(&found.rule),
            tool.unwrap_or_default(),
            safe(&found.message)
        );
        if !quiet {
            say!("    {GOOD}help{GOOD:#}: {}", safe(&found.help));
        }
    }
    let of = |severity| report.findings.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings) = (of(Severity::Error), of(Severity::Warning));
    let size =
        format!("{}, ~{} tokens in each request", count(report.tools, "tool"), report.tokens);
    match (errors, warnings) {
        (0, 0) => say!("{GOOD}ok{GOOD:#} {size}, no findings"),
        _ => say!("{size}, {}, {}", count(errors, "error"), count(warnings, "warning")),
    }
}
