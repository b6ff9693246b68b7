//! Converts a function's return value to an output or an error (autoref specialization).
//!
//! Several conversions apply to many types, and trait selection cannot rank them. Method lookup
//! can: it tries a receiver as written, then with one reference less, and so on. Each conversion is
//! therefore a trait for [`ReturnType`] with a certain number of references, the preferred one with
//! the most, and `(&&&&&&&ReturnType::of(&value)).answer(value)` selects the preferred one that
//! applies.

use std::{error::Error, marker::PhantomData};

use serde::Serialize;
use toolcrib_core::{IntoToolOutput, Json, ToolError, ToolOutput};

type Outcome = Result<ToolOutput, ToolError>;
type AnyError = Box<dyn Error + Send + Sync>;

/// The type of a return value.
pub struct ReturnType<T>(PhantomData<fn() -> T>);

impl<T> ReturnType<T> {
    pub fn of(_: &T) -> Self {
        Self(PhantomData)
    }
}

/// Types that are outputs, and `Result`s of them with an error that has an error code.
pub trait Output<T> {
    fn answer(&self, value: T) -> Outcome;
}

impl<T: IntoToolOutput> Output<T> for &&&&&&ReturnType<T> {
    fn answer(&self, value: T) -> Outcome {
        value.into_tool_output()
    }
}

/// A `Result` of data.
pub trait DataOrError<T, E> {
    fn answer(&self, value: Result<T, E>) -> Outcome;
}

impl<T: Serialize, E: Into<ToolError>> DataOrError<T, E> for &&&&&ReturnType<Result<T, E>> {
    fn answer(&self, value: Result<T, E>) -> Outcome {
        value.map(Json).into_tool_output()
    }
}

/// A `Result` of an output with any type that converts to an error: a boxed one, a text. Types that
/// do not convert are selected here too, and do not compile.
pub trait OutputOrAnyError<T, E> {
    fn answer(&self, value: Result<T, E>) -> Outcome
    where
        E: ToolFailure;
}

impl<T: IntoToolOutput, E> OutputOrAnyError<T, E> for &&&&ReturnType<Result<T, E>> {
    fn answer(&self, value: Result<T, E>) -> Outcome
    where
        E: ToolFailure,
    {
        value.map_err(ToolFailure::into_tool_error)?.into_tool_output()
    }
}

/// The same for data.
pub trait DataOrAnyError<T, E> {
    fn answer(&self, value: Result<T, E>) -> Outcome
    where
        E: ToolFailure;
}

impl<T: Serialize, E> DataOrAnyError<T, E> for &&&ReturnType<Result<T, E>> {
    fn answer(&self, value: Result<T, E>) -> Outcome
    where
        E: ToolFailure,
    {
        value.map_err(ToolFailure::into_tool_error).map(Json).into_tool_output()
    }
}

/// A `Result` with any other types. It does not compile. It precedes [`Data`], which also matches
/// some of these: there a failure would look like a success.
pub trait OtherResult<T, E> {
    fn answer(&self, value: Result<T, E>) -> Outcome
    where
        T: ToolAnswer;
}

impl<T, E> OtherResult<T, E> for &&ReturnType<Result<T, E>> {
    /// Never compiled. The error's type is not looked at: a valid one would be reported, too.
    fn answer(&self, value: Result<T, E>) -> Outcome
    where
        T: ToolAnswer,
    {
        value.map_err(|_| ToolError::failed("not a tool"))?.into_output()
    }
}

/// A value that can be serialized.
pub trait Data<T> {
    fn answer(&self, value: T) -> Outcome;
}

impl<T: Serialize> Data<T> for &ReturnType<T> {
    fn answer(&self, value: T) -> Outcome {
        Json(value).into_tool_output()
    }
}

/// A value of any other type. It does not compile.
pub trait OtherValue<T> {
    fn answer(&self, value: T) -> Outcome
    where
        T: ToolAnswer;
}

impl<T> OtherValue<T> for ReturnType<T> {
    fn answer(&self, value: T) -> Outcome
    where
        T: ToolAnswer,
    {
        value.into_output()
    }
}

/// Implemented by no type, so that the compiler lists the valid return types.
#[diagnostic::on_unimplemented(
    message = "a tool cannot return `{Self}`",
    label = "neither an output nor data",
    note = "return a text, `ToolOutput`, `ContentBlock`, nothing, whatever derives \
            `serde::Serialize`, or a `Result` of these"
)]
pub trait ToolAnswer {
    fn into_output(self) -> Outcome;
}

/// Types that convert to a tool's error, besides [`ToolError`] itself.
#[diagnostic::on_unimplemented(
    message = "a tool cannot fail with `{Self}`",
    label = "not an error that a tool can return",
    note = "the error of a tool is a `ToolError`, a text, or implements `std::error::Error` and is \
            `Send + Sync + 'static`"
)]
pub trait ToolFailure {
    fn into_tool_error(self) -> ToolError;
}

#[diagnostic::do_not_recommend]
impl<E: Into<AnyError>> ToolFailure for E {
    fn into_tool_error(self) -> ToolError {
        let error = self.into();
        ToolError::failed(error.to_string()).caused_by(error)
    }
}
