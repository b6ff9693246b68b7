//! Progress of a call, for a client that asked for it: what its tool says to users, and what an MCP
//! server says, which the protocol has for whoever called.

use std::{pin::pin, sync::Arc, time::Duration};

use rmcp::{
    Peer, RoleServer,
    model::{ProgressNotificationParam, ProgressToken},
};
use tokio::{sync::watch, time::sleep};
use toolcrib_core::{Audience, CancellationToken, EventKind, Events, Subscription};

/// The least time between two messages. The last one comes with the end of the call, whenever that is;
/// with it there are at most ten in any second.
const PACE: Duration = Duration::from_millis(125);

/// A message, and how much is done, 0 to 100.
type Message = (String, Option<u8>);

/// Waits for a call, and passes its progress for that audience and wider ones on meanwhile: at a pace, of
/// messages that come faster the last one. The last that it said is sent before this is done.
pub(super) async fn passed_on<T>(
    events: &Events,
    call_id: &Arc<str>,
    audience: Audience,
    token: ProgressToken,
    client: &Peer<RoleServer>,
    call: impl Future<Output = T>,
) -> T {
    let (sender, said) = watch::channel(None);
    let listening = Listening::to(events, Arc::clone(call_id), audience, sender);
    let ended = CancellationToken::new();
    let mut call = pin!(call);
    let mut pass_on = pin!(pass_on(said, &ended, token, client));
    let result = tokio::select! {
        result = &mut call => result,
        // The client takes nothing any more; that ends calls elsewhere.
        () = &mut pass_on => return call.await,
    };
    drop(listening);
    ended.cancel();
    pass_on.await;
    result
}

/// Listens to a call until it is dropped.
struct Listening(Option<Subscription>);

impl Listening {
    fn to(
        events: &Events,
        call: Arc<str>,
        least: Audience,
        sender: watch::Sender<Option<Message>>,
    ) -> Self {
        let listening = events.on("tool.progress", move |event| {
            if let EventKind::ToolProgress { call_id, message, percent, audience, .. } = &event.kind
                && *audience >= least
                && *call_id == call
            {
                sender.send_replace(Some((message.clone(), *percent)));
            }
        });
        Self(listening.ok())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(listening) = &self.0 {
            listening.unsubscribe();
        }
    }
}

async fn pass_on(
    mut said: watch::Receiver<Option<Message>>,
    ended: &CancellationToken,
    token: ProgressToken,
    client: &Peer<RoleServer>,
) {
    let mut count = Count::default();
    // What was not sent yet is, once nothing more can be said.
    while said.changed().await.is_ok() {
        let Some((message, percent)) = said.borrow_and_update().clone() else { continue };
        let (done, total) = count.next(percent);
        let mut progress =
            ProgressNotificationParam::new(token.clone(), done).with_message(message);
        progress.total = total;
        if client.notify_progress(progress).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = sleep(PACE) => {}
        }
    }
}

/// Numbers that only grow, as the protocol wants them, whatever a tool says. None before the first.
#[derive(Default)]
struct Count(Option<f64>);

impl Count {
    /// How much is done, and of how much: percent where the tool says so, else how many messages
    /// there were.
    fn next(&mut self, percent: Option<u8>) -> (f64, Option<f64>) {
        let last = self.0;
        let grows = |percent: &f64| last.is_none_or(|last| *percent > last);
        let (done, total) = match percent.map(f64::from) {
            Some(percent) if grows(&percent) => (percent, Some(100.0)),
            Some(_) => {
                let done = last.unwrap_or_default() + 0.01;
                (done, Some(100.0).filter(|total| done <= *total))
            }
            None => (last.unwrap_or_default() + 1.0, None),
        };
        self.0 = Some(done);
        (done, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_grow_whatever_a_tool_says() {
        let mut count = Count::default();
        let said = [None, Some(0), Some(50), Some(50), Some(20), None, Some(100), Some(100), None];
        let mut last = 0.0;
        for percent in said {
            let (done, total) = count.next(percent);
            assert!(done > last, "{percent:?}: {done} after {last}");
            assert!(total.is_none_or(|total| done <= total), "{done} of {total:?}");
            last = done;
        }
        assert_eq!(Count::default().next(Some(50)), (50.0, Some(100.0)));
        assert_eq!(Count::default().next(Some(0)), (0.0, Some(100.0)));
        assert_eq!(Count::default().next(None), (1.0, None));
    }
}
