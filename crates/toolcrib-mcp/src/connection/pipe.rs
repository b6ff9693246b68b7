//! Servers in this process, over a pipe in memory.

use std::{io, sync::Arc};

use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite, split};

use super::{
    Connect,
    lines::Lines,
    open::{Dial, Dialed, Failed, Greeting, Opener, Wiring, shake_hands},
};

/// Connections to a server in this process: each is a result of `open`.
pub(crate) fn pipe<S>(
    target: impl Into<String>,
    open: impl Fn() -> io::Result<S> + Send + Sync + 'static,
) -> Arc<dyn Connect>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    Opener::new(Pipe::new(target.into(), open))
}

pub(super) struct Pipe<F> {
    target: String,
    open: F,
}

impl<F> Pipe<F> {
    pub(super) fn new(target: String, open: F) -> Self {
        Self { target, open }
    }
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
        greeting: Greeting,
        wiring: Wiring,
    ) -> BoxFuture<'static, Result<Dialed, Failed>> {
        let opened = (self.open)();
        Box::pin(async move {
            let stream = opened.map_err(|error| {
                Failed::not_reached(
                    format!("it accepts no connection: {error}"),
                    Some(error.into()),
                )
            })?;
            let Wiring { intake, ending, .. } = &wiring;
            let lines = Lines::new(split(stream), None, Arc::clone(intake), Arc::clone(ending));
            let carrier = lines.carrier();
            Ok((shake_hands(lines, greeting, wiring).await?, carrier))
        })
    }
}
