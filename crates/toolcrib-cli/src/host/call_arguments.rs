//! The arguments after the tool's name on the command line.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde_json::{Map, Value};
use toolcrib_config::{pointer_step, suggest};
use toolcrib_core::{__internal::PlainJson, Arguments, CancellationToken};

use crate::{
    output::shell_word,
    problem::Problem,
    project::load::{blocking, unless_cancelled},
    schema_types::SchemaTypes,
};

/// The size limit of arguments from a file or standard input; a device is endless.
const MOST_BYTES: u64 = 64 * 1024 * 1024;

/// The arguments as written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum RawArguments {
    /// Text that should be JSON; the pipe reports it if it is not.
    Json(String),
    /// Pairs, to be typed by the tool's schema.
    Pairs(Vec<(String, PairValue)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum PairValue {
    /// `key=value`
    Text(String),
    /// `key:=JSON`
    Json(Value),
}

/// Whether a word is not a valid argument, because it lacks its `=`.
pub(crate) fn has_bare_word(arguments: &[String]) -> bool {
    let is_whole = |word: &String| word == "-" || word.starts_with(['@', '{']);
    let is_json = matches!(arguments, [only] if is_meant_as_json(only));
    !is_json && arguments.iter().any(|word| !word.contains('=') && !is_whole(word))
}

/// Parses the arguments: pairs, one JSON text, `@FILE`, or `-`. The error about a
/// [bare word](has_bare_word) suggests one of these parameters of the tool, if there are any.
pub(crate) async fn read(
    arguments: &[String],
    parameters: &[String],
    cancellation: &CancellationToken,
) -> Result<RawArguments, Problem> {
    if let [only] = arguments {
        if only == "-" {
            return read_stdin(cancellation).await.map(RawArguments::Json);
        }
        if let Some(path) = only.strip_prefix('@') {
            let (path, shown) = (path.to_owned(), path.to_owned());
            let text = read_text(shown, cancellation, || File::open(path)).await;
            return text.map(RawArguments::Json);
        }
        if is_meant_as_json(only) {
            return Ok(RawArguments::Json(only.clone()));
        }
    }
    let mut pairs: Vec<(String, PairValue)> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let (key, value) = pair(argument, parameters)?;
        if pairs.iter().any(|(known, _)| *known == key) {
            return Err(Problem::usage(format!("`{key}` is given twice")));
        }
        pairs.push((key, value));
    }
    Ok(RawArguments::Pairs(pairs))
}

/// Whether a text goes to the pipe unchanged, which reports its errors: text that begins like JSON,
/// and empty text. A bare word is more likely a pair without its `=`.
fn is_meant_as_json(text: &str) -> bool {
    let text = text.trim();
    let is_number = || text.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    let is_value = || text.is_empty() || matches!(text, "true" | "false" | "null") || is_number();
    text.starts_with(['{', '[', '"']) || (!text.contains('=') && is_value())
}

fn pair(argument: &str, parameters: &[String]) -> Result<(String, PairValue), Problem> {
    let Some((key, value)) = argument.split_once('=') else {
        return Err(Problem::usage(if argument == "-" || argument.starts_with(['@', '{']) {
            format!("`{argument}` contains all arguments of a call; no other argument may be added")
        } else {
            format!(
                "`{argument}` is neither key=value, key:=JSON, a JSON object, @FILE nor -; {}",
                as_pair(argument, parameters)
            )
        }));
    };
    match key.strip_suffix(':') {
        None => Ok((key.to_owned(), PairValue::Text(value.to_owned()))),
        Some(key) => PlainJson::read(value.as_bytes())
            .map(|value| (key.to_owned(), PairValue::Json(value)))
            .map_err(|error| {
                Problem::usage(format!("the value of `{key}:=` is not valid JSON: {error}"))
            }),
    }
}

/// A correct spelling for a word that is not a valid argument.
fn as_pair(word: &str, parameters: &[String]) -> String {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    match parameters {
        parameters if parameters.iter().any(|parameter| parameter == word) => {
            format!("write {word}=VALUE")
        }
        [only] => format!("write {only}={}", shell_word(Path::new(word))),
        [_, ..] => format!(
            "write KEY=VALUE; the keys are {}",
            suggest::quoted(parameters.iter().map(String::as_str))
        ),
        [] if !word.is_empty() && word.chars().all(is_name) => {
            format!("write {word}=VALUE, or KEY={word}")
        }
        [] => "write KEY=VALUE".to_owned(),
    }
}

pub(crate) async fn read_stdin(cancellation: &CancellationToken) -> Result<String, Problem> {
    read_text("standard input".to_owned(), cancellation, || Ok(io::stdin())).await
}

/// Reads text to its end. A pipe or device may never end.
pub(crate) async fn read_text<R: Read>(
    what: String,
    cancellation: &CancellationToken,
    open: impl FnOnce() -> io::Result<R> + Send + 'static,
) -> Result<String, Problem> {
    let reading = blocking(move || {
        let mut bytes = Vec::new();
        open()?.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
        let too_long = u64::try_from(bytes.len()).is_ok_and(|length| length > MOST_BYTES);
        if too_long {
            return Err(io::Error::other("it is longer than 64 MiB"));
        }
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
    });
    let read = unless_cancelled(reading, cancellation).await??;
    read.map_err(|error| Problem::usage(format!("{what} cannot be read: {error}")))
}

impl RawArguments {
    /// The arguments in the form that the pipe takes.
    pub(crate) fn typed(self, schema: Option<&Value>) -> Arguments {
        match self {
            Self::Json(text) => Arguments::Text(text),
            Self::Pairs(pairs) => {
                let typed = pairs.into_iter().map(|(key, value)| {
                    let value = match value {
                        PairValue::Json(value) => value,
                        PairValue::Text(text) => {
                            let pointer = format!("/properties/{}", pointer_step(&key));
                            let types = schema.and_then(|root| {
                                Some(SchemaTypes::new(root).types(root.pointer(&pointer)?))
                            });
                            of_types(text, &types.unwrap_or_default())
                        }
                    };
                    (key, value)
                });
                Arguments::Json(Value::Object(typed.collect::<Map<_, _>>()))
            }
        }
    }
}

/// The text as one of these types. Text that does not fit stays text, and validation then names the
/// expected type.
fn of_types(text: String, types: &[&str]) -> Value {
    if types.is_empty() || types.contains(&"string") {
        return Value::String(text);
    }
    match PlainJson::read(text.as_bytes()) {
        Ok(value) if types.iter().any(|kind| is_a(&value, kind)) => value,
        _ => Value::String(text),
    }
}

fn is_a(value: &Value, kind: &str) -> bool {
    match kind {
        "integer" | "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn typed(arguments: &[&str]) -> Arguments {
        let schema = json!({"properties": {
            "id": {"type": "integer"},
            "note": {"type": "string"},
            "flag": {"type": "boolean"},
            "tags": {"type": ["array", "null"]},
            "body": {"$ref": "#/$defs/Order"},
            "size": {"description": "How many.", "allOf": [{"$ref": "#/$defs/Size"}]},
            "either": {"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "string"}]},
            "list": {"anyOf": [{"type": "array"}, {"type": "null"}]},
            "level": {"enum": [1, 2]},
            "any": {"anyOf": [{"type": "array"}, {}]},
            "endless": {"$ref": "#/properties/endless"},
        }, "$defs": {"Order": {"type": "object"}, "Size": {"type": "integer"}}});
        let arguments: Vec<_> = arguments.iter().map(ToString::to_string).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let given = runtime.block_on(read(&arguments, &[], &CancellationToken::new())).unwrap();
        given.typed(Some(&schema))
    }

    #[test]
    fn pairs_are_typed_by_the_schema() {
        assert_eq!(
            typed(&["id=1042", "note=17", "flag=true", "tags=[1]", "other=5"]),
            Arguments::Json(json!({
                "id": 1042, "note": "17", "flag": true, "tags": [1], "other": "5",
            }))
        );
        assert_eq!(
            typed(&["body={}", "size=3", "either=3", "list=[2]", "level=2", "any=[]", "endless=1"]),
            Arguments::Json(json!({
                "body": {}, "size": 3, "either": "3", "list": [2], "level": 2, "any": "[]",
                "endless": "1",
            }))
        );
        assert_eq!(typed(&["note:=17", "id=x"]), Arguments::Json(json!({"note": 17, "id": "x"})));
        assert_eq!(typed(&["note=a=b"]), Arguments::Json(json!({"note": "a=b"})));
    }

    #[test]
    fn what_begins_like_json_is_for_the_pipe_to_judge() {
        for text in
            ["{\"id\": 1}", "{id", " [1", "\"a=b\"", "17", "-1", "1x", "true", " null ", "", " "]
        {
            assert_eq!(typed(&[text]), Arguments::Text(text.into()));
        }
        assert_eq!(typed(&["1=2"]), Arguments::Json(json!({"1": "2"})));
        assert_eq!(typed(&[]), Arguments::Json(json!({})));
    }
}
