//! A request in the format of OpenAI's Chat Completions, written from scratch each time: the
//! baseline for adapters, which cache the tool block.

use std::io::Write;

use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::Value;
use toolcrib_core::{Arguments, Message, ModelRequest, Tool, ToolCall};

/// Writes the whole request, including tool block and history, without a cache.
///
/// # Errors
/// Those of the writer.
pub fn render(request: &ModelRequest, writer: impl Write) -> serde_json::Result<()> {
    let body = Body {
        model: "bench",
        messages: Messages { system: &request.system, said: &request.messages },
        tools: Tools(request.menu.tools()),
    };
    serde_json::to_writer(writer, &body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Messages<'a>,
    tools: Tools<'a>,
}

struct Tools<'a>(&'a [Tool]);

impl Serialize for Tools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|tool| Offered {
            kind: "function",
            function: Function {
                name: tool.name(),
                description: tool.description(),
                parameters: tool.input_schema(),
            },
        }))
    }
}

#[derive(Serialize)]
struct Offered<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

struct Messages<'a> {
    system: &'a str,
    said: &'a [Message],
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut messages = serializer.serialize_seq(Some(1 + self.said.len()))?;
        messages.serialize_element(&Said { role: "system", content: self.system })?;
        for message in self.said {
            match message {
                Message::User { text, .. } => {
                    messages.serialize_element(&Said { role: "user", content: text })?;
                }
                Message::Assistant { text, calls, .. } => {
                    messages.serialize_element(&Asked {
                        role: "assistant",
                        content: text,
                        tool_calls: calls.iter().map(Asking::from).collect(),
                    })?;
                }
                Message::Tool { call_id, text, .. } => {
                    messages.serialize_element(&Answered {
                        role: "tool",
                        tool_call_id: call_id,
                        content: text,
                    })?;
                }
                _ => {}
            }
        }
        messages.end()
    }
}

#[derive(Serialize)]
struct Said<'a> {
    role: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct Asked<'a> {
    role: &'a str,
    content: &'a str,
    tool_calls: Vec<Asking<'a>>,
}

#[derive(Serialize)]
struct Asking<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: String,
}

impl<'a> From<&'a ToolCall> for Asking<'a> {
    fn from(call: &'a ToolCall) -> Self {
        let arguments = match &call.arguments {
            Arguments::Text(text) => text.clone(),
            Arguments::Json(value) => value.to_string(),
        };
        Self { id: &call.id, kind: "function", function: Called { name: &call.name, arguments } }
    }
}

#[derive(Serialize)]
struct Answered<'a> {
    role: &'a str,
    tool_call_id: &'a str,
    content: &'a str,
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use toolcrib_core::{Menu, ToolChoice};

    use super::*;
    use crate::fixture::{call, tool};

    #[test]
    fn a_request_is_written_as_the_format_says() {
        let said = Message::assistant("", [call(1)]);
        let request = ModelRequest {
            system: "Look things up.".into(),
            messages: Arc::new(vec![Message::user("hello"), said]),
            menu: Arc::new(Menu::new(vec![tool(7).unwrap()]).unwrap()),
            tool_choice: ToolChoice::Auto,
            sent_parts: None,
        };
        let mut written = Vec::new();
        render(&request, &mut written).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(written["messages"][1], json!({ "role": "user", "content": "hello" }));
        let asked = &written["messages"][2]["tool_calls"][0];
        assert_eq!(asked["function"]["arguments"], r#"{"number": 1042}"#);
        let offered = &written["tools"][0]["function"];
        assert_eq!(offered["name"], "look_up_0007");
        assert_eq!(offered["parameters"]["required"], json!(["number"]));
    }
}
