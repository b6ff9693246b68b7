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

/// A model that calls one tool repeatedly until calls are not allowed. Then it responds
/// `I give up.`, as a model that must answer does.
pub fn looping(tool: &str, args: Value) -> TestModel {
    let again = Answer::from(call(tool, args));
    model().named("test:looping").always_with(move |request| {
        if may_call(request) { again.clone() } else { Answer::text("I give up.") }
    })
}

/// A model that pauses before each of its five words, and before the end. Any other model becomes
/// slow by [`TestModel::slowly`].
pub fn slow(pause: Duration) -> TestModel {
    model().named("test:slow").always("All good things take time.").slowly(pause)
}

/// A model that starts a response and never ends it.
pub fn stalled() -> TestModel {
    model().named("test:stalled").always(Answer::text("Let me think … ").stalls())
}

/// A model that fails before its first word. One that fails later is
/// `model().always(Answer::text("We").fails(..))`.
pub fn failing(class: ModelErrorClass, message: &str) -> TestModel {
    model().named("test:failing").always(Answer::text("").fails(class, message))
}
