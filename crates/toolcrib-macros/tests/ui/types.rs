//! What rustc says of types, at the place of the type.
#![allow(unused, reason = "only what the compiler says of the mistakes counts")]

use std::{cell::Cell, rc::Rc};

use toolcrib::{Args, State, tool};

struct Opaque;

/// Takes what is no data.
#[tool]
fn takes(order: u32, item: Opaque) {}

/// Takes it inside something else.
#[tool]
fn takes_inside(list: Vec<Opaque>, item: Option<Opaque>) {}

/// Takes it as all arguments.
#[tool]
async fn takes_all(Args(item): Args<Opaque>) {}

/// Holds what cannot be cloned.
#[tool]
async fn holds(State(item): State<Opaque>, order: u32) {}

/// Holds what cannot be shared.
#[tool]
fn holds_alone(State(item): State<Rc<u8>>) {}

/// Gives back what is no data.
#[tool]
async fn gives(order: u32) -> Opaque {
    Opaque
}

/// Gives back a list of what is no data.
#[tool]
fn gives_list() -> Vec<Opaque> {
    vec![]
}

/// Gives back a result of what is no data.
#[tool]
fn gives_result() -> Result<Opaque, std::io::Error> {
    Ok(Opaque)
}

/// Fails with what is no error.
#[tool]
async fn fails(order: u32) -> Result<u32, Opaque> {
    Ok(order)
}

/// Fails with a number.
#[tool]
fn fails_with_a_number() -> Result<String, u32> {
    Err(1)
}

/// Waits with something in its hand that no other thread may touch.
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

fn is_tool(tool: impl toolcrib::IntoTool) {}

fn main() {
    is_tool(takes);
    is_tool(takes_tool);
}
