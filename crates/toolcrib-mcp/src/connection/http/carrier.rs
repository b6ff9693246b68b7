//! Calls over HTTP: each is one POST, and its response is read by the calling task.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt as _, future::BoxFuture};
use rmcp::model::{ClientJsonRpcMessage, RequestId, ServerJsonRpcMessage};
use tokio::time::sleep;
use toolcrib_capabilities::http::{HeaderName, HeaderValue, HttpRequest, HttpStream, Method};
use toolcrib_core::__internal::Backoff;

use super::{
    super::{
        RemoteTool,
        call::{Call, NoResult},
        carry::{Carrier, NotCarried, Outgoing},
        open::Host,
    },
    client::{Client, Head, not_of_the_protocol, of_no_request, refusal},
    events::{Events, Sse, events},
    failure::{Failure, HttpFailure},
    names::encoded,
};

/// How often a stream that broke off is requested again in a row, and after what wait, unless the
/// server sets it.
const RESUMES: u32 = 10;
const RESUME_AFTER: Backoff =
    Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

impl Carrier for Client {
    fn carry(&self, call: Outgoing) -> BoxFuture<'static, Result<(), NotCarried>> {
        let client = self.clone();
        Box::pin(
            async move { client.call(&call).await.map_err(|failure| NotCarried::from(&failure)) },
        )
    }

    fn listed(&self, tools: &[RemoteTool], is_first: bool) {
        self.0.annotated.learn(tools, is_first);
    }
}

impl Client {
    async fn call(&self, outgoing: &Outgoing) -> Result<(), Failure> {
        let Outgoing { id, call, .. } = outgoing;
        let id = RequestId::Number(*id);
        // Boxed: few calls need it.
        if self.is_silent() {
            Box::pin(self.probe_session()).await?;
        }
        let request = self.call_request(outgoing);
        match self.post(outgoing.to_json()?, request, Some(call)).await? {
            // The response comes on another stream.
            Head::Accepted => Ok(()),
            Head::Json(answer) => {
                let (body, _) = self.json(answer, Some(&id)).await?;
                if call.is_settled() {
                    Ok(())
                } else {
                    Err(of_no_request(&body, &self.0.wiring.intake).into())
                }
            }
            // Boxed: large, and not needed for JSON responses.
            Head::Events(answer) => Box::pin(self.read_events(answer, id, call)).await,
            Head::Refusal(answer) => {
                let mut refusal = refusal(answer, &self.0.wiring.intake).await;
                match refusal.said.take() {
                    Some(error) => {
                        call.settle(Err(NoResult::Refused(error)));
                        Ok(())
                    }
                    None => Err(HttpFailure::from(refusal).into()),
                }
            }
            Head::Other(answer) => {
                Err(HttpFailure::Unusable(not_of_the_protocol(&answer, &self.0.wiring.intake))
                    .into())
            }
        }
    }

    /// The request of a call, without its body.
    fn call_request(&self, outgoing: &Outgoing) -> HttpRequest {
        let mut request = self.after_handshake(Method::POST);
        if let Some(introduction) = &outgoing.introduction {
            // Copies values of the body into headers, for intermediaries that do not read it.
            let of_call = [
                (PROTOCOL_VERSION, HeaderValue::from_str(&introduction.protocol)),
                (METHOD, HeaderValue::from_str(Outgoing::METHOD)),
                (NAME, HeaderValue::from_str(&encoded(&outgoing.tool))),
            ];
            let of_call = of_call.into_iter().filter_map(|(name, value)| Some((name, value.ok()?)));
            request.headers.extend(of_call);
            request.headers.extend(self.0.annotated.headers(&outgoing.tool, &outgoing.arguments));
        }
        request
    }

    /// Reads the events of a response to their end. A stream that breaks off before the response is
    /// resumed if the server supports it, until the server refuses.
    async fn read_events(
        &self,
        answer: HttpStream,
        id: RequestId,
        call: &Arc<Call>,
    ) -> Result<(), Failure> {
        let wiring = &self.0.wiring;
        let mut last = Last::default();
        let mut stream = events(answer, wiring, Some(id.clone()));
        loop {
            self.read_on(&mut stream, &mut last).await;
            if call.is_settled() {
                return Ok(());
            }
            stream = loop {
                let (Some(event), Some(pause)) = (&last.event, last.pause()) else {
                    return Err(HttpFailure::BrokenOff.into());
                };
                sleep(pause).await;
                last.resumes += 1;
                if let Some(answer) = self.resumed(event).await? {
                    break events(answer, wiring, Some(id.clone()));
                }
            };
        }
    }

    /// Reads a stream to its end of any kind.
    async fn read_on(&self, stream: &mut Events, last: &mut Last) {
        while let Some(Ok(event)) = stream.next().await {
            last.note(&event);
            // A message without another receiver is a request of the server.
            if let Some(data) = &event.data
                && let Ok(ServerJsonRpcMessage::Request(request)) = serde_json::from_str(data)
            {
                let answer = match Host::answer(&request.request) {
                    Ok(result) => ClientJsonRpcMessage::response(result, request.id),
                    Err(error) => ClientJsonRpcMessage::error(error, Some(request.id)),
                };
                // If the server does not accept it, no response follows.
                let _ = self.say(&answer).await;
            }
        }
    }

    /// Sends a response to a request of the server.
    async fn say(&self, message: &ClientJsonRpcMessage) -> Result<(), Failure> {
        let _owed = self.0.wiring.intake.owed(message);
        let request = self.after_handshake(Method::POST);
        self.post(serde_json::to_vec(message)?, request, None).await.map(drop)
    }
}

/// The position in a stream.
#[derive(Default)]
struct Last {
    event: Option<String>,
    retry: Option<Duration>,
    /// The number of attempts to resume since the last event.
    resumes: u32,
}

impl Last {
    fn note(&mut self, event: &Sse) {
        self.resumes = 0;
        if let Some(id) = &event.id {
            self.event = Some(id.clone());
        }
        if let Some(ms) = event.retry {
            self.retry = Some(Duration::from_millis(ms));
        }
    }

    /// The delay before the next attempt; `None` to give up.
    fn pause(&self) -> Option<Duration> {
        let backoff = || RESUME_AFTER.longest(self.resumes + 1);
        (self.resumes < RESUMES).then(|| self.retry.unwrap_or_else(backoff))
    }
}
