//! What the code that `#[tool]` writes refers to. It may change with any version.

mod answer;
mod schema;
mod state;

pub use schemars;
pub use serde;

pub use self::{schema::schema, state::keep};

/// The ways from a return value to an output, for a glob import.
pub mod answers {
    pub use super::answer::{
        Data, DataOrAnyError, DataOrError, OtherResult, OtherValue, Output, OutputOrAnyError,
        Returned,
    };
}
