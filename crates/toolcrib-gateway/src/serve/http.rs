//! Serves any number of clients over HTTP: accepts connections, and ends them.

use std::{
    convert::Infallible,
    future::pending,
    io,
    net::SocketAddr,
    sync::{Arc, Weak},
    time::Duration,
};

use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
};
use toolcrib_core::CancellationToken;

use super::routes::Routes;
use crate::{
    access::HttpAccess, client::context::ServeContext, error::GatewayError, gateway::Gateway,
};

/// The limit of open connections; further ones wait.
const MAX_CONNECTIONS: usize = 4096;

/// The timeout of a request's headers.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// How long connections have to end in good order.
const END_WITHIN: Duration = Duration::from_secs(5);

/// The delay after a failed accept.
const REST: Duration = Duration::from_millis(100);

impl Gateway {
    /// Serves MCP over HTTP/1.1 at `/mcp`, with a preset skill at `/mcp/skill/S`, and at the
    /// [endpoints](HttpAccess::endpoint) of the access, until the token fires. Then it accepts nothing more, lets requests end for the time of
    /// [`drain`](crate::gateway::GatewayBuilder::drain), cancels the others, and ends sessions and connections;
    /// nothing runs any more when this returns. While a call waits for its client
    /// when it fires, it still accepts what other replicas pass on.
    ///
    /// A request is checked in this order: its host (403), its origin (403), its token (401), its
    /// path (404), its body, of at most 4 MiB (413), which must be one message of the protocol
    /// (400, with an error of JSON-RPC). `GET /healthz` responds without a token, and says only
    /// that the gateway is running; so does a browser's preflight for a page of an allowed origin
    /// (204). `/readyz` and `/metrics` are for operators. An unknown skill and one that the caller may not activate return
    /// the same status (404). With [`HttpAccess::tls`] it serves HTTPS.
    ///
    /// Each token has an equal share of [`MAX_SESSIONS`](super::sessions::MAX_SESSIONS), of at least 16, so
    /// that no token can starve another; a session ends after 30 minutes without a message. A
    /// client that disconnects ends its call, except in a session: there the call continues, and a
    /// client that was connected for a tenth of a second may come back for the response as long as
    /// it runs. A response without a connected client is lost, but the call's effect is not.
    ///
    /// # Errors
    /// [`GatewayError`] if the access is invalid, or the listener fails.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        access: HttpAccess,
        cancellation: CancellationToken,
    ) -> Result<(), GatewayError> {
        self.0.shared().check_all(&access)?;
        // Requests in progress may end after it fires.
        let serving = self.serving(&CancellationToken::new());
        let routes = Arc::new(Routes::new(&serving, access)?);
        let address: Weak<Routes> = Arc::downgrade(&routes);
        self.0.serves(address);
        let outcome = tokio::select! {
            outcome = accept(&listener, &serving, &routes) => outcome,
            () = cancellation.cancelled() => Ok(()),
        };
        routes.draining.cancel();
        // Without such a call it refuses connections: those that it accepts at the end would break.
        let passes_on = self.0.shared().config.replicas.is_some() && routes.wait_for_clients();
        let listener = Some(listener).filter(|_| passes_on && outcome.is_ok());
        let (drain, requests) = (self.0.shared().config.drain, &self.0.requests);
        requests.close();
        let forwarded = async {
            if let Some(listener) = &listener {
                let _ = accept(listener, &serving, &routes).await;
            }
            pending::<()>().await;
        };
        tokio::select! {
            _ = tokio::time::timeout(drain, requests.wait()) => {}
            () = forwarded => {}
        }
        drop(listener);
        requests.reopen();
        drop(routes);
        serving.end().await;
        outcome
    }
}

async fn accept(
    listener: &TcpListener,
    serving: &ServeContext,
    routes: &Arc<Routes>,
) -> Result<(), GatewayError> {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let place = tokio::select! {
            place = Arc::clone(&places).acquire_owned() => place,
            () = serving.cancellation.cancelled() => return Ok(()),
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = serving.cancellation.cancelled() => return Ok(()),
        };
        match accepted {
            Ok((stream, peer)) => {
                let (routes, closing) = (Arc::clone(routes), serving.cancellation.clone());
                serving.running.spawn(async move {
                    admitted(stream, peer, routes, closing).await;
                    drop(place);
                });
            }
            Err(error) if is_for_good(&error) => return Err(GatewayError::Listener(error)),
            Err(_) => tokio::time::sleep(REST).await,
        }
    }
}

/// Whether the listener has failed permanently. Other errors are temporary: a client that
/// disconnected, exhausted descriptors, or a network error that `accept` reports for the new
/// connection.
fn is_for_good(error: &io::Error) -> bool {
    const EBADF: i32 = 9;
    const EINVAL: i32 = 22;
    const ENOTSOCK: i32 = if cfg!(target_os = "linux") { 88 } else { 38 };
    matches!(error.raw_os_error(), Some(EBADF | EINVAL | ENOTSOCK))
}

/// Serves a connection, after the handshake of TLS if there is a certificate.
async fn admitted(
    stream: TcpStream,
    peer: SocketAddr,
    routes: Arc<Routes>,
    closing: CancellationToken,
) {
    // A response is several small writes; Nagle's algorithm would cost 40 ms on each.
    let _ = stream.set_nodelay(true);
    let Some(tls) = routes.tls() else { return connection(stream, peer, routes, closing).await };
    let accepted = tokio::select! {
        accepted = tokio::time::timeout(HEAD_WITHIN, tls.0.accept(stream)) => accepted,
        () = closing.cancelled() => return,
    };
    if let Ok(Ok(stream)) = accepted {
        Box::pin(connection(stream, peer, routes, closing)).await;
    }
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: SocketAddr,
    routes: Arc<Routes>,
    closing: CancellationToken,
) {
    let answer =
        service_fn(|request| async { Ok::<_, Infallible>(routes.answer(request, peer).await) });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = std::pin::pin!(connection);
    // How a connection ended does not matter here; its requests are logged.
    tokio::select! {
        _ = connection.as_mut() => {}
        () = closing.cancelled() => {
            connection.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(END_WITHIN, connection).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn only_a_listener_that_is_none_ends_serving() {
        for (number, ends) in [(9, true), (22, true), (88, true), (24, false), (100, false)] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(is_for_good(&error), ends, "{error}");
        }
    }
}
