//! Passes a request on to the replica that has what it continues: a call that waits for its client's input.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use futures_util::stream;
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response,
    header::{CONNECTION, TRANSFER_ENCODING},
};
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle, time::timeout};

use crate::wire::events::Body;

/// Marks a request that another replica has passed on: it is not passed on again.
pub(crate) const FORWARDED: HeaderName = HeaderName::from_static("toolcrib-forwarded");

/// The time limit of a connection to another replica.
const CONNECTS_WITHIN: Duration = Duration::from_secs(3);

/// Passes a POST on, with its token, and its response back. `None` if the other replica cannot be reached, which
/// then has not received it, or it has ended without a response.
#[expect(clippy::disallowed_methods, reason = "only a replica can seal the address of one")]
pub(crate) async fn forward(
    at: SocketAddr,
    path: &str,
    headers: &HeaderMap,
    body: Bytes,
) -> Option<Response<Body>> {
    let stream = timeout(CONNECTS_WITHIN, TcpStream::connect(at)).await.ok()?.ok()?;
    let _ = stream.set_nodelay(true);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    // It ends with the response's body, also if the client goes away before.
    let connection = AbortOnDrop(tokio::spawn(connection).abort_handle());
    let mut request = Request::post(path).body(Full::new(body)).ok()?;
    request.headers_mut().clone_from(headers);
    request.headers_mut().remove(TRANSFER_ENCODING);
    request.headers_mut().insert(FORWARDED, HeaderValue::from_static("1"));
    let (mut parts, body) = sender.send_request(request).await.ok()?.into_parts();
    parts.headers.remove(CONNECTION);
    parts.headers.remove(TRANSFER_ENCODING);
    Some(Response::from_parts(parts, passed_back(body, connection)))
}

/// A body of another replica. If that one ends before it, so does this: its client does not receive the rest.
fn passed_back(body: Incoming, connection: AbortOnDrop) -> Body {
    let frames = stream::unfold((body, connection), async |(mut body, connection)| {
        let frame = body.frame().await?.ok()?;
        Some((Ok(frame), (body, connection)))
    });
    StreamBody::new(frames).boxed_unsync()
}

struct AbortOnDrop(AbortHandle);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
