//! Errors in the item under the attribute.
#![allow(unused, reason = "only what the compiler says of the mistakes counts")]

use toolcrib::tool;

#[tool]
async fn undescribed(order: u32) -> u32 {
    order
}

///
#[tool]
fn blank() {}

/// Not a function.
#[tool]
struct Order;

/// Its name is invalid for a model.
#[tool]
fn größe() {}

/// Generic.
#[tool]
fn generic<T>(item: T) {}

/// With a lifetime.
#[tool]
fn borrowing<'a>(text: &'a str) -> &'a str {
    text
}

/// Const.
#[tool]
const fn constant() {}

/// Unsafe.
#[tool]
unsafe fn reckless() {}

/// Of another language.
#[tool]
extern "C" fn foreign() {}

struct Desk;

impl Desk {
    /// Takes it away.
    #[tool]
    fn consume(self) {}

    /// Alone has it.
    #[tool]
    fn change(&mut self) {}

    /// Its `Arc`.
    #[tool]
    async fn shared(self: std::sync::Arc<Self>) {}
}

#[tool]
impl Desk {
    /// Needs no desk.
    #[tool]
    fn detached() {}

    /// Made with something.
    #[tool]
    fn made_with(&self, toolcrib::State(size): toolcrib::State<u8>) {}
}

#[tool(read_only)]
impl Desk {
    /// No tool.
    fn clean(&self) {}
}

#[tool]
impl Default for Desk {
    /// A new one.
    #[tool]
    fn default() -> Self {
        Self
    }
}

fn main() {}
