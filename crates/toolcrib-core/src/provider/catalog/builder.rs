use std::sync::Arc;

use parking_lot::Mutex;

use super::{Catalog, Reason, Tools, WithheldByProvider};
use crate::{provider::listing_info::ListingInfo, tool::Tool};

/// Builds a list tool by tool, and reuses an earlier list: as long as all that is added is in it at
/// the same position, nothing is copied, and an unchanged list is the same instance again.
#[derive(Debug)]
pub struct CatalogBuilder {
    last: Catalog,
    /// The number of added tools that are in `last`.
    offered: usize,
    withheld: usize,
    /// The list, once it differs from `last`.
    changed: Option<Tools>,
    listing_info: ListingInfo,
}

impl CatalogBuilder {
    /// An empty list that may become this one.
    pub fn like(last: Catalog) -> Self {
        let listing_info = ListingInfo::unchanging();
        Self { last, offered: 0, withheld: 0, changed: None, listing_info }
    }

    /// Appends tools that are offered.
    pub fn offer(&mut self, tools: &[Tool]) {
        let end = self.offered + tools.len();
        let last = self.last.offered().get(self.offered..end).filter(|_| self.changed.is_none());
        if last.is_some_and(|last| last.iter().zip(tools).all(|(last, tool)| last.same(tool))) {
            self.offered = end;
        } else {
            self.changed().offered.extend_from_slice(tools);
        }
    }

    /// Appends a withheld tool.
    pub fn withhold(&mut self, tool: &Tool, gate: &Arc<str>, reason: &Reason) {
        if self.changed.is_none()
            && self
                .last
                .withheld_by_provider()
                .get(self.withheld)
                .is_some_and(|last| last.is_of(tool, gate, reason))
        {
            self.withheld += 1;
        } else {
            let (tool, gate, reason) = (tool.clone(), Arc::clone(gate), reason.clone());
            self.changed().withheld_by_provider.push(WithheldByProvider { tool, gate, reason });
        }
    }

    /// Appends another list, with its record of how it was listed. Of several records the most
    /// informative one counts: a stale answer over a fetched one, and that over a fresh cache entry.
    pub fn append(&mut self, catalog: &Catalog) {
        self.listing_info.merge(&catalog.listing_info);
        if catalog.is_empty() {
            return;
        }
        let is_first = self.changed.is_none() && self.offered == 0 && self.withheld == 0;
        if is_first && (self.last.is_empty() || self.last.shares(catalog)) {
            self.offered = catalog.offered().len();
            self.withheld = catalog.withheld_by_provider().len();
            self.last = catalog.clone();
            return;
        }
        self.offer(catalog.offered());
        self.withhold_all(catalog.withheld_by_provider());
    }

    /// Appends tools that the provider withholds.
    pub fn withhold_all(&mut self, withheld: &[WithheldByProvider]) {
        for WithheldByProvider { tool, gate, reason } in withheld {
            self.withhold(tool, gate, reason);
        }
    }

    /// Appends withheld tools of a gated list. The gate might withhold them too, so their reasons are
    /// for the operator alone.
    pub fn withhold_behind_gate(&mut self, withheld: &[WithheldByProvider]) {
        for WithheldByProvider { tool, gate, reason } in withheld {
            match reason {
                Reason::Definition(_, text) => {
                    self.withhold(tool, gate, &Reason::Shared(Arc::clone(text)));
                }
                reason => self.withhold(tool, gate, reason),
            }
        }
    }

    /// Builds the catalog from the appended tools.
    pub fn build(mut self) -> Catalog {
        let is_last = self.changed.is_none()
            && self.offered == self.last.offered().len()
            && self.withheld == self.last.withheld_by_provider().len();
        let tools = if is_last {
            self.last.tools
        } else {
            self.changed();
            self.changed.map(Arc::new)
        };
        Catalog { tools, listing_info: self.listing_info }
    }

    /// The list so far, as one that differs.
    #[cold]
    fn changed(&mut self) -> &mut Tools {
        let (last, offered, withheld) = (&self.last, self.offered, self.withheld);
        self.changed.get_or_insert_with(|| {
            let mut tools = Tools::default();
            // An almost unchanged list then fits.
            tools.offered.reserve(last.offered().len() + 1);
            tools.offered.extend(last.offered().iter().take(offered).cloned());
            let before = last.withheld_by_provider().iter().take(withheld);
            tools.withheld_by_provider.extend(before.cloned());
            tools
        })
    }
}

/// The list that a decorator made last. A decorator whose list is unchanged returns it again.
#[derive(Debug, Default)]
pub(crate) struct LastCatalog(Mutex<Catalog>);

impl LastCatalog {
    /// Begins a list like the last one.
    pub(crate) fn builder(&self) -> CatalogBuilder {
        CatalogBuilder::like(self.0.lock().clone())
    }

    /// Remembers the list.
    pub(crate) fn keep(&self, built: Catalog) -> Catalog {
        let replaced = std::mem::replace(&mut *self.0.lock(), built.clone());
        // Outside the lock: tools may do anything when they are dropped.
        drop(replaced);
        built
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::ToolContext;

    fn tools() -> Vec<Tool> {
        let tool = |name: &str| {
            let body = |_: Value, _: ToolContext| async { "" };
            Tool::builder(name).description("A tool.").handler(body).unwrap()
        };
        ["a", "b", "c"].map(tool).into()
    }

    /// The offered tools, and those withheld for one of two reasons.
    fn list(tools: &[Tool], offered: &[usize], withheld: &[(usize, bool)]) -> Catalog {
        let mut list: Catalog = offered.iter().map(|at| tools[*at].clone()).collect();
        for (at, odd) in withheld {
            list.withhold(tools[*at].clone(), "gate".into(), if *odd { "odd" } else { "even" });
        }
        list
    }

    proptest! {
        /// The earlier list decides on the instance of the result, and on nothing else.
        #[test]
        fn a_list_is_the_same_whatever_the_earlier_one_was(
            parts in proptest::collection::vec((
                proptest::collection::vec(0_usize..3, 0..4),
                proptest::collection::vec((0_usize..3, any::<bool>()), 0..3),
            ), 0..4),
            last in (
                proptest::collection::vec(0_usize..3, 0..6),
                proptest::collection::vec((0_usize..3, any::<bool>()), 0..5),
            ),
        ) {
            let tools = tools();
            let parts: Vec<_> = parts.iter().map(|(a, b)| list(&tools, a, b)).collect();
            let built_like = |last: &Catalog| {
                let mut builder = CatalogBuilder::like(last.clone());
                parts.iter().for_each(|part| builder.append(part));
                builder.build()
            };
            let (mut offered, mut withheld) = (Vec::new(), Vec::new());
            for part in &parts {
                offered.extend_from_slice(part.offered());
                withheld.extend_from_slice(part.withheld_by_provider());
            }
            let expected =
                Tools { offered, withheld_by_provider: withheld, ..Tools::default() };
            let expected = Catalog { tools: Some(Arc::new(expected)), ..Catalog::new() };
            let last = list(&tools, &last.0, &last.1);
            for last in [last, expected.clone()] {
                let built = built_like(&last);
                prop_assert!(built.same(&expected), "{built:?}, not {expected:?}");
                let is_last = last.same(&expected) && !last.is_empty();
                prop_assert!(built.shares(&last) || !is_last);
            }
        }
    }
}
