//! Built-in tools, one module per toolset, and the kinds of tools that a project declares instead
//! of programming them.
//!
//! | module | what it makes |
//! |---|---|
//! | `http` | a tool from an HTTP endpoint |
//! | `command` | a tool from a program that is run |
//! | `hub` | tools from a catalogue that an HTTP server keeps |
//! | `sql` | a tool from SQL statements over a declared database |

// No links up there: they would be broken wherever a feature is off.

#[cfg(any(feature = "command", feature = "http"))]
mod arguments;
#[cfg(feature = "command")]
pub mod command;
mod declaration;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "hub")]
pub mod hub;
#[cfg(any(feature = "command", feature = "http", feature = "sql"))]
mod making;
#[cfg(any(feature = "command", feature = "http"))]
mod part;
#[cfg(feature = "sql")]
pub mod sql;
#[cfg(any(feature = "command", feature = "http"))]
mod template;

pub use self::declaration::Declaration;
#[cfg(any(feature = "command", feature = "http", feature = "sql"))]
pub use self::making::ToolErrors;
#[cfg(any(feature = "command", feature = "http"))]
pub use self::{part::PartError, template::TemplateError};
