//! Faults of servers and networks. In any case a response ends: with a whole or an error of the
//! right class, within its time, without a panic, and no piece of text comes twice.

mod connections;
mod cuts;
mod floods;
mod going_away;
mod keys;
mod oddities;
mod redirects;
mod refusals;
mod repeats;
mod silence;
mod tags;
pub(crate) mod wire;
mod wrong_answers;

use std::{future::Future, sync::Arc, time::Duration};

use toolcrib_core::{Message, ModelErrorClass, ModelRequest, ModelResponse, Secret};
use toolcrib_models::{Vendor, VendorModel, VendorModelBuilder};
use toolcrib_testbed::{CannedServer, Reply};

use self::wire::Answer;
use crate::support::{ReceivedAnswer, ask, request};

const KEY: &str = "sk-proj-Zq7Wm2Rt9Kx4Lp8Vn3Bc6Yd1Hs5";

/// A time longer than any test takes, on the slowest machine.
const HANGS: Duration = Duration::from_secs(300);

/// A wait that models here do not reach, while nothing hangs.
const LONG: Duration = Duration::from_secs(600);

fn builder(url: &str, vendor: Vendor) -> VendorModelBuilder {
    let version = if vendor == Vendor::OpenAi { "/v1" } else { "" };
    VendorModel::builder(vendor, "test-model")
        .base_url(format!("{url}{version}"))
        .key(Secret::new(KEY))
        .idle_timeout(LONG)
        .timeout(LONG)
}

pub(crate) fn model(server: &CannedServer, vendor: Vendor) -> Arc<VendorModel> {
    Arc::new(builder(&server.url(), vendor).build().unwrap())
}

fn hello() -> ModelRequest {
    request(vec![Message::user("Hello.")], Vec::new())
}

/// The result, if it ends.
async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANGS, future).await.expect("it hangs")
}

/// Reads a response, and checks the properties of every response.
pub(crate) async fn hear(model: &Arc<VendorModel>) -> ReceivedAnswer {
    let heard = in_time(ask(model, hello())).await;
    match &heard.outcome {
        Ok(response) => assert_eq!(response.text, heard.text, "the pieces are the text"),
        Err(error) => {
            let shown = format!("{error} {error:?}");
            assert!(shown.len() < 8_000, "an error of {} bytes", shown.len());
            assert_eq!(shown_part(&shown), None, "the key: {shown}");
        }
    }
    heard
}

/// The result for a server that gives one reply.
async fn heard_of(vendor: Vendor, reply: Reply) -> ReceivedAnswer {
    let server = CannedServer::start([reply]).await.unwrap();
    hear(&model(&server, vendor)).await
}

/// A whole stream, as one piece.
fn streamed(vendor: Vendor, frames: &[String]) -> Reply {
    wire::reply(vendor).piece(frames.concat())
}

async fn answered(vendor: Vendor, frames: &[String]) -> ModelResponse {
    let heard = heard_of(vendor, streamed(vendor, frames)).await;
    heard.outcome.unwrap_or_else(|error| panic!("{vendor}: {error}"))
}

#[track_caller]
fn class(heard: &ReceivedAnswer) -> ModelErrorClass {
    heard.outcome.as_ref().expect_err("no answer").class
}

/// A part of the key in a text, in any case.
fn shown_part(text: &str) -> Option<&'static str> {
    let text = text.to_ascii_lowercase();
    (0..=KEY.len() - 8)
        .map(|at| &KEY[at..at + 8])
        .find(|part| text.contains(&part.to_ascii_lowercase()))
}
