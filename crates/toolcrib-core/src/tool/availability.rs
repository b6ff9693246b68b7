//! Availability checks. They run each time, because availability may change.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use crate::internal::panic_text::panic_text;

/// Return types of a check for [`ToolBuilder::available_if`](crate::ToolBuilder::available_if):
/// whether the tool is available, or `Ok(())`, or the reason why not. The reason is for the
/// operator; models do not see it.
pub trait IntoAvailability {
    /// `Ok` when the tool is available, else the reason.
    ///
    /// # Errors
    /// The reason why it is not available.
    fn into_availability(self) -> Result<(), Arc<str>>;
}

impl IntoAvailability for bool {
    fn into_availability(self) -> Result<(), Arc<str>> {
        if self { Ok(()) } else { Err("its availability check failed".into()) }
    }
}

impl<E: fmt::Display> IntoAvailability for Result<(), E> {
    fn into_availability(self) -> Result<(), Arc<str>> {
        self.map_err(|reason| reason.to_string().into())
    }
}

/// A tool's availability check.
#[derive(Clone)]
pub(crate) struct Availability(Arc<dyn Fn() -> Result<(), Arc<str>> + Send + Sync>);

impl Availability {
    pub(crate) fn new<A: IntoAvailability>(check: impl Fn() -> A + Send + Sync + 'static) -> Self {
        Self(Arc::new(move || check().into_availability()))
    }

    /// Both must succeed; the other one runs first.
    pub(crate) fn after(self, other: Self) -> Self {
        Self(Arc::new(move || other.check().and_then(|()| self.check())))
    }

    /// A panic counts as a failure.
    pub(crate) fn check(&self) -> Result<(), Arc<str>> {
        catch_unwind(AssertUnwindSafe(|| (self.0)())).unwrap_or_else(|panic| {
            let said = panic_text(&*panic);
            Err(format!("its availability check panicked: {said}").into())
        })
    }
}

crate::internal::debug_fields!(Availability);
