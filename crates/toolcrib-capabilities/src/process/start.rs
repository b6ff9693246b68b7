//! Starts a program from a spec.

use std::{
    ffi::{CString, OsStr, OsString},
    io::{self, PipeWriter},
    os::unix::{ffi::OsStrExt as _, net::UnixStream},
    path::Path,
    process::Stdio,
    thread,
    time::Instant,
};

#[cfg(all(target_os = "linux", feature = "http"))]
use tokio::net::TcpListener;
use tokio::{process::Command, runtime::Handle, sync::oneshot};

#[cfg(all(target_os = "linux", feature = "http"))]
use super::child;
#[cfg(not(target_os = "linux"))]
use super::guard::Guard;
#[cfg(target_os = "linux")]
use super::sandbox::{self, PreparedSandbox, prepare};
use super::{
    ProcessError, ProcessLimits, ProcessSpec,
    child::{ChildAction, Namespace, Plan, Processes, hide_host, told},
    life::{Life, Proxy, StartedProcess},
    namespaces::{Namespaces, namespaces},
    sandbox::{SandboxTier, sandbox_support},
    stage::Stage,
    tree::Tree,
};

/// Starts a program, with a pipe to its stdin, or with an empty stdin.
pub(super) async fn start(spec: ProcessSpec, is_fed: bool) -> Result<StartedProcess, ProcessError> {
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
fn fork(spec: ProcessSpec, is_fed: bool) -> Result<StartedProcess, ProcessError> {
    let began = Instant::now();
    for path in [&spec.program, &spec.working_dir] {
        if !path.is_absolute() {
            return Err(ProcessError::NotAbsolute { path: path.clone() });
        }
    }
    let sandbox = confined(&spec)?;
    let program = c_string(spec.program.as_os_str(), || "the program's path".to_owned())?;
    let mut argv = vec![program.clone()];
    for (position, argument) in spec.args.iter().enumerate() {
        argv.push(c_string(argument, || format!("argument {}", position + 1))?);
    }
    let environment = environment(&spec, sandbox.as_ref());
    let environment: Vec<CString> =
        environment.iter().map(|(name, value)| variable(name, value)).collect::<Result<_, _>>()?;
    let passed: usize = argv.iter().chain(&environment).map(|s| s.count_bytes()).sum();
    let working_dir = c_string(spec.working_dir.as_os_str(), || "the working folder".to_owned())?;
    let (namespace, lifeline) = namespace(&spec)?.unzip();
    #[cfg(target_os = "linux")]
    let (confinement, rest) = sandbox.map(PreparedSandbox::split).unzip();
    #[cfg(not(target_os = "linux"))]
    let rest: Option<(Option<UnixStream>, Guard)> = None;
    let (network, guard) = rest.unzip();
    let plan = Plan {
        finish: ChildAction::Execute {
            program,
            argv: argv.into(),
            environment: environment.into(),
        },
        working_dir,
        limits: spec.limits,
        namespace,
        #[cfg(target_os = "linux")]
        confinement,
        keeps_rights: spec.sandbox.tier == SandboxTier::None,
    };
    let mut command = Command::from(plan.into_command());
    command
        .stdin(if is_fed { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    hide_host();
    match command.spawn() {
        Ok(mut child) => {
            let tree = Tree::new(child.id(), lifeline, spec.limits).map_err(|source| {
                let program = spec.program.clone();
                ProcessError::Start { program, action: "start a thread", source }
            })?;
            let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
            let stderr = child.stderr.take();
            let proxy = proxy(&spec, network.flatten())?;
            let life = Life::new(tree, child, spec.program, proxy, guard);
            Ok(StartedProcess { life, stdin, stdout, stderr, began })
        }
        Err(error) => Err(not_started(spec, error, passed)),
    }
}

/// The namespace to be created, and the end of its lifeline that keeps it alive. `None` if none is
/// possible and the spec permits that.
fn namespace(spec: &ProcessSpec) -> Result<Option<(Namespace, PipeWriter)>, ProcessError> {
    if spec.sandbox.tier == SandboxTier::None {
        return Ok(None);
    }
    match namespaces() {
        Ok(found) => lifeline(found, spec.limits).map(Some).map_err(|source| {
            let program = spec.program.clone();
            ProcessError::Start { program, action: "make a pipe", source }
        }),
        Err(_) if spec.allow_stray_children && spec.sandbox.tier <= SandboxTier::Tree => Ok(None),
        Err(source) => Err(ProcessError::Unsupported { program: spec.program.clone(), source }),
    }
}

/// A namespace with these limits, and the end of its lifeline that keeps it alive.
pub(super) fn lifeline(
    found: Namespaces,
    limits: ProcessLimits,
) -> io::Result<(Namespace, PipeWriter)> {
    let Namespaces { kind, process_limit } = found;
    let (lifeline, held) = io::pipe()?;
    let processes = Processes::at_most(limits.processes, process_limit);
    Ok((Namespace { kind, lifeline, told: told(), processes }, held))
}

/// The sandbox of a tier above [`SandboxTier::Tree`], which this machine has to enforce.
fn confined(spec: &ProcessSpec) -> Result<Option<PreparedSandbox>, ProcessError> {
    let tier = spec.sandbox.tier;
    if tier <= SandboxTier::Tree {
        return Ok(None);
    }
    sandbox_support(tier).map_err(|source| {
        let program = spec.program.clone();
        ProcessError::Sandbox { program, tier, source }
    })?;
    prepared(spec)
}

/// No sandbox is prepared on other systems.
#[cfg(not(target_os = "linux"))]
enum PreparedSandbox {}

#[cfg(target_os = "linux")]
fn prepared(spec: &ProcessSpec) -> Result<Option<PreparedSandbox>, ProcessError> {
    prepare(&spec.sandbox, &spec.program, &spec.working_dir).map(Some)
}

/// The self-test refuses these tiers on other systems.
#[cfg(not(target_os = "linux"))]
fn prepared(_: &ProcessSpec) -> Result<Option<PreparedSandbox>, ProcessError> {
    Ok(None)
}

#[cfg(target_os = "linux")]
fn environment(spec: &ProcessSpec, sandbox: Option<&PreparedSandbox>) -> Vec<(OsString, OsString)> {
    match sandbox {
        Some(prepared) => sandbox::environment(&spec.env, prepared),
        None => spec.env.clone(),
    }
}

#[cfg(not(target_os = "linux"))]
fn environment(spec: &ProcessSpec, _: Option<&PreparedSandbox>) -> Vec<(OsString, OsString)> {
    spec.env.clone()
}

/// Serves the network of a started program.
#[cfg(all(target_os = "linux", feature = "http"))]
fn proxy(spec: &ProcessSpec, network: Option<UnixStream>) -> Result<Option<Proxy>, ProcessError> {
    let (Some(network), Some(proxy)) = (network, spec.sandbox.network.clone()) else {
        return Ok(None);
    };
    let listener = child::receive(&network).and_then(|listener| {
        listener.set_nonblocking(true)?;
        TcpListener::from_std(listener)
    });
    let listener = listener.map_err(|source| {
        let program = spec.program.clone();
        ProcessError::Start { program, action: "pass on the listener of its network", source }
    })?;
    let mut serving = Proxy::new();
    serving.spawn(proxy.serve(listener));
    Ok(Some(serving))
}

#[cfg(not(all(target_os = "linux", feature = "http")))]
fn proxy(_: &ProcessSpec, _: Option<UnixStream>) -> Result<Option<Proxy>, ProcessError> {
    Ok(None)
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
    let ProcessSpec { program, working_dir, sandbox, .. } = spec;
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
            io::ErrorKind::PermissionDenied if sandbox.tier >= SandboxTier::Files => {
                let why = "the sandbox permits neither its interpreter nor its loader; grant the \
                           folder that it is installed in";
                ProcessError::SandboxFolder { path: program, source: io::Error::other(why) }
            }
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
