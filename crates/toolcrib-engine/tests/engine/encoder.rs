//! An encoder of the host beside the words of a search.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use serde_json::{Value, json};
use toolcrib_core::{EventKind, ToolResult};
use toolcrib_engine::{Deferral, Encoder, Engine, SEARCH_TOOLS};

use crate::support::{Log, builder, engine, once, says};

/// Knows that money and cash are the same. Counts the texts.
#[derive(Default)]
struct Known(AtomicUsize);

impl Encoder for Known {
    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        self.0.fetch_add(texts.len(), Ordering::Relaxed);
        let is_of_money = |text: &&str| text.contains("money") || text.contains("dough");
        let one_or_other = |is: bool| if is { vec![1.0, 0.0] } else { vec![0.0, 1.0] };
        Ok(texts.iter().map(|text| one_or_other(is_of_money(text))).collect())
    }
}

struct Broken;

impl Encoder for Broken {
    fn encode(&self, _texts: &[&str]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        Err("no connection".into())
    }
}

/// Returns vectors of several lengths.
struct Uneven;

impl Encoder for Uneven {
    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, Box<dyn Error + Send + Sync>> {
        Ok(texts.iter().map(|text| vec![1.0; text.len()]).collect())
    }
}

fn desk(deferral: Deferral) -> Engine {
    let deferred = |name, text| says(builder(name).description(text).deferred(true), "ran");
    engine()
        .tools([
            deferred("refund_payment", "Returns the money of a charge."),
            deferred("find_order", "Looks up an order by its number."),
        ])
        .defer(deferral)
        .build()
        .unwrap()
}

fn names(result: &ToolResult) -> Vec<Vec<String>> {
    let found: Value = serde_json::from_str(&result.value).unwrap();
    let lists = found["found"].as_array().unwrap().iter();
    let names = |list: &Value| {
        let tools = list["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    lists.map(names).collect()
}

async fn search(engine: &Engine, needs: &[&str]) -> Vec<Vec<String>> {
    names(&once(engine, SEARCH_TOOLS, json!({ "needs": needs })).await)
}

#[tokio::test]
async fn an_encoder_finds_a_tool_without_a_common_word_and_reads_each_tool_once() {
    let need = ["dough"];
    assert_eq!(search(&desk(Deferral::new()), &need).await, [Vec::<String>::new()]);
    let encoder = Arc::new(Known::default());
    let engine = desk(Deferral::new().encoder(encoder.clone(), 0.5));
    for _ in 0..2 {
        assert_eq!(search(&engine, &need).await, [["refund_payment"]]);
    }
    // Two tools, and the need of each search.
    assert_eq!(encoder.0.load(Ordering::Relaxed), 4);
    // The words count as well.
    assert_eq!(search(&engine, &["dough order"]).await, [["find_order", "refund_payment"]]);
}

#[tokio::test]
async fn a_search_whose_encoder_fails_counts_the_words_and_reports_why() {
    let broken: [(Arc<dyn Encoder>, &str); 2] = [
        (Arc::new(Broken), "the encoder failed: no connection"),
        (Arc::new(Uneven), "the vectors of the encoder differ in length"),
    ];
    for (encoder, expected) in broken {
        let engine = desk(Deferral::new().encoder(encoder, 0.5));
        let log = Log::of(engine.events());
        let needs = ["find an order", "refund"];
        assert_eq!(search(&engine, &needs).await, [["find_order"], ["refund_payment"]]);
        let reported = log.events().iter().find_map(|event| match &event.kind {
            EventKind::ToolsSearched { encoder_error, .. } => encoder_error.clone(),
            _ => None,
        });
        assert_eq!(reported.as_deref(), Some(expected));
    }
}
