//! Runs user-supplied futures so that a panic while dropping them cannot escape.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::{FutureExt as _, future::BoxFuture};

/// A user-supplied future. If it is dropped before it completes, a panic in its destructor is
/// ignored: no caller waits for its result any more.
pub(crate) struct UserFuture<'a, T>(Option<BoxFuture<'a, T>>);

impl<'a, T> UserFuture<'a, T> {
    /// All user code runs in here: creating the future, polling it, reading its result and dropping
    /// it afterwards.
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

impl<T> Future for UserFuture<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut self.0 {
            Some(future) => future.poll_unpin(cx),
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for UserFuture<'_, T> {
    fn drop(&mut self) {
        let future = self.0.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(future)));
    }
}
