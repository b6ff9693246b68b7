//! The body: one call, one command line or one operation on a job.

use std::{ffi::OsString, sync::Arc, time::Duration};

use futures_util::future::join;
use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_artifacts::{Artifact, CallArtifacts};
use toolcrib_capabilities::process::{
    CapturedOutput, ProcessEnd, ProcessLimits, ProcessOutput, ProcessSpec, RunSpec,
};
use toolcrib_core::{ErrorCode, ToolContext, ToolError, ToolOutput};

use super::{
    AFTER, COMMAND, DEFAULT_SECONDS, FOLDER, JOB, Jobs, TIMEOUT, TerminalTool, UNTIL,
    jobs::Job,
    scan::{FailureLine, OutputScan},
    shown::{LineCounts, condensed, numbered, with_failures},
};
use crate::{
    arguments::{present, refused, text},
    command::{self, limits::ended_by, outcome::with_moved, progress::Lines, whole},
};

/// The characters of a result that are kept for the line about the end and for the fence.
const RESERVED_CHARS: usize = 500;

/// The characters of a result below which nothing is cut.
const LEAST_CHARS: usize = 1_000;

/// The time in which a job that cannot work usually ends.
const FIRST_LOOK: Duration = Duration::from_millis(300);

/// The handler of a tool.
#[derive(Clone)]
pub(super) struct Body {
    pub(super) tool: TerminalTool,
    pub(super) program: Arc<command::Body>,
    pub(super) jobs: Jobs,
    pub(super) most: Duration,
}

impl Body {
    pub(super) async fn call(self, args: Value, cx: ToolContext) -> Result<ToolOutput, ToolError> {
        let (args, cx) = (&args, &cx);
        match self.tool {
            TerminalTool::Run => self.run(args, cx).await,
            TerminalTool::Start => self.start(args, cx).await,
            TerminalTool::List => Ok(self.list(cx)),
            TerminalTool::Read => Ok(shown(&*self.job(args, cx)?, after(args), cx)),
            TerminalTool::Wait => self.wait(args, cx).await,
            TerminalTool::Stop => self.stop(args, cx).await,
        }
    }

    async fn process(&self, args: &Value, cx: &ToolContext) -> Result<ProcessSpec, ToolError> {
        let command = text(args, COMMAND).unwrap_or_default();
        let folder = text(args, FOLDER).unwrap_or_default();
        for (name, value) in [(COMMAND, &command), (FOLDER, &folder)] {
            if value.contains('\0') {
                return Err(refused(
                    name,
                    "contains a NUL character, which no program can be passed",
                ));
            }
        }
        // One output, in the order of its writes. The shell itself enters the folder, in its sandbox.
        let enter = match &*folder {
            "" | "." => String::new(),
            folder => format!("cd -- {} || exit; ", quoted(folder)),
        };
        // A second shell reads the command: the error of a command that cannot be parsed goes to the
        // same output. The blank keeps a leading `-` from being an option.
        let line: OsString = format!("exec 2>&1; {enter}exec \"$0\" -c \" $1\"").into();
        let shell = self.program.program.clone().into_os_string();
        let command = command.into_owned().into();
        self.program.process(vec!["-c".into(), line, shell, command], cx).await
    }

    fn seconds(&self, args: &Value) -> Duration {
        let seconds = present(args, TIMEOUT).and_then(Value::as_u64).unwrap_or(DEFAULT_SECONDS);
        Duration::from_secs(seconds).min(self.most)
    }

    async fn run(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let time = self.seconds(args);
        let process = self.process(args, cx).await?;
        let ran = run_to_end(&self.program, process, time, cx).await?;
        let output = ran.shown(cx);
        result(&ran, &output, time, cx)
    }

    async fn start(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if cx.keeps_nothing() {
            return Err(ToolError::new(
                ErrorCode::NotAvailable,
                "a job would end with this call, because no later call can be recognized as one of \
                 the same caller; run the command and wait for its end",
            ));
        }
        let process = self.process(args, cx).await?;
        let command = text(args, COMMAND).unwrap_or_default();
        let job = self.jobs.reserve(&command, cx)?;
        let started = self.program.processes.start(process).await.map_err(|error| {
            job.end("could not be started".to_owned());
            self.program.not_run(error)
        })?;
        self.jobs.attend(Arc::clone(&job), started, self.program.limits, cx);
        let mut state = job.watch();
        let _ = timeout(FIRST_LOOK, state.wait_for(|state| state.ended.is_some())).await;
        Ok(shown(&job, 0, cx))
    }

    fn list(&self, cx: &ToolContext) -> ToolOutput {
        let jobs = self.jobs.of(cx);
        let lines: Vec<_> =
            jobs.iter().map(|job| format!("{}: {}", job.about(), job.command)).collect();
        match lines.is_empty() {
            true => ToolOutput::text("no jobs were started in this conversation"),
            false => ToolOutput::text(lines.join("\n")),
        }
    }

    fn job(&self, args: &Value, cx: &ToolContext) -> Result<Arc<Job>, ToolError> {
        self.jobs.get(&text(args, JOB).unwrap_or_default(), cx)
    }

    async fn wait(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let job = self.job(args, cx)?;
        let until = text(args, UNTIL);
        let mut state = job.watch();
        let waiting = state.wait_for(|state| {
            state.ended.is_some()
                || until.as_deref().is_some_and(|until| job.has_written(until, cx))
        });
        tokio::select! {
            biased;
            () = cx.cancellation().cancelled() => {
                return Err(ToolError::new(ErrorCode::Cancelled, "the wait was cancelled"));
            }
            _ = timeout(self.seconds(args), waiting) => {}
        }
        Ok(shown(&job, 0, cx))
    }

    async fn stop(&self, args: &Value, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let job = self.job(args, cx)?;
        let mut state = job.watch();
        job.stop();
        tokio::select! {
            biased;
            () = cx.cancellation().cancelled() => {
                return Err(ToolError::new(ErrorCode::Cancelled, "the job is being stopped"));
            }
            _ = state.wait_for(|state| state.ended.is_some()) => {}
        }
        Ok(ToolOutput::text(job.about()))
    }
}

/// A program that ran to its end, or was stopped.
pub(crate) struct ProgramRun {
    pub(crate) finished: ProcessOutput,
    pub(crate) limits: ProcessLimits,
    scan: OutputScan,
    /// Its whole output, if that is longer than a result and artifacts are kept.
    pub(crate) artifact: Option<Artifact>,
}

/// Runs a program, whose outputs are one, for at most this time.
pub(crate) async fn run_to_end(
    program: &command::Body,
    process: ProcessSpec,
    time: Duration,
    cx: &ToolContext,
) -> Result<ProgramRun, ToolError> {
    let (whole_stdout, taker) = whole::places(cx);
    let (max_output_bytes, limits) = (program.max_output_bytes, program.limits);
    let spec = RunSpec { process, stdin: None, max_output_bytes, whole_stdout };
    let stop = cx.cancellation().child_token();
    let mut lines = Lines::default();
    let waiting = lines.waiting();
    let mut scan = OutputScan::new(max_output_bytes);
    let running = program.processes.run(spec, &stop, |output, piece| {
        lines.push(output, piece);
        scan.push(piece);
    });
    let taking = async { taker?.take().await };
    let working = async {
        let mut working = std::pin::pin!(join(running, taking));
        match timeout(time, &mut working).await {
            Ok(done) => done,
            Err(_) => {
                stop.cancel();
                working.await
            }
        }
    };
    let (finished, taken) = waiting.report_during(working, cx).await;
    let finished = finished.map_err(|error| program.not_run(error))?;
    let artifact = match taken {
        Some(taken) => taken.keep().await.ok(),
        None => kept(&finished.stdout, cx).await,
    };
    Ok(ProgramRun { finished, limits, scan, artifact })
}

impl ProgramRun {
    /// The output as a model reads it: whole, or with its beginning, failures and end.
    pub(crate) fn shown(&self, cx: &ToolContext) -> String {
        let rest = match &self.artifact {
            Some(artifact) => format!("the whole output is the artifact {}", artifact.id()),
            None => "run it again with a filter, such as `| grep`, to see them".to_owned(),
        };
        let (all, failed) = (self.scan.lines(), self.scan.failed());
        let total = LineCounts { all, failed, begins_in_part: self.begins_in_part() };
        let shown = condensed(&self.lines(cx), total, room(cx), &rest);
        with_moved(shown, &self.finished.moved)
    }

    /// The output as far as it is in memory, without secrets: its beginning, lines that report failures,
    /// and its end.
    pub(crate) fn text(&self, cx: &ToolContext) -> String {
        let lines = self.lines(cx);
        let text = lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n");
        with_moved(text, &self.finished.moved)
    }

    /// Whether the first line is longer than what is kept of the beginning.
    fn begins_in_part(&self) -> bool {
        let output = &self.finished.stdout;
        output.is_truncated() && !output.head().contains(&b'\n')
    }

    fn lines(&self, cx: &ToolContext) -> Vec<(usize, String)> {
        let output = &self.finished.stdout;
        let head = String::from_utf8_lossy(output.head());
        if !output.is_truncated() {
            return numbered(1, &cx.redacted(&head));
        }
        // The line that continues beyond the head is incomplete.
        let head = head.rsplit_once('\n').map_or(&*head, |(complete, _)| complete);
        let mut lines = numbered(1, &cx.redacted_start(head));
        if self.begins_in_part()
            && let Some((_, line)) = lines.first_mut()
        {
            line.push('\u{2026}');
        }
        let last = output.last(usize::MAX);
        let last = String::from_utf8_lossy(&last);
        // The first line may be the end of a secret.
        let last = last.trim_end_matches('\n').split_once('\n').map_or("", |(_, rest)| rest);
        let last = cx.redacted(last);
        let first = (self.scan.lines() + 1).saturating_sub(last.lines().count());
        for FailureLine { number, bytes, .. } in self.scan.failures() {
            if *number > lines.len() && *number < first {
                lines.push((*number, cx.redacted(&String::from_utf8_lossy(bytes))));
            }
        }
        lines.extend(numbered(first, &last));
        lines
    }

    /// The error of a program that was stopped; `next` is the next step after the timeout.
    pub(crate) fn stopped(
        &self,
        what: &str,
        time: Duration,
        next: &str,
        cx: &ToolContext,
    ) -> Option<(ErrorCode, String)> {
        let is_cancelled = cx.cancellation().is_cancelled();
        self.finished.cut_off.then(|| match is_cancelled {
            true => (ErrorCode::OutcomeUnknown, format!("{what} was cancelled")),
            false => {
                let seconds = time.as_secs();
                (ErrorCode::Timeout, format!("{what} was stopped after {seconds} s; {next}"))
            }
        })
    }
}

fn after(args: &Value) -> u64 {
    present(args, AFTER).and_then(Value::as_u64).unwrap_or_default()
}

pub(crate) fn room(cx: &ToolContext) -> usize {
    cx.result_budget_chars().saturating_sub(RESERVED_CHARS).max(LEAST_CHARS)
}

/// A text as one word of a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// A job and its output after a position.
fn shown(job: &Job, after: u64, cx: &ToolContext) -> ToolOutput {
    let (about, is_running) = (job.about(), job.is_running());
    let mut output = job.output(after);
    if is_running {
        output = output.without_begun_secret(cx);
    }
    let mut notes = vec![about];
    if output.gone > 0 {
        notes.push(format!("{} earlier bytes are gone", output.gone));
    }
    notes.push(match output.text.is_empty() {
        true => "no output".to_owned(),
        false => format!("output up to position {}", output.end),
    });
    let text = cx.redacted_part(&output.before, &output.text, "");
    let lines = numbered(1, text.trim_end());
    let rest = "read on with a later `after`";
    let failures = output.failures.iter().map(|(number, line)| (*number, cx.redacted(line)));
    let failures: Vec<_> = failures.collect();
    let text = with_failures(&failures, output.more_failures, room(cx), |room| {
        condensed(&lines, LineCounts::of(&lines), room, rest)
    });
    let about = notes.join("; ");
    ToolOutput::text(if text.is_empty() { about } else { format!("{about}\n{text}") })
}

/// The artifact of an output that does not fit, where artifacts are kept.
async fn kept(output: &CapturedOutput, cx: &ToolContext) -> Option<Artifact> {
    let text = String::from_utf8_lossy(output.head());
    if text.chars().count() <= room(cx) {
        return None;
    }
    let artifacts = cx.handle::<CallArtifacts>().ok()?.clone();
    let bytes = output.head().to_vec();
    let keeping = tokio::task::spawn_blocking(move || {
        let mut writer = artifacts.writer().ok()?;
        writer.write(&bytes);
        writer.finish().ok()
    });
    keeping.await.ok().flatten()
}

fn result(
    ran: &ProgramRun,
    output: &str,
    time: Duration,
    cx: &ToolContext,
) -> Result<ToolOutput, ToolError> {
    let with_output = |about: String| match output.is_empty() {
        true => format!("{about}, without output"),
        false => format!("{about}\n{output}"),
    };
    let next = "set a longer `timeout_seconds`, or start it as a job";
    if let Some((code, about)) = ran.stopped("the command", time, next, cx) {
        return Err(ToolError::new(code, with_output(about)));
    }
    match ran.finished.ended {
        ProcessEnd::Code(0) => {
            let artifact = ran.artifact.as_ref().map(Artifact::id);
            let data = json!({ "exit_code": 0, "artifact": artifact });
            let text = if output.is_empty() { "done, without output" } else { output };
            Ok(ToolOutput::text(text).structured(data))
        }
        ProcessEnd::Code(code) => Err(ToolError::failed(with_output(format!("exit code {code}")))),
        end => Err(ToolError::failed(with_output(format!(
            "the command was ended by {}",
            ended_by(end, ran.limits)
        )))),
    }
}
