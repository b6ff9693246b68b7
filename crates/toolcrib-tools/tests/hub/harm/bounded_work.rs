//! A catalog of many megabytes was read, cleaned and made into tools on an async worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use axum::body::Bytes;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::support::{Server, build, fetch, spec, status};

/// 50 ms is the limit on an idle machine; tests run unoptimized, beside others.
const WORST_GAP: Duration = Duration::from_secs(3);

#[tokio::test]
async fn a_catalog_of_5_000_tools_kept_the_async_worker_for_itself() {
    let fields: Value = (0..10)
        .map(|at| (format!("f{at}"), json!({"type": "string", "description": "x".repeat(200)})))
        .collect();
    let schema = json!({"type": "object", "properties": fields});
    let tools: Vec<_> = (0..5_000)
        .map(|at| json!({"name": format!("t{at}"), "description": "Is a tool.", "parameters": schema}))
        .collect();
    let page = Bytes::from(Value::from(tools).to_string());
    let server =
        Server::start(move |_| status(200, &[("content-type", "application/json")], page.clone()))
            .await;
    let hub = build(spec(&server, "/tools"));

    let worst = Arc::new(AtomicU64::new(0));
    let beat = tokio::spawn({
        let worst = Arc::clone(&worst);
        async move {
            loop {
                let began = Instant::now();
                sleep(Duration::from_millis(5)).await;
                let gap = u64::try_from(began.elapsed().as_millis()).unwrap();
                worst.fetch_max(gap, Ordering::Relaxed);
            }
        }
    });
    let catalog = fetch(&hub).await.unwrap();
    // The beat that was late comes before this.
    sleep(Duration::from_millis(10)).await;
    beat.abort();
    assert_eq!(catalog.offered().len(), 5_000);
    let gap = Duration::from_millis(worst.load(Ordering::Relaxed));
    assert!(gap < WORST_GAP, "{gap:?}");
}
