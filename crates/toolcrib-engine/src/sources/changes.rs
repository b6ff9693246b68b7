//! What a source answers, against what it answered before.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
};

use toolcrib_core::{Tool, ToolName};

use super::last_good::Key;

/// How many answers are remembered per source; the one that was heard longest ago makes room.
const MOST_ANSWERS: usize = 64;

/// The last answers of one source, one per [`Key`].
#[derive(Default)]
pub(crate) struct Changes(Mutex<VecDeque<(Key, Vec<Tool>)>>);

/// What is different now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) added: Vec<ToolName>,
    pub(crate) removed: Vec<ToolName>,
    pub(crate) changed: Vec<ToolName>,
}

impl Changes {
    /// Remembers an answer, and says how it differs from the one before. An answer of the very same
    /// tools is found to be one without looking into them.
    pub(crate) fn heard(&self, key: Key, offered: &[Tool]) -> Option<Difference> {
        // Nothing under this lock can panic half-way.
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = known.iter().position(|(of, _)| *of == key);
        let Some((_, before)) = before.and_then(|at| known.remove(at)) else {
            if known.len() >= MOST_ANSWERS {
                known.pop_front();
            }
            known.push_back((key, offered.to_vec()));
            return None;
        };
        let unchanged = before.len() == offered.len()
            && before.iter().zip(offered).all(|(before, now)| before.same(now));
        if unchanged {
            known.push_back((key, before));
            return None;
        }
        known.push_back((key, offered.to_vec()));
        drop(known);
        Difference::between(&before, offered)
    }
}

impl Difference {
    /// None where the model would read the same.
    fn between(before: &[Tool], now: &[Tool]) -> Option<Self> {
        let by_name = |tools: &[Tool]| -> HashMap<ToolName, _> {
            tools.iter().map(|tool| (tool.name().clone(), tool.digest())).collect()
        };
        let (known, current) = (by_name(before), by_name(now));
        let mut difference = Self { added: Vec::new(), removed: Vec::new(), changed: Vec::new() };
        for tool in now {
            match known.get(tool.name()) {
                None => difference.added.push(tool.name().clone()),
                Some(digest) if *digest != tool.digest() => {
                    difference.changed.push(tool.name().clone());
                }
                Some(_) => {}
            }
        }
        for tool in before {
            if !current.contains_key(tool.name()) {
                difference.removed.push(tool.name().clone());
            }
        }
        let same = difference.added.is_empty()
            && difference.removed.is_empty()
            && difference.changed.is_empty();
        (!same).then_some(difference)
    }
}
