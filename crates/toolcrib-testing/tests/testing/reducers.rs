//! The contract of reducers: each broken rule is found.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};
use toolcrib_core::{Reducer, ReducerContext, ToolOutput};
use toolcrib_testing::assert_reducer;

struct Of<F>(F);

impl<F: Fn(ToolOutput, &Value) -> ToolOutput + Send + Sync + 'static> Reducer for Of<F> {
    fn tool_name(&self) -> &str {
        "read_log"
    }

    fn reduce(&self, output: ToolOutput, cx: ReducerContext<'_>) -> ToolOutput {
        (self.0)(output, cx.args)
    }
}

fn broken(reducer: &dyn Reducer) -> String {
    let outputs = [(ToolOutput::text("one"), json!({})), (ToolOutput::text("two"), json!({}))];
    let panic = catch_unwind(AssertUnwindSafe(|| assert_reducer(reducer, outputs))).unwrap_err();
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn what_a_reducer_must_not_do_is_found() {
    assert_reducer(
        &Of(|output: ToolOutput, args: &Value| {
            ToolOutput::text(
                output
                    .value
                    .lines()
                    .take(usize::try_from(args["keep"].as_u64().unwrap()).unwrap())
                    .collect::<String>(),
            )
        }),
        [(ToolOutput::text("one\ntwo"), json!({ "keep": 1 }))],
    );
    let panics = broken(&Of(|_: ToolOutput, _: &Value| panic!("bug")));
    assert_eq!(panics, "the reducer of `read_log` panics at output 1: bug");
    let calls = AtomicUsize::new(0);
    let counts = Of(move |_: ToolOutput, _: &Value| {
        ToolOutput::text(calls.fetch_add(1, Ordering::Relaxed).to_string())
    });
    assert!(broken(&counts).contains("for output 1 the second time"));
    let longer = broken(&Of(|output: ToolOutput, _: &Value| {
        ToolOutput::text(format!("{} and more", output.value))
    }));
    assert!(longer.contains("3 characters become 12"), "{longer}");
}
