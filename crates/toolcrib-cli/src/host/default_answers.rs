//! `--accept-defaults`: answers the forms of MCP servers without a person, with the values that the
//! forms suggest.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use toolcrib_core::{ClientAbilities, ClientPort, ClientRefusal};

/// A client that accepts each form with its default values, and cancels one that requires more.
pub(crate) struct DefaultAnswers;

impl ClientPort for DefaultAnswers {
    fn abilities(&self, _: &str) -> ClientAbilities {
        let mut can = ClientAbilities::default();
        can.elicitation_form = true;
        can.in_session = true;
        can
    }

    fn key(&self) -> usize {
        0
    }

    fn request(
        &self,
        _: Arc<str>,
        requests: Map<String, Value>,
    ) -> BoxFuture<'static, Result<Map<String, Value>, ClientRefusal>> {
        Box::pin(async move {
            let answered = requests.into_iter().map(|(key, request)| {
                let form = request.pointer("/params/requestedSchema");
                (key, answer(form.unwrap_or(&Value::Null)))
            });
            Ok(answered.collect())
        })
    }
}

/// The default values of a form; a cancellation if a required field has none.
fn answer(form: &Value) -> Value {
    let fields = form.get("properties").and_then(Value::as_object);
    let defaults = fields.into_iter().flatten().filter_map(|(name, field)| {
        field.get("default").map(|default| (name.clone(), default.clone()))
    });
    let content: Map<_, _> = defaults.collect();
    let required = form.get("required").and_then(Value::as_array);
    let mut required = required.into_iter().flatten().filter_map(Value::as_str);
    match required.all(|name| content.contains_key(name)) {
        true => json!({ "action": "accept", "content": content }),
        false => json!({ "action": "cancel" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_accepted_with_its_defaults_or_cancelled() {
        let form = json!({
            "properties": { "a": { "default": 1 }, "b": { "type": "string" } },
            "required": ["a"],
        });
        assert_eq!(answer(&form), json!({ "action": "accept", "content": { "a": 1 } }));
        let form = json!({ "properties": { "b": {} }, "required": ["b"] });
        assert_eq!(answer(&form), json!({ "action": "cancel" }));
        assert_eq!(answer(&Value::Null), json!({ "action": "accept", "content": {} }));
    }
}
