//! What a tool is made with.

/// A value of which every call gets a clone.
pub struct Kept<T> {
    value: T,
    clone: fn(&T) -> T,
}

/// Here alone is asked what the value can do, so that there is one error if it cannot.
pub fn keep<T: Clone + Send + Sync + 'static>(value: T) -> Kept<T> {
    Kept { value, clone: T::clone }
}

impl<T> Kept<T> {
    pub fn give(&self) -> T {
        (self.clone)(&self.value)
    }
}
