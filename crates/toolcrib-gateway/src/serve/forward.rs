//! Passes a request on to the replica that has what it continues: a call that waits for its client's input.

use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response,
    header::{CONNECTION, HOST, TRANSFER_ENCODING},
};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::{
    body::Incoming,
    client::conn::http1::{self, SendRequest},
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle, time::timeout};
use tokio_util::task::task_tracker::TaskTrackerToken;
use uuid::Uuid;

use super::routes::HEALTH;
use crate::{
    access::replicas::{OtherReplica, Replicas},
    wire::events::Body,
};

/// Marks a request that another replica has passed on: it is not passed on again.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("toolcrib-forwarded");

/// The challenge by which a replica proves its name, in a request for its health, and the proof in the response.
const CHALLENGE: HeaderName = HeaderName::from_static("toolcrib-challenge");

/// The limit of a challenge in bytes.
const MOST_CHALLENGE: usize = 64;

/// The time limit of a connection to another replica, with its proof.
const CONNECTS_WITHIN: Duration = Duration::from_secs(3);

/// Passes a POST on, with its token, and its response back. `None` if the other replica cannot be reached, which
/// then has not received it, or it has ended without a response. The response of a call comes when the call ends:
/// only the client limits how long that takes. Until then it counts as a request of this replica, which may drain.
pub(crate) async fn forward(
    replicas: &Replicas,
    other: &OtherReplica,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
    counted: [TaskTrackerToken; 2],
) -> Option<Response<Body>> {
    let connected = timeout(CONNECTS_WITHIN, connected(replicas, other, headers.get(HOST)));
    let (mut sender, connection) = connected.await.ok()??;
    let mut request = Request::post(path).body(Full::new(body)).ok()?;
    request.headers_mut().clone_from(headers);
    request.headers_mut().remove(TRANSFER_ENCODING);
    request.headers_mut().insert(FORWARDED, HeaderValue::from_static("1"));
    let (mut parts, body) = sender.send_request(request).await.ok()?.into_parts();
    parts.headers.remove(CONNECTION);
    parts.headers.remove(TRANSFER_ENCODING);
    Some(Response::from_parts(parts, passed_back(body, (connection, counted))))
}

/// A connection to another replica. It has proven that it is the one: at its address may be another program now, for
/// which the token is not.
#[expect(clippy::disallowed_methods, reason = "only a replica can seal the address of one")]
async fn connected(
    replicas: &Replicas,
    other: &OtherReplica,
    host: Option<&HeaderValue>,
) -> Option<(SendRequest<Full<Bytes>>, AbortOnDrop)> {
    let stream = TcpStream::connect(other.address).await.ok()?;
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // It ends with the response's body, also if the client goes away before.
    let connection = AbortOnDrop(tokio::spawn(connection).abort_handle());
    let challenge = Uuid::new_v4().simple().to_string();
    let mut request = Request::get(HEALTH).header(CHALLENGE, &challenge);
    if let Some(host) = host {
        request = request.header(HOST, host);
    }
    let answer = sender.send_request(request.body(Full::default()).ok()?).await.ok()?;
    let proof = answer.headers().get(CHALLENGE)?.to_str().ok()?;
    if !replicas.proves(other, &challenge, proof) {
        return None;
    }
    // The next request follows the body.
    answer.into_body().collect().await.ok()?;
    sender.ready().await.ok()?;
    Some((sender, connection))
}

/// Adds the proof that another replica asks for to the response to a request for the health.
pub(crate) fn prove(replicas: Option<&Replicas>, asked: &HeaderMap, answer: &mut HeaderMap) {
    let challenge = asked.get(CHALLENGE).and_then(|challenge| challenge.to_str().ok());
    let challenge = challenge.filter(|challenge| challenge.len() <= MOST_CHALLENGE);
    if let (Some(replicas), Some(challenge)) = (replicas, challenge)
        && let Some(proof) = replicas.proof(challenge)
        && let Ok(proof) = HeaderValue::from_str(&proof)
    {
        answer.insert(CHALLENGE, proof);
    }
}

/// A body of another replica, and what ends with it. If that one ends before it, so does this: its client does not
/// receive the rest.
fn passed_back(body: Incoming, until_end: (AbortOnDrop, [TaskTrackerToken; 2])) -> Body {
    let frames = stream::unfold((body, until_end), async |(mut body, until_end)| {
        let frame = body.frame().await?.ok()?;
        Some((Ok(frame), (body, until_end)))
    });
    StreamBody::new(frames).boxed_unsync()
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
