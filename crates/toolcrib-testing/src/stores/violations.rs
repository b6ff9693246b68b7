//! The result of a test of a store's contract.

use std::{error::Error, fmt};

/// The violations of a store's contract, as text. `Debug` is readable too, so that `unwrap` shows them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct StoreViolations(Vec<String>);

impl StoreViolations {
    /// The violations, in the order in which they were found.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Records a clause of the contract unless the store satisfies it.
    pub fn unless(&mut self, satisfied: bool, clause: &str) {
        if !satisfied {
            self.0.push(clause.to_owned());
        }
    }

    /// The result of the test.
    ///
    /// # Errors
    /// The violations, if there are any.
    pub fn into_result(self) -> Result<(), Self> {
        if self.0.is_empty() { Ok(()) } else { Err(self) }
    }
}

impl fmt::Display for StoreViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the store breaks its contract:")?;
        self.0.iter().try_for_each(|violation| write!(f, "\n- {violation}"))
    }
}

impl fmt::Debug for StoreViolations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for StoreViolations {}
