//! Starts a program from a spec.

use std::{
    ffi::{CString, OsStr, OsString},
    io::{self, PipeWriter},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::Stdio,
    thread,
    time::Instant,
};

use tokio::{process::Command, runtime::Handle, sync::oneshot};

use super::{
    ProcessError, ProcessSpec,
    child::{Namespace, Plan, Processes, hide_host, told},
    life::{Life, Started},
    namespaces::{Namespaces, namespaces},
    stage::Stage,
    tree::Tree,
};

/// Starts a program, with a pipe to its stdin, or with an empty stdin.
pub(super) async fn start(spec: ProcessSpec, is_fed: bool) -> Result<Started, ProcessError> {
    let program = spec.program.clone();
    let no_thread =
        |source| ProcessError::Start { program, action: "find a thread for it", source };
    let runtime = Handle::current();
    let (sender, started) = oneshot::channel();
    let forks = move || {
        let _inside = runtime.enter();
        // If the receiver is gone, the started program is dropped.
        let _ = sender.send(fork(spec, is_fed));
    };
    // Forking a large host takes time, and so do namespaces. Not on a thread of the runtime: if the
    // system has none left, the runtime panics.
    match thread::Builder::new().name("toolcrib-start".to_owned()).spawn(forks) {
        Ok(_) => started.await.unwrap_or_else(|lost| Err(no_thread(io::Error::other(lost)))),
        Err(source) => Err(no_thread(source)),
    }
}

/// Blocks until the program is executed, or has failed to.
fn fork(spec: ProcessSpec, is_fed: bool) -> Result<Started, ProcessError> {
    let began = Instant::now();
    for path in [&spec.program, &spec.working_dir] {
        if !path.is_absolute() {
            return Err(ProcessError::NotAbsolute { path: path.clone() });
        }
    }
    let program = c_string(spec.program.as_os_str(), || "the program's path".to_owned())?;
    let mut argv = vec![program.clone()];
    for (position, argument) in spec.args.iter().enumerate() {
        argv.push(c_string(argument, || format!("argument {}", position + 1))?);
    }
    let environment: Vec<CString> =
        spec.env.iter().map(|(name, value)| variable(name, value)).collect::<Result<_, _>>()?;
    let passed: usize = argv.iter().chain(&environment).map(|s| s.count_bytes()).sum();
    let working_dir = c_string(spec.working_dir.as_os_str(), || "the working folder".to_owned())?;
    let (namespace, lifeline) = namespace(&spec)?.unzip();
    let plan = Plan {
        program,
        argv: argv.into(),
        environment: environment.into(),
        working_dir,
        limits: spec.limits,
        namespace,
    };
    let mut command = Command::from(plan.into_command());
    command
        .stdin(if is_fed { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    hide_host();
    match command.spawn() {
        Ok(mut child) => {
            let tree = Tree::new(child.id(), lifeline);
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
            let stderr = child.stderr.take();
            let life = Life::new(tree, child, spec.program);
            Ok(Started { life, stdin, stdout, stderr, began })
        }
        Err(error) => Err(not_started(spec, error, passed)),
    }
}

/// The namespace to be created, and the end of its lifeline that keeps it alive. `None` if none is
/// possible and the spec permits that.
fn namespace(spec: &ProcessSpec) -> Result<Option<(Namespace, PipeWriter)>, ProcessError> {
    match namespaces() {
        Ok(Namespaces { kind, process_limit }) => match io::pipe() {
            Ok((lifeline, held)) => {
                let processes = Processes::at_most(spec.limits.processes, process_limit);
                Ok(Some((Namespace { kind, lifeline, told: told(), processes }, held)))
            }
            Err(source) => {
                let program = spec.program.clone();
                Err(ProcessError::Start { program, action: "make a pipe", source })
            }
        },
        Err(_) if spec.allow_stray_children => Ok(None),
        Err(source) => Err(ProcessError::Unsupported { program: spec.program.clone(), source }),
    }
}

fn c_string(text: &OsStr, place: impl Fn() -> String) -> Result<CString, ProcessError> {
    CString::new(text.as_bytes()).map_err(|_| ProcessError::Nul { place: place() })
}

fn variable(name: &OsString, value: &OsString) -> Result<CString, ProcessError> {
    let shown = name.to_string_lossy();
    if name.is_empty() || name.as_bytes().contains(&b'=') {
        return Err(ProcessError::Variable { name: shown.into_owned() });
    }
    let mut entry = name.clone();
    entry.push("=");
    entry.push(value);
    c_string(&entry, || format!("the environment variable `{}`", shown.escape_debug()))
}

fn not_started(spec: ProcessSpec, error: io::Error, bytes: usize) -> ProcessError {
    let ProcessSpec { program, working_dir, .. } = spec;
    let (stage, source) = Stage::of(error);
    let kind = source.kind();
    match stage {
        Some(Stage::WorkingDir) => ProcessError::WorkingDir { path: working_dir, source },
        Some(Stage::Exec) => match kind {
            io::ErrorKind::NotFound if is_there(&program) => {
                ProcessError::NoInterpreter { program }
            }
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                ProcessError::NotFound { program }
            }
            io::ErrorKind::ArgumentListTooLong => ProcessError::TooLong { program, bytes },
            _ if program.is_dir() => ProcessError::IsFolder { program },
            _ => ProcessError::NotExecutable { program, source },
        },
        _ => {
            let action = stage.unwrap_or(Stage::Fork).action();
            ProcessError::Start { program, action, source }
        }
    }
}

fn is_there(program: &Path) -> bool {
    program.symlink_metadata().is_ok()
}
