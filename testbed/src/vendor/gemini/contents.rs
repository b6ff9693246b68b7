//! The contents of a request to Gemini, part by part.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::Value;
use toolcrib_core::{ContentBlock, ToolCall};

use super::reply::signature;
use crate::{
    conversation::{Conversation, Outcome, Unpaired, media},
    reading::{Fault, Node, Object},
};

const PART_FIELDS: &[&str] = &[
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "mediaResolution",
    "partMetadata",
    "text",
    "thought",
    "thoughtSignature",
    "videoMetadata",
];

/// What a part may be; it must be exactly one of these.
const DATA: [&str; 5] = ["text", "functionCall", "functionResponse", "inlineData", "fileData"];

/// Stands for a signature of calls that this model did not make.
const NOT_SIGNED: &str = "skip_thought_signature_validator";

pub(super) fn system(content: &Node<'_>) -> Result<String, Fault> {
    let fields = content.object(&["parts", "role"])?;
    let mut texts = Vec::new();
    for part in parts(&fields)? {
        texts.push(part.fields.need("text")?.text()?);
    }
    Ok(texts.join("\n"))
}

/// Reads the contents. With `signed`, the calls of this turn must have their signatures.
pub(super) fn conversation(contents: &Node<'_>, signed: bool) -> Result<Conversation, Fault> {
    let mut conversation = Conversation::default();
    let all = contents.list()?;
    let mut unsigned: Option<Fault> = None;
    let (mut user_before, mut ends_with_user) = (false, false);
    for content in &all {
        let fields = content.object(&["parts", "role"])?;
        let parts = parts(&fields)?;
        let role = fields.get("role").map_or(Ok("user"), |role| role.text())?;
        let calls = parts.iter().filter(|part| part.kind == "functionCall").count();
        match role {
            "user" => {
                let spoke = user(content, &parts, &mut conversation)?;
                // Signatures of what lies before the user's last word are not looked at.
                unsigned = unsigned.filter(|_| !spoke);
            }
            "model" if conversation.waits() => return Err(unanswered(content, &conversation, 0)),
            "model" if calls > 0 && !user_before => {
                return Err(content.wrong(
                    "a function call turn must come immediately after a user turn or after a \
                     function response turn",
                ));
            }
            "model" => {
                let missing = model(content, &parts, &mut conversation)?;
                unsigned = unsigned.or(missing);
            }
            _ => return Err(content.wrong("Please use a valid role: user, model.")),
        }
        user_before = role == "user";
        ends_with_user = user_before;
    }
    if conversation.waits() {
        return Err(unanswered(contents, &conversation, 0));
    }
    match unsigned.filter(|_| signed) {
        Some(fault) => Err(fault),
        None if all.is_empty() => Err(contents.wrong("contents is not specified")),
        None if ends_with_user => Ok(conversation),
        None => Err(contents.wrong("the last content must be of the role user")),
    }
}

/// A part and what it is.
struct Part<'a> {
    at: Node<'a>,
    kind: &'static str,
    fields: Object<'a>,
    data: Node<'a>,
}

fn parts<'a>(content: &Object<'a>) -> Result<Vec<Part<'a>>, Fault> {
    let all = content.need("parts")?;
    let nodes = all.list()?;
    if nodes.is_empty() {
        return Err(all.wrong("contents.parts must not be empty"));
    }
    nodes.into_iter().map(part).collect()
}

fn part(at: Node<'_>) -> Result<Part<'_>, Fault> {
    let fields = at.object(PART_FIELDS)?;
    let mut found = DATA.into_iter().filter_map(|kind| Some((kind, fields.get(kind)?)));
    let (first, second) = (found.next(), found.next());
    match (first, second) {
        (Some((kind, data)), None) => Ok(Part { kind, data, fields, at }),
        (None, _) => Err(at.wrong("required oneof field 'data' must have one initialized field")),
        (Some(_), Some(_)) => Err(at.wrong("oneof field 'data' is already set")),
    }
}

/// Reads what a user sends, and says whether it is more than results.
fn user(
    content: &Node<'_>,
    parts: &[Part<'_>],
    conversation: &mut Conversation,
) -> Result<bool, Fault> {
    let given = parts.iter().filter(|part| part.kind == "functionResponse").count();
    if given != conversation.waiting() {
        return Err(unanswered(content, conversation, given));
    }
    let mut texts = Vec::new();
    for part in parts {
        match part.kind {
            "text" => texts.push(not_empty(&part.data)?.to_owned()),
            "functionResponse" => response(&part.data, conversation)?,
            "inlineData" => texts.push(blob(&part.data)?.reference()),
            "fileData" => texts.push("[file]".to_owned()),
            _ => return Err(part.at.wrong("a user has no functionCall")),
        }
    }
    conversation.settle().map_err(|_| unanswered(content, conversation, given))?;
    if !texts.is_empty() {
        conversation.user(&texts.join("\n"));
    }
    Ok(!texts.is_empty())
}

fn unanswered(at: &Node<'_>, conversation: &Conversation, given: usize) -> Fault {
    if conversation.waiting() == 0 {
        return at
            .wrong("a function response turn must come immediately after a function call turn");
    }
    at.wrong(format!(
        "the number of function response parts must be equal to the number of function call parts \
         of the function call turn; there are {given} for {}",
        conversation.waiting()
    ))
}

fn response(data: &Node<'_>, conversation: &mut Conversation) -> Result<(), Fault> {
    let known = ["id", "name", "parts", "response", "scheduling", "willContinue"];
    let fields = data.object(&known)?;
    let name = not_empty(&fields.need("name")?)?;
    let response = fields.need("response")?;
    let answer = response.open_object()?;
    let (is_error, text) = match (answer.get("error"), answer.get("output")) {
        (Some(error), _) => (true, as_text(error.value)),
        (None, Some(output)) => (false, as_text(output.value)),
        (None, None) => (false, response.value.to_string()),
    };
    let mut blocks = Vec::new();
    for part in fields.list("parts")? {
        blocks.push(blob(&part.object(&["inlineData"])?.need("inlineData")?)?);
    }
    let outcome = Outcome { text, blocks, is_error };
    let paired = match fields.get("id") {
        Some(id) => conversation.result(id.text()?, outcome),
        None => conversation.next_result(Some(name), outcome),
    };
    paired.map_err(|why| match why {
        Unpaired::OutOfOrder(expected) => data.wrong(format!(
            "function responses must be in the order of their calls; this is `{name}`, and \
             `{expected}` comes first"
        )),
        Unpaired::NoCall | Unpaired::Twice => data
            .wrong(format!("there is no function call that waits for this response of `{name}`")),
    })
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads what the model said. What comes back is the fault of a call without its signature.
fn model(
    content: &Node<'_>,
    parts: &[Part<'_>],
    conversation: &mut Conversation,
) -> Result<Option<Fault>, Fault> {
    let (mut text, mut calls) = (String::new(), Vec::new());
    let mut unsigned = None;
    for part in parts {
        match part.kind {
            "text" if part.fields.flag("thought")? == Some(true) => {}
            "text" => text.push_str(part.data.text()?),
            "functionCall" => {
                let fields = part.data.object(&["args", "id", "name"])?;
                let name = not_empty(&fields.need("name")?)?;
                let id = match fields.get("id") {
                    Some(id) => id.text()?.to_owned(),
                    None => conversation.made_up_id(calls.len()),
                };
                let args = fields.get("args").map_or_else(
                    || Ok(Value::Object(serde_json::Map::new())),
                    |args| args.open_object().map(|_| args.value.clone()),
                )?;
                if calls.is_empty() && !is_signed(part, name)? {
                    unsigned = Some(part.at.wrong(format!(
                        "Function call is missing a thought_signature in functionCall parts: \
                         `{name}`"
                    )));
                }
                calls.push(ToolCall::new(id, Arc::from(name), args));
            }
            _ => return Err(part.at.wrong("a model has only text and functionCall here")),
        }
    }
    conversation
        .assistant(&text, calls)
        .map_err(|id| content.wrong(format!("the id {id} is there twice")))?;
    Ok(unsigned)
}

fn is_signed(part: &Part<'_>, function: &str) -> Result<bool, Fault> {
    let Some(signed) = part.fields.get("thoughtSignature") else { return Ok(false) };
    let text = signed.text()?;
    if text == NOT_SIGNED {
        return Ok(true);
    }
    bytes(&signed)?;
    match text == signature(function) {
        true => Ok(true),
        false => Err(signed.wrong("Thought signature is not valid")),
    }
}

fn blob(data: &Node<'_>) -> Result<ContentBlock, Fault> {
    let fields = data.object(&["data", "displayName", "mimeType"])?;
    Ok(media(not_empty(&fields.need("mimeType")?)?, bytes(&fields.need("data")?)?))
}

/// Bytes in either alphabet of base64, as everywhere with Google.
fn bytes(node: &Node<'_>) -> Result<Vec<u8>, Fault> {
    let text = node.text()?.replace('-', "+").replace('_', "/");
    BASE64_STANDARD
        .decode(text)
        .map_err(|error| node.wrong(format!("Base64 decoding failed: {error}")))
}

fn not_empty<'a>(node: &Node<'a>) -> Result<&'a str, Fault> {
    match node.text()? {
        "" => Err(node.wrong("it must not be empty")),
        text => Ok(text),
    }
}
