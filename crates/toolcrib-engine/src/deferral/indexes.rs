use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::{__internal::Bounded, Digest, Tool};
use toolcrib_search::Index;

/// How many are kept: one for each different set of deferred tools in use. An index of 10,000 tools
/// takes up to 20 MB. The least recently used one is evicted.
const MOST: usize = 8;

/// The indexes of an engine's latest sets of deferred tools, shared by all turns.
///
/// An index contains texts of tools and no decision: a set with a tool that another principal may
/// not use has another key.
pub(crate) struct Indexes(Mutex<Kept>);

struct Kept {
    indexes: Bounded<Digest, Arc<Index>>,
    /// The last one that was built: the next one is often a change of it.
    last: Option<Arc<Index>>,
}

impl Default for Indexes {
    fn default() -> Self {
        Self(Mutex::new(Kept { indexes: Bounded::new(MOST), last: None }))
    }
}

impl Indexes {
    /// The index of these tools. Building one takes about 50 µs per tool.
    pub(crate) fn of(&self, tools: &[Tool]) -> Arc<Index> {
        let key = key(tools);
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

/// A digest of everything that a search reads, in order.
fn key(tools: &[Tool]) -> Digest {
    let texts = tools.iter().flat_map(|tool| {
        let group =
            [tool.toolset().unwrap_or_default(), "\0", tool.mcp_server().unwrap_or_default()];
        [tool.digest(), Digest::of(group.concat())]
    });
    Digest::of_all(&texts.collect::<Vec<_>>())
}
