//! Hosts of all kinds: killed, without rights, careless, without namespaces. This binary runs itself
//! again as the host.

use std::{
    env, fs, io,
    os::unix::{fs::PermissionsExt as _, process::CommandExt as _},
    path::Path,
    process::{Command, Output, Stdio},
    thread::sleep,
    time::Duration,
};

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::process::{ProcessEnd, ProcessError, ProcessSpec, Processes, support};
use toolcrib_skip::skip;

use crate::{
    support::{DAEMON, HANGS, HOLD, Lock, is_held, run, sh, text},
    talking,
};

const ROLE: &str = "TOOLCRIB_TEST_ROLE";
const LOCK: &str = "TOOLCRIB_TEST_LOCK";
const NO_OTHER_USER: &str = "only root can become a user without rights";

/// Not a separate test: the hosts of the others.
#[tokio::test]
async fn host() {
    let Ok(role) = env::var(ROLE) else { return };
    match role.as_str() {
        "runs_a_daemon" => {
            run(daemon()).await.unwrap();
        }
        "talks_with_a_daemon" => {
            talking::wait(&mut talking::start(daemon()).await).await;
        }
        "hears_a_flood" => hears_a_flood().await,
        "has_no_threads" => {
            let error = run(sh("echo", &[])).await.unwrap_err();
            assert!(
                matches!(error, ProcessError::Start { action: "find a thread for it", .. }),
                "{error}"
            );
        }
        "is_careless" => {
            let script = "ls /proc/self/fd | tr '\\n' ' '; grep -E 'Sig(Blk|Ign)' /proc/self/status; \
                          umask";
            let finished = run(sh(script, &[])).await.unwrap();
            assert_eq!(
                text(&finished.stdout),
                "0 1 2 3 SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0077\n"
            );
        }
        "has_no_namespaces" => has_no_namespaces().await,
        other => panic!("no such role: {other}"),
    }
}

/// It has the lock that this host receives.
fn daemon() -> ProcessSpec {
    let script = format!("{HOLD}{DAEMON}; trap '' TERM HUP; while :; do sleep 1000; done");
    sh(&script, &[&env::var(LOCK).unwrap()])
}

/// Alone in its process, so that its memory can be looked at.
async fn hears_a_flood() {
    let most_kib = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
    };
    let mut process = talking::start(sh("exit 0", &[])).await;
    talking::wait(&mut process).await;
    let before = most_kib();
    let script = "head -c 104857600 /dev/zero >&2; echo heard; read word";
    let mut process = talking::start(sh(script, &[])).await;
    assert_eq!(talking::hear(&mut process).await, "heard");
    talking::close(&mut process, HANGS).await;
    let more = most_kib() - before;
    assert!(more < 8 * 1024, "{more} KiB more for 100 MiB of stderr");
}

async fn has_no_namespaces() {
    let reason = support().unwrap_err();
    assert!(reason.to_string().contains("user.max_pid_namespaces"), "{reason}");
    let refused = run(sh("echo", &[])).await.unwrap_err();
    assert!(matches!(refused, ProcessError::Unsupported { .. }), "{refused}");
    assert!(refused.to_string().contains(&reason.to_string()), "{refused}");

    // With less it still ends, with its group, and no wait hangs.
    let lock = Lock::new();
    let mut spec = lock.held_by("sleep 1000 & echo out; exit 3");
    spec.allow_stray_children = true;
    let finished = run(spec).await.unwrap();
    assert_eq!((finished.ended, text(&finished.stdout)), (ProcessEnd::Code(3), "out\n"));
    lock.wait_until_held(false).await;

    let cancellation = CancellationToken::new();
    let mut spec = lock.held_by("trap '' TERM; sleep 1000 & echo out; wait");
    spec.allow_stray_children = true;
    let ready = cancellation.clone();
    let processes = Processes::any();
    let finished = processes.run(spec.clone(), &cancellation, move |_, _| ready.cancel()).await;
    assert_eq!(finished.unwrap().ended, ProcessEnd::Signal(9));
    lock.wait_until_held(false).await;

    let never = CancellationToken::new();
    tokio::select! {
        _ = processes.run(spec, &never, |_, _| {}) => panic!("it ended"),
        () = lock.wait_until_held(true) => {}
    }
    lock.wait_until_held(false).await;

    has_no_namespaces_to_talk_in().await;

    // A process that left the group and has the pipe open delays no wait either.
    let mut spec = sh("setsid sleep 3 & echo out", &[]);
    spec.allow_stray_children = true;
    assert_eq!(text(&run(spec).await.unwrap().stdout), "out\n");
}

async fn has_no_namespaces_to_talk_in() {
    let lock = Lock::new();
    let mut spec = lock.held_by("trap '' TERM; sleep 1000 & echo ready; wait");
    let refused = Processes::any().start(spec.clone()).await.unwrap_err();
    assert!(matches!(refused, ProcessError::Unsupported { .. }), "{refused}");
    spec.allow_stray_children = true;

    let mut process = talking::start(spec.clone()).await;
    assert_eq!(talking::hear(&mut process).await, "ready");
    assert_eq!(talking::close(&mut process, Duration::ZERO).await, ProcessEnd::Signal(9));
    lock.wait_until_held(false).await;

    let mut process = talking::start(spec).await;
    assert_eq!(talking::hear(&mut process).await, "ready");
    drop(process);
    lock.wait_until_held(false).await;

    let mut spec = lock.held_by("sleep 1000 & exit 3");
    spec.allow_stray_children = true;
    assert_eq!(talking::wait(&mut talking::start(spec).await).await, ProcessEnd::Code(3));
    lock.wait_until_held(false).await;

    // A process that left the group and has stderr open delays no wait.
    let mut spec = sh("setsid sleep 3 & echo why >&2; exit 4", &[]);
    spec.allow_stray_children = true;
    let mut process = talking::start(spec).await;
    assert_eq!(talking::wait(&mut process).await, ProcessEnd::Code(4));
    assert_eq!(process.stderr_tail(), b"why\n");
}

/// This binary as a host, after what a shell does first.
fn rerun(role: &str, before: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("{before} exec \"$0\" \"$@\"")])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "hosts::host", "--nocapture"])
        .env(ROLE, role);
    command
}

pub(crate) fn succeeds(command: &mut Command) {
    let output = loop {
        match command.output() {
            // A process that another test has just forked still has the copied program open for writing.
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                sleep(Duration::from_millis(10));
            }
            output => break output.unwrap(),
        }
    };
    let Output { status, stdout, stderr } = output;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{stdout}\n{stderr}");
    // Where nothing was run, nothing was tested.
    assert!(!stdout.contains(" 0 passed"), "{stdout}");
    stderr.lines().filter_map(|line| line.strip_prefix("skipped: ")).for_each(skip);
}

#[tokio::test]
async fn when_the_host_is_killed_all_that_it_runs_ends() {
    for role in ["runs_a_daemon", "talks_with_a_daemon"].repeat(2) {
        let lock = Lock::new();
        let mut host = rerun(role, "").env(LOCK, &lock.path).stdout(Stdio::null()).spawn().unwrap();
        lock.wait_until_held(true).await;
        host.kill().unwrap();
        host.wait().unwrap();
        lock.wait_until_held(false).await;
    }
}

#[test]
fn what_the_host_left_open_or_ignores_stays_with_it() {
    succeeds(&mut rerun("is_careless", "trap '' HUP INT TERM CHLD; umask 077; exec 7</dev/null;"));
}

#[test]
fn a_flood_of_complaints_takes_no_memory() {
    succeeds(&mut rerun("hears_a_flood", ""));
}

#[test]
fn a_host_without_threads_is_told_so() {
    let everybody = for_everybody();
    let program = match &everybody {
        Some((_, program)) => program.clone(),
        None => env::current_exe().unwrap(),
    };
    let mut command = Command::new("prlimit");
    command.args(["--nproc=1"]).arg(program).current_dir("/").env(ROLE, "has_no_threads");
    // With one thread, a test has no separate one.
    command.args(["--exact", "hosts::host", "--nocapture", "--test-threads=1"]);
    if everybody.is_some() {
        command.uid(65534).gid(65534);
    }
    succeeds(&mut command);
}

#[test]
fn a_user_without_rights_has_the_same_guarantees() {
    let Some((_folder, program)) = for_everybody() else { return skip(NO_OTHER_USER) };
    let mut command = Command::new(program);
    // The tests of guarantees; those of streams and of talking are about volumes.
    command.args(["attacks::", "ending::", "harm::", "sandbox::", "starting::"]);
    // The programs of another user, who installed them, cannot be run.
    command.args(["--skip", "package_managers"]);
    if env::var_os("TOOLCRIB_FULL").is_none() {
        // These run until a limit of time or memory ends them.
        command.args(["--skip", "memory_", "--skip", "computed_for_ever"]);
    }
    command.uid(65534).gid(65534).current_dir("/");
    succeeds(&mut command);
}

#[tokio::test]
async fn when_the_host_without_rights_is_killed_all_that_it_runs_ends() {
    let Some((_folder, program)) = for_everybody() else { return skip(NO_OTHER_USER) };
    let lock = Lock::new();
    open_to_everybody(lock.path.parent().unwrap());
    fs::set_permissions(&lock.path, fs::Permissions::from_mode(0o666)).unwrap();
    let mut host = Command::new(program)
        .args(["--exact", "hosts::host"])
        .env(ROLE, "runs_a_daemon")
        .env(LOCK, &lock.path)
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    lock.wait_until_held(true).await;
    host.kill().unwrap();
    host.wait().unwrap();
    lock.wait_until_held(false).await;
    assert!(!is_held(&lock.path));
}

/// This binary where a user without rights can run it; none where this user cannot become another,
/// and so has no rights that could be lost.
fn for_everybody() -> Option<(tempfile::TempDir, std::path::PathBuf)> {
    if !Command::new("/bin/true").uid(65534).status().is_ok_and(|status| status.success()) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    open_to_everybody(folder.path());
    let program = folder.path().join("host");
    // A copy by this process would be open for writing in what other tests fork meanwhile, and could not be
    // executed.
    let copied = Command::new("cp").arg(env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    Some((folder, program))
}

fn open_to_everybody(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn where_there_are_no_namespaces_only_who_says_so_goes_without() {
    let forbid = "echo 0 > /proc/sys/user/max_pid_namespaces || exit 1;";
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "/bin/sh", "-c"]);
    command.arg(format!("{forbid} exec \"$0\" \"$@\""));
    command.arg(env::current_exe().unwrap()).args(["--exact", "hosts::host", "--nocapture"]);
    command.env(ROLE, "has_no_namespaces");
    succeeds(&mut command);
}
