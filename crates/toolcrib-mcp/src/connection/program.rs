//! Servers that are programs.

use std::{env, ffi::OsString, sync::Arc};

use futures_util::future::BoxFuture;
use toolcrib_capabilities::process::{
    ChildStdin, ChildStdout, Process, ProcessSpec, Processes, find_program, inherited,
};

use super::{
    Connector,
    lines::dialed,
    transport::{CallerContext, Dial, RawConnection, Wiring},
    types::ConnectError,
};
use crate::server::{InvalidServerError, StderrLog, Stdio, shown_command};

/// The host's environment variables that a server gets in addition to declared ones: those that
/// programs need to find their files and to use the user's language.
const INHERITED: [&str; 9] =
    ["HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER"];

/// Connections to a program that is started for each.
pub(crate) fn stdio(server: &str, stdio: &Stdio) -> Result<Arc<Connector>, InvalidServerError> {
    if stdio.command.is_empty() {
        return Err(InvalidServerError::Command { server: server.to_owned() });
    }
    let target = shown_command(&stdio.command, &stdio.args);
    Ok(Connector::new(Program { target, stdio: stdio.clone() }))
}

struct Program {
    target: String,
    stdio: Stdio,
}

impl Dial for Program {
    fn target(&self) -> &str {
        &self.target
    }

    fn dial(
        &self,
        wiring: Wiring,
        caller: CallerContext<'_>,
    ) -> BoxFuture<'static, Result<RawConnection, ConnectError>> {
        let stdio = self.stdio.for_caller(caller.access);
        Box::pin(async move {
            let log = stdio.stderr.clone();
            let (process, pipes) = start(stdio).await?;
            if let Some(log) = log {
                process.on_stderr(by_line(log));
            }
            Ok(dialed(pipes, Some(process), wiring))
        })
    }
}

/// The limit of a line of stderr, in bytes; a longer one is passed on in pieces.
const LONGEST_LINE: usize = 8 * 1024;

/// Passes bytes on as lines.
fn by_line(log: StderrLog) -> impl FnMut(&[u8]) + Send {
    let mut line = Vec::new();
    move |mut bytes| {
        while !bytes.is_empty() {
            let room = LONGEST_LINE.saturating_sub(line.len()).min(bytes.len());
            let (near, _) = bytes.split_at(room);
            let end = near.iter().position(|byte| *byte == b'\n');
            let (part, rest) = bytes.split_at(end.unwrap_or(room));
            line.extend_from_slice(part);
            bytes = if end.is_some() { rest.get(1..).unwrap_or_default() } else { rest };
            if end.is_some() || line.len() >= LONGEST_LINE {
                let text = String::from_utf8_lossy(&line);
                log(text.trim_end_matches('\r'));
                line.clear();
            }
        }
    }
}

type Pipes = (ChildStdout, ChildStdin);

async fn start(stdio: Stdio) -> Result<(Process, Pipes), ConnectError> {
    let not_started = |error: Box<dyn std::error::Error + Send + Sync>| ConnectError {
        problem: format!("it was not started: {error}"),
        source: Some(error),
    };
    let here = env::current_dir().map_err(|error| not_started(error.into()))?;
    let working_dir = match &stdio.working_dir {
        Some(folder) => here.join(folder),
        None => here,
    };
    let program =
        find_program(&stdio.command, &working_dir).map_err(|error| not_started(error.into()))?;
    let mut spec = ProcessSpec::new(program, working_dir);
    spec.args = stdio.args.into_iter().map(OsString::from).collect();
    spec.env = environment(stdio.env);
    spec.limits = stdio.limits;
    spec.allow_stray_children = stdio.allow_stray_children;
    spec.sandbox = *stdio.sandbox;
    // The declaration of the server decided which program may run.
    let mut process =
        Processes::any().start(spec).await.map_err(|error| not_started(error.into()))?;
    match (process.take_stdout(), process.take_stdin()) {
        (Some(stdout), Some(stdin)) => Ok((process, (stdout, stdin))),
        _ => Err(not_started("it has no pipes".into())),
    }
}

/// The declared variables, the last of several values for one name, and the host's others.
fn environment(declared: Vec<(String, String)>) -> Vec<(OsString, OsString)> {
    let mut env: Vec<(OsString, OsString)> = Vec::new();
    let declared = declared.into_iter().rev().map(|(name, value)| (name.into(), value.into()));
    for (name, value) in declared.chain(inherited(INHERITED)) {
        if env.iter().all(|(taken, _)| *taken != name) {
            env.push((name, value));
        }
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_comes_by_line_however_it_is_written() {
        let lines = Arc::new(parking_lot::Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let mut push = by_line(Arc::new(move |line: &str| seen.lock().push(line.to_owned())));
        for piece in ["on", "e\r\ntwo\n\nth", "ree", "\n", "rest"] {
            push(piece.as_bytes());
        }
        assert_eq!(*lines.lock(), ["one", "two", "", "three"]);
        push(&vec![b'x'; 3 * LONGEST_LINE]);
        assert_eq!(lines.lock().len(), 4 + 3);
        assert!(lines.lock().iter().all(|line| line.len() <= LONGEST_LINE));
    }

    #[test]
    fn what_is_declared_comes_before_what_is_inherited() {
        let declared = [("PATH", "/none"), ("TOKEN", "1"), ("TOKEN", "2")];
        let env = environment(declared.map(|(n, v)| (n.to_owned(), v.to_owned())).into());
        let of = |wanted: &str| -> Vec<_> {
            env.iter().filter(|(name, _)| name == wanted).map(|(_, value)| value).collect()
        };
        assert_eq!(of("PATH"), ["/none"]);
        assert_eq!(of("TOKEN"), ["2"]);
        assert!(env.iter().all(
            |(name, _)| name == "TOKEN" || INHERITED.iter().any(|inherited| name == inherited)
        ));
    }
}
