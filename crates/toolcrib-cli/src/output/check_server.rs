//! The report on an MCP server for its author.

use serde::Serialize;
use toolcrib_lint::{Finding, Severity};

use super::{
    print::say,
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

/// The weight of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerSeverity {
    /// Clients cannot use the server or a part of it, or it attacks a model.
    Error,
    /// Some clients or models use it worse.
    Warning,
    /// A fact without a correction: this check leaves it to the server.
    Note,
}

/// One problem.
#[derive(Debug, Serialize)]
pub(crate) struct ServerFinding {
    rule: String,
    severity: ServerSeverity,
    /// The tools that have it, by the server's own names; `prompt NAME`, `instructions` and the like.
    tools: Vec<String>,
    message: String,
    help: String,
    /// The only handshake after which it is found, if clients can connect with both.
    #[serde(skip_serializing_if = "Option::is_none")]
    only_after: Option<&'static str>,
    /// The tool as the message names it, if it does.
    #[serde(skip)]
    named: Option<String>,
    /// The part that is the same in each example of the fault.
    #[serde(skip)]
    key: Option<&'static str>,
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
        !self.findings.iter().any(|found| match found.severity {
            ServerSeverity::Error => true,
            ServerSeverity::Warning => strict,
            ServerSeverity::Note => false,
        })
    }
}

impl ServerFinding {
    /// Whether it is a finding of a rule.
    pub(crate) fn is_of(&self, rule: &str) -> bool {
        self.rule == rule
    }

    pub(crate) fn error(rule: &str, message: String, help: &str) -> Self {
        Self::new(ServerSeverity::Error, rule, message, help)
    }

    pub(crate) fn warning(rule: &str, message: String, help: &str) -> Self {
        Self::new(ServerSeverity::Warning, rule, message, help)
    }

    pub(crate) fn note(rule: &str, message: String, help: &str) -> Self {
        Self::new(ServerSeverity::Note, rule, message, help)
    }

    pub(crate) fn new(severity: ServerSeverity, rule: &str, message: String, help: &str) -> Self {
        Self {
            rule: rule.to_owned(),
            severity,
            tools: Vec::new(),
            message,
            help: help.to_owned(),
            only_after: None,
            named: None,
            key: None,
        }
    }

    /// Sets the tool that has it.
    pub(crate) fn of(mut self, tool: &str) -> Self {
        self.tools = vec![tool.to_owned()];
        self
    }

    /// Sets what is the same in each example of the fault.
    pub(crate) fn keyed(mut self, key: &'static str) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets the only handshake after which it is found.
    pub(crate) fn only_after(mut self, method: &'static str) -> Self {
        self.only_after = Some(method);
        self
    }

    pub(crate) fn of_lint(found: &Finding) -> Self {
        let severity = match found.severity {
            Severity::Error => ServerSeverity::Error,
            Severity::Warning => ServerSeverity::Warning,
            Severity::Note => ServerSeverity::Note,
        };
        let finding = Self::new(severity, &found.rule, found.message.clone(), &found.help);
        let named = found.tool.as_ref().map(|tool| format!("`{tool}`"));
        Self { named: named.filter(|named| found.message.contains(named)), ..finding }
    }

    pub(crate) fn tools(&self) -> &[String] {
        &self.tools
    }

    /// Whether it is about this tool, and of one of these rules.
    pub(crate) fn is_about(&self, tool: &str, rules: &[&str]) -> bool {
        rules.contains(&self.rule.as_str()) && self.tools.iter().any(|known| known == tool)
    }

    /// Whether it is the same fault, of whatever tool.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same_text = || self.text_with("") == other.text_with("");
        self.rule == other.rule
            && self.severity == other.severity
            && self.only_after == other.only_after
            && self.key == other.key
            && (self.key.is_some() || self.help == other.help && same_text())
    }

    /// Adds the tools of the same fault.
    pub(crate) fn add(&mut self, other: &Self) {
        let new = other.tools.iter().filter(|tool| !self.tools.contains(tool)).cloned();
        self.tools.extend(new.collect::<Vec<_>>());
        let several = format!("each of {} tools", self.tools.len());
        if self.tools.len() > 1 && self.named.is_some() {
            self.message = self.text_with(&several);
            self.named = Some(several);
        }
    }

    /// The message with another word for the tool.
    fn text_with(&self, tool: &str) -> String {
        match &self.named {
            Some(named) => self.message.replacen(named, tool, 1),
            None => self.message.clone(),
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
        print_finding(found, quiet);
    }
    let of = |severity| report.findings.iter().filter(|found| found.severity == severity).count();
    let (errors, warnings, notes) =
        (of(ServerSeverity::Error), of(ServerSeverity::Warning), of(ServerSeverity::Note));
    let size =
        format!("{}, ~{} tokens in each request", count(report.tools, "tool"), report.tokens);
    let notes = if notes > 0 { format!(", {}", count(notes, "note")) } else { String::new() };
    match (errors, warnings) {
        (0, 0) if notes.is_empty() => say!("{GOOD}ok{GOOD:#} {size}, no findings"),
        (0, 0) => say!("{GOOD}ok{GOOD:#} {size}{notes}"),
        _ => say!("{size}, {}, {}{notes}", count(errors, "error"), count(warnings, "warning")),
    }
}

/// How many tools of a finding the text names; JSON names all.
const NAMED: usize = 5;

fn print_finding(found: &ServerFinding, quiet: bool) {
    let (style, word) = match found.severity {
        ServerSeverity::Error => (BAD, "error"),
        ServerSeverity::Warning => (WARN, "warning"),
        ServerSeverity::Note => (DIM, "note"),
    };
    let mut tools: Vec<String> = found.tools.iter().take(NAMED).map(|tool| safe(tool)).collect();
    if let Some(more) = found.tools.len().checked_sub(NAMED).filter(|more| *more > 0) {
        tools.push(format!("{more} more"));
    }
    let tools = if tools.is_empty() { String::new() } else { format!("{}: ", tools.join(", ")) };
    let only = found.only_after.map(|method| format!(" (only after `{method}`)"));
    say!(
        "  {style}{word}{style:#}{DIM}[{}]{DIM:#} {tools}{}{}",
        safe(&found.rule),
        safe(&found.message),
        only.unwrap_or_default()
    );
    if !quiet {
        say!("    {GOOD}help{GOOD:#}: {}", safe(&found.help));
    }
}
