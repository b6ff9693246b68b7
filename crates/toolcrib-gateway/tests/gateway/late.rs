//! A server that hangs at its start costs one wait, and is announced once it is ready.

use serde_json::{Value, json};
use tokio::time::{Duration, sleep};
use toolcrib_engine::OnFailure;

use super::{
    asks::{End, client, gateway_with},
    support::engine,
};

const LISTS: [&str; 3] = ["tools/list", "prompts/list", "resources/list"];

/// The answer to a request; notifications before it are skipped.
async fn ask(client: &mut End, id: u32, method: &str) -> Value {
    client.send(json!({ "id": id, "method": method, "params": {} })).await;
    loop {
        let message = client.read().await;
        if message["id"] == id {
            return message;
        }
    }
}

/// Answers everything that a late server is asked, up to a request for its prompts.
pub(super) async fn wake(server: &mut End) {
    loop {
        let message = server.heard().await;
        let result = match message["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": {}, "prompts": {}, "resources": {} },
                "serverInfo": { "name": "s", "version": "1" },
                "instructions": "Work slowly.",
            }),
            Some("prompts/list") => {
                let list = json!({ "prompts": [{ "name": "late" }] });
                return server.answer(&message, list).await;
            }
            Some("resources/list") => json!({ "resources": [] }),
            _ => continue,
        };
        server.answer(&message, result).await;
    }
}

/// The clock stands still while anything is to be done, so the order is that of the waits.
#[tokio::test(start_paused = true)]
async fn a_hanging_server_cost_one_wait_for_each_list_again_and_again() {
    let (gateway, mut connections) = gateway_with(engine(), OnFailure::Omit);
    let second_wait = tokio::spawn(sleep(Duration::from_secs(6)));
    let mut client = client(&gateway, &json!({})).await;
    for (id, method) in (10..).zip(LISTS.repeat(3)) {
        let answer = ask(&mut client, id, method).await;
        assert!(answer["result"].is_object(), "{answer}");
        assert!(!second_wait.is_finished(), "{method} waited once more");
    }
    let mut server = connections.recv().await.unwrap();
    let serving = tokio::spawn(async move {
        wake(&mut server).await;
        server
    });
    // What comes later is announced.
    let mut announced = Vec::new();
    while announced.len() < 4 {
        let message = client.read().await;
        if let Some("notifications/message") = message["method"].as_str() {
            assert_eq!(
                (&message["params"]["level"], &message["params"]["logger"]),
                (&json!("info"), &json!("s"))
            );
            assert!(
                message["params"]["data"].as_str().unwrap().contains("Work slowly."),
                "{message}"
            );
        }
        announced.push(message["method"].as_str().unwrap().to_owned());
        if announced.last().unwrap() == "notifications/prompts/list_changed" {
            client.send(json!({ "id": 90, "method": "prompts/list", "params": {} })).await;
            let prompts = loop {
                let message = client.read().await;
                if message["id"] == 90 {
                    break message;
                }
                announced.push(message["method"].as_str().unwrap().to_owned());
            };
            assert_eq!(prompts["result"]["prompts"][0]["name"], "mcp__s__late", "{prompts}");
        }
    }
    announced.sort();
    assert_eq!(
        announced,
        [
            "notifications/message",
            "notifications/prompts/list_changed",
            "notifications/resources/list_changed",
            "notifications/tools/list_changed",
        ]
    );
    drop(serving.await.unwrap());
}
