//! A tool made from an HTTP endpoint.
//!
//! # Places
//! URL, headers and body have places for the call's arguments: `{city}` is the property `city` of
//! the input schema; both sets must be equal. `{{` and `}}` are braces. A part with a place
//! for an absent argument is left out: a pair of the query, a header, a key or an item of the
//! body. In URL, headers and texts of the body `null` is absent as well.
//!
//! - **URL**: scheme, host and port have no places, and neither have the names of the query. In
//!   the path an argument stays inside its segment, and an empty one or one that would make the
//!   segment `.` or `..` is `input_invalid`. A list as the value of a pair of the query repeats
//!   the pair.
//! - **Headers** may contain secrets, `secret:NAME` or `Bearer {secret:NAME}`, which are asked for
//!   when a call is about to be sent and not before. An argument with a line end or another
//!   control character is `input_invalid`.
//! - **Body**: JSON. A string that is a place and nothing else becomes the argument with its type;
//!   in other strings it becomes text. `Content-Type` is `application/json` unless a header says
//!   otherwise.
//!
//! # Result
//! Where the status is 2xx: of JSON the part to which [`pointer`](HttpToolSpec::pointer) points,
//! or all of it, as data and as compact JSON (a string as its text); of other text the text, read
//! as UTF-8; of anything else one line with its type and size. Without a body it is `done (204)`.
//!
//! # Failures
//! - Another status is `execution_failed` with the beginning of the body.
//! - A host or an address that the client may not ask is `not_available`: nothing that the model
//!   could do would change it.
//! - A tool that is not `read_only` and may have had its effect, and then failed, is
//!   `outcome_unknown`: the connection broke, the answer cannot be read, or its status is 408, or
//!   500 and more except 501 and 503.
//!
//! Where it may go, and what ends it, is the client's:
//! [`toolcrib_capabilities::http`].

pub(crate) mod answer;
mod body;
pub(crate) mod cause;
pub(crate) mod check;
pub(crate) mod exchange;
pub(crate) mod headers;
pub(crate) mod run;
pub(crate) mod table;
pub(crate) mod url;

use serde_json::Value;
use toolcrib_capabilities::http::{DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS, HttpClient};
use toolcrib_core::Tool;

pub use toolcrib_capabilities::http::Method;

pub(crate) use self::table::{DeclaredHttp, KIND};

use crate::{Declaration, ToolErrors, template::Template};

/// The declaration of an HTTP tool. Start from [`new`](Self::new), set fields, and
/// [`build`](Self::build) it.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpToolSpec {
    /// The part that all kinds have.
    pub declaration: Declaration,
    /// The method; any but `CONNECT` and `TRACE`.
    pub method: Method,
    /// Where, with places for arguments behind host and port.
    pub url: String,
    /// Names and values, the values with places for arguments and secrets.
    pub headers: Vec<(String, String)>,
    /// The header with the call's
    /// [idempotency key](toolcrib_core::ToolContext::idempotency_key), such as `Idempotency-Key`;
    /// none unless set.
    pub idempotency_header: Option<String>,
    /// The body, its strings with places for arguments; `GET` and `HEAD` have none.
    pub body: Option<Value>,
    /// The part of a JSON answer that counts (RFC 6901, such as `/data/0`); all of it unless set.
    pub pointer: Option<String>,
    /// How many bytes the answer's body has at most; [`DEFAULT_MAX_BODY_BYTES`] unless set.
    pub max_body_bytes: usize,
    /// How many redirects are followed; [`DEFAULT_MAX_REDIRECTS`] unless set.
    pub max_redirects: usize,
}

impl HttpToolSpec {
    /// A tool without headers and body; see the fields for the other defaults. One that does `GET`
    /// or `HEAD` becomes `read_only`; set it back where that is not true.
    pub fn new(mut declaration: Declaration, method: Method, url: impl Into<String>) -> Self {
        declaration.annotations.read_only |= matches!(method, Method::GET | Method::HEAD);
        Self {
            declaration,
            method,
            url: url.into(),
            headers: Vec::new(),
            idempotency_header: None,
            body: None,
            pointer: None,
            max_body_bytes: DEFAULT_MAX_BODY_BYTES,
            max_redirects: DEFAULT_MAX_REDIRECTS,
        }
    }

    /// The secrets in its headers, each with its field as in
    /// [`FieldError::field`](crate::FieldError::field), once per occurrence. An unreadable header has
    /// none.
    pub fn secrets(&self) -> Vec<(String, String)> {
        let mut all = Vec::new();
        for (name, text) in &self.headers {
            let Ok(template) = Template::parse_with_secrets(text) else { continue };
            let field = check::header_field(name).pointer();
            all.extend(template.secrets().map(|secret| (field.clone(), secret.to_owned())));
        }
        all
    }

    /// Reads all places and makes the tool. It asks through the client, and so only where that one
    /// may ask. How long a call takes is bounded by its deadline alone.
    ///
    /// # Errors
    /// All that is wrong with it, not only the first.
    pub fn build(self, client: &HttpClient) -> Result<Tool, ToolErrors> {
        check::build(self, client)
    }
}
