//! Findings of `lint`.

use toolcrib_lint::{Finding, ParsedCatalog, Report, Severity, ToolSize};

use super::{
    KnownSource,
    print::{note, say},
    text::{BAD, DIM, GOOD, STRONG, WARN, count, safe},
};

/// The detected format, if it is not obvious.
pub(crate) fn parsed(parsed: &ParsedCatalog) {
    note!("{DIM}read {} ({}){DIM:#}", count(parsed.tools.len(), "tool"), parsed.format);
    if parsed.skipped > 0 {
        let skipped = count(parsed.skipped, "tool");
        note!("{DIM}left out {skipped} of a vendor's own, which have no description{DIM:#}");
    }
    if parsed.has_more {
        note!("{WARN}notice{WARN:#}: this is one page of a list; the other pages are not checked");
    }
}

/// The tools that sources withhold, which are not checked. `flags` are those of the project and the
/// identity.
pub(crate) fn withheld(sources: &[KnownSource], flags: &str) {
    for source in sources.iter().filter(|source| source.withheld_count > 0) {
        let name = &source.facts.name;
        let withheld = count(source.withheld_count, "tool");
        let asked = match name.strip_prefix("mcp:") {
            Some(server) => format!("toolcrib mcp test {}", safe(server)),
            None => "toolcrib menu --why".to_owned(),
        };
        note!(
            "{DIM}{withheld} of {} withheld and not checked; `{asked}{}` says why{DIM:#}",
            safe(name),
            safe(flags)
        );
    }
}

/// Prints the findings by tool, and a summary. Notes are counted unless `verbose`.
pub(crate) fn findings(report: &Report, quiet: bool, verbose: bool) {
    let shown =
        || report.findings.iter().filter(|found| verbose || found.severity != Severity::Note);
    for (position, tool) in report.tools.iter().enumerate() {
        let mut found = shown().filter(|found| found.position() == Some(position));
        let first = found.next();
        if first.is_some() || verbose {
            head(tool);
        }
        first.into_iter().chain(found).for_each(one);
    }
    let of_none: Vec<_> = shown().filter(|found| found.position().is_none()).collect();
    if !of_none.is_empty() {
        say!("{STRONG}all tools{STRONG:#}");
        of_none.into_iter().for_each(one);
    }
    if quiet {
        return;
    }
    let totals = &report.totals;
    let size = format!("{}, ~{} tokens", count(totals.tools, "tool"), totals.tokens);
    if report.is_clean() {
        say!("{GOOD}ok{GOOD:#} {size}, no findings");
    } else {
        say!(
            "{size}, {} ({}, {})",
            count(totals.errors + totals.warnings, "finding"),
            count(totals.errors, "error"),
            count(totals.warnings, "warning")
        );
    }
    if totals.notes > 0 && !verbose {
        let notes = count(totals.notes, "note");
        note!(
            "{DIM}{notes} about texts of third parties, which only these can improve; -v shows them{DIM:#}"
        );
    }
}

fn head(tool: &ToolSize) {
    let origin = tool.origin.as_ref().map(|origin| format!("{}, ", safe(origin)));
    say!(
        "{STRONG}{}{STRONG:#}  {DIM}{}~{} tokens{DIM:#}",
        shortened(&tool.name),
        origin.unwrap_or_default(),
        tool.tokens
    );
}

fn one(finding: &Finding) {
    let (style, word) = match finding.severity {
        Severity::Error => (BAD, "error"),
        Severity::Warning => (WARN, "warning"),
        Severity::Note => (DIM, "note"),
    };
    let Finding { rule, message, help, .. } = finding;
    say!("  {style}{word}{style:#}{DIM}[{}]{DIM:#} {}", safe(rule), safe(message));
    say!("    {GOOD}help{GOOD:#}: {}", safe(help));
}

/// A name on its own line, shortened if it is far too long.
fn shortened(name: &str) -> String {
    super::text::one_line(name, 100)
}
