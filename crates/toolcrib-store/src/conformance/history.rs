//! The contents that the next request of a session needs.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{
    CallIntent, CallOutcome, Message, SessionHistory, SessionRecord, SessionStore,
    SessionStoreError, ToolCall,
};

use super::{Violations, began, ended, leased, owner};

/// A store may read less for a history than for the whole session, and returns the same.
pub(super) fn check(
    store: &dyn SessionStore,
    broken: &mut Violations,
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
        store.write(&lease, &[began(), SessionRecord::Message(Message::user("go"))])?;
        store.write(
            &lease,
            &[
                SessionRecord::Message(Message::assistant("", [called])),
                SessionRecord::Intent(intent),
                outcome,
            ],
        )?;
        compare("a call has ended, and its result is not in the history")?;
        store.write(
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
        store.write(&lease, &[last])?;
        compare("the last message is replaced")?;
        let replaced = store.history(&owner, &info.id)?.messages.pop();
        broken.unless(
            replaced.is_some_and(|stored| stored.message == said),
            "a message must be replaced at its position",
        );
        store.write(&lease, &[ended()])?;
        compare("the turn has ended")?;
    }
    for when in differs {
        broken.unless(false, &format!("the history must be that of the session: {when}"));
    }
    store.release(&lease)
}
