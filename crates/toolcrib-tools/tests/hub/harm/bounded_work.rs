//! A catalog of many megabytes was read, cleaned and made into tools on an async worker.

use std::time::Duration;

use axum::body::Bytes;
use serde_json::{Value, json};
use toolcrib_clock::measured;
use toolcrib_tools::hub::HubSpec;

use crate::support::{Server, build, fetch, spec, status};

/// 50 ms of processor time is the limit in an optimized build; tests are not optimized.
const WORST_GAP: Duration = Duration::from_secs(3);

/// A time longer than a page takes, on the slowest machine.
const HANGS: Duration = Duration::from_secs(300);

#[test]
fn a_catalog_of_5_000_tools_kept_the_async_worker_for_itself() {
    let fields: Value = (0..10)
        .map(|at| (format!("f{at}"), json!({"type": "string", "description": "x".repeat(200)})))
        .collect();
    let schema = json!({"type": "object", "properties": fields});
    let tools: Vec<_> = (0..5_000)
        .map(|at| json!({"name": format!("t{at}"), "description": "Is a tool.", "parameters": schema}))
        .collect();
    let page = Bytes::from(Value::from(tools).to_string());
    let (catalog, time) = measured(async {
        let server = Server::start(move |_| {
            status(200, &[("content-type", "application/json")], page.clone())
        });
        let server = server.await;
        let spec = HubSpec { timeout: HANGS, ..spec(&server, "/tools") };
        fetch(&build(spec)).await.unwrap()
    });
    assert_eq!(catalog.offered().len(), 5_000);
    assert!(time.longest_gap < WORST_GAP, "{time:?}");
}
