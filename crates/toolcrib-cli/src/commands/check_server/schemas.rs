//! Schemas that are valid, and not what their author means: no value fits, a default does not, a
//! misspelt keyword has no effect.

use serde_json::{Map, Value, json};
use toolcrib_config::suggest;
use toolcrib_core::__internal::{CompiledSchema, Subschemas, may_describe_elsewhere, subschemas};

use crate::output::ServerFinding;

/// The limit of defaults of one schema that are checked: each is compiled.
const MOST_DEFAULTS: usize = 200;

/// The pairs of keywords of which the first is the lower limit.
const RANGES: [(&str, &str); 5] = [
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
];

/// The keywords whose misspelt forms are found: those that authors write by hand.
const KEYWORDS: [&str; 22] = [
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "description",
    "enum",
    "examples",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "oneOf",
    "pattern",
    "properties",
    "required",
    "title",
    "type",
];

/// Keywords of JSON Schema and of its dialects that are similar to one of the others.
const OTHERS: [&str; 12] = [
    "$defs",
    "definitions",
    "example",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "formats",
    "additionalItems",
    "nullable",
    "prefixItems",
    "readOnly",
    "uniqueItems",
    "errorMessage",
];

/// Judges a schema that can be enforced.
pub(super) fn judge(schema: &Value) -> Vec<ServerFinding> {
    let mut judge = Judge { root: schema, path: Vec::new(), defaults: 0, findings: Vec::new() };
    judge.schema(schema);
    judge.findings
}

struct Judge<'a> {
    root: &'a Value,
    /// The names of the properties to the present schema.
    path: Vec<String>,
    defaults: usize,
    findings: Vec<ServerFinding>,
}

impl<'a> Judge<'a> {
    /// Recursive: as deep as the schema, whose nesting is limited.
    fn schema(&mut self, schema: &'a Value) {
        let Value::Object(fields) = schema else { return };
        self.default(fields);
        self.values(fields);
        self.ranges(fields);
        self.required(fields);
        self.keywords(fields);
        for (key, value) in fields {
            match (subschemas(key), value) {
                (Some(Subschemas::One), Value::Object(_)) => {
                    let is_list = key == "items";
                    if is_list {
                        self.path.push("[]".to_owned());
                    }
                    self.schema(value);
                    if is_list {
                        self.path.pop();
                    }
                }
                (Some(Subschemas::One | Subschemas::List), Value::Array(all)) => {
                    all.iter().for_each(|one| self.schema(one));
                }
                (Some(Subschemas::Named), Value::Object(all)) => {
                    for (name, one) in all {
                        self.path.push(name.clone());
                        self.schema(one);
                        self.path.pop();
                    }
                }
                _ => {}
            }
        }
    }

    /// The present part in words.
    fn part(&self) -> String {
        match self.path.is_empty() {
            true => "its schema".to_owned(),
            false => {
                let path = self.path.join(".").replace(".[]", "[]");
                suggest::quoted([toolcrib_core::__internal::beginning(&path, 100).as_str()])
            }
        }
    }

    fn default(&mut self, fields: &Map<String, Value>) {
        let Some(default) = fields.get("default") else { return };
        self.defaults += 1;
        if self.defaults > MOST_DEFAULTS {
            return;
        }
        let mut own = fields.clone();
        own.shift_remove("default");
        for key in ["$schema", "$defs", "definitions"] {
            if let Some(shared) = self.root.get(key) {
                own.entry(key).or_insert_with(|| shared.clone());
            }
        }
        // One that refers to the root by another path is not checked.
        let Ok(compiled) = CompiledSchema::new(&Value::Object(own)) else { return };
        if !compiled.fits_at_once(default) {
            let problems = compiled.problems_at_once(default, "it");
            let problems =
                problems.iter().map(|one| one.strip_prefix("all of it: ").unwrap_or(one));
            let problem = problems.collect::<Vec<_>>().join("; ");
            let message =
                format!("the default of {} does not fit its own schema: {problem}", self.part());
            let help =
                "correct the default, or permit it: for null, `\"type\": [\"string\", \"null\"]`";
            self.findings.push(ServerFinding::warning("invalid-default", message, help));
        }
    }

    fn values(&mut self, fields: &Map<String, Value>) {
        let Some(Value::Array(values)) = fields.get("enum") else { return };
        let help = "list each permitted value once, each of the schema's type";
        let part = self.part();
        let is_of_type = |value: &&Value| match fields.get("type") {
            None => true,
            Some(of_type) => CompiledSchema::new(&json!({ "type": of_type }))
                .is_ok_and(|compiled| compiled.fits_at_once(value)),
        };
        let usable = values.iter().take(MOST_DEFAULTS).filter(is_of_type).count();
        if usable == 0 {
            let message = format!("no value fits the `enum` of {part}");
            self.findings.push(ServerFinding::error("invalid-enum", message, help));
        } else if usable < values.len().min(MOST_DEFAULTS) {
            let message = format!("the `enum` of {part} contains a value of another type");
            self.findings.push(ServerFinding::warning("invalid-enum", message, help));
        }
        let mut texts: Vec<String> = values.iter().map(Value::to_string).collect();
        texts.sort_unstable();
        let repeated = texts.windows(2).find(|pair| matches!(pair, [a, b] if a == b));
        if let Some([repeated, _]) = repeated {
            let shown = toolcrib_core::__internal::beginning(repeated, 100);
            let message = format!("the `enum` of {part} contains {shown} twice");
            self.findings.push(ServerFinding::warning("invalid-enum", message, help));
        }
    }

    fn ranges(&mut self, fields: &Map<String, Value>) {
        let number = |key: &str| fields.get(key).and_then(Value::as_f64);
        for (low, high) in RANGES {
            if let (Some(least), Some(most)) = (number(low), number(high))
                && least > most
            {
                let message =
                    format!("no value fits {}: `{low}` is more than `{high}`", self.part());
                let help = "exchange the limits, or correct one of them";
                self.findings.push(ServerFinding::error("empty-range", message, help));
            }
        }
    }

    /// Required names of a nested object; the linter reports those of the arguments.
    fn required(&mut self, fields: &Map<String, Value>) {
        let (Some(Value::Object(known)), Some(Value::Array(required))) =
            (fields.get("properties"), fields.get("required"))
        else {
            return;
        };
        if may_describe_elsewhere(fields) || self.path.is_empty() {
            return;
        }
        let unknown = required.iter().filter_map(Value::as_str);
        let unknown: Vec<_> = unknown.filter(|name| !known.contains_key(*name)).take(5).collect();
        if !unknown.is_empty() {
            let unknown = suggest::quoted(unknown);
            let message = format!(
                "{} requires {unknown}, and `properties` does not describe it",
                self.part()
            );
            let help = "add it to `properties`, or remove it from `required`";
            self.findings.push(ServerFinding::error("unknown-required", message, help));
        }
    }

    fn keywords(&mut self, fields: &Map<String, Value>) {
        for key in fields.keys() {
            let is_known = KEYWORDS.contains(&key.as_str())
                || OTHERS.contains(&key.as_str())
                || subschemas(key).is_some();
            if is_known || key.starts_with(['$', 'x', '_']) {
                continue;
            }
            if let Some(near) = misspelt(key) {
                let message = format!(
                    "{} has the unknown keyword {}; did you mean `{near}`?",
                    self.part(),
                    suggest::quoted([key.as_str()])
                );
                let help = "correct it: validators ignore unknown keywords";
                self.findings.push(ServerFinding::warning("unknown-keyword", message, help));
            }
        }
    }
}

/// The keyword that a key is a misspelt form of: other case, or one letter more, less, changed or
/// exchanged.
fn misspelt(key: &str) -> Option<&'static str> {
    if !(4..=32).contains(&key.len()) {
        return None;
    }
    let near = suggest::nearest(key, KEYWORDS)?;
    let near = KEYWORDS.iter().find(|keyword| **keyword == near)?;
    (key.eq_ignore_ascii_case(near) || is_one_edit(key, near)).then_some(near)
}

fn is_one_edit(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(start..).unwrap_or_default(), b.get(start..).unwrap_or_default());
    match (a, b) {
        ([x, a @ ..], [y, b @ ..]) if a == b && x != y => true,
        ([x, y, a @ ..], [v, w, b @ ..]) if x == w && y == v && a == b => true,
        ([_, a @ ..], b) if a == b => true,
        (a, [_, b @ ..]) => a == b,
        _ => false,
    }
}
