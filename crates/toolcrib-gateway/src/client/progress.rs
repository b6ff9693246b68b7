//! Progress of a call, for a client that requested it: a tool's messages for users, and those of an
//! MCP server, which the protocol sends to the caller.

use std::{pin::pin, sync::Arc};

use rmcp::model::{Notification, ProgressNotificationParam, ServerNotification};
use serde_json::Value;
use tokio::{sync::watch, time::sleep_until};
use toolcrib_core::{
    __internal::ProgressPace, Audience, CancellationToken, EventKind, Events, Progress,
    ProgressCount, Subscription,
};

use super::{request::ClientRequest, sender::OpenRequest, step::Step};
use crate::wire::message::is_of_protocol;

/// Runs a request of the pipe for an MCP server, and forwards its progress if the client requested
/// it.
pub(crate) async fn forwarded<T>(
    request: &ClientRequest,
    step: &Step,
    call_id: &Arc<str>,
    call: impl Future<Output = T>,
) -> T {
    match request.may_report() {
        true => passed_on(&step.events, call_id, Audience::Dashboard, &request.open, call).await,
        false => call.await,
    }
}

/// Waits for a call, and forwards its progress for that audience and wider ones meanwhile:
/// rate-limited, with the newest of faster messages. The last message is sent before this is done.
pub(crate) async fn passed_on<T>(
    events: &Events,
    call_id: &Arc<str>,
    audience: Audience,
    client: &OpenRequest,
    call: impl Future<Output = T>,
) -> T {
    let (sender, said) = watch::channel(None);
    let listening = ProgressSubscription::to(events, Arc::clone(call_id), audience, sender);
    let ended = CancellationToken::new();
    let mut call = pin!(call);
    let mut pass_on = pin!(pass_on(said, &ended, client));
    let result = tokio::select! {
        result = &mut call => result,
        // The client reads nothing any more; that ends calls elsewhere.
        () = &mut pass_on => return call.await,
    };
    drop(listening);
    ended.cancel();
    pass_on.await;
    result
}

/// Subscribes to a call until it is dropped.
struct ProgressSubscription(Option<Subscription>);

impl ProgressSubscription {
    fn to(
        events: &Events,
        call: Arc<str>,
        least: Audience,
        sender: watch::Sender<Option<Progress>>,
    ) -> Self {
        let listening = events.on("tool.progress", move |event| {
            if let EventKind::ToolProgress { call_id, message, percent, count, meta, .. } =
                &event.kind
                && event.is_for(least)
                && *call_id == call
            {
                let (percent, count, meta) = (*percent, *count, meta.clone());
                let message = Progress::internal(message.as_str());
                sender.send_replace(Some(Progress { percent, count, meta, ..message }));
            }
        });
        Self(listening.ok())
    }
}

impl Drop for ProgressSubscription {
    fn drop(&mut self) {
        if let Some(listening) = &self.0 {
            listening.unsubscribe();
        }
    }
}

async fn pass_on(
    mut said: watch::Receiver<Option<Progress>>,
    ended: &CancellationToken,
    client: &OpenRequest,
) {
    let (mut count, mut pace) = (Count::default(), ProgressPace::default());
    // The last unsent message is sent after the end.
    while said.changed().await.is_ok() {
        let Some(said) = said.borrow_and_update().clone() else { continue };
        let Progress { message, percent, count: said, meta, .. } = said;
        let Some((client, token)) = client.progress() else { continue };
        let (done, total) = match said {
            Some(said) => count.as_said(said),
            None => count.next(percent),
        };
        let mut progress = ProgressNotificationParam::new(token, done);
        progress.total = total;
        // The count alone is the text of a server that sent none.
        progress.message =
            Some(message).filter(|text| said.is_none_or(|count| *text != count.to_string()));
        progress.meta = meta.and_then(|mut meta| {
            // These are this gateway's, or about the server's connection.
            meta.retain(|key, _| !key.starts_with("toolcrib/") && !is_of_protocol(key));
            let meta = (!meta.is_empty()).then_some(Value::Object(*meta))?;
            serde_json::from_value(meta).ok()
        });
        let progress = ServerNotification::ProgressNotification(Notification::new(progress));
        if !client.notify(progress).await {
            return;
        }
        tokio::select! {
            biased;
            () = ended.cancelled() => {}
            () = sleep_until(pace.count()) => {}
        }
    }
}

/// Numbers that only grow, as the protocol requires, whatever a tool reports. `None` before the
/// first.
#[derive(Default)]
struct Count(Option<f64>);

impl Count {
    /// The reporter's own count, as long as it grows.
    fn as_said(&mut self, said: ProgressCount) -> (f64, Option<f64>) {
        if self.0.is_some_and(|last| said.done <= last) {
            return (self.next(None).0, None);
        }
        self.0 = Some(said.done);
        (said.done, said.total)
    }

    /// The progress and its total: percent if the tool reports it, else the number of messages.
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
