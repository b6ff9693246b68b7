//! The reducers of an engine: one per tool, also added and removed while turns run.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use parking_lot::RwLock;
use toolcrib_core::Reducer;

use crate::plugin::Contribution;

/// The [reducers](Reducer) of an engine, by the exact names of their tools. Clones share them.
#[derive(Clone, Default)]
pub struct Reducers(Arc<RwLock<ReducerMap>>);

type ReducerMap = HashMap<Arc<str>, Contribution<Arc<dyn Reducer>>>;

/// Two reducers for one tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("two reducers are registered for tool `{0}`; remove one of them")]
pub struct DuplicateReducerError(pub Arc<str>);

/// The handle of a registered reducer. Dropping it does not remove the reducer.
#[derive(Debug)]
pub struct ReducerRegistration {
    reducers: Reducers,
    tool: Arc<str>,
    reducer: Arc<dyn Reducer>,
}

impl Reducers {
    /// Adds a reducer, for all calls whose body ends from now on. To replace one, remove it first.
    ///
    /// # Errors
    /// [`DuplicateReducerError`] if its tool has a reducer.
    pub fn register(
        &self,
        reducer: impl Reducer,
    ) -> Result<ReducerRegistration, DuplicateReducerError> {
        let reducer: Arc<dyn Reducer> = Arc::new(reducer);
        let tool = self.add(Contribution::by_host(Arc::clone(&reducer)))?;
        Ok(ReducerRegistration { reducers: self.clone(), tool, reducer })
    }

    /// The reducer of a tool.
    pub fn get(&self, tool: &str) -> Option<Arc<dyn Reducer>> {
        self.0.read().get(tool).map(|known| Arc::clone(&known.item))
    }

    pub(crate) fn add(
        &self,
        reducer: Contribution<Arc<dyn Reducer>>,
    ) -> Result<Arc<str>, DuplicateReducerError> {
        let tool = Arc::<str>::from(reducer.item.tool_name());
        match self.0.write().entry(Arc::clone(&tool)) {
            Entry::Occupied(_) => Err(DuplicateReducerError(tool)),
            Entry::Vacant(free) => {
                free.insert(reducer);
                Ok(tool)
            }
        }
    }

    /// A copy that changes independently, with those that a condition selects.
    pub(crate) fn copy(&self, keep: impl Fn(&Contribution<Arc<dyn Reducer>>) -> bool) -> Self {
        let kept = self
            .0
            .read()
            .iter()
            .filter(|(_, reducer)| keep(reducer))
            .map(|(tool, reducer)| (Arc::clone(tool), reducer.clone()))
            .collect();
        Self(Arc::new(RwLock::new(kept)))
    }
}

impl ReducerRegistration {
    /// Removes the reducer from its engine. Idempotent: a reducer that was registered for the same
    /// tool later stays.
    pub fn remove(&self) {
        let mut reducers = self.reducers.0.write();
        let is_own = |known: &Contribution<_>| Arc::ptr_eq(&known.item, &self.reducer);
        if reducers.get(&self.tool).is_some_and(is_own) {
            reducers.remove(&self.tool);
        }
    }
}

impl std::fmt::Debug for Reducers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}
