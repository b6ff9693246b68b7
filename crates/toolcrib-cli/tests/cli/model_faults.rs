//! Runs whose model breaks off, stalls, sends odd data or is cancelled: the history up to then
//! remains valid, for each vendor.

pub(crate) mod accepted;
mod random;
mod targets;
#[path = "../../../toolcrib-models/tests/adapters/faults/wire.rs"]
#[allow(dead_code, reason = "the adapters' own tests need more of it")]
pub(crate) mod wire;

use std::{
    future::IntoFuture,
    sync::{Arc, Mutex},
    time::Duration,
};

use toolcrib_agent::{Agent, AgentBuilder, EndReason, RunOptions, RunOutcome};
use toolcrib_core::{
    CancellationToken, ContentBlock, ErrorCode, EventKind, Message, ReliabilityAction,
    ReliabilityRule, Secret, Stage, ToolChoice, ToolName, ToolOutput,
};
use toolcrib_models::{Vendor, VendorModel, VendorModelBuilder};
use toolcrib_testbed::{CannedServer, Reply};
use toolcrib_testing::{assert_replayable, tool};

use self::{targets::Targets, wire::Answer};

const KEY: &str = "sk-not-a-real-key-1234567890";

/// How long nothing here takes, on the slowest machine.
const HANGS: Duration = Duration::from_secs(300);

pub(crate) async fn in_time<F: IntoFuture>(future: F) -> F::Output {
    tokio::time::timeout(HANGS, future).await.expect("it hangs")
}

pub(crate) fn vendor_model(url: &str, vendor: Vendor, name: &str) -> VendorModelBuilder {
    let version = if vendor == Vendor::OpenAi { "/v1" } else { "" };
    VendorModel::builder(vendor, name).base_url(format!("{url}{version}")).key(Secret::new(KEY))
}

/// An agent with tools that answer, show something, and fail.
fn agent(model: VendorModel) -> AgentBuilder {
    let photo = |_: &_| {
        let image = ContentBlock::image("image/png", b"\x89PNG".to_vec());
        ToolOutput::text("As of today.").block(image)
    };
    let rule = ReliabilityRule::new(ReliabilityAction::FailFast).stage(Stage::Model);
    Agent::builder().model(model).max_iterations(3).system("You help.").reliability([rule]).tools([
        tool("find_order").says("Order 1042 is on its way.").tool(),
        tool("photo").answers(photo).tool(),
        tool("broken").fails(ErrorCode::ExecutionFailed, "It is broken.").tool(),
    ])
}

/// An agent over a server that gives these replies.
async fn over(vendor: Vendor, replies: Vec<Reply>) -> (CannedServer, Agent) {
    let server = CannedServer::start(replies).await.unwrap();
    let model = vendor_model(&server.url(), vendor, "test-model").build().unwrap();
    let agent = agent(model).build().unwrap();
    (server, agent)
}

fn stream(vendor: Vendor, frames: &[String]) -> Reply {
    wire::reply(vendor).piece(frames.concat())
}

/// The model's response of each vendor in these tests: a text, then two calls.
fn looking_up() -> Answer {
    Answer::text(&["I look", " it up", "."])
        .calling("call_a", "find_order", &["{\"order\"", ": 1042}"])
        .calling("call_b", "photo", &["{}"])
}

/// A run, with the text that was heard while it went on.
struct Ran {
    outcome: RunOutcome,
    heard: String,
}

/// Runs; cancels at the event of that number, if any.
async fn run(
    agent: &Agent,
    message: &str,
    options: RunOptions,
    cancelled_at: Option<usize>,
) -> Ran {
    let cancellation = CancellationToken::new();
    let mut options = options;
    options.turn.cancellation = Some(cancellation.clone());
    let run = agent.run(message, options);
    let heard = Arc::new(Mutex::new((String::new(), 0)));
    let hearing = Arc::clone(&heard);
    run.on("*", move |event| {
        let (text, events) = &mut *hearing.lock().unwrap();
        if let EventKind::ModelText { text: piece } = &event.kind {
            text.push_str(piece);
        }
        if cancelled_at == Some(*events) {
            cancellation.cancel();
        }
        *events += 1;
    })
    .unwrap();
    let outcome = in_time(run).await;
    let heard = heard.lock().unwrap().0.clone();
    Ran { outcome, heard }
}

impl Ran {
    /// Checks the heard text and the history against the invariants of each run.
    #[track_caller]
    fn check(&self, history: &[Message]) {
        let messages = &self.outcome.messages;
        assert_replayable(messages);
        assert_eq!(messages[..history.len()], *history, "what was said before stays as it was");
        let said: String = messages[history.len()..]
            .iter()
            .filter_map(|message| match message {
                Message::Assistant { text, .. } => Some(&**text),
                _ => None,
            })
            .collect();
        // Text that broke off was streamed, and is not kept.
        assert!(self.heard.starts_with(&said), "heard {:?}, kept {said:?}", self.heard);
    }
}

#[tokio::test]
async fn a_failure_within_an_answer_leaves_what_was_said_before() {
    let targets = Targets::start().await;
    for vendor in Vendor::ALL {
        let frames = wire::frames(vendor, &looking_up());
        let begun = frames.len() - wire::end(vendor, &looking_up()).len();
        for place in 0..=begun {
            let mut with_error = frames[..place].to_vec();
            with_error.push(wire::error(vendor, "The cluster is on fire."));
            let half = frames[place].len() / 2;
            let cut = frames[..place].concat() + &frames[place][..half];
            for breaking in [
                stream(vendor, &with_error),
                stream(vendor, &frames[..place]),
                wire::reply(vendor).piece(cut).cut(),
            ] {
                let replies = vec![stream(vendor, &frames), breaking];
                let (_server, agent) = over(vendor, replies).await;
                let ran = run(&agent, "Where is it?", RunOptions::default(), None).await;
                assert_eq!(ran.outcome.end_reason, EndReason::Failed, "{vendor} at {place}");
                // The question, the calls, their results.
                assert_eq!(ran.outcome.messages.len(), 4, "{vendor} at {place}");
                ran.check(&[]);
                assert!("I look it up.I look it up.".starts_with(&ran.heard), "{}", ran.heard);
                if place == begun {
                    targets.accept(&ran.outcome.messages).await;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_cancellation_within_the_arguments_of_a_call_ends_the_request_and_keeps_the_rest() {
    let targets = Targets::start().await;
    for vendor in Vendor::ALL {
        let frames = wire::frames(vendor, &looking_up());
        let begun = frames.len() - wire::end(vendor, &looking_up()).len();
        // One after the other, so that what is heard has been followed by the beginning of a call.
        let stalled = frames[..begun - 1].iter().cloned().fold(wire::reply(vendor), Reply::piece);
        let (server, agent) = over(vendor, vec![stream(vendor, &frames), stalled.hold()]).await;
        let cancellation = CancellationToken::new();
        let mut options = RunOptions::default();
        options.turn.cancellation = Some(cancellation.clone());
        let running = tokio::spawn(agent.run("Where is it?", options).into_future());
        in_time(server.recorder().wait_for(2)).await;
        // However far it has come by then.
        tokio::time::sleep(Duration::from_millis(20)).await;
        cancellation.cancel();
        let outcome = in_time(running).await.unwrap();
        in_time(server.wait_until_left(1)).await;
        assert_eq!(outcome.end_reason, EndReason::Cancelled, "{vendor}");
        assert_eq!(outcome.messages.len(), 4, "{vendor}");
        assert_replayable(&outcome.messages);
        targets.accept(&outcome.messages).await;
    }
}

#[tokio::test]
async fn a_stalled_answer_fails_the_run_and_a_stalled_run_ends_in_time() {
    let targets = Targets::start().await;
    for vendor in Vendor::ALL {
        let frames = wire::frames(vendor, &looking_up());
        let begun = frames.len() - wire::end(vendor, &looking_up()).len();
        let stalled = wire::reply(vendor).piece(frames[..begun - 1].concat()).hold();
        for (idle, allowed, stopped) in [
            (Duration::from_millis(80), HANGS, EndReason::Failed),
            (HANGS, Duration::from_secs(1), EndReason::Timeout),
        ] {
            let replies = [stream(vendor, &frames), stalled.clone()];
            let server = CannedServer::start(replies).await.unwrap();
            let model = vendor_model(&server.url(), vendor, "test-model").idle_timeout(idle);
            let agent = agent(model.build().unwrap()).build().unwrap();
            let options = RunOptions::default().turn_timeout(allowed);
            let ran = run(&agent, "Where is it?", options, None).await;
            assert_eq!(ran.outcome.end_reason, stopped, "{vendor}");
            in_time(server.wait_until_left(1)).await;
            ran.check(&[]);
            targets.accept(&ran.outcome.messages).await;
        }
    }
}

#[tokio::test]
async fn a_wrap_up_that_calls_or_fails_leaves_no_call_without_a_result() {
    let targets = Targets::start().await;
    for vendor in Vendor::ALL {
        let calling = |round: usize| {
            let (a, b) = (format!("call_{round}a"), format!("call_{round}b"));
            Answer::text(&["Again."]).calling(&a, "find_order", &["{}"]).calling(
                &b,
                "made_up",
                &["{\"x\":", "1}"],
            )
        };
        let rounds = (0..3).map(|round| stream(vendor, &wire::frames(vendor, &calling(round))));
        let ends = [
            (stream(vendor, &wire::frames(vendor, &calling(3))), EndReason::MaxIterations),
            (
                stream(vendor, &wire::frames(vendor, &Answer::text(&["Done."]))),
                EndReason::MaxIterations,
            ),
            (stream(vendor, &wire::frames(vendor, &Answer::text(&[]))), EndReason::Failed),
            (stream(vendor, &wire::frames(vendor, &calling(3))[..2]), EndReason::Failed),
            (Reply::new(529).body("{}"), EndReason::Failed),
        ];
        for (end, stopped) in ends {
            let replies = rounds.clone().chain([end]).collect();
            let (server, agent) = over(vendor, replies).await;
            let ran = run(&agent, "Where is it?", RunOptions::default(), None).await;
            assert_eq!(ran.outcome.end_reason, stopped, "{vendor}: {:?}", ran.outcome.error);
            assert_eq!(server.recorder().len(), 4, "{vendor}");
            ran.check(&[]);
            targets.accept(&ran.outcome.messages).await;
        }
    }
}

#[tokio::test]
async fn a_model_that_ignores_what_it_must_call_leaves_nothing() {
    let targets = Targets::start().await;
    for vendor in Vendor::ALL {
        for choice in [ToolChoice::Required, ToolChoice::Tool(ToolName::new("photo").unwrap())] {
            let reply = stream(vendor, &wire::frames(vendor, &Answer::text(&["No."])));
            let (_server, agent) = over(vendor, vec![reply]).await;
            let options = RunOptions::default().tool_choices([choice]);
            let ran = run(&agent, "Where is it?", options, None).await;
            assert_eq!(ran.outcome.end_reason, EndReason::Failed, "{vendor}");
            assert_eq!(ran.outcome.messages.len(), 1, "{vendor}");
            ran.check(&[]);
            targets.accept(&ran.outcome.messages).await;
        }
    }
}

#[tokio::test]
async fn many_calls_and_long_words_of_one_answer_go_back() {
    let targets = Targets::start().await;
    for vendor in Vendor::ALL {
        let long = "x".repeat(20_000);
        let mut said = Answer::text(&[&long]).calling(&long, &long, &["{\"a\":\"", &long, "\"}"]);
        for number in 0..100 {
            // Identical calls in a row would reach a limit.
            let args = format!("{{\"n\":{number}}}");
            said = said.calling(&format!("call_{number}"), "find_order", &[&args]);
        }
        let frames = wire::frames(vendor, &said);
        let end = stream(vendor, &wire::frames(vendor, &Answer::text(&["Done."])));
        let (_server, agent) = over(vendor, vec![stream(vendor, &frames), end]).await;
        let ran = run(&agent, "Where is it?", RunOptions::default(), None).await;
        assert_eq!(
            ran.outcome.end_reason,
            EndReason::Answered,
            "{vendor}: {:?}",
            ran.outcome.error
        );
        assert_eq!(ran.outcome.tool_calls.len(), 101, "{vendor}");
        ran.check(&[]);
        targets.accept(&ran.outcome.messages).await;
    }
}
