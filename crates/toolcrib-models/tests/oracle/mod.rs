//! The vendors' own SDKs as the oracle of our adapters.
//!
//! Each conversation in `cases/` and each recorded answer in `streams/` is played twice against a
//! local server: by the vendor's Python SDK (`sdk/`) and by our adapter. What both send and what
//! both make of the answers must be equal, field by field, except where `differences` lists
//! something else and why.
//!
//! `cargo xtask oracle`, or `test`, installs the SDKs and says by an environment variable where.
//! Without it nothing is compared, and the log says so.
#![expect(clippy::disallowed_methods, reason = "it starts the SDKs, and reads its own files")]

mod case;
mod compare;
mod differences;
mod ours;
mod reply;
mod sdk;
mod server;
mod words;

use serde_json::json;
use toolcrib_models::Vendor;

use self::{
    case::Case,
    compare::Comparison,
    ours::Ours,
    reply::{Form, Reply},
    sdk::Sdk,
    server::Server,
};

#[test]
fn openai() {
    compare_with_sdk(Vendor::OpenAi);
}

#[test]
fn anthropic() {
    compare_with_sdk(Vendor::Anthropic);
}

#[test]
fn gemini() {
    compare_with_sdk(Vendor::Gemini);
}

#[test]
fn ollama() {
    compare_with_sdk(Vendor::Ollama);
}

fn compare_with_sdk(vendor: Vendor) {
    let (for_sdk, for_ours) = (Server::start(), Server::start());
    let Some(mut sdk) = Sdk::start(vendor, &base_url(vendor, &for_sdk)) else { return };
    let ours = Ours::new(vendor, &base_url(vendor, &for_ours));
    let mut comparison = Comparison::new(vendor);
    let mut play = |model: &str, run: &str, case: &Case, replies: &[Reply]| {
        for_sdk.play(replies);
        let heard = sdk.hold(case, model);
        let outcomes: Vec<_> = heard
            .iter()
            .zip(replies)
            .map(|(outcome, reply)| words::in_our_words(vendor, outcome, reply.status()))
            .collect();
        let requests = words::as_read(vendor, &for_sdk.requests().into());
        let theirs = json!({ "requests": requests, "outcomes": outcomes });
        for_ours.play(replies);
        let outcomes = ours.hold(case, model);
        let ours = json!({ "requests": for_ours.requests(), "outcomes": outcomes });
        comparison.add(&format!("{model}/{run}"), &ours, &theirs);
    };

    for case in Case::all() {
        let replies: Vec<_> =
            case.replies().iter().map(|name| Reply::read(vendor, name, Form::Whole)).collect();
        for model in models(vendor) {
            play(model, &format!("cases/{}", case.name), &case, &replies);
        }
    }
    let plain = Case::read("plain");
    for name in Reply::names(vendor) {
        for form in [Form::Whole, Form::Pieces, Form::CrLf] {
            let reply = Reply::read(vendor, &name, form);
            play(models(vendor)[0], &format!("streams/{name}"), &plain, &[reply]);
        }
    }
    if let Err(report) = comparison.report() {
        panic!("{vendor} and its SDK do not do the same:\n{report}");
    }
}

/// The models that are asked for: one of each kind that an adapter tells apart by its name.
fn models(vendor: Vendor) -> &'static [&'static str] {
    match vendor {
        Vendor::OpenAi => &["qwen3", "gpt-5.1", "gpt-6-sol"],
        Vendor::Anthropic => &["claude-sonnet-5-5"],
        Vendor::Gemini => &["gemini-3.5-flash", "gemini-2.5-flash"],
        _ => &["qwen3:8b"],
    }
}

/// As each SDK is told where its vendor's API is.
fn base_url(vendor: Vendor, server: &Server) -> String {
    match vendor {
        Vendor::OpenAi => format!("{}/v1", server.url()),
        _ => server.url(),
    }
}
