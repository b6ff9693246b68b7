//! Tools that a search in other words than their names does not find.
//!
//! The search is that of deferred tools. The need is what the tool itself says that it does: a user's
//! words are never closer to it.

use serde_json::{Value, json};
use toolcrib_core::Tool;
use toolcrib_search::{Index, first_sentence, without_words_of};

use crate::{
    catalog::{LintCatalog, Subject},
    report::{Finding, Findings},
    text::{name, some_of},
};

/// The rank within which a tool is found.
const FOUND: usize = 3;

/// The words of a sentence that are searched for. Needs of models are shorter, and each word costs a
/// pass over all tools.
const MOST_WORDS: usize = 24;

/// The prefix of a source that is an MCP server.
const SERVER: &str = "mcp:";

pub(super) fn cannot_be_found(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    let mut tools: Vec<(&Subject<'_>, Tool)> = Vec::new();
    for subject in catalog.tools().iter().filter(|subject| !subject.tool().framework) {
        // Other rules report tools that cannot be offered.
        tools.extend(searched(subject).map(|tool| (subject, tool)));
    }
    if tools.len() < 2 {
        return;
    }
    let all: Vec<Tool> = tools.iter().map(|(_, tool)| tool.clone()).collect();
    let index = Index::new(&all);
    for (subject, tool) in &tools {
        let sentence = first_sentence(tool.description());
        if sentence.trim().is_empty() {
            continue;
        }
        let need = without_words_of(sentence, tool.name());
        if need.is_empty() {
            let message = format!(
                "the first sentence of {} has only the words of its name: a search in other words \
                 does not find it",
                subject.shown()
            );
            let help =
                "say in the first sentence what the tool does, in words that a user would use";
            findings.push(Finding::warning(message, help).of(subject).at("description"));
            continue;
        }
        let words: Vec<_> = need.split(' ').take(MOST_WORDS).collect();
        let need = words.join(" ");
        let best = index.search(&need, FOUND);
        if best.iter().any(|hit| hit.tool.name() == tool.name()) {
            continue;
        }
        let rank = index.ranking(&need, tool).and_then(|ranking| ranking.rank);
        let neighbors: Vec<_> = best.iter().map(|hit| name(hit.tool.name())).collect();
        let message = format!(
            "{} cannot be found by its first sentence without the words of its name: it ranks {}, \
             after {}",
            subject.shown(),
            rank.map_or_else(|| "nowhere".to_owned(), ordinal),
            some_of(&neighbors)
        );
        let help = "say in the first sentence what only this tool does, and in those of the others \
                    what only they do";
        findings.push(Finding::warning(message, help).of(subject).at("description"));
    }
}

/// The tool as a search indexes it.
fn searched(subject: &Subject<'_>) -> Option<Tool> {
    let tool = subject.tool();
    let schema = subject.schema().cloned().unwrap_or_else(|| json!({ "type": "object" }));
    let mut builder =
        Tool::builder(&*tool.name).description(&*tool.description).input_schema(schema);
    if let Some(server) = tool.source.as_deref().and_then(|source| source.strip_prefix(SERVER)) {
        builder = builder.mcp_server(server).origin(format!("{SERVER}{server}"));
    }
    builder.handler(|_: Value, _| async { "" }).ok()
}

/// `14th`.
fn ordinal(rank: usize) -> String {
    let ending = match (rank % 100, rank % 10) {
        (11..=13, _) => "th",
        (_, 1) => "st",
        (_, 2) => "nd",
        (_, 3) => "rd",
        _ => "th",
    };
    format!("{rank}{ending}")
}
