//! Any sequence of models' and servers' behavior: the conversation continues, with each vendor.

use std::time::Duration;

use proptest::{
    collection::vec,
    option,
    prelude::{Just, ProptestConfig, Strategy, any, prop_oneof, proptest},
    sample::select,
};
use tokio::runtime::Builder;
use toolcrib_agent::RunOptions;
use toolcrib_models::Vendor;
use toolcrib_testbed::{CannedServer, Reply};

use super::{
    agent, run, stream,
    targets::Targets,
    vendor_model,
    wire::{self, AnswerCall},
};
use crate::support::in_full;

/// How long nothing comes from a server that stalls.
const IDLE: Duration = Duration::from_millis(40);

/// The response to one request.
#[derive(Debug, Clone)]
enum Answer {
    Whole(wire::Answer),
    /// It ends after this part, in hundredths, with this ending.
    Broken(wire::Answer, usize, Ending),
    Refused(u16),
}

#[derive(Debug, Clone, Copy)]
enum Ending {
    Clean,
    Cut,
    Reset,
    Error,
    Stall,
}

/// One message of the user's, and what becomes of it.
#[derive(Debug, Clone)]
struct Turn {
    vendor: Vendor,
    message: &'static str,
    answers: Vec<Answer>,
    cancelled_at: Option<usize>,
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let odd = select(vec!["", " ", "\n", "Hi.", "größer 👀", "\u{0}", "\u{200b}", "\u{1b}[31m"]);
    vec(odd.prop_map(str::to_owned), 0..3)
}

fn arguments() -> impl Strategy<Value = Vec<String>> {
    let deep = format!("{{\"a\":{}{}}}", "[".repeat(300), "]".repeat(300));
    let odd = [
        "{}",
        "{\"order\": 1042}",
        " {\"a\":{\"b\":[1, 2.50, null]}} ",
        "",
        " ",
        "null",
        "[1]",
        "\"text\"",
        "{\"cut\":",
        "{\"order\":1}{\"order\":2}",
        "nonsense",
        "{\"half\":\"\\ud83d\"}",
        "{\"half\":\"\\udc40\\ud83d\"}",
        "{\"\\ud83d\":1}",
        "{\"huge\":1e999}",
        "{\"long\":123456789012345678901234567890}",
        "{\"nul\":\"\\u0000\"}",
        "\u{0}",
        "{\"twice\":1,\"twice\":2}",
        "{\"\":{\"INVALID_JSON\":true}}",
    ];
    let odd = odd.into_iter().map(str::to_owned).chain([deep]).collect::<Vec<_>>();
    (select(odd), any::<usize>()).prop_map(|(whole, cut)| {
        let places: Vec<_> = whole.char_indices().map(|(at, _)| at).collect();
        let (first, second) = match places.get(cut.checked_rem(places.len()).unwrap_or(0)) {
            Some(at) => whole.split_at(*at),
            None => (&*whole, ""),
        };
        vec![first.to_owned(), second.to_owned()]
    })
}

fn call() -> impl Strategy<Value = AnswerCall> {
    let long = "x".repeat(300);
    let ids =
        ["", " ", "a", "a", "call_1", "call_2", "call_3", "a b", "größe", "\u{0}", "\n", &long];
    let names =
        ["", " ", "made_up", "has space", "größe", "\u{0}", "1st", "-", "_", "a.b:c", &long];
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let known = owned(&["find_order", "photo", "broken"]);
    let name = prop_oneof![2 => select(known), 1 => select(owned(&names))];
    (option::weighted(0.8, select(owned(&ids))), name, arguments())
        .prop_map(|(id, name, arguments)| AnswerCall { id, name, arguments })
}

fn said() -> impl Strategy<Value = wire::Answer> {
    (texts(), vec(call(), 0..4), any::<bool>()).prop_map(|(texts, calls, is_cut)| wire::Answer {
        texts,
        calls,
        is_cut,
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let ending = prop_oneof![
        3 => Just(Ending::Clean),
        3 => Just(Ending::Cut),
        3 => Just(Ending::Reset),
        3 => Just(Ending::Error),
        1 => Just(Ending::Stall),
    ];
    prop_oneof![
        8 => said().prop_map(Answer::Whole),
        2 => (said(), 0..=100_usize, ending).prop_map(|(said, at, ending)| Answer::Broken(said, at, ending)),
        1 => select(vec![400_u16, 401, 429, 500, 529, 204]).prop_map(Answer::Refused),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    let messages = select(vec!["Where is it?", "Go on.", "", " "]);
    let cancelled_at = option::weighted(0.3, 0..40_usize);
    (select(Vendor::ALL.to_vec()), messages, vec(answer(), 1..5), cancelled_at).prop_map(
        |(vendor, message, answers, cancelled_at)| Turn { vendor, message, answers, cancelled_at },
    )
}

fn reply(vendor: Vendor, answer: &Answer) -> Reply {
    match answer {
        Answer::Whole(said) => stream(vendor, &wire::frames(vendor, said)),
        Answer::Broken(said, at, ending) => {
            let whole = wire::frames(vendor, said).concat();
            let begun = whole.as_bytes()[..whole.len() * at / 100].to_vec();
            let begun = wire::reply(vendor).piece(begun);
            match ending {
                Ending::Clean => begun,
                Ending::Cut => begun.cut(),
                Ending::Reset => begun.reset(),
                Ending::Error => {
                    begun.piece(format!("\n\n{}", wire::error(vendor, "It is on fire.")))
                }
                Ending::Stall => begun.hold(),
            }
        }
        Answer::Refused(status) => Reply::new(*status).body("{}"),
    }
}

async fn check(turns: &[Turn]) {
    let targets = Targets::start().await;
    let mut history = Vec::new();
    for Turn { vendor, message, answers, cancelled_at } in turns {
        let replies: Vec<_> = answers.iter().map(|answer| reply(*vendor, answer)).collect();
        let server = CannedServer::start(replies).await.unwrap();
        let model = vendor_model(&server.url(), *vendor, "test-model").idle_timeout(IDLE);
        let agent = agent(model.build().unwrap()).build().unwrap();
        let options = RunOptions::default().history(history.clone());
        let ran = run(&agent, message, options, *cancelled_at).await;
        ran.check(&history);
        targets.accept(&ran.outcome.messages).await;
        history = ran.outcome.messages.to_vec();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if in_full() { 80 } else { 12 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_conversation_goes_on_with_every_vendor(turns in vec(turn(), 1..4)) {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(check(&turns));
    }
}
