//! Built-in tools, one module per toolset, and the kinds of tools that a project declares instead
//! of programming them.
//!
//! | module | what it makes |
//! |---|---|
//! | `http` | a tool from an HTTP endpoint |
//! | `command` | a tool from a program that is run |
//! | `sql` | a tool from SQL statements over a declared database |

// No links up there: they would be broken wherever a feature is off.

#[cfg(feature = "command")]
pub mod command;
mod declaration;
#[cfg(feature = "http")]
pub mod http;
#[cfg(feature = "sql")]
pub mod sql;
#[cfg(any(feature = "command", feature = "http"))]
mod template;

pub use self::declaration::Declaration;
#[cfg(any(feature = "command", feature = "http"))]
pub use self::template::TemplateError;
