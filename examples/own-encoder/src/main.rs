//! An encoder of your own for the tool search. This one compares parts of words, so that other forms and
//! other spellings of a word find its tool; yours may ask an embedding model. The guide is
//! `docs/tool-search.md`.
//!
//! `cargo run -p example-own-encoder` prints what a search finds without and with it.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::{error::Error, sync::Arc};

use serde_json::{Value, json};
use toolcrib::{
    engine::{Deferral, Encoder, SEARCH_TOOLS},
    prelude::*,
};

/// Counts of four letters in a row, each at the place that its hash names.
struct Letters;

const LENGTH: u32 = 512;

impl Encoder for Letters {
    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        let vector = |text: &&str| {
            let mut counts = vec![0.0; LENGTH as usize];
            let letters: Vec<char> = text.to_lowercase().chars().collect();
            for four in letters.windows(4) {
                let hash = four.iter().fold(0_u32, |hash, letter| {
                    hash.wrapping_mul(31).wrapping_add(u32::from(*letter))
                });
                let place = usize::try_from(hash % LENGTH)?;
                if let Some(count) = counts.get_mut(place) {
                    *count += 1.0;
                }
            }
            Ok(counts)
        };
        texts.iter().map(vector).collect()
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let words = Deferral::new().above(0);
    let both = words.clone().encoder(Arc::new(Letters), 0.5);
    for (name, deferral) in [("words", words), ("words and encoder", both)] {
        let tool = |name: &str, description: &str| {
            let tool = Tool::builder(name).description(description);
            tool.handler(|_: Value, _: ToolContext| async { "done" })
        };
        let engine = Engine::builder()
            .tool(tool("resize_image", "Makes photographs smaller."))
            .tool(tool("find_order", "Looks up an order by its number."))
            .defer(deferral)
            .build()?;
        let mut turn = engine.turn(TurnOptions::default())?;
        let search = ToolCall::new("call_1", SEARCH_TOOLS, json!({ "needs": ["photography"] }));
        for result in turn.iteration().await?.execute(vec![search]).await {
            println!("{name}: {}", result.value);
        }
    }
    Ok(())
}
