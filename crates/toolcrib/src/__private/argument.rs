//! What a tool can take.
//!
//! serde and schemars ask much of a type, and the compiler would complain of each thing that it
//! cannot do. So a type that is no argument is told apart by method lookup, which passes over
//! [`Taken::value`] where its bounds do not hold and finds [`NotTaken::value`]: that one alone does
//! not compile, and has a type with which all the rest does.

use std::{borrow::Cow, convert::Infallible, marker::PhantomData, ops::Deref};

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, de::DeserializeOwned, de::Error as _};
use toolcrib_core::{IntoToolOutput, InvalidTool, Tool, ToolBuilder, ToolContext};

/// The type of one argument, or of all.
pub struct Taken<T>(NotTaken<T>);

impl<T> Taken<T> {
    pub fn of() -> Self {
        Self(NotTaken(PhantomData))
    }
}

impl<T: DeserializeOwned + JsonSchema> Taken<T> {
    /// Never called; what counts is the type.
    pub fn value(&self, never: Infallible) -> T {
        match never {}
    }
}

impl<T> Deref for Taken<T> {
    type Target = NotTaken<T>;

    fn deref(&self) -> &NotTaken<T> {
        &self.0
    }
}

/// A type that is no argument.
pub struct NotTaken<T>(PhantomData<fn(T)>);

impl<T> NotTaken<T> {
    /// Never compiled.
    pub fn value(&self, never: Infallible) -> NoArgument<T>
    where
        T: Argument,
    {
        match never {}
    }
}

/// What nothing is, so that the compiler says what an argument can be.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a tool",
    label = "not both `serde::Deserialize` and `schemars::JsonSchema`",
    note = "derive both before a type of your own: `#[derive(serde::Deserialize, \
            schemars::JsonSchema)]`, with `use toolcrib::prelude::*;` or `use toolcrib::schemars;` \
            above"
)]
pub trait Argument {}

/// Stands for a value of a type that is no argument.
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

/// From what is deserialised to what the function takes, which is the same.
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

/// A value of any type. Never called: what `match never {}` is, in a place where the compiler would
/// see and say that nothing gets behind it.
pub fn any<T>(never: Infallible) -> T {
    match never {}
}

/// The type of all arguments, as the function that would make them says it.
pub struct Arguments<A>(PhantomData<fn(A)>);

impl<A> Arguments<A> {
    pub fn of(_: impl FnOnce(Infallible) -> A) -> Self {
        Self(PhantomData)
    }
}

impl<A: DeserializeOwned + JsonSchema + Send + 'static> Arguments<A> {
    /// Ends with the builder's method of that name.
    pub fn handler<F, Fut>(self, builder: ToolBuilder, function: F) -> Result<Tool, InvalidTool>
    where
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future + Send + 'static,
        Fut::Output: IntoToolOutput,
    {
        builder.input_schema(super::schema::<A>()).handler(function)
    }

    /// Ends with the builder's method of that name.
    pub fn blocking<F, T>(self, builder: ToolBuilder, function: F) -> Result<Tool, InvalidTool>
    where
        F: Fn(A, ToolContext) -> T + Send + Sync + 'static,
        T: IntoToolOutput + 'static,
    {
        builder.input_schema(super::schema::<A>()).blocking(function)
    }
}
