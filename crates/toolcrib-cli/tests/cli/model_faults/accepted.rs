//! The histories that vendors' APIs refuse: unpaired calls and results, empty texts, ids, names and
//! arguments of another form.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolcrib_models::Vendor;

/// A call, or a result of one: its id and its tool's name, where the protocol has them.
type Call = (Option<String>, Option<String>);

/// A message in the words that all protocols share.
#[derive(Default)]
struct Turn {
    of_user: bool,
    calls: Vec<Call>,
    results: Vec<Call>,
}

/// Whether the API accepts the request. The error names the problem.
pub(crate) fn check(vendor: Vendor, model: &str, body: &Value) -> Result<(), String> {
    let turns = match vendor {
        Vendor::OpenAi => openai(body)?,
        Vendor::Anthropic => anthropic(body)?,
        Vendor::Gemini => gemini(body, model.starts_with("gemini-3"))?,
        _ => ollama(body)?,
    };
    alternates(vendor, body)?;
    pairs(&turns)
}

/// The messages of user and model take turns, as strict chat templates require. Calls and results
/// do not count, except where a protocol has no role for results.
fn alternates(vendor: Vendor, body: &Value) -> Result<(), String> {
    let counts_all = matches!(vendor, Vendor::Anthropic | Vendor::Gemini);
    let mut is_users = true;
    for message in list(body, "messages").chain(list(body, "contents")) {
        let role = message["role"].as_str().unwrap_or_default();
        let is_aside = matches!(role, "system" | "tool") || message["tool_calls"].is_array();
        if is_aside && !counts_all {
            continue;
        }
        ensure((role == "user") == is_users, "two messages of one role in a row", body)?;
        is_users = !is_users;
    }
    Ok(())
}

fn ensure(is_right: bool, what: &str, value: &Value) -> Result<(), String> {
    if is_right { Ok(()) } else { Err(format!("{what}: {value}")) }
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value[key].as_array().into_iter().flatten()
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn is_word(value: &Value) -> bool {
    let is_well = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    value.as_str().is_some_and(|text| !text.is_empty() && text.chars().all(is_well))
}

/// All results of a turn's calls come next, each once: by their ids, or in the order of the calls.
fn pairs(turns: &[Turn]) -> Result<(), String> {
    let (mut open, mut ids) = (Vec::<Call>::new(), HashSet::new());
    for turn in turns {
        if turn.results.is_empty() && !open.is_empty() {
            return Err(format!("no results of {open:?}"));
        }
        for (id, name) in &turn.results {
            let is_it = |call: &Call| match id {
                Some(_) => call.0 == *id,
                None => name.is_none() || call.1 == *name,
            };
            let found = open.iter().position(is_it);
            let found = found.filter(|at| id.is_some() || *at == 0);
            open.remove(found.ok_or_else(|| format!("{id:?} {name:?} is no result of {open:?}"))?);
        }
        if !turn.calls.is_empty() && !open.is_empty() {
            return Err(format!("no results of {open:?}"));
        }
        for call in &turn.calls {
            if let Some(id) = &call.0
                && !ids.insert(id.clone())
            {
                return Err(format!("the id {id:?} is there twice"));
            }
            open.push(call.clone());
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("no results of {open:?}")) }
}

fn openai(body: &Value) -> Result<Vec<Turn>, String> {
    let has_tools = list(body, "tools").next().is_some();
    ensure(has_tools || body["tools"].is_null(), "an empty list of tools", body)?;
    ensure(has_tools || body["tool_choice"].is_null(), "a choice without tools", body)?;
    let mut turns = Vec::new();
    for message in list(body, "messages") {
        let mut turn = Turn { of_user: message["role"] == "user", ..Turn::default() };
        for call in list(message, "tool_calls") {
            let function = &call["function"];
            let is_name =
                is_word(&function["name"]) && function["name"].as_str().unwrap().len() <= 64;
            ensure(is_name, "the name of a function", call)?;
            ensure(call["type"] == "function" && call["id"].is_string(), "a call", call)?;
            ensure(function["arguments"].is_string(), "arguments that are no text", call)?;
            turn.calls.push((text(&call["id"]), None));
        }
        ensure(message["tool_calls"] != json!([]), "an empty list of calls", message)?;
        let says_nothing = message["content"].is_null() && turn.calls.is_empty();
        ensure(!says_nothing && message["content"] != json!([]), "no content", message)?;
        if message["role"] == "tool" {
            // One message is one result; those of one answer belong together.
            let result = (Some(text(&message["tool_call_id"]).unwrap_or_default()), None);
            match turns.last_mut() {
                Some(Turn { results, .. }) if !results.is_empty() => results.push(result),
                _ => turns.push(Turn { results: vec![result], ..turn }),
            }
        } else {
            turns.push(turn);
        }
    }
    Ok(turns)
}

fn anthropic(body: &Value) -> Result<Vec<Turn>, String> {
    let has_tools = list(body, "tools").next().is_some();
    ensure(has_tools || body["tool_choice"].is_null(), "a choice without tools", body)?;
    let breakpoints = body.to_string().matches("\"cache_control\":{\"type\"").count();
    ensure(breakpoints <= 4, "more than four breakpoints", body)?;
    let mut turns: Vec<Turn> = Vec::new();
    for message in list(body, "messages") {
        let of_user = message["role"] == "user";
        ensure(of_user || message["role"] == "assistant", "a role", message)?;
        let content = &message["content"];
        let is_said = content.as_str().is_some_and(|text| !text.trim().is_empty())
            || content.as_array().is_some_and(|blocks| !blocks.is_empty());
        ensure(is_said, "no content", message)?;
        if turns.last().is_none_or(|turn| turn.of_user != of_user) {
            turns.push(Turn { of_user, ..Turn::default() });
        }
        let turn = turns.last_mut().unwrap();
        let mut spoke = false;
        for block in list(message, "content") {
            match block["type"].as_str().unwrap_or_default() {
                "tool_use" if !of_user => {
                    ensure(has_tools, "a call without tools", block)?;
                    ensure(is_word(&block["id"]), "the id of a call", block)?;
                    ensure(block["input"].is_object(), "arguments that are no object", block)?;
                    turn.calls.push((text(&block["id"]), None));
                }
                "tool_result" if of_user && !spoke => {
                    turn.results.push((text(&block["tool_use_id"]), None));
                    for part in list(block, "content") {
                        visible(part)?;
                    }
                }
                "text" => visible(block)?,
                "image" | "document" if of_user => {}
                _ => return Err(format!("a block out of place: {block}")),
            }
            spoke |= block["type"] != "tool_result";
        }
    }
    let ends = turns.first().zip(turns.last());
    ensure(ends.is_some_and(|(first, last)| first.of_user && last.of_user), "the ends", body)?;
    Ok(turns)
}

fn visible(block: &Value) -> Result<(), String> {
    let blank =
        block["type"] == "text" && block["text"].as_str().is_none_or(|t| t.trim().is_empty());
    ensure(!blank, "a text without visible characters", block)
}

fn gemini(body: &Value, signed: bool) -> Result<Vec<Turn>, String> {
    const DATA: [&str; 5] = ["text", "functionCall", "functionResponse", "inlineData", "fileData"];
    let mut turns: Vec<Turn> = Vec::new();
    let mut unsigned = None;
    for content in list(body, "contents") {
        let of_user = content["role"] == "user";
        ensure(of_user || content["role"] == "model", "a role", content)?;
        ensure(list(content, "parts").next().is_some(), "no parts", content)?;
        let mut turn = Turn { of_user, ..Turn::default() };
        let mut spoke = false;
        for part in list(content, "parts") {
            let data: Vec<_> = DATA.into_iter().filter(|key| !part[*key].is_null()).collect();
            ensure(data.len() == 1, "not one kind of data", part)?;
            ensure(!of_user || part["text"] != "", "an empty text", part)?;
            spoke |= of_user && part["text"].is_string();
            for (key, arguments) in [("functionCall", "args"), ("functionResponse", "response")] {
                let call = &part[key];
                if call.is_null() {
                    continue;
                }
                let is_named = call["name"].as_str().is_some_and(|name| !name.is_empty());
                ensure(is_named && of_user == (key == "functionResponse"), "a call", part)?;
                let given = &call[arguments];
                ensure(given.is_object() || (given.is_null() && !of_user), "no object", part)?;
                if !of_user && turn.calls.is_empty() && part["thoughtSignature"].is_null() {
                    unsigned = Some(part);
                }
                let list = if of_user { &mut turn.results } else { &mut turn.calls };
                list.push((text(&call["id"]), text(&call["name"])));
            }
        }
        // Signatures are wanted of what follows the user's last words.
        unsigned = unsigned.filter(|_| !spoke);
        let after_user = turns.last().is_some_and(|turn| turn.of_user);
        ensure(turn.calls.is_empty() || after_user, "calls not after a user turn", content)?;
        turns.push(turn);
    }
    ensure(turns.last().is_some_and(|turn| turn.of_user), "the end is not the user's", body)?;
    match unsigned.filter(|_| signed) {
        Some(part) => Err(format!("a call without its signature: {part}")),
        None => Ok(turns),
    }
}

/// Ollama itself takes any history, and a wrong one misleads its model in silence.
fn ollama(body: &Value) -> Result<Vec<Turn>, String> {
    let mut turns: Vec<Turn> = Vec::new();
    for message in list(body, "messages") {
        let mut turn = Turn { of_user: message["role"] == "user", ..Turn::default() };
        for call in list(message, "tool_calls") {
            let function = &call["function"];
            ensure(function["name"].is_string(), "a call without a name", call)?;
            ensure(function["arguments"].is_object(), "arguments that are no object", call)?;
            turn.calls.push((text(&call["id"]), text(&function["name"])));
        }
        if message["role"] == "tool" {
            let result = (text(&message["tool_call_id"]), text(&message["tool_name"]));
            match turns.last_mut() {
                Some(Turn { results, .. }) if !results.is_empty() => results.push(result),
                _ => turns.push(Turn { results: vec![result], ..turn }),
            }
        } else {
            turns.push(turn);
        }
    }
    Ok(turns)
}

/// Each of these is refused; the same with its fault taken out is accepted by the tests above.
#[test]
fn histories_that_a_vendor_refuses_are_found() {
    let user = json!({ "role": "user", "content": "Go." });
    let call = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "look", "arguments": "{}" } });
    let calls = |calls: Value| json!({ "role": "assistant", "content": "", "tool_calls": calls });
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "ok" });
    let block = |block: Value| json!({ "role": "assistant", "content": [block] });
    let used = |id: &str, input: Value| {
        block(json!({ "type": "tool_use", "id": id, "name": "look", "input": input }))
    };
    let part = |role: &str, part: Value| json!({ "role": role, "parts": [part] });
    let called = part("model", json!({ "functionCall": { "name": "look", "args": {} } }));
    let said = part("user", json!({ "text": "Go." }));
    let given =
        |name: &str| part("user", json!({ "functionResponse": { "name": name, "response": {} } }));
    let refused = [
        (Vendor::OpenAi, "messages", json!([user, calls(json!([call("a")]))])),
        (Vendor::OpenAi, "messages", json!([user, calls(json!([call("a")])), user])),
        (Vendor::OpenAi, "messages", json!([user, calls(json!([call("a")])), result("b")])),
        (
            Vendor::OpenAi,
            "messages",
            json!([user, calls(json!([call("a"), call("a")])), result("a"), result("a")]),
        ),
        (Vendor::OpenAi, "messages", json!([user, calls(json!([]))])),
        (Vendor::Anthropic, "messages", json!([user, used("a", json!({})), user])),
        (Vendor::Anthropic, "messages", json!([user, used("a b", json!({})), user])),
        (Vendor::Anthropic, "messages", json!([user, used("a", json!("text")), user])),
        (Vendor::Anthropic, "messages", json!([{ "role": "user", "content": " " }])),
        (
            Vendor::Anthropic,
            "messages",
            json!([user, block(json!({ "type": "text", "text": "\n" })), user]),
        ),
        (
            Vendor::Anthropic,
            "messages",
            json!([user, block(json!({ "type": "text", "text": "Hi." }))]),
        ),
        (Vendor::Gemini, "contents", json!([said, called, said])),
        (Vendor::Gemini, "contents", json!([said, called, given("other")])),
        (Vendor::Gemini, "contents", json!([said, called, given("look")])),
        (Vendor::Gemini, "contents", json!([part("user", json!({ "text": "" }))])),
        (Vendor::Gemini, "contents", json!([part("user", json!({}))])),
        (
            Vendor::Ollama,
            "messages",
            json!([
                user,
                calls(json!([{ "function": { "name": "look", "arguments": "{}" } }])),
                result("a")
            ]),
        ),
        (
            Vendor::Ollama,
            "messages",
            json!([
                user,
                calls(json!([{ "function": { "name": "look", "arguments": {} } }])),
                user
            ]),
        ),
    ];
    for (vendor, key, history) in refused {
        let body = json!({ key: history, "tools": [{}] });
        assert!(check(vendor, "gemini-3-pro", &body).is_err(), "{vendor}: {body}");
    }
    let fine = json!({ "contents": [said, called, given("look")] });
    assert_eq!(check(Vendor::Gemini, "gemini-2.5-flash", &fine), Ok(()));
}
