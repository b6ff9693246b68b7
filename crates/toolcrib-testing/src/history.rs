//! Checks of conversations.

use std::collections::HashSet;

use toolcrib_core::Message;

use crate::fail::fail;

/// Fails unless a conversation can be sent to a model again, as vendors require: each call has a
/// unique id and exactly one result, in call order, directly after the message with the call.
///
/// # Panics
/// With the invalid message, followed by the whole conversation.
#[track_caller]
pub fn assert_replayable(messages: &[Message]) {
    if let Err(problem) = replayable(messages) {
        fail(format!("the history cannot be sent to a model again: {problem}\n{messages:#?}"));
    }
}

fn replayable(messages: &[Message]) -> Result<(), String> {
    let mut ids = HashSet::new();
    let mut open = Vec::new().into_iter();
    for (position, message) in messages.iter().enumerate() {
        match message {
            Message::Tool { call_id, .. } => match open.next() {
                Some(expected) if expected == call_id => {}
                Some(expected) => {
                    return Err(format!(
                        "message {position} is the result of `{call_id}`, where that of \
                         `{expected}` was due"
                    ));
                }
                None => {
                    return Err(format!(
                        "message {position} is the result of `{call_id}`, which belongs to no open call"
                    ));
                }
            },
            other => {
                if let Some(missing) = open.next() {
                    return Err(format!(
                        "message {position} appears before `{missing}` has a result"
                    ));
                }
                if let Message::Assistant { calls, .. } = other {
                    for call in calls {
                        if call.id.is_empty() || !ids.insert(&call.id) {
                            return Err(format!(
                                "message {position} has a call whose id `{}` is empty or was used \
                                 before",
                                call.id
                            ));
                        }
                    }
                    open = calls.iter().map(|call| &call.id).collect::<Vec<_>>().into_iter();
                }
            }
        }
    }
    match open.next() {
        Some(missing) => Err(format!("the call `{missing}` has no result")),
        None => Ok(()),
    }
}
