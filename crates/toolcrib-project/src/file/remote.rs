//! Keys of every source that is queried over a process or a network.

use toolcrib_config::Table;
use toolcrib_engine::OnFailure;
pub(crate) use toolcrib_tools::hub::read_order;

/// The default of `on_failure`: a failed source does not affect the others.
pub(crate) const REMOTE_ON_FAILURE: OnFailure = OnFailure::Stale;

pub(crate) fn read_on_failure(table: &Table<'_>) -> Option<OnFailure> {
    use OnFailure::{Fail, Omit, Stale};
    let words = [("fail", Fail), ("stale", Stale), ("omit", Omit)];
    let word = table.value("on_failure").and_then(|value| value.word(&words));
    word.map(|word| word.value)
}

/// `fence`: whether the texts of a server, or for a token, are not fenced.
pub(crate) fn read_unfenced(table: &Table<'_>) -> bool {
    let fence = table.value("fence");
    let word = fence.and_then(|value| value.word(&[("model", false), ("off", true)]));
    word.is_some_and(|word| word.value)
}
