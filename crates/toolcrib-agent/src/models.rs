//! The models of an agent.

use std::sync::Arc;

use toolcrib_core::Model;

/// The first model of runs and the fallback models, in order. Each has an index, from 0.
#[derive(Clone)]
pub(crate) struct Models {
    first: Arc<dyn Model>,
    others: Arc<[Arc<dyn Model>]>,
    names: Arc<[Arc<str>]>,
}

impl Models {
    pub(crate) fn new(first: Arc<dyn Model>, others: Vec<Arc<dyn Model>>) -> Self {
        let names = std::iter::once(&first).chain(&others).map(|model| model.name().into());
        Self { names: names.collect(), first, others: others.into() }
    }

    pub(crate) fn first(&self) -> &Arc<dyn Model> {
        &self.first
    }

    /// The model with an index; the first if the index is invalid.
    pub(crate) fn get(&self, number: usize) -> &Arc<dyn Model> {
        let other = number.checked_sub(1).and_then(|at| self.others.get(at));
        other.unwrap_or(&self.first)
    }

    /// All models, in order.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<dyn Model>> {
        std::iter::once(&self.first).chain(&*self.others)
    }

    /// The models' names, by index.
    pub(crate) fn names(&self) -> &Arc<[Arc<str>]> {
        &self.names
    }
}
