//! The kind `terminal`, with real programs.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the tests look at the files from outside")]

mod harm;

use std::{fs, path::Path, time::Duration};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolcrib_artifacts::{Artifacts, FileStore};
use toolcrib_core::{ErrorCode, Tool, ToolCall, ToolResult};
use toolcrib_engine::{Engine, EngineBuilder, TurnOptions};
use toolcrib_tools::{
    Declaration,
    command::{ArgItem, CommandToolSpec},
    terminal::{Jobs, TerminalTool},
};

struct Shell {
    dir: TempDir,
    engine: Engine,
}

impl Shell {
    fn new() -> Self {
        Self::with(|spec| spec, &Jobs::new(2, Jobs::DEFAULT_TIME), false)
    }

    fn with(
        change: impl Fn(CommandToolSpec) -> CommandToolSpec,
        jobs: &Jobs,
        has_artifacts: bool,
    ) -> Self {
        Self::of(change, jobs, |engine, dir| match has_artifacts {
            true => engine.artifacts(Artifacts::new(FileStore::new(dir.join("artifacts")))),
            false => engine,
        })
    }

    fn of(
        change: impl Fn(CommandToolSpec) -> CommandToolSpec,
        jobs: &Jobs,
        more: impl FnOnce(EngineBuilder, &Path) -> EngineBuilder,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        let engine = Engine::builder().tools(Self::tools(&dir, change, jobs));
        Self { engine: more(engine, dir.path()).build().unwrap(), dir }
    }

    fn tools(
        dir: &TempDir,
        change: impl Fn(CommandToolSpec) -> CommandToolSpec,
        jobs: &Jobs,
    ) -> [Tool; 6] {
        TerminalTool::ALL.map(|tool| {
            let base = Declaration {
                timeout: Some(Duration::from_secs(20)),
                untrusted: false,
                ..Declaration::new("", "")
            };
            let declaration = tool.declaration(&base, None);
            let mut spec = CommandToolSpec::new(declaration, "sh", dir.path());
            spec.args = vec![ArgItem::from("-c")];
            spec.inherit_env = vec!["PATH".to_owned()];
            spec.working_dir = Some("work".into());
            tool.build(change(spec), jobs).unwrap()
        })
    }

    /// A call of a conversation.
    async fn call(&self, session: &str, tool: &str, args: Value) -> ToolResult {
        let options = TurnOptions::default().conversation(session);
        let mut turn = self.engine.turn(options).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        iteration.execute(vec![ToolCall::new("c", tool, args)]).await.remove(0)
    }

    async fn run(&self, command: &str) -> ToolResult {
        self.call("s", "terminal", json!({ "command": command })).await
    }

    /// Waits for an end or a text.
    async fn wait(&self, job: &str, until: Option<&str>) -> ToolResult {
        self.call("s", "wait_for_job", json!({ "job": job, "until": until })).await
    }
}

#[test]
fn the_tools_declare_what_they_do() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("work")).unwrap();
    let jobs = Jobs::new(2, Jobs::DEFAULT_TIME);
    for (tool, built) in TerminalTool::ALL.into_iter().zip(Shell::tools(&dir, |spec| spec, &jobs)) {
        let name = tool.name(None);
        assert_eq!(built.name().as_str(), name);
        let runs = matches!(tool, TerminalTool::Run | TerminalTool::Start);
        assert_eq!(built.annotations().destructive, runs, "{name}");
        assert_eq!(built.annotations().read_only, tool.is_read_only(), "{name}");
        assert_eq!(built.toolset(), Some("terminal"));
        assert!(built.open_world(), "{name}");
    }
    assert_eq!(TerminalTool::Run.name(Some("build")), "build_terminal");
}

#[tokio::test]
async fn a_command_line_returns_its_output_in_order_and_its_exit_code() {
    let shell = Shell::new();
    let result = shell.run("echo one; echo two >&2; echo three").await;
    assert_eq!((&*result.text, result.code), ("one\ntwo\nthree", None));
    let result = shell.run("printf 'a b' | tr a-z A-Z > x; cat x").await;
    assert_eq!(&*result.text, "A B");
    assert!(shell.dir.path().join("work/x").exists());
    assert_eq!(&*shell.run("true").await.text, "done, without output");
    let failed = shell.run("echo why; exit 3").await;
    assert_eq!(
        (&*failed.text, failed.code),
        ("exit code 3\nwhy", Some(ErrorCode::ExecutionFailed))
    );
    let silent = shell.run("exit 1").await;
    assert_eq!(&*silent.text, "exit code 1, without output");
    // No input, so that nothing waits for one.
    assert_eq!(&*shell.run("cat").await.text, "done, without output");
}

#[tokio::test]
async fn a_command_runs_in_the_named_folder() {
    let shell = Shell::new();
    fs::create_dir(shell.dir.path().join("work/it's")).unwrap();
    let args = json!({ "command": "pwd", "folder": "it's" });
    let result = shell.call("s", "terminal", args).await;
    assert!(result.text.ends_with("/work/it's"), "{result:?}");
    let args = json!({ "command": "touch x", "folder": "none" });
    let missing = shell.call("s", "terminal", args).await;
    assert_eq!(missing.code, Some(ErrorCode::ExecutionFailed));
    assert!(missing.text.contains("none"), "{missing:?}");
    assert!(!shell.dir.path().join("work/x").exists());
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_stopped_with_all_that_it_started() {
    let shell = Shell::new();
    let args = json!({ "command": "echo begun; sleep 600 & sleep 600", "timeout_seconds": 1 });
    let result = shell.call("s", "terminal", args).await;
    assert_eq!(result.code, Some(ErrorCode::Timeout));
    assert_eq!(
        &*result.text,
        "the command was stopped after 1 s; set a longer `timeout_seconds`, or start it as a \
         job\nbegun"
    );
    let args = json!({ "command": "true", "timeout_seconds": 21 });
    let refused = shell.call("s", "terminal", args).await;
    assert_eq!(refused.code, Some(ErrorCode::InputInvalid));
}

#[tokio::test]
async fn a_cancelled_turn_ends_the_command() {
    let shell = Shell::new();
    let token = CancellationToken::new();
    let options = TurnOptions::default().cancellation(token.clone());
    let mut turn = shell.engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let command = json!({ "command": "echo begun > mark; sleep 600" });
    let calls = vec![ToolCall::new("c", "terminal", command)];
    let mark = shell.dir.path().join("work/mark");
    let cancel = async {
        while !mark.exists() {
            tokio::task::yield_now().await;
        }
        token.cancel();
    };
    let (results, ()) = tokio::join!(iteration.execute(calls), cancel);
    assert_eq!(results[0].code, Some(ErrorCode::OutcomeUnknown), "{results:?}");
}

#[tokio::test]
async fn a_long_output_shows_its_beginning_its_failures_and_its_end() {
    let script = "i=0; while [ $i -lt 4000 ]; do i=$((i+1)); echo \"line $i of a long output\"; \
                  if [ $i = 2000 ]; then echo 'error: it broke'; fi; done";
    for has_artifacts in [false, true] {
        let jobs = Jobs::new(2, Jobs::DEFAULT_TIME);
        let shell = Shell::with(|spec| spec, &jobs, has_artifacts);
        let result = shell.run(script).await;
        assert!(result.text.starts_with("line 1 of a long output\n"), "{has_artifacts}");
        assert!(result.text.ends_with("line 4000 of a long output"), "{has_artifacts}");
        assert!(result.text.contains("\n2001: error: it broke\n"), "{has_artifacts}");
        let says = match has_artifacts {
            true => "the whole output is the artifact ",
            false => "run it again with a filter",
        };
        assert!(result.text.contains(says), "{}", result.text);
        assert_eq!(result.artifacts.len(), usize::from(has_artifacts), "{:?}", result.artifacts);
    }
}

#[tokio::test]
async fn an_output_beyond_the_memory_limit_is_an_artifact_as_a_whole() {
    let small = |mut spec: CommandToolSpec| {
        spec.max_output_bytes = 100_000;
        spec
    };
    let shell = Shell::with(small, &Jobs::new(2, Jobs::DEFAULT_TIME), true);
    let result = shell.run("yes 0123456789 | head -n 30000; echo the end").await;
    assert!(result.text.ends_with("the end"), "{}", &result.text[result.text.len() - 300..]);
    assert_eq!(result.artifacts.len(), 1);
}

#[tokio::test]
async fn a_job_is_started_listed_read_awaited_and_stopped() {
    let shell = Shell::new();
    let command = "echo ready; while [ ! -e go ]; do sleep 0.01; done; echo went";
    let started = shell.call("s", "start_job", json!({ "command": command })).await;
    assert!(started.text.starts_with("job-1 runs for "), "{started:?}");
    let waited = shell.wait("job-1", Some("ready")).await;
    assert!(waited.text.ends_with("output up to position 6\nready"), "{waited:?}");
    fs::write(shell.dir.path().join("work/go"), "").unwrap();
    let ended = shell.wait("job-1", None).await;
    assert!(ended.text.starts_with("job-1 ended with exit code 0; "), "{ended:?}");
    let later = shell.call("s", "read_job", json!({ "job": "job-1", "after": 6 })).await;
    assert!(later.text.ends_with("position 11\nwent"), "{later:?}");
    shell.call("s", "start_job", json!({ "command": "sleep 600" })).await;
    let list = shell.call("s", "list_jobs", json!({})).await;
    assert!(list.text.contains("job-1 ended with exit code 0: echo ready"), "{list:?}");
    assert!(list.text.contains("job-2 runs for "), "{list:?}");
    let stopped = shell.call("s", "stop_job", json!({ "job": "job-2" })).await;
    assert_eq!(&*stopped.text, "job-2 stopped");
    let failed = shell.call("s", "start_job", json!({ "command": "no-such-program" })).await;
    assert!(failed.text.contains("not found"), "{failed:?}");
}

#[tokio::test]
async fn a_job_belongs_to_its_conversation_and_their_number_is_limited() {
    let shell = Shell::new();
    for _ in 0..2 {
        let started = shell.call("s", "start_job", json!({ "command": "sleep 600" })).await;
        assert!(started.code.is_none(), "{started:?}");
    }
    let third = shell.call("s", "start_job", json!({ "command": "sleep 600" })).await;
    assert_eq!(
        &*third.text,
        "2 jobs run already, the limit of a conversation; stop one, or wait for one"
    );
    let other = shell.call("t", "read_job", json!({ "job": "job-1" })).await;
    assert_eq!(&*other.text, "`job` is not a job: none was started in this conversation");
    let unknown = shell.call("s", "stop_job", json!({ "job": "job-9" })).await;
    assert_eq!(&*unknown.text, "`job` is not a job; the jobs are job-1, job-2");
    assert!(shell.call("t", "start_job", json!({ "command": "true" })).await.code.is_none());
}

/// A job that keeps a pipe open as long as any process of it lives.
const ALIVE: &str = "exec 3>alive; sleep 600";

/// Makes the pipe, and reads it to its end.
async fn alive(shell: &Shell) -> tokio::task::JoinHandle<String> {
    shell.run("rm -f alive; mkfifo alive").await;
    let pipe = shell.dir.path().join("work/alive");
    tokio::task::spawn_blocking(move || fs::read_to_string(pipe).unwrap())
}

#[tokio::test]
async fn jobs_end_with_the_turn_of_an_unnamed_conversation_and_with_the_engine() {
    let shell = Shell::new();
    let ended = alive(&shell).await;
    let mut turn = shell.engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let start = ToolCall::new("c", "start_job", json!({ "command": ALIVE }));
    let results = iteration.execute(vec![start]).await;
    assert!(results[0].text.starts_with("job-1 runs for"), "{results:?}");
    assert!(!ended.is_finished());
    drop((iteration, turn));
    assert_eq!(ended.await.unwrap(), "");
    let ended = alive(&shell).await;
    shell.call("named", "start_job", json!({ "command": ALIVE })).await;
    let Shell { dir: _kept, engine } = shell;
    drop(engine);
    assert_eq!(ended.await.unwrap(), "");
}

#[tokio::test]
async fn a_job_ends_at_its_limit_of_time() {
    let shell = Shell::with(|spec| spec, &Jobs::new(2, Duration::from_millis(50)), false);
    shell.call("s", "start_job", json!({ "command": "sleep 600" })).await;
    let ended = shell.wait("job-1", None).await;
    assert!(ended.text.contains("stopped after 0 s, the limit of a job"), "{ended:?}");
}
