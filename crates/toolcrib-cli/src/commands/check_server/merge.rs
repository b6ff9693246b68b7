//! One finding for each fault: over both handshakes, and over all tools that have it.

use crate::output::ServerFinding;

/// Merges the findings after several handshakes, each with its method.
pub(super) fn merge(all: Vec<(&'static str, Vec<ServerFinding>)>) -> Vec<ServerFinding> {
    let (handshakes, mut found) = (all.len(), Vec::<(ServerFinding, &'static str, usize)>::new());
    for (position, (method, findings)) in all.into_iter().enumerate() {
        for finding in findings {
            let same = found.iter_mut().find(|(known, _, last)| {
                // One that occurs twice after one handshake is two faults.
                *last < position && known.is_same(&finding) && known.tools() == finding.tools()
            });
            match same {
                Some((_, _, last)) => *last = usize::MAX,
                None => found.push((finding, method, position)),
            }
        }
    }
    let mut merged = Vec::<ServerFinding>::new();
    for (finding, method, last) in found {
        let is_of_one = handshakes > 1 && last != usize::MAX;
        let finding = if is_of_one { finding.only_after(method) } else { finding };
        let is_same = |known: &&mut ServerFinding| {
            !finding.tools().is_empty() && !known.tools().is_empty() && known.is_same(&finding)
        };
        match merged.iter_mut().find(is_same) {
            Some(known) => known.add(&finding),
            None => merged.push(finding),
        }
    }
    merged
}
