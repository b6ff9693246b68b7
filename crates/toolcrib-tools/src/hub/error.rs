use std::fmt;

use toolcrib_core::InvalidToolName;

use crate::{
    PartError, ToolErrors,
    http::{HttpToolPart, HttpToolProblem},
};

/// All that is wrong with one hub, part by part; never empty.
pub type HubErrors = ToolErrors<HubError>;

/// One thing that is wrong with a hub, and where.
pub type HubError = PartError<HubPart, HubProblem>;

/// A part of what is declared of a hub.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HubPart {
    /// Its name.
    Name,
    /// What the names of its tools begin with.
    Prefix,
    /// A part of the catalogue's request.
    Catalogue(HttpToolPart),
    /// A part of a call.
    Call(HttpToolPart),
    /// A pointer into the catalogue: `list`, `name`, `description`, `schema` or `next`.
    Pointer(&'static str),
    /// One of its limits.
    Limits,
}

impl fmt::Display for HubPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("the name"),
            Self::Prefix => f.write_str("`prefix`"),
            Self::Catalogue(part) => part.fmt(f),
            Self::Call(part) => write!(f, "in `call`, {part}"),
            Self::Pointer(which) => write!(f, "`{which}`"),
            Self::Limits => f.write_str("the limits"),
        }
    }
}

/// What is wrong with a part of a hub.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HubProblem {
    /// As of an HTTP tool.
    #[error(transparent)]
    Http(HttpToolProblem),
    /// A place that there is none of in such a request.
    #[error("there is no place `{place}` here; use one of `{}`", known.join("`, `"))]
    UnknownPlace {
        /// The name in the place.
        place: String,
        /// The places that there are.
        known: Vec<String>,
    },
    /// It has no name.
    #[error("it is blank; it stands in events and messages")]
    NoName,
    /// No tool's name can begin so.
    #[error(transparent)]
    Prefix(InvalidToolName),
    /// A pointer that is none.
    #[error(
        "this is no JSON pointer; write `/data/tools`, with `~1` for a `/` inside a key and `~0` \
         for a `~`"
    )]
    Pointer,
    /// Nothing could be listed.
    #[error("one of them is 0; each must be at least 1")]
    NoLimit,
    /// All tools would be one call.
    #[error(
        "nothing says which tool is called; write `{{tool}}` into the URL, a header or the body"
    )]
    ToolNotNamed,
}
