//! Written records are readable.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use toolcrib_core::{
    CallIntent, CallOutcome, ContentBlock, Digest, ErrorCode, Message, SentPart, SessionHistory,
    SessionRecord, SessionStore, SessionStoreError, StoredCall, ToolCall, TracedEvent, TurnState,
    Usage, VendorContent,
};

use super::{StoreViolations, began, ended, leased, owner, write};

pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    messages(store, broken)?;
    calls(store, broken)?;
    turns(store, broken)?;
    events(store, broken)?;
    sent(store, broken)?;
    histories(store, broken)?;
    order(store, broken)
}

/// Messages of every kind, with the contents that are easy to change.
fn samples() -> Vec<Message> {
    vec![
        Message::user("caf\u{e9} \u{1f600} \0 \"quoted\"\r\n"),
        Message::Assistant {
            text: "".into(),
            calls: vec![
                ToolCall::new("c1", "a", json!({"z": 1, "a": [0.1, 1e300, -0.0, u64::MAX]})),
                ToolCall::unparsed("c2", "b", r#"{ "kept" :  "as written" }"#),
                ToolCall::new("c3", "c", json!("a JSON string")),
            ],
            vendor: Some(Arc::new(VendorContent {
                vendor: "anthropic".into(),
                content: json!({"signature": "\u{fffd}==", "nested": {"b": 0.30000000000000004}}),
            })),
        },
        Message::Tool {
            call_id: "c1".into(),
            name: "a".into(),
            text: "result".into(),
            blocks: [
                ContentBlock::image("image/png", vec![0, 255, 1]),
                ContentBlock::audio("audio/wav", vec![1]),
                ContentBlock::text("file:///a", "text"),
                ContentBlock::binary("file:///b", vec![]).media_type("x/y"),
                ContentBlock::link("https://example.com", "a link"),
            ]
            .into(),
            is_error: true,
            untrusted: true,
        },
        Message::User {
            text: "what is this?".into(),
            blocks: [ContentBlock::image("image/jpeg", vec![7, 0])].into(),
        },
        Message::notice("a notice"),
    ]
}

fn messages(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let samples = samples();
    write(store, &lease, &[began(), SessionRecord::Message(Message::user("first"))])?;
    for message in &samples {
        write(store, &lease, &[SessionRecord::Message(message.clone())])?;
    }
    write(store, &lease, &[ended(), began(), SessionRecord::Message(Message::user("second"))])?;
    let session = store.read(&owner, &info.id)?;
    let read: Vec<_> = session.messages.iter().map(|stored| stored.message.clone()).collect();
    let first = [Message::user("first")].into_iter();
    let written: Vec<_> = first.chain(samples).chain([Message::user("second")]).collect();
    broken.unless(read == written, "messages must be read as they were written, in order");
    // Equality ignores the order of keys.
    let same_bytes = format!("{read:?}") == format!("{written:?}");
    broken.unless(same_bytes, "the order of keys and all digits of numbers must be kept");
    write(store, &lease, &[SessionRecord::LeftOut(vec![1, 3])])?;
    write(store, &lease, &[SessionRecord::LeftOut(vec![0, 9])])?;
    let left_out: Vec<_> =
        store.read(&owner, &info.id)?.messages.iter().map(|stored| stored.left_out).collect();
    let expected = [true, true, false, true, false, false, false];
    broken.unless(left_out == expected, "messages that are left out must be marked, and stay");
    let message = Message::user("replaced");
    write(store, &lease, &[SessionRecord::Replaced { position: 1, message: message.clone() }])?;
    let read = store.read(&owner, &info.id)?.messages.into_iter().map(|stored| stored.message);
    let mut written = written;
    if let Some(at) = left_out.iter().enumerate().filter(|(_, out)| !**out).nth(1)
        && let Some(replaced) = written.get_mut(at.0)
    {
        *replaced = message;
    }
    let is_replaced = read.collect::<Vec<_>>() == written;
    broken
        .unless(is_replaced, "a message must be replaced at its position, without those left out");
    let turns: Vec<_> = session.messages.iter().map(|stored| stored.turn).collect();
    broken.unless(turns == [1, 1, 1, 1, 1, 1, 2], "each message must have the number of its turn");
    let size = session.info.bytes;
    broken.unless(size > 0, "the size of a session must count its messages");
    Ok(())
}

fn calls(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let arguments = json!({"b": 0.1, "a": "x"});
    let intent = |call_id: &str| {
        SessionRecord::Intent(CallIntent {
            call_id: call_id.into(),
            tool: "refund\0".into(),
            arguments: arguments.clone(),
            read_only: call_id == "reads",
            idempotent: call_id == "repeats",
        })
    };
    let failed = CallOutcome::Failed(ErrorCode::StaleWrite);
    let result = |text: &str| Message::Tool {
        call_id: "reads".into(),
        name: "refund".into(),
        text: text.into(),
        blocks: Arc::default(),
        is_error: false,
        untrusted: true,
    };
    let outcome = |call_id: &str, outcome| SessionRecord::Outcome {
        call_id: call_id.into(),
        outcome,
        result: None,
    };
    let ended_with = |text: &str| SessionRecord::Outcome {
        call_id: "reads".into(),
        outcome: failed,
        result: Some(result(text)),
    };
    write(store, &lease, &[began(), intent("open"), intent("reads"), intent("repeats")])?;
    write(store, &lease, &[outcome("reads", CallOutcome::Succeeded), outcome("repeats", failed)])?;
    write(store, &lease, &[outcome("reads", failed), outcome("never", failed)])?;
    write(store, &lease, &[ended_with("first"), ended_with("second")])?;
    let session = store.read(&owner, &info.id)?;
    let of = |call: &StoredCall| (Arc::clone(&call.call_id), call.attempts, call.outcome);
    let read: Vec<_> = session.calls.iter().map(of).collect();
    let expected = [
        ("open".into(), 1, None),
        ("reads".into(), 1, Some(CallOutcome::Succeeded)),
        ("repeats".into(), 1, Some(failed)),
    ];
    broken.unless(read == expected, "a call must keep its first outcome, and have none before");
    let results: Vec<_> = session.calls.iter().map(|call| call.result.clone()).collect();
    let kept = results == [None, Some(result("first")), None];
    broken.unless(kept, "a call must keep its first result, after its outcome too");
    let flags: Vec<_> =
        session.calls.iter().map(|call| (call.read_only, call.idempotent)).collect();
    let expected = [(false, false), (true, false), (false, true)];
    broken.unless(flags == expected, "a call must keep the declarations of its tool");
    // Equality ignores the order of keys.
    let text = Value::to_string;
    let kept = session
        .calls
        .iter()
        .all(|call| text(&call.arguments) == text(&arguments) && *call.tool == *"refund\0");
    broken.unless(kept, "a call must keep its tool and its arguments");
    write(store, &lease, &[intent("repeats")])?;
    let session = store.read(&owner, &info.id)?;
    let again = session.calls.get(2).map(of);
    let reopened = again == Some(("repeats".into(), 2, None));
    broken.unless(reopened, "a second intent must be a second attempt without an outcome");
    write(store, &lease, &[intent("repeats"), intent("reads")])?;
    let session = store.read(&owner, &info.id)?;
    let cut_off: Vec<_> = session.calls.iter().map(|call| call.cut_off).collect();
    let counted = cut_off == [0, 0, 1];
    broken.unless(counted, "an intent without an outcome must count once another follows");
    let none = session.calls.iter().all(|call| call.result.is_none());
    broken.unless(none, "a second intent must remove the result of the first");
    write(store, &lease, &[ended_with("third"), ended()])?;
    let none = store.read(&owner, &info.id)?.calls.iter().all(|call| call.result.is_none());
    broken.unless(none, "the end of a turn must remove the results of its calls");
    Ok(())
}

fn turns(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    broken.unless(info.last_turn.is_none() && info.turns == 0, "a new session has no turns");
    let listed = store.list(&owner, 10)?;
    broken.unless(listed.is_empty(), "a session without turns must not be listed");
    write(store, &lease, &[began()])?;
    let info = store.find(&owner, &info.id)?;
    let running = info.turns == 1 && info.last_turn == Some(TurnState::Running);
    broken.unless(running, "a turn that has begun must be running");
    broken.unless(*info.title == *"first words", "a session must have its first title");
    let usage = Usage {
        input_tokens: 7,
        cached_input_tokens: 3,
        cache_write_tokens: 2,
        output_tokens: 5,
        cost_usd: Some(0.1),
    };
    let (stopped, error) = ("failed".into(), Some("why\0".into()));
    let ended = SessionRecord::TurnEnded { stopped, error, usage };
    let second = SessionRecord::TurnBegan {
        model: "other\0".into(),
        title: "ignored\0".into(),
        skills: Vec::new(),
    };
    write(store, &lease, &[SessionRecord::Used(usage), SessionRecord::Used(usage)])?;
    let twice = Usage {
        input_tokens: 14,
        cached_input_tokens: 6,
        cache_write_tokens: 4,
        output_tokens: 10,
        cost_usd: Some(0.1 + 0.1),
    };
    let sum = store.read(&owner, &info.id)?.turns.first().map(|turn| turn.usage);
    broken.unless(sum == Some(twice), "a running turn must have the sum of its usage");
    let unknown_cost = Usage { cost_usd: None, ..Usage::NOTHING };
    let stopped = "answered".into();
    let last = SessionRecord::TurnEnded { stopped, error: None, usage: unknown_cost };
    write(store, &lease, &[ended, second, last])?;
    let session = store.read(&owner, &info.id)?;
    let states: Vec<_> = session.turns.iter().map(|turn| turn.state.clone()).collect();
    let expected = [
        TurnState::Ended { stopped: "failed".into(), error: Some("why\0".into()) },
        TurnState::Ended { stopped: "answered".into(), error: None },
    ];
    broken.unless(states == expected, "turns must keep how they ended");
    let usages: Vec<_> = session.turns.iter().map(|turn| turn.usage).collect();
    broken.unless(usages == [usage, unknown_cost], "turns must keep their usage");
    let skills: Vec<_> = session.turns.iter().map(|turn| turn.skills.clone()).collect();
    broken.unless(skills == [vec!["billing".into()], vec![]], "turns must keep their skills");
    let models: Vec<_> = session.turns.iter().map(|turn| &*turn.model).collect();
    broken.unless(models == ["m", "other\0"], "turns must keep their model");
    let same =
        *session.info.title == *"first words" && session.info == store.find(&owner, &info.id)?;
    broken.unless(same, "a session must have the same properties everywhere");
    Ok(())
}

fn sent(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let part = |of: &str, json: &str| SentPart { key: Digest::of(of), json: json.into() };
    let replace = |part| write(store, &lease, &[SessionRecord::Sent(part)]);
    write(store, &lease, &[began(), SessionRecord::Sent(part("a", r#"[ {"x":1.0}]"#))])?;
    replace(part("b", "first"))?;
    replace(part("b", "last \u{1f600}"))?;
    let mut read = store.sent(&owner, &info.id)?;
    read.sort_by_key(|part| part.key != Digest::of("a"));
    let same = read == [part("a", r#"[ {"x":1.0}]"#), part("b", "last \u{1f600}")];
    broken.unless(same, "parts of requests must be read as they were written, one of each key");
    let (other, _) = leased(store, &owner)?;
    broken.unless(store.sent(&owner, &other.id)?.is_empty(), "another session must have no parts");
    Ok(())
}

fn events(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let event = |at_ms: u64, iteration| TracedEvent {
        name: "tool.end".into(),
        iteration,
        at_ms,
        fields: [("value".to_owned(), json!({"z": [at_ms, "\u{1f600}"], "a": null}))]
            .into_iter()
            .collect(),
    };
    let written = [event(0, None), event(7, Some(1)), event(u64::from(u32::MAX) + 1, Some(2))];
    let record = |event: &TracedEvent| SessionRecord::Event(event.clone());
    let (first, rest) = (event(0, None), written.iter().map(record));
    let intent = SessionRecord::Intent(CallIntent {
        call_id: "c1".into(),
        tool: "refund".into(),
        arguments: json!({}),
        read_only: true,
        idempotent: true,
    });
    write(store, &lease, &[began(), intent, record(&first), ended(), began()])?;
    let size = store.find(&owner, &info.id)?.bytes;
    for record in rest {
        write(store, &lease, &[record])?;
    }
    let read = |turn| store.events(&owner, &info.id, turn);
    let same = read(1)? == [first] && read(2)? == written && read(3)?.is_empty();
    broken.unless(same, "events must be read as they were written, in order, by turn");
    let grown = store.find(&owner, &info.id)?.bytes > size;
    broken.unless(grown, "the size of a session must count its events");
    let runs = store.runs(&owner, 10)?;
    let read: Vec<_> = runs
        .iter()
        .map(|run| (Arc::clone(&run.session), run.turn.number, run.calls, run.turn.state.clone()))
        .collect();
    let over = TurnState::Ended { stopped: "answered".into(), error: None };
    let id = || Arc::clone(&info.id);
    let expected = [(id(), 2, 0, TurnState::Running), (id(), 1, 1, over)];
    broken.unless(read == expected, "runs must be the turns with their calls, the last one first");
    let titled = runs.iter().all(|run| *run.turn.title == *"first words");
    broken.unless(titled, "a turn must have its title");
    let limited = store.runs(&owner, 1)?.len() == 1;
    broken.unless(limited, "no more runs than the limit must be listed");
    Ok(())
}

/// Records that do not fit are refused, with all records of the write.
fn order(store: &dyn SessionStore, broken: &mut StoreViolations) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let message = || SessionRecord::Message(Message::user("hello"));
    let event = TracedEvent {
        name: "model.start".into(),
        iteration: Some(1),
        at_ms: 1,
        fields: Map::new(),
    };
    let refused = [
        vec![message()],
        vec![ended()],
        vec![began(), began()],
        vec![began(), message(), ended(), message()],
        vec![SessionRecord::Event(event)],
    ];
    for records in &refused {
        let result = write(store, &lease, records);
        let refused = matches!(&result, Err(SessionStoreError::OutOfOrder { .. }));
        broken.unless(refused, &format!("{records:?} must be refused, but: {result:?}"));
    }
    let session = store.read(&owner, &info.id)?;
    let unchanged = session.turns.is_empty() && session.messages.is_empty();
    broken.unless(unchanged, "a refused write must change nothing");
    Ok(())
}

/// A store may read less for a history than for the whole session, and returns the same.
fn histories(
    store: &dyn SessionStore,
    broken: &mut StoreViolations,
) -> Result<(), SessionStoreError> {
    let owner = owner();
    let (info, lease) = leased(store, &owner)?;
    let mut differs = Vec::new();
    let mut compare = |when: &'static str| -> Result<(), SessionStoreError> {
        let mut whole = SessionHistory::from(store.read(&owner, &info.id)?);
        let mut history = store.history(&owner, &info.id)?;
        history.left_out_calls.sort();
        whole.left_out_calls.sort();
        differs.extend((history != whole).then_some(when));
        Ok(())
    };
    compare("without turns")?;
    for turn in 1..=2 {
        let id = format!("c{turn}");
        let (call_id, called) = (id.as_str(), ToolCall::new(id.as_str(), "t", json!({})));
        let intent = CallIntent {
            call_id: call_id.into(),
            tool: "t".into(),
            arguments: json!({}),
            read_only: false,
            idempotent: true,
        };
        let result = Message::Tool {
            call_id: call_id.into(),
            name: "t".into(),
            text: "result".into(),
            blocks: Arc::default(),
            is_error: false,
            untrusted: turn == 1,
        };
        let outcome = SessionRecord::Outcome {
            call_id: call_id.into(),
            outcome: CallOutcome::Succeeded,
            result: Some(result.clone()),
        };
        write(store, &lease, &[began(), SessionRecord::Message(Message::user("go"))])?;
        write(
            store,
            &lease,
            &[
                SessionRecord::Message(Message::assistant("", [called])),
                SessionRecord::Intent(intent),
                outcome,
            ],
        )?;
        compare("a call has ended, and its result is not in the history")?;
        write(
            store,
            &lease,
            &[
                SessionRecord::Message(result),
                SessionRecord::LeftOut(vec![2 * turn - 1, 2 * turn]),
                SessionRecord::Message(Message::assistant("more", [])),
            ],
        )?;
        compare("messages of the turn are left out")?;
        let said = Message::assistant("other", []);
        // The last message: `go` of each turn, and an answer of each.
        let last = SessionRecord::Replaced { position: 2 * turn - 1, message: said.clone() };
        write(store, &lease, &[last])?;
        compare("the last message is replaced")?;
        let replaced = store.history(&owner, &info.id)?.messages.pop();
        broken.unless(
            replaced.is_some_and(|stored| stored.message == said),
            "a message must be replaced at its position",
        );
        write(store, &lease, &[ended()])?;
        compare("the turn has ended")?;
    }
    for when in differs {
        broken.unless(false, &format!("the history must be that of the session: {when}"));
    }
    store.release(&lease)
}
