//! Whether a tool is there now: asked anew each time, because it may come and go.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::panic_text::panic_text;

/// What a check of [`ToolBuilder::available_if`](crate::ToolBuilder::available_if) answers: whether
/// the tool is available, or `Ok(())`, or the reason why it is not. The reason is the operator's; no
/// model reads it.
pub trait IntoAvailability {
    /// `Ok` when the tool is available, else the reason.
    ///
    /// # Errors
    /// Why it is not available.
    fn into_availability(self) -> Result<(), Arc<str>>;
}

impl IntoAvailability for bool {
    fn into_availability(self) -> Result<(), Arc<str>> {
        if self { Ok(()) } else { Err("its check says no".into()) }
    }
}

impl<E: fmt::Display> IntoAvailability for Result<(), E> {
    fn into_availability(self) -> Result<(), Arc<str>> {
        self.map_err(|reason| reason.to_string().into())
    }
}

/// A tool's check of whether it is available.
#[derive(Clone)]
pub(crate) struct Availability(Arc<dyn Fn() -> Result<(), Arc<str>> + Send + Sync>);

impl Availability {
    pub(crate) fn new<A: IntoAvailability>(check: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || check().into_availability()))
    }

    /// Both must hold; the other one is asked first.
    pub(crate) fn after(self, other: Self) -> Self {
        Self(Arc::new(move || other.check().and_then(|()| self.check())))
    }

    /// One that panics has not said that the tool is available.
    pub(crate) fn check(&self) -> Result<(), Arc<str>> {
        catch_unwind(AssertUnwindSafe(|| (self.0)())).unwrap_or_else(|panic| {
            let said = panic_text(&*panic);
            Err(format!("its check of whether it is available panicked: {said}").into())
        })
    }
}

impl fmt::Debug for Availability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Availability(..)")
    }
}
