//! The process that is killed.

use std::{
    fs::File,
    io::{self, BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

/// Variables of the environment of one process.
pub(super) type Variables = [(&'static str, String)];

/// Starts the processes of one system, one after the other.
pub(super) enum Starter {
    /// A program, as it is.
    Program { command: Command, process: Option<Child> },
    /// A Python interpreter that has imported the system, and forks for each process: imports take
    /// seconds, in which there is nothing to kill.
    Fork { interpreter: Child, orders: ChildStdin, answers: BufReader<ChildStdout> },
}

impl Starter {
    /// The output of all its processes is appended to `log`.
    pub(super) fn of(mut command: Command, forks: bool, log: &Path) -> io::Result<Self> {
        let log = File::options().create(true).append(true).open(log)?;
        command.stderr(log.try_clone()?).stdin(Stdio::null()).stdout(log);
        if !forks {
            return Ok(Self::Program { command, process: None });
        }
        let mut interpreter = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (Some(orders), Some(answers)) = (interpreter.stdin.take(), interpreter.stdout.take())
        else {
            return Err(io::Error::other("the interpreter has no pipes"));
        };
        Ok(Self::Fork { interpreter, orders, answers: BufReader::new(answers) })
    }

    /// Returns the id of the process.
    pub(super) fn start(&mut self, variables: &Variables) -> io::Result<u32> {
        match self {
            Self::Program { command, process } => {
                command.env_remove("CRASH_KEYED").envs(variables.iter().map(|(k, v)| (k, v)));
                Ok(process.insert(command.spawn()?).id())
            }
            Self::Fork { orders, answers, .. } => {
                let pairs = variables.iter().map(|(name, value)| format!("{name}={value}"));
                let answer = order(orders, answers, &pairs.collect::<Vec<_>>().join("\t"))?;
                answer.trim().parse().map_err(io::Error::other)
            }
        }
    }

    /// Kills the process with `SIGKILL`, and returns when it is dead.
    pub(super) fn kill(&mut self) -> io::Result<()> {
        match self {
            Self::Program { process, .. } => {
                if let Some(mut process) = process.take() {
                    process.kill()?;
                    process.wait()?;
                }
                Ok(())
            }
            Self::Fork { orders, answers, .. } => order(orders, answers, "kill").map(drop),
        }
    }
}

impl Drop for Starter {
    fn drop(&mut self) {
        drop(self.kill());
        if let Self::Fork { interpreter, .. } = self {
            drop(interpreter.kill());
            drop(interpreter.wait());
        }
    }
}

/// Sends a line to `fork.py`, and returns its answer as soon as it is carried out.
fn order(
    orders: &mut ChildStdin,
    answers: &mut BufReader<ChildStdout>,
    line: &str,
) -> io::Result<String> {
    writeln!(orders, "{line}")?;
    let mut answer = String::new();
    match answers.read_line(&mut answer)? {
        0 => Err(io::Error::other("the interpreter has ended; its log says why")),
        _ => Ok(answer),
    }
}
