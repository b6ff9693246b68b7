//! What can be said of every source that is asked over a process or a network.

use toolcrib_config::Table;
use toolcrib_core::ListOrder;
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

/// In which order a source's tools are offered.
pub(super) fn read_order(table: &Table<'_>) -> ListOrder {
    let words = [("by_name", ListOrder::ByName), ("as_given", ListOrder::AsGiven)];
    let word = table.value("order").and_then(|value| value.word(&words));
    word.map(|word| word.value).unwrap_or_default()
}
