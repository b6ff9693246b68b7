//! Tools with state: methods of a type, or functions that are made with a value.
//!
//! `cargo run -p example-stateful-tool` makes four calls and prints what a model would read.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use toolcrib::prelude::*;

/// A shopping cart. All its tools share it.
#[derive(Default)]
struct Cart {
    items: Mutex<BTreeMap<String, u32>>,
}

impl Cart {
    /// Puts an article into the cart.
    #[tool]
    async fn add_to_cart(
        &self,
        /// The article's name.
        article: String,
        /// How many; one unless given.
        pieces: Option<u32>,
    ) -> Result<String, ToolError> {
        let pieces = pieces.unwrap_or(1);
        if pieces == 0 {
            return Err(err("nothing to add: `pieces` must be at least 1"));
        }
        let mut items = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let count = items.entry(article.clone()).or_default();
        *count = count.saturating_add(pieces);
        Ok(format!("{count} of {article} in the cart"))
    }

    /// All that is in the cart.
    #[tool(read_only)]
    async fn show_cart(&self) -> BTreeMap<String, u32> {
        // A value that can be serialized is the structured answer; the model reads it as JSON.
        self.items.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A price list, as a client of a shop would be: cheap to clone, and handed to the tool when the
/// tool is made.
#[derive(Clone)]
struct Prices(Arc<BTreeMap<&'static str, u32>>);

/// The price of an article, in cents.
#[tool(read_only)]
async fn price(State(prices): State<Prices>, article: String) -> Result<String, ToolError> {
    let cents = prices.0.get(article.as_str());
    let cents = cents.ok_or_else(|| err(format!("no article is called {article}")))?;
    Ok(format!("{cents} cents"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let cart = Arc::new(Cart::default());
    let prices = Prices(Arc::new(BTreeMap::from([("tea", 450), ("milk", 120)])));
    let engine = Engine::builder()
        .tool(cart.add_to_cart_tool())
        .tool(cart.show_cart_tool())
        .tool(price_tool(prices))
        .build()?;

    let mut turn = engine.turn(TurnOptions::default())?;
    for (name, args) in [
        ("price", r#"{ "article": "tea" }"#),
        ("add_to_cart", r#"{ "article": "tea", "pieces": 2 }"#),
        ("add_to_cart", r#"{ "article": "tea", "pieces": 0 }"#),
        ("show_cart", "{}"),
    ] {
        let mut iteration = turn.iteration().await?;
        for result in iteration.execute(vec![ToolCall::unparsed("call", name, args)]).await {
            println!("{name} {args}\n  {}", result.text);
        }
    }
    Ok(())
}
