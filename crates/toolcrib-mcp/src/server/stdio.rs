use std::{path::PathBuf, sync::Arc};

use toolcrib_capabilities::process::{ProcessLimits, Sandbox};

/// A server that is a program, started here and ended with all its child processes.
///
/// Its environment consists of the host's `HOME`, `LANG`, `LC_ALL`, `LOGNAME`, `PATH`, `SHELL`,
/// `TERM`, `TMPDIR` and `USER`, and the variables declared here. No shell is involved.
#[derive(Clone)]
pub struct Stdio {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) working_dir: Option<PathBuf>,
    pub(crate) limits: ProcessLimits,
    pub(crate) allow_stray_children: bool,
    pub(crate) sandbox: Box<Sandbox>,
    pub(crate) stderr: Option<StderrLog>,
}

/// Receives the lines of a program's stderr.
pub(crate) type StderrLog = Arc<dyn Fn(&str) + Send + Sync>;

impl Stdio {
    /// A program by its path, or by its name on the `PATH`.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            args: Vec::new(),
            env: Vec::new(),
            working_dir: None,
            limits: Self::default_limits(),
            allow_stray_children: false,
            sandbox: Box::default(),
            stderr: None,
        }
    }

    /// Adds an argument, after those added before. Every user of the machine can see a program's
    /// arguments, and texts for operators contain those that do not look like secrets: pass secrets by
    /// [`env`](Self::env).
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments, in order.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Sets the working folder of the program. Default: the process's working folder.
    #[must_use]
    pub fn working_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.working_dir = Some(dir.into());
        self
    }

    /// The default limits: those of [`ProcessLimits`] without its limits on memory, because
    /// runtimes such as Node reserve far more than they use, and on CPU time, because a server may
    /// live for long.
    pub fn default_limits() -> ProcessLimits {
        ProcessLimits {
            memory: None,
            total_memory: None,
            cpu_time: None,
            ..ProcessLimits::default()
        }
    }

    /// Limits enforced by the kernel. Default: [`default_limits`](Self::default_limits).
    #[must_use]
    pub fn limits(mut self, limits: ProcessLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Runs it even if its child processes could outlive it; see
    /// [`toolcrib_capabilities::process::support`].
    #[must_use]
    pub fn allow_stray_children(mut self) -> Self {
        self.allow_stray_children = true;
        self
    }

    /// Calls a function for each line that it writes to stderr, without the line feed; a line of more
    /// than 8 KiB comes in pieces. The text is the server's: neither redacted nor sanitized. It should
    /// return quickly. Default: only the end is kept, for errors.
    #[must_use]
    pub fn on_stderr(mut self, log: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.stderr = Some(Arc::new(log));
        self
    }

    /// Sets the sandbox of the program. Default: the tier `tree`.
    #[must_use]
    pub fn sandbox(mut self, sandbox: Sandbox) -> Self {
        self.sandbox = Box::new(sandbox);
        self
    }
}

// Without the values of its environment, which may be secrets.
toolcrib_core::__internal::debug_fields!(
    Stdio,
    stdio,
    command = stdio.command,
    args = stdio.args,
    env = stdio.env.iter().map(|(name, _)| name).collect::<Vec<_>>(),
    working_dir = stdio.working_dir,
    ..
);
