//! State of conversations that tools share: the files that were read, and the end of the conversation.

use std::sync::Arc;

use parking_lot::Mutex;
use toolcrib_core::{
    __internal::LruCache, CancellationToken, FileReads, Identity, RunningWork, Tool,
};

/// The limit of remembered conversations; the least recently used one is evicted. Its next write
/// over an existing file is refused until the file is read again, and its jobs end.
const MOST_CONVERSATIONS: usize = 1_024;

/// The state of conversations, by the identity that calls are made for.
#[derive(Debug)]
pub(crate) struct SessionState(Mutex<LruCache<Arc<Identity>, ConversationState>>);

#[derive(Debug)]
struct ConversationState {
    reads: Arc<FileReads>,
    end: CancellationToken,
    work: RunningWork,
}

impl Drop for ConversationState {
    fn drop(&mut self) {
        self.end.cancel();
    }
}

/// The state of a call's conversation; empty for a tool that needs none.
#[derive(Debug, Default)]
pub(crate) struct CallState {
    pub(crate) reads: Option<Arc<FileReads>>,
    pub(crate) end: Option<CancellationToken>,
    pub(crate) work: RunningWork,
}

impl Default for SessionState {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(MOST_CONVERSATIONS)))
    }
}

impl SessionState {
    /// The state of a call's conversation, as far as the tool declares files or programs.
    pub(crate) fn of_call(&self, tool: &Tool, identity: &Arc<Identity>) -> CallState {
        let capabilities = tool.capabilities();
        let has_files = capabilities.all_files().next().is_some();
        if !has_files && capabilities.process.is_empty() {
            return CallState::default();
        }
        let of_call = |known: &ConversationState| CallState {
            reads: has_files.then(|| Arc::clone(&known.reads)),
            end: Some(known.end.clone()),
            work: known.work.clone(),
        };
        let mut all = self.0.lock();
        if let Some(known) = all.get(identity) {
            return of_call(known);
        }
        let work = RunningWork::of_conversation();
        let known =
            ConversationState { reads: Arc::default(), end: CancellationToken::new(), work };
        let found = of_call(&known);
        let evicted = all.insert(Arc::clone(identity), known);
        drop(all);
        // Without the lock, as it may contain hundreds of paths.
        drop(evicted);
        found
    }

    /// Whether work of a conversation runs that outlives the calls which began it.
    pub(crate) fn has_running_work(&self, identity: &Identity) -> bool {
        self.0.lock().get(identity).is_some_and(|known| known.work.is_shared())
    }

    /// Removes a conversation that has ended.
    pub(crate) fn forget(&self, identity: &Identity) {
        let gone = self.0.lock().remove(identity);
        drop(gone);
    }
}
