//! Calls that a server sends more than once.
//!
//! Some servers repeat calls whole: in the last chunk of a stream, or all of them in each chunk. A
//! model may also write two equal calls, such as two rolls of one die, and then both are made. What
//! distinguishes them is the id; without ids, whether a frame repeats the whole list.

use std::collections::{HashMap, HashSet};

use toolcrib_core::{__internal::PlainJson, Digest, args_digest};

/// A partial call.
#[derive(Debug, Default)]
pub(super) struct PartialCall {
    /// The vendor's number of the call within the response, if it has one.
    pub(super) index: u64,
    /// The number that tells calls without ids apart, if the server sends one.
    pub(super) number: Option<u64>,
    /// The id; if empty, the caller's loop assigns one.
    pub(super) id: String,
    /// The tool.
    pub(super) name: String,
    /// The arguments as text, which should be JSON when complete. A call without arguments has
    /// `{}`.
    pub(super) arguments: String,
    /// The frame in which it began.
    pub(super) frame: usize,
}

/// The positions of the calls that repeat others, in order. `last_frame` is the one with the stop
/// reason.
pub(super) fn repeated_calls(calls: &[PartialCall], last_frame: Option<usize>) -> Vec<usize> {
    if calls.len() < 2 {
        return Vec::new();
    }
    let mut repeated = same_ids(calls);
    repeated.extend(same_lists(calls, last_frame, &repeated));
    let mut positions: Vec<_> = repeated.into_iter().collect();
    positions.sort_unstable();
    positions
}

/// Calls with the id of an earlier one and the same name and arguments. Calls that differ stay,
/// because some servers give all calls one id.
fn same_ids(calls: &[PartialCall]) -> HashSet<usize> {
    let mut repeated = HashSet::new();
    let mut first: HashMap<&str, usize> = HashMap::new();
    // Computed only for calls that share an id.
    let mut known: HashSet<(&str, Digest)> = HashSet::new();
    for (position, call) in calls.iter().enumerate().filter(|(_, call)| !call.id.is_empty()) {
        match first.get(&*call.id).and_then(|first| calls.get(*first)) {
            None => drop(first.insert(&call.id, position)),
            Some(first) => {
                known.insert((&first.id, digest(first)));
                if !known.insert((&call.id, digest(call))) {
                    repeated.insert(position);
                }
            }
        }
    }
    repeated
}

/// Calls of frames that begin with the whole list so far. One call is a list only where another sign
/// says that it is repeated: the server's number of the call, or the stop reason in the same frame.
/// Ollama itself sends each call in its own frame, before the last one, without a number in older
/// versions.
fn same_lists(
    calls: &[PartialCall],
    last_frame: Option<usize>,
    without: &HashSet<usize>,
) -> Vec<usize> {
    let mut repeated = Vec::new();
    let mut list: Vec<&PartialCall> = Vec::new();
    let left: Vec<_> =
        calls.iter().enumerate().filter(|(position, _)| !without.contains(position)).collect();
    for frame in left.chunk_by(|(_, one), (_, next)| one.frame == next.frame) {
        let is_sure = |(_, call): &(usize, &PartialCall)| {
            frame.len() > 1 || call.number.is_some() || Some(call.frame) == last_frame
        };
        let is_repeated = !list.is_empty()
            && frame.len() >= list.len()
            && frame.first().is_some_and(is_sure)
            && list.iter().zip(frame).all(|(earlier, (_, call))| is_same(earlier, call));
        let old = if is_repeated { list.len() } else { 0 };
        repeated.extend(frame.iter().take(old).map(|(position, _)| *position));
        list.extend(frame.iter().skip(old).map(|(_, call)| *call));
    }
    repeated
}

fn is_same(one: &PartialCall, other: &PartialCall) -> bool {
    let has_same_id = one.id == other.id || one.id.is_empty() || other.id.is_empty();
    let has_same_number =
        one.number == other.number || one.number.is_none() || other.number.is_none();
    let has_same_arguments = || one.arguments == other.arguments || digest(one) == digest(other);
    has_same_id && has_same_number && one.name == other.name && has_same_arguments()
}

/// A digest of name and arguments, whatever the blanks and the order of keys in the JSON.
fn digest(call: &PartialCall) -> Digest {
    let text = call.arguments.trim();
    let text = if text.is_empty() { "{}" } else { text };
    match PlainJson::read(text.as_bytes()) {
        Ok(arguments) => args_digest(&call.name, &arguments),
        Err(_) => Digest::of_all(&[Digest::of(&call.name), Digest::of(text)]),
    }
}
