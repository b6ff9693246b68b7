//! The port against servers that behave, and against those that do not.

mod calls;
mod flood;
mod greetings;
mod http;
mod http_faults;
mod programs;
mod raw;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use serde_json::{Map, Value, json};
use toolcrib_core::CancellationToken;

use super::{CallRequest, Signals};

/// Counts signals.
#[derive(Default)]
struct Counted(AtomicUsize);

impl Signals for Counted {
    fn tools_changed(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Counted {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn unheard() -> Arc<dyn Signals> {
    Arc::new(Counted::default())
}

/// A call that nobody cancels.
fn call(tool: &str) -> CallRequest {
    call_with(tool, json!({}))
}

fn call_with(tool: &str, arguments: Value) -> CallRequest {
    let arguments = match arguments {
        Value::Object(arguments) => arguments,
        _ => Map::new(),
    };
    CallRequest {
        tool: tool.into(),
        arguments: Arc::new(arguments),
        on_progress: Arc::new(|_, _| {}),
        cancellation: CancellationToken::new(),
    }
}
