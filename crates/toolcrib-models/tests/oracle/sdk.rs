//! The vendors' SDKs, each in a separate process that plays one conversation after the other.

use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};
use toolcrib_skip::skip;

use super::{
    api::Api,
    case::{Case, folder},
    ours::MAX_TOKENS,
};

/// The variable with the Python that has the SDKs, set by `cargo xtask`.
const PYTHON: &str = "TOOLCRIB_ORACLE_PYTHON";

pub(crate) struct Sdk {
    child: Child,
    jobs: Option<ChildStdin>,
    outcomes: BufReader<ChildStdout>,
}

impl Sdk {
    /// Starts a vendor's SDK with its base URL; `None` if it is not installed: the test is
    /// skipped.
    pub(crate) fn start(api: Api, base_url: &str) -> Option<Self> {
        let Some(python) = env::var_os(PYTHON) else {
            skip("the vendors' SDKs are not installed; run `cargo xtask oracle`");
            return None;
        };
        let mut child = Command::new(&python)
            // Isolated, and without bytecode left beside the sources.
            .arg("-IB")
            .arg(folder("sdk"))
            .args([api.as_str(), base_url])
            // The environment's keys, base URLs and proxies must not affect it.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| {
                panic!("{PYTHON}={} cannot be started: {error}", python.display())
            });
        let jobs = child.stdin.take();
        let outcomes = BufReader::new(child.stdout.take().unwrap());
        Some(Self { child, jobs, outcomes })
    }

    /// Plays a conversation; returns the result of each request.
    pub(crate) fn hold(&mut self, case: &Case, model: &str) -> Vec<Value> {
        let job = json!({
            "case": case.json,
            "model": model,
            "max_tokens": MAX_TOKENS,
        });
        writeln!(self.jobs.as_mut().unwrap(), "{job}").expect("the SDK's process has ended");
        let mut line = String::new();
        self.outcomes.read_line(&mut line).unwrap();
        serde_json::from_str(&line)
            .unwrap_or_else(|_| panic!("the SDK's process failed at `{}`; see above", case.name))
    }
}

impl Drop for Sdk {
    fn drop(&mut self) {
        // The end of its input is the end of its work.
        drop(self.jobs.take());
        let _ = self.child.wait();
    }
}
