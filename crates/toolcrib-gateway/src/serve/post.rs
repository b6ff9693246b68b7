//! POST: one message of a client. A request is answered as JSON, or as a stream of events if its
//! response takes time in a session, or if other messages come before it.

use std::{
    future::pending,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use http_body_util::{BodyExt as _, Collected, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use rmcp::model::ErrorCode;
use tokio::{
    runtime::Handle,
    time::{sleep, timeout},
};
use tokio_util::task::TaskTracker;
use toolcrib_core::CancellationToken;

use super::{
    forward::{FORWARDED, forward},
    handshake,
    sealed::SessionRequest,
    sessions::{HttpSession, Sessions, no_place},
};
use crate::{
    access::{
        Caller,
        limits::Limiter,
        replicas::{OtherReplica, Replicas},
    },
    client::{
        connection::Connection,
        context::ServeContext,
        request::{ClientRequest, Era},
        rounds,
        sender::{Answer, ClientSender, OpenRequest},
    },
    methods,
    wire::{
        events::{Body, EventStream},
        headers::{self, EVENTS, JSON, SESSION},
        message::{INITIALIZE, InvalidMessage, MAX_MESSAGE, Message, Request},
        params::ParamHeaders,
        reply::{self, Refusal},
    },
};

/// The timeout of receiving a body.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// How long a session's client waits for a response that it cannot come back for.
const PATIENCE: Duration = Duration::from_millis(100);

/// A POST of an admitted client.
pub(crate) struct Post<'a> {
    pub(crate) serving: &'a ServeContext,
    pub(crate) caller: Caller,
    pub(crate) sessions: &'a Sessions,
    pub(crate) limiter: &'a Limiter,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) path: &'a str,
}

impl Post<'_> {
    pub(crate) async fn answer(self, body: Incoming) -> Result<Response<Body>, Refusal> {
        let body = whole(body).await?;
        if !headers::accepts(self.headers, &[JSON, EVENTS]) {
            let message = "the response is JSON or a stream: send `Accept: application/json, \
                text/event-stream`";
            return Err(Refusal::new(StatusCode::NOT_ACCEPTABLE, message));
        }
        if !headers::is_json(self.headers) {
            let message = "a message is JSON: send `Content-Type: application/json`";
            return Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message));
        }
        let message = Message::read(&body)?;
        // After the body, which may take long.
        let serving = &self.serving.fresh();
        let this = Post { serving, ..self };
        headers::check(this.headers, &message).map_err(|error| {
            let id = match &message {
                Message::Request(request) => Some(request.id.clone()),
                Message::Notification(_) | Message::Response(_) => None,
            };
            Refusal::of(id, error)
        })?;
        if let Some(replicas) = &serving.gateway.config.replicas
            && let Some(other) = this.elsewhere(&message, replicas)
            && let Some(answer) =
                forward(replicas, &other, this.path, this.headers, body, serving.counted()).await
        {
            return Ok(answer);
        }
        match message {
            Message::Request(request) if request.method == INITIALIZE => {
                this.initialize(request).await
            }
            Message::Request(request) => this.request(request).await,
            Message::Notification(notification) => {
                // Without sessions, the end of its connection cancels a request.
                if headers::has_sessions(this.headers).unwrap_or_default() {
                    this.session_request(None).notice(notification).await?;
                }
                Ok(reply::whole(StatusCode::ACCEPTED, ""))
            }
            Message::Response(response) => {
                this.session(None).await?.connection.answered(response);
                Ok(reply::whole(StatusCode::ACCEPTED, ""))
            }
        }
    }

    /// The replica that waits for a message, if that is another one.
    fn elsewhere(&self, message: &Message, replicas: &Replicas) -> Option<OtherReplica> {
        match message {
            _ if self.headers.contains_key(FORWARDED) => None,
            Message::Request(request) => rounds::elsewhere(request, replicas),
            Message::Response(response) => Connection::elsewhere(response, replicas),
            Message::Notification(_) => None,
        }
    }

    fn session_request<'a>(&'a self, request: Option<&'a Request>) -> SessionRequest<'a> {
        let Self { serving, caller, sessions, headers, .. } = self;
        let id = request.map(|request| &request.id);
        let counts = request.is_some_and(|request| methods::begins_iteration(&request.method));
        SessionRequest { serving, caller, sessions, headers, id, counts }
    }

    async fn session(&self, request: Option<&Request>) -> Result<Arc<HttpSession>, Refusal> {
        self.session_request(request).find().await
    }

    /// Begins a session; one that the request names has begun already, which is the answer.
    async fn initialize(&self, request: Request) -> Result<Response<Body>, Refusal> {
        let session = if self.headers.contains_key(SESSION) {
            self.session(Some(&request)).await?
        } else {
            match self.sessions.place().await {
                Ok(place) => HttpSession::new(self.serving, &self.caller, place),
                Err(wait) => return Err(no_place(Some(&request.id), wait)),
            }
        };
        let (serving, caller, connection) = (self.serving, &self.caller, &session.connection);
        let client = ClientSender::Events(session.common.clone());
        let answer = handshake::initialize(serving, caller, request, connection, client).await;
        if answer.outcome.is_ok()
            && let (Some(sealed), Some(begun)) = (&self.sessions.sealed, connection.session())
        {
            let (name, began_ms) = sealed.name(begun, caller).ok_or_else(|| {
                let message = "no session can begin now: the system has no randomness";
                Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
            })?;
            session.is_named(name, began_ms);
        }
        let has_begun = answer.outcome.is_ok();
        let mut response = answer.send(|json| reply::json(StatusCode::OK, json));
        if has_begun && let Ok(id) = HeaderValue::from_str(session.name()) {
            response.headers_mut().insert(SESSION, id);
            self.sessions.open(&session);
        }
        Ok(response)
    }

    /// Answers a request, of a session or independent.
    async fn request(self, request: Request) -> Result<Response<Body>, Refusal> {
        let declares_version = request.version.is_some();
        let is_independent = request.declares_stateless()
            || (declares_version && !self.headers.contains_key(SESSION));
        // A further round belongs to a call that was admitted, and still has its place.
        let limit = match is_independent && rounds::continues(&request) {
            true => None,
            false => self.limiter.admit(&request.method, &request.id).await?,
        };
        let session = if is_independent { None } else { Some(self.session(Some(&request)).await?) };
        let connection = session.as_ref().map(|session| session.connection.clone());
        let begun = connection.as_ref().and_then(|connection| connection.session());
        let era = Era::of(&request, begun)
            .map_err(|error| Refusal::of(Some(request.id.clone()), error))?;
        let unwanted = CancellationToken::new();
        let in_use = || InvalidMessage::id_in_use(request.id.clone());
        let registered = connection
            .as_ref()
            .map(|connection| connection.register(&request.id, unwanted.clone()).ok_or_else(in_use))
            .transpose()?;
        let stream = session.as_ref().map(HttpSession::open_stream);
        let events = stream.as_ref().map(|stream| stream.events.clone());
        let events = events.unwrap_or_else(|| EventStream::new(None, None));
        let client = ClientSender::Events(events.clone());
        let progress = request.meta.get_progress_token();
        // In a session, a client that requests progress receives it in a stream from the start.
        let streams_at_once = !is_independent && progress.is_some();
        let client_request = ClientRequest {
            serving: self.serving.clone(),
            limit,
            caller: self.caller,
            id: request.id.clone(),
            era,
            connection,
            open: OpenRequest::new(client.clone(), progress),
            client,
            asks: None,
            headers: is_independent.then(|| ParamHeaders::of(self.headers)),
            unwanted: unwanted.clone(),
        };
        let mut running = RequestFuture::new(self.serving, async move {
            let answer = methods::answer(client_request, request).await;
            drop(registered);
            answer
        });
        // A client without a session that disconnects ends its request.
        let guard = is_independent.then(|| unwanted.drop_guard());
        let early = match streams_at_once {
            true => None,
            false => running.early(&events, stream.is_some()).await,
        };
        match early {
            Some(answer) if events.is_empty() => return whole_answer(answer, is_independent),
            Some(answer) => answer.send(|json| events.send_last(json)),
            None => {
                let events = events.clone();
                self.serving.running.spawn(async move {
                    running.await.send(|json| events.send_last(json));
                    drop(stream);
                });
            }
        }
        Ok(reply::events(events.body(guard)))
    }
}

/// A response as JSON. In the stateless era, some errors have a status, and are logged as refusals.
fn whole_answer(answer: Answer, is_independent: bool) -> Result<Response<Body>, Refusal> {
    match &answer.outcome {
        Err(error) if is_independent && has_status(error.code) => {
            Err(Refusal::of(Some(answer.id), error.clone()))
        }
        _ => Ok(answer.send(|json| reply::json(StatusCode::OK, json))),
    }
}

fn has_status(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::METHOD_NOT_FOUND
            | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION
            | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY
            | ErrorCode::HEADER_MISMATCH
    )
}

/// A request that runs in the task of its connection, which is quicker than a separate one. It is
/// finished even if the connection ends: on drop the rest of it becomes a task.
struct RequestFuture {
    /// `None` once it has ended.
    request: Option<BoxFuture<'static, Answer>>,
    tasks: TaskTracker,
}

impl RequestFuture {
    fn new(serving: &ServeContext, request: impl Future<Output = Answer> + Send + 'static) -> Self {
        Self { request: Some(request.boxed()), tasks: serving.running.clone() }
    }

    /// The answer, if neither another message comes before it nor a session's client waits too long.
    async fn early(&mut self, events: &EventStream, is_in_session: bool) -> Option<Answer> {
        let patience =
            if is_in_session { sleep(PATIENCE).left_future() } else { pending().right_future() };
        tokio::select! {
            biased;
            answer = self => Some(answer),
            () = events.has_message() => None,
            () = patience => None,
        }
    }
}

impl Future for RequestFuture {
    type Output = Answer;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Answer> {
        let Some(request) = &mut self.request else { return Poll::Pending };
        let answer = ready!(request.poll_unpin(cx));
        self.request = None;
        Poll::Ready(answer)
    }
}

impl Drop for RequestFuture {
    fn drop(&mut self) {
        if let (Some(request), Ok(runtime)) = (self.request.take(), Handle::try_current()) {
            self.tasks.spawn_on(request, &runtime);
        }
    }
}

/// The complete body of a request. One with a too large declared length is not read.
async fn whole(body: Incoming) -> Result<Bytes, Refusal> {
    let too_large = || {
        let message = format!("a request body is limited to {MAX_MESSAGE} bytes");
        Err(Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, message))
    };
    if body.size_hint().lower() > MAX_MESSAGE as u64 {
        return too_large();
    }
    match timeout(BODY_WITHIN, Limited::new(body, MAX_MESSAGE).collect()).await {
        Ok(body) => match body.map(Collected::to_bytes) {
            Ok(body) => Ok(body),
            Err(error) if error.is::<LengthLimitError>() => too_large(),
            Err(_) => Err(Refusal::new(StatusCode::BAD_REQUEST, "the request body is incomplete")),
        },
        Err(_) => {
            let message = "the request body did not arrive in time";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}
