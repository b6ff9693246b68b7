//! The cost of tools in every request that offers them.

use crate::{
    catalog::{LintCatalog, Subject},
    report::{Finding, Findings},
    text::some_of,
};

/// A larger tool takes as much room as several typical ones.
const LARGEST_TOOL: usize = 1_000;

pub(super) fn tool(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let is_large = |tool: &&Subject<'_>| tool.tokens() > LARGEST_TOOL && !tool.tool().deferred;
    for tool in catalog.tools().iter().filter(is_large) {
        let message = format!(
            "{} takes about {} tokens of every request ({} characters)",
            tool.shown(),
            tool.tokens(),
            tool.chars()
        );
        let help = format!(
            "typical tools take 50 to 300: shorten its description, remove unused parameters, or \
             split it; over {LARGEST_TOOL} it is reported"
        );
        findings.push(Finding::warning(message, help).of(tool));
    }
}

pub(super) fn catalog(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let mut largest: Vec<_> = catalog.tools().iter().filter(|tool| !tool.tool().deferred).collect();
    let tokens: usize = largest.iter().map(|tool| tool.tokens()).sum();
    let most = catalog.max_tokens();
    if tokens <= most {
        return;
    }
    let tools = largest.len();
    largest.sort_by_key(|tool| std::cmp::Reverse(tool.tokens()));
    let largest: Vec<String> = largest
        .iter()
        .take(3)
        .map(|tool| format!("{} (~{} tokens)", tool.shown(), tool.tokens()))
        .collect();
    let message = format!(
        "all {tools} tools take about {tokens} tokens of every request, over {most}; the largest: {}",
        some_of(&largest)
    );
    let help = "offer them by skill or toolset, remove unused ones, shorten the largest";
    findings.push(Finding::warning(message, help));
}
