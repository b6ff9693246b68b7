//! The models of an agent.

use std::sync::Arc;

use toolcrib_core::Model;

/// The model that runs begin with, and those that a rule may have asked instead, in order. Each has a
/// number, from 0.
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

    /// The model of a number; the first for a number that is none.
    pub(crate) fn get(&self, number: usize) -> &Arc<dyn Model> {
        let other = number.checked_sub(1).and_then(|at| self.others.get(at));
        other.unwrap_or(&self.first)
    }

    /// What they are called, by number.
    pub(crate) fn names(&self) -> &Arc<[Arc<str>]> {
        &self.names
    }
}
