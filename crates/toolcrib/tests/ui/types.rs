//! Errors of rustc about types, at the place of the type.
#![allow(unused, reason = "only what the compiler says of the mistakes counts")]

use std::{cell::Cell, rc::Rc};

use toolcrib::{Args, State, tool};

struct Opaque;

/// Takes a type that is not data.
#[tool]
fn takes(order: u32, item: Opaque) {}

/// Takes it inside another type.
#[tool]
fn takes_inside(list: Vec<Opaque>, item: Option<Opaque>) {}

/// Takes it as all arguments.
#[tool]
async fn takes_all(Args(item): Args<Opaque>) {}

/// Has a state that cannot be cloned.
#[tool]
async fn holds(State(item): State<Opaque>, order: u32) {}

/// Has a state that cannot be shared.
#[tool]
fn holds_alone(State(item): State<Rc<u8>>) {}

/// Returns a type that is not data.
#[tool]
async fn gives(order: u32) -> Opaque {
    Opaque
}

/// Returns a list of a type that is not data.
#[tool]
fn gives_list() -> Vec<Opaque> {
    vec![]
}

/// Returns a result of a type that is not data.
#[tool]
fn gives_result() -> Result<Opaque, std::io::Error> {
    Ok(Opaque)
}

/// Returns JSON of a type that is not data, or the error of a tool.
#[tool]
fn gives_json() -> Result<toolcrib::Json<Opaque>, toolcrib::ToolError> {
    Ok(toolcrib::Json(Opaque))
}

/// Fails with a type that is not an error.
#[tool]
async fn fails(order: u32) -> Result<u32, Opaque> {
    Ok(order)
}

/// Fails with a number.
#[tool]
fn fails_with_a_number() -> Result<String, u32> {
    Err(1)
}

/// Awaits while it owns a value that is not `Send`.
#[tool]
async fn not_send(order: u32) -> u32 {
    let count = Rc::new(Cell::new(order));
    std::future::ready(()).await;
    count.get()
}

struct Desk;

impl Desk {
    /// Without a desk.
    #[tool]
    fn detached() {}
}

fn is_tool(tool: impl toolcrib::tool::IntoTool) {}

fn is_model(model: impl toolcrib::models::Model) {}

fn main() {
    is_tool(takes);
    is_tool(takes_tool);
    is_model(std::sync::Arc::new(Opaque));
    is_model("openai:gpt-5-mini");
}
