//! Tools from the operations of an OpenAPI document: 3.0, 3.1, and Swagger 2.0.
//!
//! # Names and texts
//! A tool is named after its `operationId`, or else after method and path. Equal names get a digest
//! of method and path. Its description is the operation's summary and description, shortened.
//!
//! # Arguments
//! Each parameter is an argument, and so is the request body, as `body`. They are sent in the
//! [styles](https://spec.openapis.org/oas/v3.1.0#style-values) that the document declares. Bodies
//! are JSON, text or `application/x-www-form-urlencoded`; an operation with another body is
//! withheld.
//!
//! # Schemas
//! Local references become `$defs`. A schema has at most 48 KiB; of a larger one, the deeper levels
//! accept anything, which the server checks. The schema of results says only their shape: any value
//! may be null or absent, since servers follow their documents loosely.
//!
//! # Operations that cannot be made
//! They become tools that are never offered, with the reason.

mod body;
mod document;
mod plan;
mod run;
mod schema;
mod security;
mod select;
mod serialize;
mod shapes;
mod spec;
mod table;
mod yaml;

pub(crate) use self::table::KIND;
#[doc(hidden)]
pub use self::table::SERVER_PLACEHOLDER;
pub use self::{
    document::{MAX_DOCUMENT, OpenApi, OpenApiError, Outline},
    security::Auth,
    spec::OpenApiSpec,
};
