//! ```
//! # #[cfg(feature = "http")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use toolcrib_capabilities::http::{HttpClient, Method};
//! use toolcrib_tools::{Declaration, http::HttpToolSpec};
//!
//! let declaration = Declaration {
//!     input_schema: serde_json::json!({
//!         "type": "object",
//!         "properties": { "city": { "type": "string" } },
//!         "required": ["city"],
//!     }),
//!     ..Declaration::new("weather", "The weather in a city, now.")
//! };
//! let client = HttpClient::builder().allowed_hosts(Some(vec!["api.example.com".parse()?])).build();
//! let url = "https://api.example.com/weather/{city}";
//! let tool = HttpToolSpec::new(declaration, Method::GET, url).build(&client)?;
//! assert!(tool.definition().annotations().read_only);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "http"))]
//! # fn main() {}
//! ```
//!
//! Built-in tools, one module per toolset, and the kinds of tools that a project declares instead
//! of programming them.
//!
//! | module | what it makes |
//! |---|---|
//! | `http` | a tool from an HTTP endpoint |
//! | `command` | a tool from a program that is run |
//! | `files` | tools that read, search and write the files of declared folders |
//! | `clarify` | a tool that asks the person of the turn |
//! | `hub` | tools from a catalog that an HTTP server keeps |
//! | `openapi` | tools from the operations of an OpenAPI document |
//! | `code` | tools that run linters, compilers and tests, and parse what they report |
//! | `memory` | tools that keep topics in Markdown files, and search earlier sessions |
//! | `task` | a tool that gives tasks to child agents |
//! | `terminal` | tools that run command lines in a sandbox, to their end or in the background |
//! | `sql` | a tool from SQL statements over a declared database |
//! | `sql_explore` | tools that list and describe tables, and run statements of a model that read |
//! | `todo` | tools that keep a list of tasks in the session |
//! | `web` | tools that read pages as Markdown, and search the web |
//!
//! # Layers
//!
//! - `clarify`: a tool with which a model asks the person that it works for.
//! - `code`: a toolset for programmers.
//! - `files`: a toolset over folders.
//! - `hub`: tools from a catalog that an HTTP server keeps.
//! - `memory`: a toolset for what an agent remembers beyond a session.
//! - `openapi`: tools from the operations of an OpenAPI document.
//! - `sql_explore`: a toolset that lets a model explore a database.
//! - `sql`: a tool made from SQL statements over a declared database.
//! - `task`: a tool with which a model gives a task to another agent.
//! - `terminal`: a toolset with a shell.
//! - `command`: a tool made from a program.
//! - `todo`: a toolset for a list of tasks, which is kept in the session.
//! - `web`: a toolset for the web.
//! - `http`: a tool made from an HTTP endpoint.
//! - `kind`: how the tables of a kind are read, and the ports between kinds and a project.
//! - `findings`: errors in a declaration, field by field.
//! - `template`: texts with places that a call's arguments fill.
//! - `making`: from a declaration to a tool, as far as its kind does not matter.
//! - `declaration`: the part of a declared tool that is the same for all kinds.
//! - `source`: the source of a declaration.
//! - `arguments`: arguments of a call as text.

// No links above: they would be broken wherever a feature is off.

#![cfg_attr(
    not(all(
        feature = "command",
        feature = "files",
        feature = "hub",
        feature = "openapi",
        feature = "sql"
    )),
    allow(dead_code, reason = "some helpers serve one kind")
)]

#[cfg(feature = "declared")]
mod arguments;
#[cfg(feature = "clarify")]
pub mod clarify;
#[cfg(feature = "command")]
pub mod code;
#[cfg(feature = "command")]
pub mod command;
mod declaration;
#[cfg(feature = "files")]
pub mod files;
#[cfg(feature = "declared")]
mod findings;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "hub")]
pub mod hub;
#[cfg(feature = "declared")]
mod kind;
#[cfg(feature = "declared")]
mod making;
#[cfg(feature = "memory")]
pub mod memory;
#[cfg(feature = "openapi")]
pub mod openapi;
mod source;
#[cfg(feature = "sql")]
pub mod sql;
#[cfg(feature = "sql")]
pub mod sql_explore;
#[cfg(feature = "task")]
pub mod task;
#[cfg(feature = "declared")]
mod template;
#[cfg(feature = "command")]
pub mod terminal;
#[cfg(feature = "todo")]
pub mod todo;
#[cfg(feature = "web")]
pub mod web;

#[cfg(feature = "declared")]
pub use self::findings::{FieldError, ToolErrors};
#[cfg(feature = "memory")]
#[doc(hidden)]
pub use self::kind::MemoryParts;
#[cfg(feature = "declared")]
#[doc(hidden)]
pub use self::kind::{
    BuiltTool, DeclaredKind, DocumentTable, ExpandedTool, ExternalAccess, KindForm, KindPorts,
    KindReader, ReadDocument, ThirdPartyDefinition,
};
#[cfg(feature = "command")]
#[doc(hidden)]
pub use self::kind::{ProgramAccess, ProgramPlace};
pub use self::{
    declaration::{Declaration, MAX_RESULT_CHARS},
    source::Source,
};
pub use toolcrib_config::Spot;

/// All kinds of tools that a project can declare.
#[cfg(feature = "declared")]
#[doc(hidden)]
pub const KINDS: &[KindReader] = &[
    #[cfg(feature = "sql")]
    sql_explore::KIND,
    #[cfg(feature = "sql")]
    sql::KIND,
    #[cfg(feature = "command")]
    command::KIND,
    #[cfg(feature = "files")]
    files::KIND,
    #[cfg(feature = "http")]
    http::KIND,
    #[cfg(feature = "openapi")]
    openapi::KIND,
    #[cfg(feature = "command")]
    terminal::KIND,
    #[cfg(feature = "command")]
    code::KIND,
    #[cfg(feature = "todo")]
    todo::KIND,
    #[cfg(feature = "memory")]
    memory::KIND,
    #[cfg(feature = "clarify")]
    clarify::KIND,
    #[cfg(feature = "task")]
    task::KIND,
    #[cfg(feature = "web")]
    web::KIND,
];

/// Helpers that the crates of this workspace share. Not part of the public API: they may change in
/// any version.
#[doc(hidden)]
#[cfg(feature = "declared")]
pub mod __internal {
    pub use crate::template::{SECRET, is_secret_name};
}
