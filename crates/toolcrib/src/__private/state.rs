//! The state that a tool is made with.

/// A value that is cloned for every call.
pub struct ClonedState<T> {
    value: T,
    clone: fn(&T) -> T,
}

/// The only place with these bounds, so that an unsuitable type causes one error.
pub fn keep<T: Clone + Send + Sync + 'static>(value: T) -> ClonedState<T> {
    ClonedState { value, clone: T::clone }
}

impl<T> ClonedState<T> {
    pub fn give(&self) -> T {
        (self.clone)(&self.value)
    }
}
