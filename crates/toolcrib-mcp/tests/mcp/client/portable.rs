//! A build without Unix-only calls.

use toolcrib_mcp::{mcp_client, server::Stdio};

#[tokio::test]
async fn a_program_that_could_leave_processes_is_not_started() {
    for program in [Stdio::new("/bin/sh"), Stdio::new("/bin/sh").allow_stray_children()] {
        let client = mcp_client("s", program).build().unwrap();
        let error = client.tools().await.unwrap_err().to_string();
        assert!(error.contains("this build is portable and starts no programs"), "{error}");
        client.close().await;
    }
}
