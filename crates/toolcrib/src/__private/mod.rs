//! Support for code that `#[tool]` generates. It may change with any version.

mod answer;
mod argument;
mod schema;
mod state;

pub use schemars;
pub use serde;

pub(crate) use self::schema::schema;
pub use self::{
    argument::{ArgumentType, Arguments, Give, any},
    state::keep,
};

/// The conversions of return values, for a glob import.
pub mod answers {
    pub use super::answer::{
        Data, DataOrAnyError, DataOrError, OtherResult, OtherValue, Output, OutputOrAnyError,
        ReturnType,
    };
}
