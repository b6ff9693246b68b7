//! Servers in this process, over a pipe in memory.

use std::{io, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, split};

use super::{
    Connector,
    lines::dialed,
    transport::{CallerContext, Dial, RawConnection, Wiring},
    types::ConnectError,
};

/// Connections to a server in this process: each is a result of `open`.
pub(crate) fn pipe<S>(
    target: impl Into<String>,
    open: impl Fn() -> io::Result<S> + Send + Sync + 'static,
) -> Arc<Connector>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    Connector::new(Pipe { target: target.into(), open })
}

struct Pipe<F> {
    target: String,
    open: F,
}

impl<S, F> Dial for Pipe<F>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    F: Fn() -> io::Result<S> + Send + Sync + 'static,
{
    fn target(&self) -> &str {
        &self.target
    }

    fn dial(
        &self,
        wiring: Wiring,
        _: CallerContext<'_>,
    ) -> BoxFuture<'static, Result<RawConnection, ConnectError>> {
        let opened = (self.open)();
        Box::pin(async move {
            let stream = opened.map_err(|error| ConnectError {
                problem: format!("it accepts no connection: {error}"),
                source: Some(error.into()),
            })?;
            Ok(dialed(split(stream), None, wiring))
        })
    }
}
