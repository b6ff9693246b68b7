//! Lists of many megabytes were read, cleaned and made into tools on an async worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::time::sleep;
use toolcrib_core::Tool;
use toolcrib_mcp::{McpClient, mcp_client, server::Stdio};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/fixtures/large.py");

/// 50 ms is the limit on an idle machine; tests run unoptimized, beside others.
const WORST_GAP: Duration = Duration::from_secs(3);

pub(super) fn server(args: &[&str]) -> Stdio {
    let server = Stdio::new("python3").arg(SERVER).allow_stray_children();
    args.iter().fold(server, |server, arg| server.arg(*arg))
}

/// What a server lists, and the longest time for which nothing else ran on the only async worker.
async fn listed(kind: &str) -> (Vec<Tool>, usize, Duration) {
    let client: McpClient = mcp_client("large", server(&[kind])).build().unwrap();
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
    let tools = client.tools().await.unwrap();
    let held = client.catalog().await.unwrap().withheld_by_provider().len();
    client.close().await;
    // The beat that was late comes before this.
    sleep(Duration::from_millis(10)).await;
    beat.abort();
    (tools, held, Duration::from_millis(worst.load(Ordering::Relaxed)))
}

#[tokio::test]
async fn a_list_of_5_000_tools_kept_the_async_worker_for_itself() {
    let (tools, _, gap) = listed("tools").await;
    assert_eq!(tools.len(), 5_000);
    assert!(gap < WORST_GAP, "{gap:?}");
}

#[tokio::test]
async fn one_schema_of_many_megabytes_kept_the_async_worker_for_itself() {
    let (tools, held, gap) = listed("schema").await;
    assert_eq!((tools.len(), held), (0, 1));
    assert!(gap < WORST_GAP, "{gap:?}");
}
