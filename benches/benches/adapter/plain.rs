//! An exchange with only hyper: the minimum of every HTTP client.

use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request,
    body::Bytes,
    client::conn::http1::{self, SendRequest},
    header,
};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::AbortHandle};
use toolcrib_benches::{Outcome, vendor::Server};

/// A hyper connection.
pub(crate) struct Plain {
    sender: SendRequest<Full<Bytes>>,
    authority: String,
    driver: AbortHandle,
}

impl Plain {
    pub(crate) async fn connect(server: &Server) -> Outcome<Self> {
        let stream = TcpStream::connect(server.address()).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        let driver = tokio::spawn(async move { drop(connection.await) }).abort_handle();
        Ok(Self { sender, authority: server.address().to_string(), driver })
    }

    /// Sends a body and reads the response to its end; returns its length in bytes.
    pub(crate) async fn exchange(&mut self, body: Bytes) -> Outcome<usize> {
        let request = Request::post("/v1/chat/completions")
            .header(header::HOST, self.authority.as_str())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body))?;
        self.sender.ready().await?;
        let mut answer = self.sender.send_request(request).await?.into_body();
        let mut bytes = 0;
        while let Some(frame) = answer.frame().await {
            bytes += frame?.data_ref().map_or(0, Bytes::len);
        }
        Ok(bytes)
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        self.driver.abort();
    }
}
