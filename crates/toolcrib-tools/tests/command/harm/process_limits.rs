//! Command tools used as much as they liked, and nothing said what ended them.

use std::time::Duration;

use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::support::{call, sh};

#[tokio::test]
async fn a_model_was_not_told_which_limit_ended_a_program() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("exec head -c 10000000 /dev/zero > {}/file", folder.path().display());
    let mut spec = sh(&script, &[]);
    spec.limits.file_size = Some(1024 * 1024);
    let error = call(spec, json!({})).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::ExecutionFailed);
    let text = "`sh` was ended by SIGXFSZ: it exceeded its limit on file size";
    assert!(error.message.starts_with(text), "{}", error.message);

    let mut spec = sh("while :; do :; done", &[]);
    spec.limits.cpu_time = Some(Duration::from_secs(1));
    let error = call(spec, json!({})).await.unwrap_err();
    let text = "`sh` was ended by SIGXCPU: it exceeded its limit on CPU time";
    assert!(error.message.starts_with(text), "{}", error.message);
}
