//! Calls that waited for approval when their run ended.

use toolcrib_core::{Approver, Arguments};
use toolcrib_engine::Engine;

use crate::session::{CallState, InterruptedCall, denied, not_made};

/// Gives each call that was parked exactly the arguments that a person decides on, with the present
/// values of secrets. It passes the pipe again, where the approver knows the decision. A call that was begun
/// may have had its effect by an earlier decision: it may have been parked twice, when it was settled
/// meanwhile.
pub(super) async fn restore(
    engine: &Engine,
    approver: &dyn Approver,
    calls: &mut [InterruptedCall],
) {
    for InterruptedCall { call, state, .. } in calls.iter_mut().filter(|call| !call.has_intent) {
        let Some(parked) = approver.parked(&call.id).await else {
            // The arguments of a denied call are deleted. Where the message has them, the call passes
            // the pipe as always.
            if matches!(state, CallState::Lost(_))
                && let Some(denial) = approver.denied(&call.id).await
            {
                let denial = engine.redactor().text(&denial).into_owned();
                *state = CallState::Lost(denied(call, &denial));
            }
            continue;
        };
        *state = match engine.resolve_arguments(&parked).await {
            Ok(arguments) => {
                call.arguments = Arguments::Json(arguments);
                CallState::New
            }
            Err(_) => {
                let why = " A secret in its arguments cannot be read any more.";
                CallState::Lost(not_made(call, why))
            }
        };
    }
}
