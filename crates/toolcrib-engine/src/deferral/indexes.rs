use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::{__internal::LruCache, Digest, Menu};
use toolcrib_search::Index;

/// How many are kept: one for each different set of deferred tools in use. An index of 10,000 tools
/// takes up to 20 MB. The least recently used one is evicted.
const MOST: usize = 8;

/// The indexes of an engine's latest sets of deferred tools, shared by all turns.
///
/// An index contains texts of tools and no decision: a set with a tool that another principal may
/// not use has another key.
pub(crate) struct Indexes(Mutex<IndexCache>);

struct IndexCache {
    indexes: LruCache<Digest, Arc<Index>>,
    /// The last one that was built: the next one is often a change of it.
    last: Option<Arc<Index>>,
}

impl Default for Indexes {
    fn default() -> Self {
        Self(Mutex::new(IndexCache { indexes: LruCache::new(MOST), last: None }))
    }
}

impl Indexes {
    /// The index of a menu's deferred tools. Building one takes about 50 µs per tool. Returning a
    /// known one allocates nothing.
    pub(crate) fn of(&self, menu: &Menu) -> Arc<Index> {
        let (key, tools) = (menu.deferred_digest(), menu.deferred());
        let last = {
            let mut kept = self.0.lock();
            if let Some(index) = kept.indexes.get(&key) {
                return Arc::clone(index);
            }
            kept.last.clone()
        };
        // Not under the lock. Two turns that begin with the same new set build it twice.
        let index = Arc::new(match last {
            Some(last) => last.updated(tools),
            None => Index::new(tools),
        });
        let mut kept = self.0.lock();
        let gone = kept.indexes.insert(key, Arc::clone(&index));
        let before = kept.last.replace(Arc::clone(&index));
        drop(kept);
        // After the lock is released: tools may do anything when they are dropped.
        drop((gone, before));
        index
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;
    use toolcrib_core::Tool;

    use super::*;

    #[test]
    fn a_known_list_is_indexed_once_and_looked_up_without_allocation() {
        let tools = |version: &str| -> Vec<Tool> {
            let tool = |number: usize| {
                let text = format!("Reads part {number} of a report, {version}.");
                let tool = Tool::builder(format!("tool_{number}")).description(text);
                tool.handler(|_: Value, _| async { "" }).unwrap()
            };
            (0..20).map(tool).collect()
        };
        let menu = |version: &str| Menu::with_deferred(Vec::new(), tools(version)).unwrap();
        let indexes = Indexes::default();
        let (one, other) = (menu("one"), menu("other"));
        let first = indexes.of(&one);
        indexes.of(&other);
        // An equal menu of another turn.
        let again = menu("one");
        let counted = allocation_counter::measure(|| {
            assert!(Arc::ptr_eq(&indexes.of(&again), &first));
        });
        assert_eq!((counted.count_total, counted.bytes_total), (0, 0));
    }
}
