//! A session, as servers before 2026-07-28 have it: its stream of messages, and its end.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;
use toolcrib_capabilities::http::Method;
use toolcrib_core::CancellationToken;

use super::{
    client::{Client, SESSION_ID},
    events::{Last, read_events},
    response::MAX_ERROR_BYTES,
};

/// The timeout of ending a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(5);

impl Client {
    /// Reads the session's stream, if there is a session, until the connection ends; then ends the
    /// session.
    pub(super) async fn serve(self: Arc<Self>) {
        let ending = &self.wiring.ending;
        tokio::select! {
            biased;
            () = ending.over() => {}
            () = self.listen() => ending.over().await,
        }
        self.end_session().await;
    }

    /// Reads the messages that belong to no request. A server may offer no stream for them.
    async fn listen(self: &Arc<Self>) {
        if !self.after_handshake.wait().await.contains_key(SESSION_ID) {
            return;
        }
        let mut last = Last::default();
        let Ok(mut answer) = self.stream(None).await else { return };
        loop {
            read_events(answer, self, None, &mut last).await;
            answer = loop {
                let Some(pause) = last.pause() else { return };
                sleep(pause).await;
                last.resumes += 1;
                match self.resumed(&last).await {
                    Ok(Some(answer)) => break answer,
                    Ok(None) => {}
                    Err(_) => return,
                }
            };
            last.resumes = 0;
            if last.event.is_none() {
                // Changes in between were not announced.
                self.wiring.intake.signal_changed_tools();
            }
        }
    }

    async fn end_session(&self) {
        let mut request = self.after_handshake(Method::DELETE);
        if !request.headers.contains_key(SESSION_ID) {
            return;
        }
        request.timeout = Some(DELETE_TIMEOUT);
        request.max_body_bytes = MAX_ERROR_BYTES;
        // The connection has ended, which does not cancel this.
        let never = CancellationToken::new();
        // A server need not support it.
        let _ = self.http.send(request, &never).await;
    }
}
