use std::collections::HashMap;

use crate::tool::{Known, Tool};

/// Tools as they came, by their address, and what was made of each: a tool that is listed again is
/// handed on as the same tool again, whoever lists what in between, so that an unchanged listing
/// stays one.
pub(super) struct Rewritten<M> {
    tools: HashMap<usize, (Known, M)>,
    /// How many there may be before those are forgotten that nobody can list again.
    full: usize,
}

impl<M> Default for Rewritten<M> {
    fn default() -> Self {
        Self { tools: HashMap::new(), full: 0 }
    }
}

impl<M> Rewritten<M> {
    const FEWEST: usize = 64;

    /// What was made of a tool.
    pub(super) fn get(&self, tool: &Tool) -> Option<&M> {
        self.tools.get(&tool.address()).map(|(_, made)| made)
    }

    /// Remembers what was made of a tool, in place of what was made of it before.
    pub(super) fn keep(&mut self, tool: &Tool, made: M) {
        if self.tools.len() >= self.full.max(Self::FEWEST) {
            self.tools.retain(|_, (raw, _)| raw.is_held());
            self.full = self.tools.len() * 2;
        }
        self.tools.insert(tool.address(), (tool.known(), made));
    }
}

impl Rewritten<Tool> {
    /// What was made of a tool, or is made of it now.
    pub(super) fn of(&mut self, tool: &Tool, make: impl FnOnce() -> Tool) -> Tool {
        if let Some(made) = self.get(tool) {
            return made.clone();
        }
        let made = make();
        self.keep(tool, made.clone());
        made
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::ToolContext;

    fn tool() -> Tool {
        Tool::builder("t")
            .description("A tool.")
            .handler(|_: Value, _: ToolContext| async { "" })
            .unwrap()
    }

    #[test]
    fn what_nobody_can_list_again_is_forgotten_before_it_is_twice_as_much_as_the_rest() {
        let mut rewritten = Rewritten::default();
        let held: Vec<_> = (0..100).map(|_| tool()).collect();
        for (number, tool) in held.iter().enumerate() {
            rewritten.keep(tool, number);
        }
        let most = (0..1000).map(|_| {
            rewritten.keep(&tool(), 0);
            rewritten.tools.len()
        });
        assert_eq!(most.max(), Some(200));
        assert!(held.iter().enumerate().all(|(number, tool)| rewritten.get(tool) == Some(&number)));
    }
}
