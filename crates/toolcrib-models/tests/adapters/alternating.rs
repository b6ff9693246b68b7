//! Messages of the user and answers alternate in each protocol, as strict chat templates require.

use std::sync::Arc;

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use toolcrib_core::{ContentBlock, Message, Secret, SentParts, ToolCall};
use toolcrib_models::{OpenAiApi, Vendor, VendorModel};

use crate::support::{NO_ANSWER, Reply, Server, ask, request, tool};

/// The protocols in which roles alternate, and those in which results of calls are of the user's
/// role.
const PROTOCOLS: [(Vendor, bool); 4] = [
    (Vendor::OpenAi, false),
    (Vendor::Ollama, false),
    (Vendor::Anthropic, true),
    (Vendor::Gemini, true),
];

/// What a turn does after the user's message.
#[derive(Debug, Clone)]
enum Step {
    Calls(usize),
    Notice,
    Answer(&'static str),
}

fn any_turn() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![(1..3_usize).prop_map(Step::Calls), Just(Step::Notice)];
    let answer = prop::sample::select(vec!["Here.", "", " \n"]).prop_map(Step::Answer);
    (vec(step, 0..4), prop::option::of(answer)).prop_map(|(mut steps, answer)| {
        steps.extend(answer);
        steps
    })
}

fn messages(turns: &[Vec<Step>]) -> Vec<Message> {
    let mut messages = Vec::new();
    for steps in turns {
        messages.push(Message::user("Go on."));
        for step in steps {
            match step {
                Step::Notice => messages.push(Message::notice("A source is away.")),
                Step::Answer(text) => messages.push(Message::assistant(*text, [])),
                Step::Calls(count) => {
                    let ids: Vec<_> =
                        (0..*count).map(|at| format!("c{}_{at}", messages.len())).collect();
                    let call = |id: &String| ToolCall::new(id.as_str(), "photo", json!({}));
                    messages.push(Message::assistant("", ids.iter().map(call).collect::<Vec<_>>()));
                    messages.extend(ids.iter().map(|id| Message::Tool {
                        call_id: id.as_str().into(),
                        name: "photo".into(),
                        text: "a photo".into(),
                        blocks: [ContentBlock::image("image/png", vec![1, 2])].into(),
                        is_error: false,
                        untrusted: false,
                    }));
                }
            }
        }
    }
    messages.push(Message::user("And now?"));
    messages
}

/// A server that records what it is sent, and a model on it.
struct Target {
    server: Server,
    model: Arc<VendorModel>,
}

impl Target {
    async fn of(vendor: Vendor) -> Self {
        let server = Server::start(std::iter::repeat_with(|| Reply::json(400, "{}"))).await;
        let mut model = VendorModel::builder(vendor, "a-model")
            .key(Secret::new("a-dummy-key"))
            .result_blocks(true)
            .base_url(&server.url);
        if vendor == Vendor::OpenAi {
            model = model.api(OpenAiApi::ChatCompletions);
        }
        Self { model: Arc::new(model.build().unwrap()), server }
    }

    /// The messages as they are sent, without marks of the prompt cache.
    async fn sent(&self, messages: Vec<Message>, parts: &Arc<SentParts>) -> Vec<Value> {
        let tools = vec![tool("photo", "A photo.", json!({ "type": "object" }))];
        let mut asked = request(messages, tools);
        asked.sent_parts = Some(Arc::clone(parts));
        ask(&self.model, asked).await.outcome.unwrap_err();
        let mark = r#","cache_control":{"type":"ephemeral"}"#;
        let body: Value = serde_json::from_str(&self.server.last().body.replace(mark, "")).unwrap();
        let list = body.get("messages").or(body.get("contents")).unwrap();
        list.as_array().unwrap().clone()
    }
}

/// The roles that must alternate: without system messages, and without calls and results, except
/// where results are of the user's role.
fn roles(messages: &[Value], counts_results: bool) -> Vec<&str> {
    let counts = |message: &&Value| {
        let has_calls = message.get("tool_calls").is_some();
        match message["role"].as_str().unwrap() {
            "system" | "tool" => false,
            "assistant" => counts_results || !has_calls,
            _ => true,
        }
    };
    messages.iter().filter(counts).map(|message| message["role"].as_str().unwrap()).collect()
}

async fn check(turns: &[Vec<Step>]) {
    let all = messages(turns);
    for (vendor, counts_results) in PROTOCOLS {
        let target = Target::of(vendor).await;
        let parts = Arc::new(SentParts::default());
        let mut before: Vec<Value> = Vec::new();
        // Each request of the conversation, from its first one.
        for (at, _) in all.iter().enumerate().filter(|(_, one)| matches!(one, Message::User { .. }))
        {
            let sent = target.sent(all[..=at].to_vec(), &parts).await;
            assert_eq!(sent[..before.len()], before, "{vendor}: sent messages do not change");
            let roles = roles(&sent, counts_results);
            let alternates =
                roles.iter().enumerate().all(|(at, role)| (*role == "user") == (at % 2 == 0));
            assert!(alternates, "{vendor}: {roles:?} of {sent:#?}");
            before = sent;
        }
        // Another process, and a program without a session, send the same.
        for again in [Arc::clone(&parts), Arc::new(SentParts::default())] {
            let target = Target::of(vendor).await;
            assert_eq!(target.sent(all.clone(), &again).await, before, "{vendor}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn user_and_assistant_alternate_after_any_turns(turns in vec(any_turn(), 0..5)) {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(check(&turns));
    }
}

#[tokio::test]
async fn a_turn_without_an_answer_is_followed_by_one_note() {
    let messages = vec![Message::user("first"), Message::user("second"), Message::user("third")];
    let parts = Arc::new(SentParts::default());
    let sent = Target::of(Vendor::OpenAi).await.sent(messages, &parts).await;
    let texts: Vec<_> = sent[1..].iter().map(|message| &message["content"]).collect();
    assert_eq!(texts, ["first", NO_ANSWER, "second", NO_ANSWER, "third"]);
}
