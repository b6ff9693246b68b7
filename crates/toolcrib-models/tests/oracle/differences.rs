//! The differences between our adapters and the vendors' SDKs, with reasons.

use serde_json::{Value, json};

use super::api::Api;

/// An intended difference. One that no longer occurs fails the test.
pub(crate) struct Listed {
    /// In which runs: `MODEL/cases/NAME`, `MODEL/streams/NAME`, with `*` for any.
    pub(crate) run: &'static str,
    /// Where in the transcript: `*` for any one key or position, `**` for the rest.
    pub(crate) at: &'static str,
    /// Whether the values there, ours and the SDK's, are the intended ones.
    pub(crate) fits: Fits,
    pub(crate) why: &'static str,
}

type Fits = fn(Option<&Value>, Option<&Value>) -> bool;

const fn listed(run: &'static str, at: &'static str, fits: Fits, why: &'static str) -> Listed {
    Listed { run, at, fits, why }
}

/// All intended differences for a vendor.
pub(crate) fn of(api: Api) -> &'static [Listed] {
    match api {
        Api::OpenAi => OPENAI,
        Api::Responses => RESPONSES,
        Api::Anthropic => ANTHROPIC,
        Api::Gemini => GEMINI,
        Api::Ollama => OLLAMA,
    }
}

const OPENAI: &[Listed] = &[
    listed(
        "*/cases/choice_auto",
        "/requests/*/body/tool_choice",
        |ours, theirs| ours.is_none() && is(theirs, "auto"),
        "nothing is said for what is so by default",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/messages/*/content",
        begins_with_error,
        "there is no field for a failed call, so its text says it",
    ),
    listed(
        "*/cases/image_in_result_shown",
        "/requests/*/body/messages/*/content/0/*",
        |ours, theirs| is(ours, "text") || has(ours, "not written by the user") || theirs.is_some(),
        "a text before a tool's output, so that it is not mistaken for the user's",
    ),
    listed(
        "*/cases/image_in_result_shown",
        "/requests/*/body/messages/*/content/1",
        |ours, theirs| {
            let url = ours.and_then(|ours| ours.pointer("/image_url/url"));
            has(url, "data:image/png;base64,iVBORw0KGgo") && theirs.is_none()
        },
        "as above",
    ),
    listed(
        "*/cases/call_without_arguments_back",
        "/requests/*/body/messages/*/tool_calls/*/function/arguments",
        |ours, theirs| is(ours, "{}") && is(theirs, ""),
        "servers that read the arguments refuse what is no JSON",
    ),
    listed(
        "qwen3/cases/*",
        "/requests/*/body/messages/*/reasoning_content",
        |ours, theirs| ours.is_some_and(Value::is_string) && theirs.is_none(),
        "the api does not have it; servers that send it want it back",
    ),
    listed(
        "gpt-6-sol/cases/*",
        "/requests/*/body/reasoning_effort",
        |ours, theirs| is(ours, "none") && theirs.is_none(),
        "models since 5.6 refuse tools here unless reasoning is disabled",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/function/parameters/oneOf",
        left_out,
        "the api takes no alternatives at the root of a schema; the description has them",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/function/description",
        ours_is_longer,
        "as above",
    ),
    listed(
        "*/cases/schema_by_reference",
        "/requests/*/body/tools/*/function/parameters/$defs/address/properties/zip/*",
        |ours, theirs| is(theirs, "^[0-9]{4}$") || has(ours, "^[0-9]{4}$"),
        "servers refuse patterns that they do not know; the description has it",
    ),
    listed(
        "*/cases/schema_open_map",
        "/requests/*/body/tools/*/function/parameters/properties/labels/propertyNames/*",
        |ours, theirs| is(theirs, "^[a-z]+$") || has(ours, "^[a-z]+$"),
        "as above",
    ),
    listed(
        "*/cases/schema_no_schema_to_speak_of",
        "/requests/*/body/tools/*/function/parameters/properties",
        |ours, theirs| ours == Some(&json!({})) && theirs.is_none(),
        "the api wants an object to say its properties, none though they are",
    ),
    listed(
        "*/cases/schema_nested",
        "/requests/*/body/tools/*/function/parameters/properties/pair/items",
        |ours, theirs| ours == Some(&json!({})) && theirs.is_none(),
        "the api wants an array to say its items",
    ),
];

const RESPONSES: &[Listed] = &[
    listed(
        "*/*/*",
        "/requests/*/body/prompt_cache_key",
        |ours, theirs| ours.is_some_and(Value::is_string) && theirs.is_none(),
        "requests of one conversation go to the machine that has cached it",
    ),
    listed(
        "*/cases/choice_auto",
        "/requests/*/body/tool_choice",
        |ours, theirs| ours.is_none() && is(theirs, "auto"),
        "nothing is said for what is so by default",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/input/*/output",
        begins_with_error,
        "there is no field for a failed call, so its text says it",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/input/*/*",
        |ours, theirs| {
            let words = ["message", "completed", "msg_", "fc_", "tsc_"];
            ours.is_none() && words.iter().any(|word| has(theirs, word))
        },
        "an item that nothing thought belongs to is named by no id: nothing is stored under it",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/input/*/content",
        |ours, theirs| {
            let text = theirs.and_then(|theirs| theirs.pointer("/0/text"));
            ours.is_some_and(Value::is_string) && ours == text
        },
        "as above: it is a message like others then",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/input/*/content/*/logprobs",
        left_out,
        "they were not asked for, and are empty",
    ),
    listed(
        "*/streams/failed_rate_limit",
        "/outcomes/*/error/retry_after",
        |ours, theirs| ours == Some(&json!(2)) && theirs == Some(&Value::Null),
        "the vendor says it in words only, and the SDK does not read them",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/parameters/oneOf",
        left_out,
        "the vendor takes no alternatives at the root of a schema; the description has them",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/description",
        ours_is_longer,
        "as above",
    ),
    listed(
        "*/cases/schema_by_reference",
        "/requests/*/body/tools/*/parameters/$defs/address/properties/zip/*",
        |ours, theirs| is(theirs, "^[0-9]{4}$") || has(ours, "^[0-9]{4}$"),
        "the vendor refuses patterns that it does not know; the description has it",
    ),
    listed(
        "*/cases/schema_open_map",
        "/requests/*/body/tools/*/parameters/properties/labels/propertyNames/*",
        |ours, theirs| is(theirs, "^[a-z]+$") || has(ours, "^[a-z]+$"),
        "as above",
    ),
    listed(
        "*/cases/schema_no_schema_to_speak_of",
        "/requests/*/body/tools/*/parameters/properties",
        |ours, theirs| ours == Some(&json!({})) && theirs.is_none(),
        "the vendor wants an object to say its properties, none though they are",
    ),
    listed(
        "*/cases/schema_nested",
        "/requests/*/body/tools/*/parameters/properties/pair/items",
        |ours, theirs| ours == Some(&json!({})) && theirs.is_none(),
        "the vendor wants an array to say its items",
    ),
];

const ANTHROPIC: &[Listed] = &[
    listed(
        "*/*/*",
        "/requests/*/headers/anthropic-version",
        |ours, _| is(ours, "2023-06-01"),
        "the version that still takes a temperature, and that every compatible server knows",
    ),
    listed(
        "*/*/*",
        "/requests/*/headers/x-api-key",
        |ours, theirs| is(ours, "a-dummy-key") && theirs.is_none(),
        "the key's header of that version",
    ),
    listed(
        "*/*/*",
        "/requests/*/headers/authorization",
        |ours, theirs| ours.is_none() && is(theirs, "Bearer a-dummy-key"),
        "the key's header of that version",
    ),
    listed(
        "*/cases/setting_temperature",
        "/requests/*/body/temperature",
        |ours, theirs| ours == Some(&json!(0.5)) && theirs.is_none(),
        "the SDK's version of the API has none",
    ),
    listed(
        "*/cases/choice_auto",
        "/requests/*/body/tool_choice",
        |ours, theirs| ours.is_none() && theirs == Some(&json!({ "type": "auto" })),
        "nothing is said for what is so by default",
    ),
    listed(
        "*/cases/blank_texts",
        "/requests/*/body/messages/**",
        |_, _| true,
        "the api refuses texts without a visible character: the user's have words for that, and \
         an assistant's message of nothing else is left out",
    ),
    listed(
        "*/cases/empty_result",
        "/requests/*/body/messages/*/content/*/content",
        |ours, theirs| ours.is_none() && theirs == Some(&json!([{ "type": "text", "text": "" }])),
        "the api refuses an empty text; a result needs none",
    ),
    listed(
        "*/cases/failed_without_words",
        "/requests/*/body/messages/*/content/*/content/*/text",
        |ours, theirs| is(ours, "(the call failed and said nothing)") && is(theirs, ""),
        "the api refuses a failed result without a text",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/input_schema/oneOf",
        left_out,
        "the api takes no alternatives at the root of a schema; the description has them",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/description",
        ours_is_longer,
        "as above",
    ),
    listed(
        "*/cases/schema_odd_names",
        "/requests/*/body/tools/*/input_schema/**",
        left_out,
        "the api takes only keys of ASCII letters, digits and `_.-`; the description has them",
    ),
    listed(
        "*/cases/schema_odd_names",
        "/requests/*/body/tools/*/description",
        ours_is_longer,
        "as above",
    ),
    listed(
        "*/streams/error_context",
        "/outcomes/*/error/class",
        |ours, _| is(ours, "context_overflow"),
        "the api says it in words only, and the SDK does not read them",
    ),
    listed(
        "*/streams/error_quota",
        "/outcomes/*/error/class",
        |ours, _| is(ours, "quota"),
        "as above",
    ),
    listed(
        "*/streams/max_tokens_in_call",
        "/outcomes/*/calls/*/arguments",
        |ours, theirs| is(ours, "{\"order_id\":1") && theirs == Some(&json!({ "order_id": 1 })),
        "the SDK silently completes truncated JSON; here the call fails",
    ),
];

const GEMINI: &[Listed] = &[
    listed(
        "*/cases/choice_auto",
        "/requests/*/body/toolConfig",
        left_out,
        "nothing is said for what is so by default",
    ),
    listed(
        "*/*/*",
        "/requests/*/body/contents/*/parts/*/functionCall/id",
        |ours, theirs| ours.is_some() && theirs.is_none(),
        "calls that came without an id have one of ours, by which results find them",
    ),
    listed(
        "*/*/*",
        "/requests/*/body/contents/*/parts/*/functionResponse/id",
        |ours, theirs| ours.is_some() && theirs.is_none(),
        "as above",
    ),
    listed(
        "*/cases/call_without_arguments_back",
        "/requests/*/body/contents/*/parts/*/functionCall/args",
        |ours, theirs| ours == Some(&json!({})) && theirs.is_none(),
        "no arguments are an empty object",
    ),
    listed(
        "*/cases/schema_by_reference",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/**",
        |_, _| true,
        "references are written out: not each model follows them",
    ),
    listed(
        "*/cases/schema_recursive",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/**",
        |_, _| true,
        "as above, once around",
    ),
    listed(
        "*/cases/schema_either",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/properties/all/*",
        |_, _| true,
        "the vendor's schemas have no `allOf`; what all ask for is asked for at once",
    ),
    listed(
        "*/cases/schema_either",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/properties/not_this/not",
        left_out,
        "the vendor's schemas have no `not`; our own check of the arguments has",
    ),
    listed(
        "*/cases/schema_open_map",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/properties/labels/propertyNames",
        left_out,
        "nor `propertyNames`",
    ),
    listed(
        "*/cases/schema_words_and_constants",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/properties/kind/*",
        |ours, theirs| ours == Some(&json!(["weather"])) || is(theirs, "weather"),
        "nor `const`, which is an enumeration of one",
    ),
    listed(
        "*/cases/schema_words_and_constants",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/properties/level/enum/*",
        |ours, theirs| ours.is_none() && theirs == Some(&Value::Null),
        "an enumeration contains strings and numbers only",
    ),
    listed(
        "*/cases/schema_boolean",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/properties/anything",
        |ours, theirs| ours == Some(&json!({})) && theirs == Some(&json!(true)),
        "a schema is an object",
    ),
    listed(
        "*/cases/schema_odd_names",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/$schema",
        left_out,
        "there is one dialect",
    ),
    listed(
        "*/streams/error_context",
        "/outcomes/*/error/class",
        |ours, _| is(ours, "context_overflow"),
        "the api says it in words only, and the SDK does not read them",
    ),
    listed(
        "*/streams/keep_alive",
        "/outcomes/0/*",
        |ours, theirs| {
            let usage = json!({ "input": 7, "cached": 0, "output": 3 });
            let right = [json!("Hi there."), json!(""), json!([]), json!("finished"), usage];
            ours.is_none_or(|ours| theirs.is_none() && right.contains(ours))
        },
        "the SDK fails at a comment between events, which the format of events allows",
    ),
    listed(
        "gemini-2.5-flash/cases/*",
        "/requests/*/body/contents/*/parts/*/functionResponse/parts",
        left_out,
        "models of that series take no images in results; the text names them",
    ),
    listed(
        "gemini-3.5-flash/cases/*",
        "/requests/*/body/contents/*/parts/*/thoughtSignature",
        |ours, theirs| is(ours, "skip_thought_signature_validator") && theirs.is_none(),
        "models of that series refuse calls that no Gemini signed, unless this is there",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/functionDeclarations/*/parametersJsonSchema/*",
        |ours, theirs| ours.is_none() || theirs.is_none(),
        "the vendor's models read `anyOf`; that only one may fit is left to our own check",
    ),
];

const OLLAMA: &[Listed] = &[
    listed(
        "*/*/*",
        "/requests/*/body/tools/*/function/parameters/**",
        |_, theirs| theirs.is_none(),
        "the SDK drops keywords that its types do not have; servers take them",
    ),
    listed(
        "*/cases/schema_by_reference",
        "/requests/*/body/tools/*/function/parameters/**",
        left_out,
        "references are written out: templates of models do not follow them",
    ),
    listed(
        "*/cases/schema_recursive",
        "/requests/*/body/tools/*/function/parameters/$defs",
        left_out,
        "as above, once around",
    ),
    listed(
        "*/cases/schema_one_of_at_root",
        "/requests/*/body/tools/*/function/description",
        ours_is_longer,
        "the server drops alternatives at the root of a schema; the description has them",
    ),
    listed(
        "*/cases/schema_boolean",
        "/requests/0",
        |ours, theirs| ours.is_some() && theirs.is_none(),
        "the SDK's types have no schema that is `true`, and it sends nothing",
    ),
    listed(
        "*/cases/schema_boolean",
        "/outcomes/0/*",
        |ours, theirs| ours.is_none() || theirs.is_none(),
        "as above",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/tools",
        |ours, theirs| ours.is_none() && theirs == Some(&json!([])),
        "no tools are no field",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/messages/*/content",
        begins_with_error,
        "there is no field for a failed call, so its text says it",
    ),
    listed(
        "*/cases/*",
        "/requests/*/body/messages/*",
        |ours, theirs| {
            let said = ours.and_then(|ours| ours.get("content"));
            let told = ["No tool can be called any more.", "Do not answer yet:"];
            told.iter().any(|told| has(said, told)) && theirs.is_none()
        },
        "without a tool choice, the model receives an instruction",
    ),
    listed(
        "*/streams/calls_with_ids",
        "/outcomes/*/calls/*/id",
        |ours, theirs| ours.is_some_and(Value::is_string) && theirs == Some(&Value::Null),
        "the SDK's types have no ids; newer servers send them",
    ),
];

fn is(value: Option<&Value>, text: &str) -> bool {
    value.and_then(Value::as_str) == Some(text)
}

fn has(value: Option<&Value>, text: &str) -> bool {
    value.and_then(Value::as_str).is_some_and(|value| value.contains(text))
}

fn begins_with_error(ours: Option<&Value>, theirs: Option<&Value>) -> bool {
    let text = |value: Option<&Value>| value.map_or(Some(""), Value::as_str).map(str::to_owned);
    text(ours) == text(theirs).map(|text| format!("Error: {text}"))
}

fn left_out(ours: Option<&Value>, theirs: Option<&Value>) -> bool {
    ours.is_none() && theirs.is_some()
}

fn ours_is_longer(ours: Option<&Value>, theirs: Option<&Value>) -> bool {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    matches!((text(ours), text(theirs)), (Some(ours), Some(theirs)) if ours.starts_with(&theirs))
}
