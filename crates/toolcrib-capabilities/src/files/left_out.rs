//! The files and lines that a listing or a search left out.

use std::collections::BTreeMap;

/// The paths of one reason that are named.
const MOST_NAMED: usize = 5;

/// Why a listing or a search left out a part of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// Files over the limit of the folder. They can be searched by their path, and read in parts.
    TooLarge,
    /// Files with a NUL byte.
    Binary,
    /// Files with lines of which only the beginning was matched.
    LongLines,
    /// A file of which only the beginning was searched, since it is over the limit of a search.
    Rest,
    /// Files and folders that the system does not let this user read.
    Unreadable,
    /// Folders below the most levels.
    TooDeep,
    /// Files and folders with names that a path cannot contain, such as control characters.
    Name,
}

/// Files and folders that were left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The reason.
    pub reason: LeftOutReason,
    /// Their number.
    pub count: usize,
    /// The first five, in the order of the walk.
    pub paths: Vec<String>,
}

/// A list of what was left out, by the numbers of a walk.
#[derive(Default)]
pub(super) struct LeftOutList(BTreeMap<LeftOutReason, (usize, BTreeMap<usize, String>)>);

impl LeftOutList {
    pub(super) fn add(&mut self, reason: LeftOutReason, number: usize, path: &str) {
        let (count, first) = self.0.entry(reason).or_default();
        *count += 1;
        first.insert(number, path.to_owned());
        if first.len() > MOST_NAMED {
            first.pop_last();
        }
    }

    pub(super) fn into_all(self) -> Vec<LeftOut> {
        let one = |(reason, (count, first)): (_, (_, BTreeMap<_, _>))| LeftOut {
            reason,
            count,
            paths: first.into_values().collect(),
        };
        self.0.into_iter().map(one).collect()
    }
}
