//! Arguments that a schema allows.

use serde_json::{Map, Value, json};

/// A value of a schema; `root` has its definitions. Deep inside, only what is required.
pub(crate) fn sample(schema: &Value, root: &Value, level: usize) -> Value {
    if let Some(reference) = schema["$ref"].as_str() {
        let target = root.pointer(reference.trim_start_matches('#')).unwrap();
        return if level > 12 { Value::Null } else { sample(target, root, level + 1) };
    }
    if let Some(constant) = schema.get("const") {
        return constant.clone();
    }
    if let Some(all) = schema["enum"].as_array() {
        return all[0].clone();
    }
    if let Some(default) = schema.get("default").filter(|value| !value.is_null())
        && schema.get("properties").is_none()
        && schema.get("anyOf").is_none()
    {
        return default.clone();
    }
    let own = own(schema, root, level);
    let mut all = vec![own];
    for key in ["allOf", "anyOf"] {
        let parts = schema[key].as_array().map(Vec::as_slice).unwrap_or_default();
        let chosen = if key == "anyOf" { parts.get(..1).unwrap_or_default() } else { parts };
        all.extend(chosen.iter().map(|part| sample(part, root, level)));
    }
    let mut merged = Map::new();
    let mut scalar = Value::Null;
    for value in all {
        match value {
            Value::Object(map) => merged.extend(map),
            Value::Null => {}
            other => scalar = other,
        }
    }
    if scalar.is_null() && (schema["type"] == "object" || !merged.is_empty()) {
        return merged.into();
    }
    if scalar.is_null() && schema["type"] != "null" { json!({}) } else { scalar }
}

fn own(schema: &Value, root: &Value, level: usize) -> Value {
    let kind = match &schema["type"] {
        Value::Array(kinds) => kinds.iter().find(|kind| *kind != "null").unwrap_or(&Value::Null),
        kind => kind,
    };
    let number = |key: &str| schema[key].as_f64();
    match kind.as_str() {
        Some("object") => object(schema, root, level),
        None if schema["properties"].is_object() => object(schema, root, level),
        Some("array") => {
            let least = schema["minItems"].as_u64().unwrap_or(0);
            let count = if level > 6 { least } else { least.max(1) };
            let items = (0..count).map(|_| sample(&schema["items"], root, level + 1));
            items.collect::<Vec<_>>().into()
        }
        Some("string") => text(schema).into(),
        Some("boolean") => true.into(),
        Some("integer" | "number") => {
            let least = number("minimum").or(number("exclusiveMinimum").map(|least| least + 1.0));
            let most = number("maximum").or(number("exclusiveMaximum").map(|most| most - 1.0));
            let value = least.unwrap_or_else(|| most.map_or(1.0, |most| most.min(1.0)));
            let value = number("multipleOf").map_or(value, |of| (value / of).ceil() * of);
            if kind == "integer" { json!(value as i64) } else { json!(value) }
        }
        _ => Value::Null,
    }
}

fn object(schema: &Value, root: &Value, level: usize) -> Value {
    let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
    let properties = schema["properties"].as_object();
    let is_wanted = |name: &str| level < 3 || required.iter().any(|one| one == name);
    let all = properties.into_iter().flatten().filter(|(name, _)| is_wanted(name));
    all.map(|(name, schema)| (name.clone(), sample(schema, root, level + 1)))
        .collect::<Map<_, _>>()
        .into()
}

fn text(schema: &Value) -> String {
    let text = match schema["format"].as_str().unwrap_or_default() {
        "date-time" => "2026-01-02T03:04:05Z",
        "date" => "2026-01-02",
        "time" => "03:04:05Z",
        "uuid" => "123e4567-e89b-42d3-a456-426614174000",
        "email" => "a@example.com",
        "uri" | "url" | "uri-reference" => "https://example.com/a",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        "hostname" => "a.example.com",
        "byte" => "YQ==",
        _ => "example",
    };
    let mut text = match schema["pattern"].as_str() {
        None => text.to_owned(),
        Some(pattern) => {
            let candidates = [
                text,
                "1",
                "12345",
                "a",
                "abc",
                "ABC",
                "US",
                "USD",
                "en-US",
                "0123456789abcdef",
                "#ffffff",
                "2026-01-02",
                "a@example.com",
                "https://example.com",
                "1.0",
                "file_1",
                "0123456789abcdef0123456789abcdef01234567",
                "owner/name",
            ];
            let regex = regex_lite::Regex::new(pattern);
            let fits = |one: &&str| regex.as_ref().is_ok_and(|regex| regex.is_match(one));
            candidates.into_iter().find(fits).unwrap_or(text).to_owned()
        }
    };
    let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
    while text.len() < least {
        text.push('a');
    }
    if let Some(most) = schema["maxLength"].as_u64() {
        text.truncate(most as usize);
    }
    text
}
