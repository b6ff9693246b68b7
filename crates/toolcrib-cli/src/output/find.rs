//! The result of a search, for people and as JSON.

use serde::{Serialize, Serializer};
use toolcrib_core::Tool;
use toolcrib_engine::{Explanation, FOUND_PER_NEED};

use super::{
    count, explain,
    print::say,
    text::{DIM, GOOD, STRONG, WARN, one_line, safe},
};

/// The result of a search.
#[derive(Serialize)]
pub(crate) struct FindJson<'a> {
    pub(crate) need: &'a str,
    /// Whether deferred tools were searched; otherwise none is deferred, and all were.
    pub(crate) deferred: bool,
    /// The number of searched tools.
    pub(crate) among: usize,
    pub(crate) found: Vec<FoundTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<ExpectedTool>,
}

/// A found tool.
#[derive(Serialize)]
pub(crate) struct FoundTool {
    pub(crate) rank: usize,
    #[serde(serialize_with = "name")]
    pub(crate) tool: Tool,
    /// The words of the need that its texts contain.
    pub(crate) matched: Vec<String>,
}

fn name<S: Serializer>(tool: &Tool, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(tool.name())
}

/// The place of a tool that was expected.
#[derive(Serialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub(crate) enum ExpectedTool {
    /// Its rank; `None` if it has no word of the need.
    Ranked { rank: Option<usize>, is_found: bool, matched: Vec<String>, missing: Vec<String> },
    /// The model reads its definition in each request.
    Defined,
    /// It is not offered, and so never found.
    Withheld { why: Explanation },
}

impl ExpectedTool {
    /// Whether a model finds or reads it.
    pub(crate) fn is_found(&self) -> bool {
        match self {
            Self::Ranked { is_found, .. } => *is_found,
            Self::Defined => true,
            Self::Withheld { .. } => false,
        }
    }
}

/// The result of a search, for people.
pub(crate) fn found(result: &FindJson<'_>) {
    let kind = if result.deferred { "deferred tool" } else { "offered tool" };
    say!("{STRONG}found{STRONG:#} ({} of {})", result.found.len(), count(result.among, kind));
    for FoundTool { rank, tool, matched } in &result.found {
        let description = one_line(tool.description(), 72);
        say!("  {rank}  {GOOD}{}{GOOD:#}  {DIM}{description}{DIM:#}", tool.name());
        say!("     {DIM}matched: {}{DIM:#}", safe(&listed(matched)));
    }
    match &result.expected {
        Some(ExpectedTool::Ranked { rank, is_found, matched, missing }) => {
            let style = if *is_found { GOOD } else { WARN };
            let place = match rank {
                Some(rank) if *is_found => format!("rank {rank}"),
                Some(rank) => {
                    format!("rank {rank}, not found: a search lists the first {FOUND_PER_NEED}")
                }
                None => "not found: no word of the need is in its texts".to_owned(),
            };
            say!("{STRONG}expected{STRONG:#}: {style}{place}{style:#}");
            say!("  in its texts: {}", safe(&listed(matched)));
            say!("  not in its texts: {}", safe(&listed(missing)));
        }
        Some(ExpectedTool::Defined) => {
            say!("{STRONG}expected{STRONG:#}: not deferred; each request contains its definition");
        }
        Some(ExpectedTool::Withheld { why }) => explain::why(why),
        None => {}
    }
}

fn listed(words: &[String]) -> String {
    if words.is_empty() { "no word".to_owned() } else { words.join(", ") }
}
