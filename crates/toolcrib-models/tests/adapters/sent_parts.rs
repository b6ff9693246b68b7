//! Messages and definitions are sent again as they were first sent, whatever this program would
//! write now.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    ContentBlock, Message, ModelRequest, Secret, SentPart, SentParts, Tool, ToolCall,
};
use toolcrib_models::{OpenAiApi, Vendor, VendorModel};
use toolcrib_testbed::images;

use crate::support::{Reply, Server, ask, request, tool};

/// The forms of a request.
const FORMS: [(&str, Vendor, Option<OpenAiApi>); 5] = [
    ("anthropic", Vendor::Anthropic, None),
    ("chat_completions", Vendor::OpenAi, Some(OpenAiApi::ChatCompletions)),
    ("responses", Vendor::OpenAi, Some(OpenAiApi::Responses)),
    ("gemini", Vendor::Gemini, None),
    ("ollama", Vendor::Ollama, None),
];

fn tools() -> Vec<Tool> {
    let order = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
    vec![tool("find_order", "Finds an order.", order.clone()), tool("photo", "A photo.", order)]
}

fn result(id: &str, name: &str, text: &str, blocks: &[ContentBlock], is_error: bool) -> Message {
    Message::Tool {
        call_id: id.into(),
        name: name.into(),
        text: text.into(),
        blocks: blocks.into(),
        is_error,
        untrusted: true,
    }
}

fn conversation() -> Vec<Message> {
    vec![
        Message::user("Caf\u{e9} \"1042\"?"),
        Message::assistant(
            "I look.",
            [
                ToolCall::new("c1", "photo", json!({ "id": 1.5 })),
                ToolCall::unparsed("c2", "find_order", r#"{ "id" :  1042 }"#),
            ],
        ),
        result("c1", "photo", "a photo", &[ContentBlock::image("image/png", images::PNG)], false),
        result("c2", "find_order", "not found", &[], true),
        Message::assistant("There is none.", []),
        Message::user("Thanks."),
    ]
}

async fn body(form: usize, request: ModelRequest) -> String {
    let (_, vendor, api) = FORMS[form];
    // The response does not matter.
    let server = Server::start([Reply::json(400, "{}")]).await;
    let mut model = VendorModel::builder(vendor, "a-model").key(Secret::new("a-dummy-key"));
    if let Some(api) = api {
        model = model.api(api);
    }
    // The address is a part of what decides the form.
    let model = model.base_url(&server.url).build().unwrap();
    ask(&Arc::new(model), request).await.outcome.unwrap_err();
    server.last().body
}

/// A server at one address.
struct RecordingServer {
    model: Arc<VendorModel>,
    server: Server,
}

impl RecordingServer {
    async fn at(form: usize) -> Self {
        let (_, vendor, api) = FORMS[form];
        let server = Server::start(std::iter::repeat_with(|| Reply::json(400, "{}"))).await;
        let mut model = VendorModel::builder(vendor, "a-model").key(Secret::new("a-dummy-key"));
        if let Some(api) = api {
            model = model.api(api);
        }
        Self { model: Arc::new(model.base_url(&server.url).build().unwrap()), server }
    }

    async fn body(&self, messages: Vec<Message>, sent: Option<&Arc<SentParts>>) -> String {
        let asked = ModelRequest { sent_parts: sent.map(Arc::clone), ..request(messages, tools()) };
        ask(&self.model, asked).await.outcome.unwrap_err();
        self.server.last().body
    }
}

/// Another spelling of the same JSON, as another version of the program could have written it.
fn respelled(parts: &[SentPart]) -> Vec<SentPart> {
    let respell =
        |part: &SentPart| SentPart { key: part.key, json: part.json.replace("{\"", "{ \"").into() };
    parts.iter().map(respell).collect()
}

#[tokio::test]
async fn each_form_has_these_bodies() {
    for (form, (name, ..)) in FORMS.iter().enumerate() {
        let body = body(form, request(conversation(), tools())).await;
        insta::assert_snapshot!(format!("body_{name}"), body);
    }
}

#[tokio::test]
async fn sent_parts_are_sent_again_unchanged() {
    for (form, (name, ..)) in FORMS.iter().enumerate() {
        let server = RecordingServer::at(form).await;
        let now = server.body(conversation(), None).await;
        let sent = Arc::new(SentParts::default());
        assert_eq!(server.body(conversation(), Some(&sent)).await, now, "{name}: the first time");
        let parts = sent.take_new();
        // Six messages and two tools.
        assert_eq!(parts.len(), 8, "{name}");
        assert_eq!(server.body(conversation(), Some(&sent)).await, now, "{name}: the second time");
        assert_eq!(sent.take_new(), [], "{name}");

        let older = Arc::new(SentParts::new(respelled(&parts)));
        let again = server.body(conversation(), Some(&older)).await;
        let value = |body: &str| serde_json::from_str::<Value>(body).unwrap();
        assert_eq!(value(&again), value(&now), "{name}");
        for part in respelled(&parts) {
            // Of a list of parts.
            let inner = part.json.trim_start_matches('[').trim_end_matches(']');
            let inner = inner.trim_end_matches('}');
            assert!(again.contains(inner), "{name}: {inner} is not in {again}");
        }
        assert_eq!(older.take_new(), [], "{name}");
    }
}

#[tokio::test]
async fn a_changed_message_a_new_tool_and_a_damaged_part_are_written_now() {
    for (form, (name, ..)) in FORMS.iter().enumerate() {
        let server = RecordingServer::at(form).await;
        let sent = Arc::new(SentParts::default());
        let now = server.body(conversation(), Some(&sent)).await;
        let parts = sent.take_new();

        // A secret that has become known.
        let older = Arc::new(SentParts::new(respelled(&parts)));
        let mut messages = conversation();
        messages[0] = Message::user("Caf\u{e9} \"[redacted]\"?");
        let body = server.body(messages, Some(&older)).await;
        assert!(body.contains("[redacted]") && !body.contains("1042\\\"?"), "{name}: {body}");
        assert_eq!(older.take_new().len(), 1, "{name}");

        let damaged = parts.iter().map(|part| SentPart { key: part.key, json: "[{".into() });
        let damaged = Arc::new(SentParts::new(damaged));
        assert_eq!(server.body(conversation(), Some(&damaged)).await, now, "{name}");

        let forgotten = Arc::new(SentParts::new(respelled(&parts)));
        forgotten.retain(|_| false);
        assert_eq!(server.body(conversation(), Some(&forgotten)).await, now, "{name}");
    }
}

#[tokio::test]
async fn a_removed_tool_is_not_sent_and_the_others_keep_their_bytes() {
    for (form, (name, ..)) in FORMS.iter().enumerate() {
        let server = RecordingServer::at(form).await;
        let sent = Arc::new(SentParts::default());
        server.body(conversation(), Some(&sent)).await;
        let older = Arc::new(SentParts::new(respelled(&sent.take_new())));
        let mut fewer = request(vec![Message::user("Hi")], tools().split_off(1));
        fewer.sent_parts = Some(Arc::clone(&older));
        ask(&server.model, fewer).await.outcome.unwrap_err();
        let body = server.server.last().body;
        assert!(!body.contains("Finds an order."), "{name}: {body}");
        assert!(body.contains("{ \"id\""), "{name}: {body}");
    }
}
