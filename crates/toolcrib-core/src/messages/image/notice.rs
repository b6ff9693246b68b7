//! The user's text about an image.

use serde::Serialize;

/// An image that the model may not see, for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ImageNotice {
    /// The name of the attached file, or the line that replaces an image where it cannot be used.
    pub image: String,
    /// Whether it is sent to the model all the same, of which it is not known whether it sees images.
    pub is_sent: bool,
    /// Why the model does not or may not see it.
    pub reason: String,
}
