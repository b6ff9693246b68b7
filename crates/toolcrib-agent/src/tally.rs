//! The use of a run and its child agents, counted towards the limits of each of them.

use std::{mem, sync::Arc};

use parking_lot::Mutex;
use toolcrib_core::{BudgetUse, Usage, UsageEntry};

use crate::limits::TurnLimits;

/// The limits of a run, and the amount that it and its children have used of them. Children count
/// towards their parents while they run, also those of one parent at the same time.
#[derive(Debug)]
pub(crate) struct Tally {
    limits: TurnLimits,
    parent: Option<Arc<Tally>>,
    counted: Mutex<Totals>,
}

#[derive(Debug)]
struct Totals {
    spent: BudgetUse,
    calls: u32,
    /// The usage of children that the run has not yet added to its own.
    of_children: Usage,
}

impl Tally {
    pub(crate) fn new(limits: TurnLimits, parent: Option<Arc<Self>>) -> Arc<Self> {
        let (spent, of_children) = (BudgetUse::default(), Usage::NOTHING);
        let counted = Mutex::new(Totals { spent, calls: 0, of_children });
        Arc::new(Self { limits, parent, counted })
    }

    pub(crate) fn limits(&self) -> &TurnLimits {
        &self.limits
    }

    /// The tally of the run, then that of its parent, and so on.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |tally| tally.parent.as_deref())
    }

    pub(crate) fn spent(&self) -> BudgetUse {
        self.counted.lock().spent
    }

    pub(crate) fn add(&self, entry: &UsageEntry) {
        for tally in self.all() {
            let mut counted = tally.counted.lock();
            counted.spent = counted.spent.with(entry);
        }
    }

    /// Counts what an interrupted run has used.
    pub(crate) fn resumed(&self, entry: &UsageEntry) {
        let mut counted = self.counted.lock();
        counted.spent = counted.spent.with(entry);
    }

    /// The limit that another call would exceed.
    pub(crate) fn over_calls(&self) -> Option<u32> {
        let over = |tally: &Self| {
            let calls = tally.counted.lock().calls;
            tally.limits.max_calls.filter(|limit| calls >= *limit)
        };
        self.all().find_map(over)
    }

    /// Counts a call.
    pub(crate) fn called(&self) {
        for tally in self.all() {
            tally.counted.lock().calls += 1;
        }
    }

    /// Tells the parents of usage, for their own sums.
    pub(crate) fn tell_parents(&self, usage: Usage) {
        for tally in self.all().skip(1) {
            tally.counted.lock().of_children += usage;
        }
    }

    /// The usage of the children since the last time.
    pub(crate) fn take_children(&self) -> Usage {
        mem::replace(&mut self.counted.lock().of_children, Usage::NOTHING)
    }
}
