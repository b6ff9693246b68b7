//! Programs that are talked with.

use std::time::Duration;

use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    time::timeout,
};
use toolcrib_capabilities::process::{
    ChildStdin, ChildStdout, Process, ProcessEnd, ProcessError, ProcessSpec, Processes,
    STDERR_TAIL_BYTES,
};

use crate::support::{DAEMON, HANGS, Lock, in_time, sh};

/// Longer than any test takes: a test that waits for it hangs.
const NEVER: Duration = Duration::from_secs(3600);

pub(crate) async fn start(spec: ProcessSpec) -> Process {
    Processes::any().start(spec).await.unwrap()
}

pub(crate) async fn wait(process: &mut Process) -> ProcessEnd {
    timeout(HANGS, process.wait()).await.expect("it hangs").unwrap()
}

pub(crate) async fn close(process: &mut Process, grace: Duration) -> ProcessEnd {
    timeout(HANGS, process.close(grace)).await.expect("it hangs").unwrap()
}

/// Both ends of a talk, taken.
fn pipes(process: &mut Process) -> (ChildStdin, Lines<BufReader<ChildStdout>>) {
    let (stdin, stdout) = (process.take_stdin().unwrap(), process.take_stdout().unwrap());
    assert!(process.take_stdin().is_none() && process.take_stdout().is_none());
    (stdin, BufReader::new(stdout).lines())
}

async fn next(lines: &mut Lines<BufReader<ChildStdout>>) -> Option<String> {
    timeout(HANGS, lines.next_line()).await.expect("it hangs").unwrap()
}

/// The next line of the program's output.
pub(crate) async fn hear(process: &mut Process) -> String {
    let mut lines = BufReader::new(process.take_stdout().unwrap()).lines();
    next(&mut lines).await.unwrap()
}

#[tokio::test]
async fn each_word_is_answered_before_the_next() {
    let script = "while read word; do echo \"heard $word\"; done; echo over; echo why >&2; exit 3";
    let mut process = start(sh(script, &[])).await;
    let (mut stdin, mut lines) = pipes(&mut process);
    for word in ["one", "two", "three"] {
        stdin.write_all(format!("{word}\n").as_bytes()).await.unwrap();
        assert_eq!(next(&mut lines).await, Some(format!("heard {word}")));
    }
    // Shutting it down is not yet the end.
    stdin.shutdown().await.unwrap();
    stdin.write_all(b"four\n").await.unwrap();
    assert_eq!(next(&mut lines).await.as_deref(), Some("heard four"));
    drop(stdin);
    assert_eq!(wait(&mut process).await, ProcessEnd::Code(3));
    // Output from before the end can still be read.
    assert_eq!(next(&mut lines).await.as_deref(), Some("over"));
    assert_eq!(next(&mut lines).await, None);
    assert_eq!(process.stderr_tail(), b"why\n");
}

#[tokio::test]
async fn large_volumes_go_both_ways_at_once() {
    let mut process = start(sh("exec cat", &[])).await;
    let (mut stdin, mut stdout) = (process.take_stdin().unwrap(), process.take_stdout().unwrap());
    let sent: Vec<u8> = (0..=250).cycle().take(32 * 1024 * 1024).collect();
    let mut came = Vec::with_capacity(sent.len());
    let talk = async {
        tokio::join!(
            async {
                stdin.write_all(&sent).await.unwrap();
                drop(stdin);
            },
            async { stdout.read_to_end(&mut came).await.unwrap() },
        )
    };
    timeout(HANGS, talk).await.expect("it hangs");
    assert!(came == sent, "{} of {} bytes", came.len(), sent.len());
    assert_eq!(wait(&mut process).await, ProcessEnd::Code(0));
}

#[tokio::test]
async fn a_program_that_ends_by_itself_returns_its_status() {
    for (script, ended) in [
        ("exit 0", ProcessEnd::Code(0)),
        ("echo why >&2; exit 9", ProcessEnd::Code(9)),
        ("kill -s SEGV $$", ProcessEnd::Signal(11)),
    ] {
        let mut process = start(sh(script, &[])).await;
        assert_eq!(wait(&mut process).await, ended);
        assert_eq!(wait(&mut process).await, ended, "it says the same again");
        assert_eq!(close(&mut process, NEVER).await, ended);
    }
    let mut process = start(sh("read word; exit 4", &[])).await;
    assert!(timeout(Duration::from_millis(20), process.wait()).await.is_err());
    let mut stdin = process.take_stdin().unwrap();
    stdin.write_all(b"go\n").await.unwrap();
    assert_eq!(
        wait(&mut process).await,
        ProcessEnd::Code(4),
        "a wait that was dropped loses nothing"
    );
    let error = stdin.write_all(b"more\n").await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test]
async fn a_program_that_ends_by_itself_leaves_no_process() {
    let lock = Lock::new();
    let mut process = start(lock.held_by(&format!("{DAEMON}; sleep 1000 & echo ready"))).await;
    let mut lines = BufReader::new(process.take_stdout().unwrap()).lines();
    assert_eq!(next(&mut lines).await.as_deref(), Some("ready"));
    assert_eq!(wait(&mut process).await, ProcessEnd::Code(0));
    assert!(!lock.is_held());
    assert_eq!(next(&mut lines).await, None, "nobody is left to write");
}

#[tokio::test]
async fn a_program_that_ends_at_the_end_of_its_input_is_given_time() {
    let lock = Lock::new();
    let mut process = start(lock.held_by(&format!(
        "trap 'exit 7' TERM; {DAEMON}; echo ready; while read word; do :; done; sleep 0.1; \
         echo bye >&2; exit 5"
    )))
    .await;
    assert_eq!(hear(&mut process).await, "ready");
    assert_eq!(close(&mut process, NEVER).await, ProcessEnd::Code(5));
    assert_eq!(process.stderr_tail(), b"bye\n");
    assert!(!lock.is_held());
}

#[tokio::test]
async fn a_program_that_ignores_the_end_of_its_input_is_terminated_and_then_killed() {
    let polite = Lock::new();
    let script = "trap 'echo asked >&2; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let (ended, process) = in_time(async || {
        let mut process = start(polite.held_by(script)).await;
        assert_eq!(hear(&mut process).await, "ready");
        (close(&mut process, Duration::from_millis(20)).await, process)
    })
    .await;
    assert_eq!(ended, ProcessEnd::Code(7));
    // After the shell's message about the awaited process.
    assert!(process.stderr_tail().ends_with(b"asked\n"));
    assert!(!polite.is_held());

    let deaf = Lock::new();
    let script = format!("trap '' TERM HUP; {DAEMON}; echo ready; while :; do sleep 1000; done");
    let mut process = start(deaf.held_by(&script)).await;
    assert_eq!(hear(&mut process).await, "ready");
    assert_eq!(close(&mut process, Duration::ZERO).await, ProcessEnd::Signal(9));
    assert!(!deaf.is_held());
    assert_eq!(close(&mut process, NEVER).await, ProcessEnd::Signal(9), "once more is no harm");

    // One that waits for more of a stdin that another process has open.
    let mut process = start(sh("echo ready; exec cat", &[])).await;
    let held = process.take_stdin();
    assert_eq!(hear(&mut process).await, "ready");
    let ended = close(&mut process, Duration::from_millis(20)).await;
    assert!(matches!(ended, ProcessEnd::Signal(15 | 9)), "{ended}");
    drop(held);
}

#[tokio::test]
async fn a_close_that_is_dropped_can_be_begun_again() {
    let lock = Lock::new();
    let mut process = start(lock.held_by("trap '' TERM; echo ready; sleep 1000")).await;
    assert_eq!(hear(&mut process).await, "ready");
    assert!(timeout(Duration::from_millis(20), process.close(NEVER)).await.is_err());
    assert!(lock.is_held());
    assert_eq!(close(&mut process, Duration::ZERO).await, ProcessEnd::Signal(9));
    assert!(!lock.is_held());
}

#[tokio::test]
async fn a_dropped_program_is_killed_at_once() {
    let lock = Lock::new();
    let script = format!("trap '' TERM; {DAEMON}; echo ready; while :; do sleep 1000; done");
    let mut process = start(lock.held_by(&script)).await;
    let (_stdin, mut lines) = pipes(&mut process);
    assert_eq!(next(&mut lines).await.as_deref(), Some("ready"));
    drop(process);
    lock.wait_until_held(false).await;
    assert_eq!(next(&mut lines).await, None);
}

#[tokio::test]
async fn the_tail_of_stderr_is_kept() {
    let script = "head -c 104857600 /dev/zero >&2; echo the end >&2; echo heard; cat";
    let mut process = start(sh(script, &[])).await;
    // It gets there only if the earlier output is read.
    assert_eq!(hear(&mut process).await, "heard");
    assert_eq!(close(&mut process, NEVER).await, ProcessEnd::Code(0));
    let tail = process.stderr_tail();
    assert_eq!(tail.len(), STDERR_TAIL_BYTES);
    assert!(tail.starts_with(b"\0") && tail.ends_with(b"\0the end\n"));
}

#[tokio::test]
async fn a_program_has_the_given_environment_and_folder() {
    let said = async |spec| {
        let mut process = start(spec).await;
        let mut said = String::new();
        process.take_stdout().unwrap().read_to_string(&mut said).await.unwrap();
        assert_eq!(wait(&mut process).await, ProcessEnd::Code(0));
        said
    };
    let mut spec = ProcessSpec::new("/usr/bin/env", "/");
    assert_eq!(said(spec.clone()).await, "");
    spec.env = vec![("A".into(), "1=2".into()), ("B".into(), "".into())];
    assert_eq!(said(spec).await, "A=1=2\nB=\n");
    let mut spec = sh("pwd; ls /proc/self/fd | tr '\\n' ' '", &[]);
    spec.working_dir = "/usr".into();
    assert_eq!(said(spec).await, "/usr\n0 1 2 3 ");
}

#[tokio::test]
async fn a_conversation_that_cannot_start_is_an_error_with_the_reason() {
    let some = Processes::any().only(["/bin/true", "/no/such/program"]);
    let error = async |program: &str| some.start(ProcessSpec::new(program, "/")).await.unwrap_err();
    let refused = error("/bin/false").await;
    assert!(matches!(refused, ProcessError::NotAllowed { .. }), "{refused}");
    let missing = error("/no/such/program").await;
    assert!(matches!(missing, ProcessError::NotFound { .. }), "{missing}");
    some.start(ProcessSpec::new("/bin/true", "/")).await.unwrap();
}
