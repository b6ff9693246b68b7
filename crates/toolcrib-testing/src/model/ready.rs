//! Models that misbehave in one way each.

use std::time::Duration;

use serde_json::Value;
use toolcrib_core::ModelErrorClass;

use super::{
    TestModel,
    answer::Answer,
    model,
    request::{call, may_call},
};

/// A model that calls one tool over and over, until it may call no more. Then it says
/// `I give up.`, as a model that is told to answer does.
pub fn looping(tool: &str, args: Value) -> TestModel {
    let again = Answer::from(call(tool, args));
    model().named("test:looping").always_with(move |request| {
        if may_call(request) { again.clone() } else { Answer::text("I give up.") }
    })
}

/// A model that takes this long before each of the five words that it says, and before the end.
/// Any other model becomes slow by [`TestModel::slowly`].
pub fn slow(pause: Duration) -> TestModel {
    model().named("test:slow").always("All good things take time.").slowly(pause)
}

/// A model that begins to answer and never ends.
pub fn stalled() -> TestModel {
    model().named("test:stalled").always(Answer::text("Let me think … ").stalls())
}

/// A model that fails before it has said a word. One that fails later is
/// `model().always(Answer::text("We").fails(..))`.
pub fn failing(class: ModelErrorClass, message: &str) -> TestModel {
    model().named("test:failing").always(Answer::text("").fails(class, message))
}
