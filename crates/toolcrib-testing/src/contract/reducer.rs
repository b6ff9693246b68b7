//! The contract of reducers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use serde_json::Value;
use toolcrib_core::{__internal::panic_text, Reducer, ReducerContext, ToolOutput};

use crate::fail::fail;

/// Checks a [`Reducer`] with outputs of its tool and the arguments of their calls: it does not panic,
/// it returns the same for the same input, and no text becomes longer.
///
/// ```
/// use serde_json::json;
/// use toolcrib_core::{Reducer, ReducerContext, ToolOutput};
///
/// struct FirstLine;
///
/// impl Reducer for FirstLine {
///     fn tool_name(&self) -> &str {
///         "read_log"
///     }
///
///     fn reduce(&self, mut output: ToolOutput, _: ReducerContext<'_>) -> ToolOutput {
///         output.value.truncate(output.value.find('\n').unwrap_or(output.value.len()));
///         output
///     }
/// }
///
/// toolcrib_testing::assert_reducer(&FirstLine, [(ToolOutput::text("one\ntwo"), json!({}))]);
/// ```
///
/// # Panics
/// With the broken rule and the number of the output.
#[track_caller]
pub fn assert_reducer(
    reducer: &dyn Reducer,
    outputs: impl IntoIterator<Item = (ToolOutput, Value)>,
) {
    let tool = reducer.tool_name().to_owned();
    for (number, (output, args)) in outputs.into_iter().enumerate() {
        let number = number + 1;
        let reduce = || {
            let work = || reducer.reduce(output.clone(), ReducerContext::new(&args));
            let reduced = catch_unwind(AssertUnwindSafe(work));
            reduced.unwrap_or_else(|panic| {
                let panic = panic_text(&*panic);
                fail(format!("the reducer of `{tool}` panics at output {number}: {panic}"))
            })
        };
        let reduced = reduce();
        if reduced != reduce() {
            fail(format!(
                "the reducer of `{tool}` returns something else for output {number} the second time"
            ));
        }
        let (before, after) = (output.value.chars().count(), reduced.value.chars().count());
        if after > before {
            fail(format!(
                "the reducer of `{tool}` makes output {number} longer: {before} characters become \
                 {after}"
            ));
        }
    }
    if tool != reducer.tool_name() {
        fail(format!("the reducer of `{tool}` changes the name of its tool"));
    }
}
