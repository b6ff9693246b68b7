//! Ranges of numbers in words.

use std::{
    fmt::Display,
    ops::{Bound, RangeBounds},
};

/// A range as text for a message: `from 1 to 10`, `from 0 up`.
pub(crate) fn in_words<T: Display>(range: &impl RangeBounds<T>) -> String {
    let low = match range.start_bound() {
        Bound::Included(low) => Some(format!("from {low}")),
        Bound::Excluded(low) => Some(format!("above {low}")),
        Bound::Unbounded => None,
    };
    let high = match range.end_bound() {
        Bound::Included(high) => Some(format!("to {high}")),
        Bound::Excluded(high) => Some(format!("below {high}")),
        Bound::Unbounded => None,
    };
    match (low, high) {
        (Some(low), Some(high)) => format!("{low} {high}"),
        (Some(low), None) => format!("{low} up"),
        (None, Some(high)) => format!("up {high}"),
        (None, None) => "of a smaller size".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_range_has_words() {
        assert_eq!(in_words(&(1..=10)), "from 1 to 10");
        assert_eq!(in_words(&(0..)), "from 0 up");
        assert_eq!(in_words(&(0.0..1.0)), "from 0 below 1");
        assert_eq!(in_words(&(..=5)), "up to 5");
        assert_eq!(in_words(&(Bound::Excluded(0.5), Bound::Unbounded)), "above 0.5 up");
    }
}
