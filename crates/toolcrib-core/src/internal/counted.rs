use std::fmt::Display;

/// A number with its noun, such as `1 line` and `2 lines`.
pub fn counted<N: Copy + Display + From<u8> + PartialEq>(count: N, noun: &str) -> String {
    format!("{count} {noun}{}", if count == N::from(1) { "" } else { "s" })
}
