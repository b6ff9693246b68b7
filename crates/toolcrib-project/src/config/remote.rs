//! What can be said of every source that is asked over a process or a network.

use toolcrib_config::Table;
use toolcrib_engine::OnFailure;

/// What holds where a source does not say `on_failure`: one that is away does not take the others
/// with it.
pub(crate) const REMOTE_ON_FAILURE: OnFailure = OnFailure::Stale;

pub(super) fn read_on_failure(table: &Table<'_>) -> Option<OnFailure> {
    use OnFailure::{Fail, Omit, Stale};
    let words = [("fail", Fail), ("stale", Stale), ("omit", Omit)];
    let word = table.value("on_failure").and_then(|value| value.word(&words));
    word.map(|word| word.value)
}
