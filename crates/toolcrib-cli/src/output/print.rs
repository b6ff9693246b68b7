//! The macros that print a line.

/// Prints to standard output.
macro_rules! say {
    ($($arg:tt)*) => { $crate::output::streams::say(format_args!($($arg)*)) };
}
pub(super) use say;

/// Prints to standard error.
macro_rules! note {
    ($($arg:tt)*) => { $crate::output::streams::note(format_args!($($arg)*)) };
}
pub(crate) use note;
