//! The stages at which a policy decides.

use serde::Serialize;

/// The facts known of a call when the policy is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PolicyStage {
    /// Tool and situation only; the arguments are not known yet.
    Name,
    /// Also the arguments, which are valid.
    Arguments,
}
