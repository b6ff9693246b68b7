//! Classifies Ollama's errors.

use serde_json::Value;
use toolcrib_core::ModelErrorClass;

use crate::adapters::{failure::says_context_overflow, protocol::Refusal};

/// The body of an error response, or a line of a response: an object with only a message.
pub(super) fn of_body(body: &Value) -> Refusal {
    let error = body.get("error");
    // A gateway before it may respond like OpenAI, with an object.
    let words = error.and_then(|error| error.get("message").unwrap_or(error).as_str());
    let overflows = words.is_some_and(says_context_overflow);
    Refusal {
        class: overflows.then_some(ModelErrorClass::ContextOverflow),
        message: words.map(str::to_owned),
        retry_after: None,
    }
}
