//! Code of others that is asked for something.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{FutureExt as _, future::BoxFuture};

/// A future of somebody else's. One that is dropped before it has answered cannot hurt whoever drops
/// it: by then nobody waits for what it would say.
pub(crate) struct Asked<'a, T>(Option<BoxFuture<'a, T>>);

impl<'a, T> Asked<'a, T> {
    /// All that is the other's runs in here: making the future, polling it, reading its answer, and
    /// dropping it then.
    pub(crate) async fn answer<U>(
        ask: impl FnOnce() -> BoxFuture<'a, T>,
        read: impl FnOnce(T) -> U,
    ) -> U {
        let mut asked = Self(Some(ask()));
        let answer = read((&mut asked).await);
        drop(asked.0.take());
        answer
    }
}

impl<T> Future for Asked<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Some(future) => future.poll_unpin(cx),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Asked<'_, T> {
    fn drop(&mut self) {
        let future = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
    }
}
