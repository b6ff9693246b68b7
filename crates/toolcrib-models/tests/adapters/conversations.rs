//! A request continues what an earlier one has written, and has the bytes of one that is written from
//! scratch.

use std::{iter, sync::Arc};

use proptest::{collection::vec, prelude::*};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{
    Arguments, ContentBlock, Menu, Message, ModelRequest, SEARCH_TOOLS, Secret, SentParts, Tool,
    ToolCall, ToolName, VendorContent,
};
use toolcrib_models::{OpenAiApi, Vendor, VendorModel};
use toolcrib_testbed::images;

use crate::support::{Reply, Server, ask, request, tool};

const SYSTEMS: [&str; 2] = ["You help.", "You help. Be brief."];
const WORDS: [&str; 4] = ["", "What?", "\"1042\"\n", "Caf\u{e9} <b>"];

/// The forms of a request, and whether blocks of results and found tools are sent.
const FORMS: [(Vendor, Option<OpenAiApi>, bool); 8] = [
    (Vendor::Anthropic, None, false),
    (Vendor::Anthropic, None, true),
    (Vendor::OpenAi, Some(OpenAiApi::ChatCompletions), false),
    (Vendor::OpenAi, Some(OpenAiApi::ChatCompletions), true),
    (Vendor::OpenAi, Some(OpenAiApi::Responses), false),
    (Vendor::OpenAi, Some(OpenAiApi::Responses), true),
    (Vendor::Gemini, None, true),
    (Vendor::Ollama, None, true),
];

/// A client of this machine, which all models of a test share.
fn client() -> HttpClient {
    HttpClient::builder().allow_addresses(["127.0.0.1/32".parse().unwrap()]).build()
}

fn model(form: usize, url: &str, client: &HttpClient) -> Arc<VendorModel> {
    let (vendor, api, sends_all) = FORMS[form];
    let mut builder = VendorModel::builder(vendor, "a-model").base_url(url).client(client.clone());
    builder = builder.key(Secret::new("a-dummy-key"));
    if sends_all {
        builder = builder.result_blocks(true);
    }
    let has_search = matches!(
        (vendor, api),
        (Vendor::Anthropic, _) | (Vendor::OpenAi, Some(OpenAiApi::Responses))
    );
    if has_search {
        builder = builder.tool_search(sends_all);
    }
    if let Some(api) = api {
        builder = builder.api(api);
    }
    Arc::new(builder.build().unwrap())
}

async fn server() -> Server {
    // The response does not matter.
    Server::start(iter::repeat_with(|| Reply::json(400, "{}"))).await
}

async fn body(model: &Arc<VendorModel>, server: &Server, asked: &ModelRequest) -> String {
    ask(model, asked.clone()).await.outcome.unwrap_err();
    server.last().body
}

/// A step of a conversation, an edit of it, or a change beside it.
#[derive(Debug, Clone)]
enum Step {
    User(usize),
    Picture(usize),
    Answer(usize),
    Thought(usize),
    /// Calls and their results.
    Calls(Vec<(usize, bool)>),
    Search(usize),
    /// Replaces the text of a message.
    Retell(usize, usize),
    /// Replaces the arguments of a call, whose id and name stay shared.
    Rewrite(usize, usize),
    Remove(usize),
    Insert(usize, usize),
    /// Leaves out the middle.
    Compact(usize),
    Reload,
    Menu(usize),
    System(usize),
    /// Continues the other conversation.
    Switch,
    /// Continues a copy of this conversation as the other one.
    Fork,
    Again,
}

fn any_step() -> impl Strategy<Value = Step> {
    let at = || 0..12_usize;
    let words = || 0..WORDS.len();
    prop_oneof![
        3 => words().prop_map(Step::User),
        1 => words().prop_map(Step::Picture),
        3 => words().prop_map(Step::Answer),
        3 => words().prop_map(Step::Thought),
        6 => vec((words(), any::<bool>()), 1..3).prop_map(Step::Calls),
        2 => (0..3_usize).prop_map(Step::Search),
        2 => (at(), words()).prop_map(|(at, text)| Step::Retell(at, text)),
        2 => (at(), words()).prop_map(|(at, text)| Step::Rewrite(at, text)),
        1 => at().prop_map(Step::Remove),
        1 => (at(), words()).prop_map(|(at, text)| Step::Insert(at, text)),
        1 => at().prop_map(Step::Compact),
        1 => Just(Step::Reload),
        3 => (0..4_usize).prop_map(Step::Menu),
        1 => (0..2_usize).prop_map(Step::System),
        2 => Just(Step::Switch),
        1 => Just(Step::Fork),
        1 => Just(Step::Again),
    ]
}

/// A conversation, and what is beside it.
#[derive(Clone)]
struct Talk {
    messages: Vec<Message>,
    menu: Arc<Menu>,
    system: Arc<str>,
    sent_parts: Option<Arc<SentParts>>,
    calls: usize,
}

impl Talk {
    fn new(text: &str) -> Self {
        Self {
            messages: vec![Message::user(text)],
            menu: Arc::new(menu(1)),
            system: SYSTEMS[0].into(),
            sent_parts: None,
            calls: 0,
        }
    }

    fn request(&self) -> ModelRequest {
        ModelRequest {
            system: Arc::clone(&self.system),
            menu: Arc::clone(&self.menu),
            sent_parts: self.sent_parts.clone(),
            ..request(self.messages.clone(), Vec::new())
        }
    }

    fn call(&mut self, name: &str, text: usize) -> ToolCall {
        self.calls += 1;
        let id = format!("call_{}", self.calls);
        match text {
            0 => ToolCall::new(id, name, json!({ "id": 1.5, "of": [null] })),
            text => ToolCall::unparsed(id, name, format!("{{ \"id\" : {text} }}")),
        }
    }

    fn apply(&mut self, step: &Step, kept: &[VendorContent]) {
        let count = self.messages.len();
        match step {
            Step::User(text) => self.messages.push(Message::user(WORDS[*text])),
            Step::Picture(text) => self.messages.push(Message::User {
                text: WORDS[*text].into(),
                blocks: [ContentBlock::image("image/png", images::PNG)].into(),
            }),
            Step::Answer(text) => self.messages.push(Message::assistant(WORDS[*text], [])),
            Step::Thought(which) => self.messages.push(Message::Assistant {
                text: "So.".into(),
                calls: Vec::new(),
                vendor: Some(Arc::new(kept[which % kept.len()].clone())),
            }),
            Step::Calls(results) => {
                let calls: Vec<_> =
                    results.iter().map(|(text, _)| self.call("find", *text)).collect();
                self.messages.push(Message::assistant("", calls.clone()));
                for (call, (text, has_block)) in calls.iter().zip(results) {
                    let image = ContentBlock::image("image/png", images::PNG);
                    let blocks: &[_] = if *has_block { &[image] } else { &[] };
                    self.messages.push(result(call, WORDS[*text], blocks, *text == 1));
                }
            }
            Step::Search(which) => {
                let call = self.call(SEARCH_TOOLS, 1);
                let found = ["alpha", "beta", "gamma"][*which];
                let found = json!([{ "need": "it", "tools": [{ "name": found }] }]);
                self.messages.push(Message::assistant("", [call.clone()]));
                let text = json!({ "found": found }).to_string();
                self.messages.push(result(&call, &text, &[], false));
            }
            Step::Retell(at, new) => match &mut self.messages[at % count] {
                Message::User { text, .. }
                | Message::Assistant { text, .. }
                | Message::Tool { text, .. } => *text = WORDS[*new].into(),
                _ => {}
            },
            Step::Rewrite(at, new) => {
                let calls = self.messages.iter_mut().filter_map(|message| match message {
                    Message::Assistant { calls, .. } => calls.first_mut(),
                    _ => None,
                });
                let mut calls: Vec<_> = calls.collect();
                let count = calls.len().max(1);
                if let Some(call) = calls.get_mut(at % count) {
                    call.arguments = Arguments::Text(format!("{{\"id\":{new}}}"));
                }
            }
            Step::Remove(at) if count > 1 => drop(self.messages.remove(at % count)),
            Step::Insert(at, text) => {
                self.messages.insert(at % count, Message::user(WORDS[*text]));
            }
            Step::Compact(at) => drop(self.messages.drain((at % count).min(1)..at % count)),
            // The same content from a store.
            Step::Reload => {
                for message in &mut self.messages {
                    if let Message::User { text, .. } | Message::Tool { text, .. } = message {
                        *text = String::from(&**text).into();
                    }
                }
            }
            Step::Menu(which) => self.menu = Arc::new(menu(*which)),
            Step::System(which) => self.system = SYSTEMS[*which].into(),
            Step::Remove(_) | Step::Switch | Step::Fork | Step::Again => {}
        }
    }
}

fn result(call: &ToolCall, text: &str, blocks: &[ContentBlock], is_error: bool) -> Message {
    Message::Tool {
        call_id: Arc::clone(&call.id),
        name: Arc::clone(&call.name),
        text: text.into(),
        blocks: blocks.into(),
        is_error,
        untrusted: false,
    }
}

fn plain(name: &str) -> Tool {
    tool(name, &format!("What {name} does."), json!({ "type": "object", "properties": {} }))
}

/// A menu: empty, or with these tools found.
fn menu(which: usize) -> Menu {
    let schema = json!({ "type": "object", "properties": { "needs": { "type": "array" } } });
    let search = Tool::builder(SEARCH_TOOLS).description("Finds.").input_schema(schema).framework();
    let search = search.handler(|_: Value, _| async { "never called" }).unwrap();
    let found: &[&str] = match which {
        0 => return Menu::new(Vec::new()).unwrap(),
        1 => &[],
        2 => &["beta"],
        _ => &["beta", "alpha"],
    };
    let found: Vec<_> = found.iter().map(|name| ToolName::new(*name).unwrap()).collect();
    let deferred = ["alpha", "beta", "gamma"].map(plain).to_vec();
    Menu::with_deferred(vec![plain("find"), search], deferred).unwrap().reveal(&found, false)
}

/// What vendors require back with the answer `So.`, under the first system text and the first menu.
async fn kept(form: usize, url: &str, client: &HttpClient) -> Vec<VendorContent> {
    let events = [
        json!({ "type": "content_block_start", "index": 0, "content_block":
            { "type": "thinking", "thinking": "Hm.", "signature": "c2ln" } }),
        json!({ "type": "content_block_start", "index": 1, "content_block":
            { "type": "text", "text": "So." } }),
        json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" } }),
        json!({ "type": "message_stop" }),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    let thinking = Server::start([Reply::events(events)]).await;
    let form = if FORMS[form].0 == Vendor::Anthropic { form } else { 0 };
    let thinker = model(form, &thinking.url, client);
    let answer = ask(&thinker, Talk::new("").request()).await.outcome.unwrap();
    let url = format!("{}/", url.trim_end_matches('/'));
    let of_openai = |content: Value| VendorContent { vendor: "openai".into(), content };
    let mut kept = vec![
        VendorContent::clone(&answer.vendor.unwrap()),
        VendorContent {
            vendor: "gemini".into(),
            content: json!([{ "part": "text", "chars": 3, "signature": "c2ln" }]),
        },
        VendorContent { vendor: "ollama".into(), content: "Hm.".into() },
    ];
    for url in [url.trim_end_matches('/'), &*url] {
        kept.push(of_openai(json!({
            "server": url, "model": "a-model", "reasoning_content": "Hm.", "calls": [],
        })));
        kept.push(of_openai(json!({ "server": url, "model": "a-model", "items": [
            { "type": "reasoning", "id": "r", "summary": [], "encrypted_content": "c2ln" },
            { "type": "message", "id": "m", "phase": "final", "bytes": 3 },
        ] })));
    }
    kept
}

async fn check(form: usize, steps: &[Step], has_session: bool) {
    let server = server().await;
    let client = client();
    let kept = kept(form, &server.url, &client).await;
    let used = model(form, &server.url, &client);
    let mut talks = [Talk::new("first"), Talk::new("second")];
    if has_session {
        for talk in &mut talks {
            talk.sent_parts = Some(Arc::default());
        }
    }
    let mut current = 0;
    for step in steps {
        match step {
            Step::Switch => current = 1 - current,
            Step::Fork => talks[1 - current] = talks[current].clone(),
            step => talks[current].apply(step, &kept),
        }
        let asked = talks[current].request();
        let sent = body(&used, &server, &asked).await;
        let fresh = body(&model(form, &server.url, &client), &server, &asked).await;
        assert_eq!(sent, fresh, "{:?} after {step:?} of {steps:?}", FORMS[form]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_request_after_any_edits_has_the_bytes_of_one_from_scratch(
        form in 0..FORMS.len(),
        steps in vec(any_step(), 1..24),
        has_session in any::<bool>(),
    ) {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check(form, &steps, has_session));
    }
}

#[tokio::test]
async fn conversations_of_one_model_at_the_same_time_do_not_mix() {
    for (form, kind) in FORMS.iter().enumerate() {
        let server = server().await;
        let client = client();
        let shared = model(form, &server.url, &client);
        // The first message is the same one for all of them.
        let mut talks: Vec<_> = iter::repeat_n(Talk::new("Begin."), 8).collect();
        for round in 0..4_usize {
            for (at, talk) in talks.iter_mut().enumerate() {
                talk.apply(&Step::Calls(vec![((round + at) % 4, at % 2 == 0)]), &[]);
                talk.messages.push(Message::user(format!("round {round} of {at}")));
            }
            let asked = talks.iter().map(|talk| ask(&shared, talk.request()));
            futures_util::future::join_all(asked).await;
            let mut sent: Vec<_> = server.seen().into_iter().rev().take(8).collect();
            let mut fresh = Vec::new();
            for talk in &talks {
                let model = model(form, &server.url, &client);
                fresh.push(body(&model, &server, &talk.request()).await);
            }
            sent.sort_by(|one, other| one.body.cmp(&other.body));
            fresh.sort();
            let sent: Vec<_> = sent.into_iter().map(|seen| seen.body).collect();
            assert_eq!(sent, fresh, "{kind:?} in round {round}");
        }
    }
}
