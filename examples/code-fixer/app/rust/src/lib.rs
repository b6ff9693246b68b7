//! The median of a list.

/// The middle value; of an even number of values, the mean of the two in the middle. `None` of no values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    sorted.get(middle).copied()
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn of_an_odd_number() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }

    #[test]
    fn of_an_even_number() {
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn of_nothing() {
        assert_eq!(median(&[]), None);
    }
}
