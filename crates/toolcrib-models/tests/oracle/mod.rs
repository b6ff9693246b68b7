//! The vendors' own SDKs as the oracle of our adapters.
//!
//! Each conversation in `cases/` and each recorded answer in `streams/` is played twice against a
//! local server: by the vendor's Python SDK (`sdk/`) and by our adapter. The requests of both and
//! their results must be equal, field by field, except where `differences` lists a difference with
//! its reason.
//!
//! `cargo xtask oracle`, or `test`, installs the SDKs and sets an environment variable with their
//! path. Without it nothing is compared, and the log says so.
#![expect(clippy::disallowed_methods, reason = "it starts the SDKs, and reads its own files")]

mod api;
mod case;
mod compare;
mod differences;
mod ours;
mod reply;
mod sdk;
mod server;
mod words;

use serde_json::json;

use self::{
    api::Api,
    case::Case,
    compare::Comparison,
    ours::Ours,
    reply::{Form, Reply},
    sdk::Sdk,
    server::Server,
};

#[test]
fn openai() {
    compare_with_sdk(Api::OpenAi);
}

#[test]
fn openai_responses() {
    compare_with_sdk(Api::Responses);
}

#[test]
fn anthropic() {
    compare_with_sdk(Api::Anthropic);
}

#[test]
fn gemini() {
    compare_with_sdk(Api::Gemini);
}

#[test]
fn ollama() {
    compare_with_sdk(Api::Ollama);
}

fn compare_with_sdk(api: Api) {
    let (for_sdk, for_ours) = (Server::start(), Server::start());
    let Some(mut sdk) = Sdk::start(api, &base_url(api, &for_sdk)) else { return };
    let ours = Ours::new(api, &base_url(api, &for_ours));
    let mut comparison = Comparison::new(api);
    let mut play = |model: &str, run: &str, case: &Case, replies: &[Reply]| {
        for_sdk.play(replies);
        let heard = sdk.hold(case, model);
        let outcomes: Vec<_> = heard
            .iter()
            .zip(replies)
            .map(|(outcome, reply)| words::in_our_words(api, outcome, reply.status()))
            .collect();
        let requests = words::as_read(api, &for_sdk.requests().into());
        let theirs = json!({ "requests": requests, "outcomes": outcomes });
        for_ours.play(replies);
        let outcomes = ours.hold(case, model);
        let ours = json!({ "requests": for_ours.requests(), "outcomes": outcomes });
        comparison.add(&format!("{model}/{run}"), &ours, &theirs);
    };

    for case in Case::all() {
        let replies: Vec<_> =
            case.replies().iter().map(|name| Reply::read(api, name, Form::Whole)).collect();
        for model in models(api) {
            play(model, &format!("cases/{}", case.name), &case, &replies);
        }
    }
    let plain = Case::read("plain");
    for name in Reply::names(api) {
        for form in [Form::Whole, Form::Pieces, Form::CrLf] {
            let reply = Reply::read(api, &name, form);
            play(models(api)[0], &format!("streams/{name}"), &plain, &[reply]);
        }
    }
    if let Err(report) = comparison.report() {
        panic!("{api} and its SDK do not do the same:\n{report}");
    }
}

/// The models that are asked for: one of each kind that an adapter tells apart by its name.
fn models(api: Api) -> &'static [&'static str] {
    match api {
        Api::OpenAi => &["qwen3", "gpt-5.1", "gpt-6-sol"],
        Api::Responses => &["gpt-6.2-sol"],
        Api::Anthropic => &["claude-sonnet-5-5"],
        Api::Gemini => &["gemini-3.5-flash", "gemini-2.5-flash"],
        Api::Ollama => &["qwen3:8b"],
    }
}

/// How each SDK gets the address of its vendor's API.
fn base_url(api: Api, server: &Server) -> String {
    match api {
        Api::OpenAi | Api::Responses => format!("{}/v1", server.url()),
        _ => server.url(),
    }
}
