//! Test programs, and a check whether a process of a tree still lives.

use std::{
    fs::{self, File, TryLockError},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::process::{
    ProcessEnd, ProcessError, ProcessOutput, ProcessSpec, Processes, RunSpec,
};

/// Long enough for any machine; only what hangs takes so long.
pub(crate) const HANGS: Duration = Duration::from_secs(300);

/// A daemon: forked twice, in a separate session, without our pipes.
pub(crate) const DAEMON: &str = "(setsid sleep 1000 >/dev/null 2>&1 </dev/null &)";

/// A program that a shell runs; `$1` and so on are the arguments.
pub(crate) fn sh(script: &str, args: &[&str]) -> ProcessSpec {
    let mut spec = ProcessSpec::new("/bin/sh", "/");
    spec.args = ["-c", script, "sh"].iter().chain(args).map(Into::into).collect();
    spec.env = vec![("PATH".into(), "/usr/bin:/bin:/usr/sbin:/sbin".into())];
    spec
}

pub(crate) async fn run(spec: impl Into<RunSpec>) -> Result<ProcessOutput, ProcessError> {
    run_until(spec, &CancellationToken::new()).await
}

pub(crate) async fn run_until(
    spec: impl Into<RunSpec>,
    cancellation: &CancellationToken,
) -> Result<ProcessOutput, ProcessError> {
    let processes = Processes::any();
    let run = processes.run(spec, cancellation, |_, _| {});
    tokio::time::timeout(HANGS, run).await.expect("it hangs")
}

/// Repeats it for as long as the program is killed before it could act: on a busy machine its time
/// may be over before it gets any.
pub(crate) async fn in_time<T>(once: impl AsyncFn() -> (ProcessEnd, T)) -> (ProcessEnd, T) {
    let began = Instant::now();
    loop {
        let (ended, more) = once().await;
        if ended != ProcessEnd::Signal(9) || began.elapsed() > HANGS {
            return (ended, more);
        }
    }
}

pub(crate) fn text(captured: &toolcrib_capabilities::process::CapturedOutput) -> &str {
    assert!(!captured.is_truncated());
    std::str::from_utf8(captured.head()).unwrap()
}

/// A file whose lock is held as long as anybody lives of a program that began with [`HOLD`].
pub(crate) struct Lock {
    _folder: TempDir,
    pub(crate) path: PathBuf,
}

/// A shell takes the lock `$1`, and everything that it starts inherits it.
pub(crate) const HOLD: &str = "exec 9>>\"$1\"; flock -n 9 || exit 99; ";

impl Lock {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        File::create(&path).unwrap();
        Self { _folder: folder, path }
    }

    /// A shell script that takes the lock first.
    pub(crate) fn held_by(&self, script: &str) -> ProcessSpec {
        sh(&format!("{HOLD}{script}"), &[self.path.to_str().unwrap()])
    }

    /// Whether anybody lives.
    pub(crate) fn is_held(&self) -> bool {
        is_held(&self.path)
    }

    /// Waits until it is taken, or until it is free.
    pub(crate) async fn wait_until_held(&self, held: bool) {
        let began = Instant::now();
        while self.is_held() != held {
            assert!(began.elapsed() < HANGS, "still held: {}", !held);
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
}

pub(crate) fn is_held(path: &Path) -> bool {
    match File::open(path).unwrap().try_lock() {
        Ok(()) => false,
        Err(TryLockError::WouldBlock) => true,
        Err(TryLockError::Error(error)) => panic!("{error}"),
    }
}

/// A file that anybody may execute.
pub(crate) fn executable(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}
