//! Errors in parameters.
#![allow(unused, reason = "only what the compiler says of the mistakes counts")]

use toolcrib::{Args, State, ToolContext, tool};

#[derive(serde::Deserialize, toolcrib::schemars::JsonSchema)]
#[schemars(crate = "toolcrib::schemars")]
struct Query {
    words: String,
}

/// Borrows.
#[tool]
fn borrows(text: &str, list: &[u8], number: &u32, inner: Option<&'static str>) {}

/// Borrows by a lifetime.
#[tool]
fn lifetime(text: std::borrow::Cow<'static, str>) {}

/// Takes a pattern.
#[tool]
fn pattern((left, right): (u8, u8), _: u8) {}

/// Takes something.
#[tool]
fn something(item: impl Into<String>) {}

/// Takes all twice.
#[tool]
fn all_twice(Args(one): Args<Query>, Args(other): Args<Query>) {}

/// Takes all, and more.
#[tool]
fn all_and_more(Args(query): Args<Query>, page: u32) {}

/// Takes its context twice.
#[tool]
async fn two_contexts(cx: ToolContext, again: ToolContext) {}

/// Borrows its context.
#[tool]
async fn borrowed_context(cx: &ToolContext) {}

/// Describes what is in no schema.
#[tool]
async fn no_field(#[serde(default)] cx: ToolContext, #[serde(default)] State(size): State<u8>) {}

/// Flattens.
#[tool]
fn flat(#[serde(flatten)] query: Query) {}

struct Desk;

impl Desk {
    /// Takes another of its kind.
    #[tool]
    fn beside(&self, other: Option<Self>) {}
}

fn main() {}
