//! The measurements in separate processes.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Instant,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use toolcrib_artifacts::{ARTIFACT_QUERY, ARTIFACT_READ, ARTIFACT_SEARCH, ArtifactSource};
use toolcrib_benches::{Outcome, micros, peak_rss, runtime};
use toolcrib_core::{Redact, Tool, ToolContext, ToolContextParts};
use toolcrib_engine::Redactor;

use crate::contents::{ID, Numbers, log, turn};

/// One measurement, in a folder of artifacts.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Role {
    /// Writes a log of `bytes` bytes.
    Write { folder: PathBuf, bytes: u64, redacts: bool },
    /// Searches, with the tool.
    Search { folder: PathBuf, pattern: String, flags: String },
    /// Reads `count` ranges, with the tool: twenty lines each, or two thousand bytes.
    Ranges { folder: PathBuf, count: usize, lines: bool },
    /// Queries, with the tool.
    Query { folder: PathBuf, query: String, args: Value },
}

/// The results of a process.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The time of each operation, in microseconds.
    pub(crate) times: Vec<f64>,
    /// The peak memory of the process, in MiB.
    pub(crate) peak_rss: f64,
    /// The last answer, or the error.
    pub(crate) answer: Result<String, String>,
}

impl Role {
    pub(crate) fn run(self) -> Outcome<Found> {
        match self {
            Self::Write { folder, bytes, redacts } => {
                let redactor = Redactor::new(["a secret that is nowhere".to_owned()]);
                let redact = redacts.then(|| Arc::new(redactor) as Arc<dyn Redact>);
                let began = Instant::now();
                let mut writer =
                    turn(&folder).writer(ArtifactSource::of("read_log", ID), redact)?;
                log(bytes, &mut writer);
                let artifact = writer.finish()?;
                let times = vec![micros(began.elapsed())];
                Ok(Found { times, peak_rss: peak_rss(), answer: Ok(artifact.handle()) })
            }
            Self::Search { folder, pattern, flags } => {
                let args = json!({ "id": ID, "pattern": pattern, "flags": flags });
                Asking::of(&folder, ARTIFACT_SEARCH)?.ask([args])
            }
            Self::Ranges { folder, count, lines } => {
                let of = turn(&folder).get(ID)?.entry().clone();
                let mut numbers = Numbers(7);
                let ranges = (0..count).map(|_| {
                    if lines {
                        let from = 1 + numbers.next() % (of.lines - 20);
                        json!({ "id": ID, "lines": { "from": from, "to": from + 19 } })
                    } else {
                        let from = numbers.next() % (of.bytes - 2_000);
                        json!({ "id": ID, "bytes": { "from": from, "to": from + 2_000 } })
                    }
                });
                Asking::of(&folder, ARTIFACT_READ)?.ask(ranges)
            }
            Self::Query { folder, query, args } => {
                let args = json!({ "id": ID, "query": query, "args": args });
                Asking::of(&folder, ARTIFACT_QUERY)?.ask([args])
            }
        }
    }
}

/// One of a model's tools.
struct Asking(Tool);

impl Asking {
    fn of(folder: &Path, name: &str) -> Outcome<Self> {
        let tools = turn(folder).artifacts().tools()?;
        let tool = tools.into_iter().find(|tool| **tool.name() == *name);
        Ok(Self(tool.ok_or("unknown tool")?))
    }

    /// Calls it once with each of these arguments.
    fn ask(&self, all: impl IntoIterator<Item = Value>) -> Outcome<Found> {
        let runtime = runtime()?;
        let mut times = Vec::new();
        let mut answer = Err("no call was made".to_owned());
        for args in all {
            let cx = ToolContext::from(ToolContextParts::detached());
            let began = Instant::now();
            let answered = runtime.block_on(self.0.call(args, cx));
            times.push(micros(began.elapsed()));
            answer = answered.map(|output| output.value).map_err(|error| error.message.clone());
        }
        Ok(Found { times, peak_rss: peak_rss(), answer })
    }
}
