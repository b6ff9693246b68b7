use std::collections::HashMap;

use parking_lot::Mutex;

use super::catalog::{Catalog, LastCatalog};
use crate::tool::{Tool, WeakTool};

/// Derived tools, keyed by the address of the original: listing a tool again yields the same
/// derived tool, regardless of listings in between, so that an unchanged listing keeps its
/// identity.
pub(super) struct RewriteCache<M> {
    tools: HashMap<usize, (WeakTool, M)>,
    /// The size at which entries are removed whose original no caller can list again.
    full: usize,
}

impl<M> Default for RewriteCache<M> {
    fn default() -> Self {
        Self { tools: HashMap::new(), full: 0 }
    }
}

impl<M> RewriteCache<M> {
    const FEWEST: usize = 64;

    /// The derived tool.
    pub(super) fn get(&self, tool: &Tool) -> Option<&M> {
        self.tools.get(&tool.address()).map(|(_, made)| made)
    }

    /// Stores the derived tool and replaces an earlier one.
    pub(super) fn keep(&mut self, tool: &Tool, made: M) {
        if self.tools.len() >= self.full.max(Self::FEWEST) {
            self.tools.retain(|_, (raw, _)| raw.is_held());
            self.full = self.tools.len() * 2;
        }
        self.tools.insert(tool.address(), (tool.known(), made));
    }
}

impl RewriteCache<Tool> {
    /// The derived tool, made now if necessary.
    fn of(&mut self, tool: &Tool, derive: impl FnOnce(&Tool) -> Tool) -> Tool {
        if let Some(made) = self.get(tool) {
            return made.clone();
        }
        let made = derive(tool);
        self.keep(tool, made.clone());
        made
    }
}

/// Replaces each tool of a provider's listings, offered or withheld, by one derived from it.
#[derive(Default)]
pub(super) struct ToolMap {
    derived: Mutex<RewriteCache<Tool>>,
    last: LastCatalog,
}

impl ToolMap {
    pub(super) fn apply(&self, catalog: &Catalog, derive: impl Fn(&Tool) -> Tool) -> Catalog {
        let mut mapped = self.last.builder();
        let mut derived = self.derived.lock();
        for tool in catalog.offered() {
            mapped.offer(&[derived.of(tool, &derive)]);
        }
        for held in catalog.withheld_by_provider() {
            mapped.withhold(&derived.of(&held.tool, &derive), &held.gate, &held.reason);
        }
        drop(derived);
        self.last.keep(mapped.build()).with_listing_info(catalog.listing_info().clone())
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
        let mut rewritten = RewriteCache::default();
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
