//! Lists of many megabytes were read, cleaned and made into tools on an async worker.

use std::time::Duration;

use toolcrib_clock::{ProcessorTime, measured};
use toolcrib_core::Tool;
use toolcrib_mcp::{McpClient, mcp_client, server::Stdio};

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/fixtures/large.py");

/// 50 ms of processor time is the limit in an optimized build; tests are not optimized.
const WORST_GAP: Duration = Duration::from_secs(3);

/// A time longer than a list takes, on the slowest machine.
const HANGS: Duration = Duration::from_secs(300);

pub(super) fn server(args: &[&str]) -> Stdio {
    let server = Stdio::new("python3").arg(SERVER).allow_stray_children();
    args.iter().fold(server, |server, arg| server.arg(*arg))
}

/// What a server lists, and the longest time for which nothing else could run on the only async worker.
fn listed(kind: &str) -> (Vec<Tool>, usize, Duration) {
    let ((tools, withheld), ProcessorTime { longest_gap, .. }) = measured(async {
        let client = mcp_client("large", server(&[kind])).start_timeout(HANGS).list_timeout(HANGS);
        let client: McpClient = client.build().unwrap();
        let tools = client.tools().await.unwrap();
        let withheld = client.catalog().await.unwrap().withheld_by_provider().len();
        client.close().await;
        (tools, withheld)
    });
    (tools, withheld, longest_gap)
}

#[test]
fn a_list_of_5_000_tools_kept_the_async_worker_for_itself() {
    let (tools, _, gap) = listed("tools");
    assert_eq!(tools.len(), 5_000);
    assert!(gap < WORST_GAP, "{gap:?}");
}

#[test]
fn one_schema_of_many_megabytes_kept_the_async_worker_for_itself() {
    let (tools, held, gap) = listed("schema");
    assert_eq!((tools.len(), held), (0, 1));
    assert!(gap < WORST_GAP, "{gap:?}");
}
