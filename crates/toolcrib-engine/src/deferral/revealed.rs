use serde_json::Value;
use toolcrib_core::{Arguments, Message, SEARCH_TOOLS, ToolName, ToolResult};

use super::CALL_TOOL;

/// The tools that the searches of a conversation have found, in the order of their finding.
///
/// The state follows from the results alone: from the results of a running turn, or from the
/// messages of a stored conversation, with the same outcome.
#[derive(Debug, Clone, Default)]
pub struct RevealedTools {
    /// Each with the time of its last use.
    tools: Vec<(ToolName, u64)>,
    clock: u64,
    /// Counts the changes of the list.
    version: u64,
}

/// The difference that results make.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RevealDiff {
    pub(crate) tools: Vec<ToolName>,
    pub(crate) evicted: Vec<ToolName>,
}

impl RevealedTools {
    /// Tools that were found in this order, such as by another process.
    pub fn named(names: impl IntoIterator<Item = ToolName>) -> Self {
        let tools: Vec<_> = names.into_iter().map(|name| (name, 0)).collect();
        let version = u64::from(!tools.is_empty());
        Self { tools, clock: 0, version }
    }

    /// The tools that a conversation has revealed, with at most `limit` at a time.
    pub(crate) fn of(messages: &[Message], limit: usize) -> Self {
        let mut revealed = Self::default();
        let mut calls: &[_] = &[];
        for message in messages {
            match message {
                Message::Assistant { calls: made, .. } => calls = made,
                Message::Tool { call_id, name, .. } => {
                    let found = message.found_tools();
                    if !found.is_empty() {
                        revealed.add(found, limit);
                        continue;
                    }
                    let call = calls.iter().find(|call| call.id == *call_id);
                    match call.filter(|_| **name == *CALL_TOOL) {
                        Some(call) => {
                            target(&call.arguments).iter().for_each(|name| revealed.used(name));
                        }
                        None => revealed.used(name),
                    }
                }
                _ => {}
            }
        }
        revealed
    }

    /// Takes in the results of a batch of calls, in call order.
    pub(crate) fn settle(&mut self, results: &[ToolResult], limit: usize) -> RevealDiff {
        let mut new = RevealDiff::default();
        for result in results {
            if *result.name != *SEARCH_TOOLS {
                self.used(&result.name);
                continue;
            }
            let RevealDiff { tools, evicted } = self.add(result.message().found_tools(), limit);
            new.tools.extend(tools);
            new.evicted.extend(evicted);
        }
        new
    }

    /// The names, in the order in which they were found.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &ToolName> {
        self.tools.iter().map(|(name, _)| name)
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    fn used(&mut self, name: &str) {
        self.clock += 1;
        if let Some((_, used)) = self.tools.iter_mut().find(|(tool, _)| **tool == *name) {
            *used = self.clock;
        }
    }

    fn add(&mut self, found: Vec<ToolName>, limit: usize) -> RevealDiff {
        let mut new = RevealDiff::default();
        for name in found {
            self.used(&name);
            if self.names().any(|known| *known == name) {
                continue;
            }
            self.tools.push((name.clone(), self.clock));
            new.tools.push(name);
        }
        while self.tools.len() > limit {
            let oldest = self.tools.iter().enumerate().min_by_key(|(_, (_, used))| *used);
            let Some((position, _)) = oldest else { break };
            let (gone, _) = self.tools.remove(position);
            new.evicted.push(gone);
        }
        if !new.tools.is_empty() {
            self.version += 1;
        }
        new
    }
}

/// The tool that the arguments of `call_tool` name.
fn target(arguments: &Arguments) -> Option<String> {
    let name = |arguments: &Value| arguments.get("tool")?.as_str().map(str::to_owned);
    match arguments {
        Arguments::Json(arguments) => name(arguments),
        Arguments::Text(text) => name(&serde_json::from_str(text).ok()?),
    }
}
