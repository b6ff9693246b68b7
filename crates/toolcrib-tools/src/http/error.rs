use std::fmt;

use toolcrib_core::InvalidTool;

use crate::{PartError, TemplateError, ToolErrors, making::declare_or_use};

/// All that is wrong with one HTTP tool, part by part; never empty.
pub type HttpToolErrors = ToolErrors<HttpToolError>;

/// A part of what is declared of an HTTP tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpToolPart {
    /// What every tool has: name, description, input schema.
    Declaration,
    /// A property of the input schema.
    Parameter(String),
    /// The method.
    Method,
    /// The URL.
    Url,
    /// A header.
    Header {
        /// Where it stands among those that are declared, from 0.
        position: usize,
        /// Its name, as declared.
        name: String,
    },
    /// The body, where a JSON pointer points in it; the empty one is all of it.
    Body(String),
    /// The pointer into the answer.
    Pointer,
    /// The limit of the answer's body.
    MaxBodyBytes,
}

impl fmt::Display for HttpToolPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Declaration => f.write_str("the declaration"),
            Self::Parameter(name) => write!(f, "the parameter `{name}`"),
            Self::Method => f.write_str("the method"),
            Self::Url => f.write_str("the URL"),
            Self::Header { name, .. } => write!(f, "the header `{}`", name.escape_debug()),
            Self::Body(at) if at.is_empty() => f.write_str("the body"),
            Self::Body(at) => write!(f, "the body at `{at}`"),
            Self::Pointer => f.write_str("`pointer`"),
            Self::MaxBodyBytes => f.write_str("`max_body_bytes`"),
        }
    }
}

/// One thing that is wrong with an HTTP tool, and where.
pub type HttpToolError = PartError<HttpToolPart, HttpToolProblem>;

impl From<InvalidTool> for HttpToolError {
    fn from(error: InvalidTool) -> Self {
        Self { part: HttpToolPart::Declaration, offset: None, problem: error.into() }
    }
}

/// What is wrong with a part of an HTTP tool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HttpToolProblem {
    /// It can be offered to no model.
    #[error(transparent)]
    Definition(#[from] InvalidTool),
    /// A text with places that cannot be read.
    #[error(transparent)]
    Template(#[from] TemplateError),
    /// A place for what is no property of the input schema.
    #[error("there is no parameter `{parameter}`; {}", declare_or_use(declared))]
    UnknownParameter {
        /// The name in the place.
        parameter: String,
        /// The parameters that there are.
        declared: Vec<String>,
    },
    /// A property of the input schema without a place.
    #[error("nothing uses it; write `{{{parameter}}}` where it belongs, or drop it")]
    UnusedParameter {
        /// The property.
        parameter: String,
    },
    /// A method that asks for nothing.
    #[error("`{method}` is not for asking; use GET, POST, PUT, PATCH or DELETE")]
    Method {
        /// The method.
        method: String,
    },
    /// A URL that no client would ask.
    #[error("{problem}")]
    Url {
        /// What is wrong with it.
        problem: String,
    },
    /// A place where the URL says which server is asked.
    #[error(
        "`{parameter}` stands where scheme, host and port do; those may not depend on an argument"
    )]
    PlaceInOrigin {
        /// The parameter.
        parameter: String,
    },
    /// A place in the name of a pair of the query.
    #[error("`{parameter}` stands in a name of the query; only behind a `=` may an argument stand")]
    PlaceInQueryName {
        /// The parameter.
        parameter: String,
    },
    /// A parameter in the path that may be absent.
    #[error("`{parameter}` stands in the path and is optional; make it required")]
    OptionalInPath {
        /// The parameter.
        parameter: String,
    },
    /// No header can be called so.
    #[error("this is no header's name")]
    HeaderName,
    /// A header that is the client's to set.
    #[error("this header is set by the client alone; leave it out")]
    HeaderOfClient,
    /// A header that is declared before.
    #[error("this header is declared twice; a header's upper and lower case are the same")]
    HeaderTwice,
    /// A value that no header can have.
    #[error("a header's value may not hold line ends and other control characters")]
    HeaderValue,
    /// A body for a method without one.
    #[error("a {method} has no body; put the arguments into the query, or use POST")]
    BodyNotAllowed {
        /// The method.
        method: String,
    },
    /// A place in a key of the body.
    #[error(
        "its key `{key}` holds a place, which only a value may; write it out, with `{{{{` and \
         `}}}}` for braces"
    )]
    PlaceInKey {
        /// The key, as declared.
        key: String,
    },
    /// A body that could exhaust the stack.
    #[error("it nests deeper than {limit} levels")]
    BodyTooDeep {
        /// How deep it may nest.
        limit: usize,
    },
    /// A pointer that is none.
    #[error(
        "this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a key and `~0` for \
         a `~`"
    )]
    Pointer,
    /// A pointer into what has no body.
    #[error("the answer to a HEAD has no body to point into; use GET, or drop it")]
    PointerIntoHead,
    /// No answer could be read.
    #[error("it is 0; it must be at least 1")]
    NoBytes,
}
