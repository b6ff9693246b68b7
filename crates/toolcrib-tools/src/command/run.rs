//! The body: one call, one run of the program.

use std::{
    ffi::OsString,
    path::{self, PathBuf},
    sync::Arc,
};

use futures_util::future::join;
use serde_json::Value;
use toolcrib_capabilities::process::{
    ProcessEnd, ProcessError, ProcessLimits, ProcessOutput, ProcessSpec, Processes, RunSpec,
    Sandbox,
};
use toolcrib_core::{ErrorCode, ToolContext, ToolError, ToolOutput};

use super::{
    Stdin,
    arguments::{self, ArgTemplate},
    attached,
    environment::Environment,
    outcome,
    progress::Lines,
    whole,
};

/// The handler of the tool.
pub(crate) struct Body {
    pub(crate) processes: Processes,
    pub(crate) program: PathBuf,
    pub(super) args: Vec<ArgTemplate>,
    /// The parameters that name attached files.
    pub(super) attachments: Vec<String>,
    pub(super) stdin: Stdin,
    pub(super) environment: Environment,
    /// Absolute.
    pub(crate) working_dir: Option<PathBuf>,
    pub(crate) max_output_bytes: usize,
    pub(crate) limits: ProcessLimits,
    pub(super) allow_stray_children: bool,
    pub(super) sandbox: Sandbox,
    pub(super) ok_exit_codes: Vec<i32>,
    pub(super) read_only: bool,
}

impl Body {
    pub(super) async fn call(
        self: Arc<Self>,
        mut args: Value,
        cx: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        // Removed after the run.
        let copies = attached::copies(&self.attachments, &mut args, &cx).await?;
        let (whole_stdout, taker) = whole::places(&cx);
        let mut spec = RunSpec { whole_stdout, ..self.spec(&args, &cx).await? };
        spec.process.sandbox.read.extend(copies.iter().map(|copies| copies.folder().to_owned()));
        let passed = spec.process.args.len();
        let mut lines = Lines::default();
        let waiting = lines.waiting();
        let running =
            self.processes.run(spec, cx.cancellation(), |output, piece| lines.push(output, piece));
        let taking = async { taker?.take().await };
        let (finished, taken) = waiting.report_during(join(running, taking), &cx).await;
        let finished = finished.map_err(|error| self.not_run(error))?;
        if finished.cut_off {
            if let Some(taken) = taken {
                taken.discard().await;
            }
            return Err(ToolError::new(
                self.cut_off(),
                outcome::cut_off(&self.name(), &finished, &cx),
            ));
        }
        let kept = match taken {
            Some(taken) => Some(taken.keep().await),
            None => None,
        };
        match finished.ended {
            ProcessEnd::Code(code) if self.ok_exit_codes.contains(&code) => {
                Ok(outcome::success(&finished, kept, &cx))
            }
            _ => Err(ToolError::failed(outcome::failure(&self, &finished, kept, &cx))
                .caused_by(self.circumstances(passed, &finished))),
        }
    }

    async fn spec(&self, args: &Value, cx: &ToolContext) -> Result<RunSpec, ToolError> {
        let stdin = match self.stdin {
            Stdin::None => None,
            Stdin::Json => Some(format!("{args}\n").into_bytes()),
        };
        let process = self.process(arguments::fill(&self.args, args)?, cx).await?;
        let max_output_bytes = self.max_output_bytes;
        Ok(RunSpec { process, stdin, max_output_bytes, whole_stdout: None })
    }

    /// The program with these arguments, as a call may run it.
    pub(crate) async fn process(
        &self,
        args: Vec<OsString>,
        cx: &ToolContext,
    ) -> Result<ProcessSpec, ToolError> {
        let working_dir = match &self.working_dir {
            Some(folder) => folder.clone(),
            None => path::absolute(cx.working_dir())?,
        };
        let mut process = ProcessSpec::new(&self.program, working_dir);
        process.args = args;
        process.limits = self.limits;
        process.allow_stray_children = self.allow_stray_children;
        process.sandbox = self.sandbox.within(cx.network_rules()).map_err(|error| {
            let text = "this tool may reach no host here; only its operator can change that";
            ToolError::new(ErrorCode::NotAvailable, text)
                .caused_by(format!("a rule of the personality: {error}"))
        })?;
        // Last, so that no call that cannot be made asks for a secret.
        process.env = self.environment.fill(cx).await?;
        Ok(process)
    }

    /// The effect of a stopped program is known where it cannot have any.
    fn cut_off(&self) -> ErrorCode {
        if self.read_only { ErrorCode::Cancelled } else { ErrorCode::OutcomeUnknown }
    }

    pub(crate) fn not_run(&self, error: ProcessError) -> ToolError {
        let failure = match &error {
            ProcessError::TooLong { .. } => {
                ToolError::input_invalid("the arguments are too long for a program; pass less")
            }
            ProcessError::Cancelled { .. } => {
                ToolError::new(ErrorCode::Cancelled, "the call was cancelled before it began")
            }
            ProcessError::Start { .. } => {
                ToolError::failed("the program of this tool could not be started; try again later")
            }
            ProcessError::Lost { .. } if self.read_only => {
                ToolError::failed("the program of this tool was lost")
            }
            ProcessError::Lost { .. } => ToolError::new(
                ErrorCode::OutcomeUnknown,
                "the program of this tool was lost; it may have had its effect, so check before \
                 trying again",
            ),
            _ => ToolError::new(
                ErrorCode::NotAvailable,
                "the program of this tool cannot be run here; its operator has to see to that",
            ),
        };
        failure.caused_by(error)
    }

    /// How the model reads of it: where a program lies is nothing to it.
    pub(super) fn name(&self) -> String {
        self.program.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// For the operator.
    fn circumstances(&self, passed: usize, finished: &ProcessOutput) -> String {
        format!(
            "{} with {passed} argument{}: {} after {:.1?}",
            self.program.display(),
            if passed == 1 { "" } else { "s" },
            finished.ended,
            finished.duration,
        )
    }
}
