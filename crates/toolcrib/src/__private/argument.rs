//! Argument types of tools.
//!
//! serde and schemars have many trait bounds, and the compiler would report each missing one.
//! Method lookup detects an invalid type instead: it skips [`ArgumentType::value`] if its bounds are
//! not met and finds [`InvalidArgument::value`]. Only that fails to compile, and its type satisfies
//! all other bounds.

use std::{borrow::Cow, convert::Infallible, marker::PhantomData, ops::Deref};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error as _};
use toolcrib_core::{IntoToolOutput, Tool, ToolBuilder, ToolContext};

/// The type of one argument, or of all.
pub struct ArgumentType<T>(InvalidArgument<T>);

impl<T> ArgumentType<T> {
    pub fn of() -> Self {
        Self(InvalidArgument(PhantomData))
    }
}

impl<T: DeserializeOwned + JsonSchema> ArgumentType<T> {
    /// Never called; only its type matters.
    pub fn value(&self, never: Infallible) -> T {
        match never {}
    }
}

impl<T> Deref for ArgumentType<T> {
    type Target = InvalidArgument<T>;

    fn deref(&self) -> &InvalidArgument<T> {
        &self.0
    }
}

/// An invalid argument type.
pub struct InvalidArgument<T>(PhantomData<fn(T)>);

impl<T> InvalidArgument<T> {
    /// A method that is never compiled.
    pub fn value(&self, never: Infallible) -> NoArgument<T>
    where
        T: Argument,
    {
        match never {}
    }
}

/// Implemented by no type, so that the compiler describes the valid argument types.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not both `serde::Deserialize` and `schemars::JsonSchema`",
    note = "derive both before a type of your own: `#[derive(serde::Deserialize, \
            schemars::JsonSchema)]`, with `use toolcrib::prelude::*;` or `use toolcrib::schemars;` \
            above"
)]
pub trait Argument {}

/// Replaces a value of an invalid argument type.
pub struct NoArgument<T>(Infallible, PhantomData<fn(T)>);

impl<'de, T> Deserialize<'de> for NoArgument<T> {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("no argument"))
    }
}

impl<T> JsonSchema for NoArgument<T> {
    fn schema_name() -> Cow<'static, str> {
        "NoArgument".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        false.into()
    }
}

/// Converts the deserialized value to the function's parameter type, which is the same.
pub trait Give<T> {
    fn give(self) -> T;
}

impl<T> Give<T> for T {
    fn give(self) -> T {
        self
    }
}

impl<T> Give<T> for NoArgument<T> {
    fn give(self) -> T {
        match self.0 {}
    }
}

/// A value of any type. Never called: equivalent to `match never {}`, in places where the compiler
/// would warn about unreachable code.
pub fn any<T>(never: Infallible) -> T {
    match never {}
}

/// The type of all arguments, inferred from the function that would make them.
pub struct Arguments<A>(PhantomData<fn(A)>);

impl<A> Arguments<A> {
    pub fn of(_: impl FnOnce(Infallible) -> A) -> Self {
        Self(PhantomData)
    }
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Arguments<A> {
    /// Calls the builder's method with this name.
    pub fn handler<F, Fut>(self, builder: ToolBuilder, function: F) -> Tool
    where
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoToolOutput,
    {
        Tool::declared(builder.input_schema(super::schema::<A>()).handler(function))
    }

    /// Calls the builder's method with this name.
    pub fn blocking<F, T>(self, builder: ToolBuilder, function: F) -> Tool
    where
        F: Fn(A, ToolContext) -> T + Send + Sync + 'static,
        T: IntoToolOutput + 'static,
    {
        Tool::declared(builder.input_schema(super::schema::<A>()).blocking(function))
    }
}
