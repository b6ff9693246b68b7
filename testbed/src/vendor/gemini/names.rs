//! Google takes each field under two names, `functionCall` and `function_call`.

use serde_json::Value;

/// What holds data, or keys that are somebody's own.
const DATA: [&str; 7] = [
    "args",
    "response",
    "parametersJsonSchema",
    "responseJsonSchema",
    "enum",
    "default",
    "example",
];

/// The value with every field under its first name. What is data stays as it is.
pub(super) fn in_camel_case(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| {
                let key = camel_case(key);
                let value = match (key.as_str(), value) {
                    (key, value) if DATA.contains(&key) => value.clone(),
                    ("properties", Value::Object(properties)) => properties
                        .iter()
                        .map(|(name, schema)| (name.clone(), in_camel_case(schema)))
                        .collect(),
                    (_, value) => in_camel_case(value),
                };
                (key, value)
            })
            .collect(),
        Value::Array(items) => items.iter().map(in_camel_case).collect(),
        other => other.clone(),
    }
}

fn camel_case(key: &str) -> String {
    let mut words = key.split('_').filter(|word| !word.is_empty());
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        name.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        name.extend(letters);
    }
    name
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_change_their_names_and_data_does_not() {
        let snake = json!({ "function_call": { "name": "a_b", "args": { "order_id": 1 } },
            "properties": { "order_id": { "max_items": 1 } } });
        let camel = json!({ "functionCall": { "name": "a_b", "args": { "order_id": 1 } },
            "properties": { "order_id": { "maxItems": 1 } } });
        assert_eq!(in_camel_case(&snake), camel);
        assert_eq!(in_camel_case(&camel), camel);
    }
}
