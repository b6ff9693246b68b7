//! However a program ends, nothing of it is left.

use std::{pin::pin, time::Duration};

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::process::{ExceededLimit, ProcessEnd, Processes, support};

use crate::support::{DAEMON, Lock, in_time, run, run_until, sh, text};

#[test]
fn this_machine_can_hold_on_to_what_programs_start() {
    assert_eq!(support(), Ok(()));
}

#[tokio::test]
async fn exit_codes_and_signals_come_back_as_they_were() {
    for code in [0, 1, 2, 126, 127, 128, 137, 255] {
        let finished = run(sh("exit \"$1\"", &[&code.to_string()])).await.unwrap();
        assert_eq!(finished.ended, ProcessEnd::Code(code));
        assert!(!finished.cut_off);
    }
    for (name, number) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("ABRT", 6), ("HUP", 1)] {
        let finished = run(sh("kill -s \"$1\" $$", &[name])).await.unwrap();
        assert_eq!(finished.ended, ProcessEnd::Signal(number));
        assert_eq!(finished.ended.to_string(), format!("SIG{name}"));
    }
    assert_eq!(ProcessEnd::Signal(40).to_string(), "signal 40");
    assert_eq!(ProcessEnd::Code(3).to_string(), "exit code 3");
}

#[tokio::test]
async fn daemons_end_with_the_program_that_started_them() {
    let lock = Lock::new();
    let finished = run(lock.held_by(&format!("{DAEMON}; echo started"))).await.unwrap();
    assert!(!lock.is_held(), "the daemon is there still");
    assert_eq!((finished.ended, text(&finished.stdout)), (ProcessEnd::Code(0), "started\n"));
}

#[tokio::test]
async fn a_child_that_keeps_the_pipes_keeps_nobody_waiting() {
    let lock = Lock::new();
    let finished =
        run(lock.held_by("sleep 1000 & setsid sleep 1000 & echo out; echo err >&2")).await;
    let finished = finished.unwrap();
    assert!(!lock.is_held());
    assert_eq!((text(&finished.stdout), text(&finished.stderr)), ("out\n", "err\n"));
}

#[tokio::test]
async fn a_cancelled_program_is_terminated_and_then_killed() {
    let polite = Lock::new();
    let script = "trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.01; done";
    let (ended, finished) = in_time(async || {
        let finished = cancelled_when_ready(&polite, script).await;
        (finished.ended, finished)
    })
    .await;
    assert_eq!((ended, finished.cut_off), (ProcessEnd::Code(7), true));
    assert_eq!(text(&finished.stdout), "ready\nbye\n");
    assert!(!polite.is_held());

    let deaf = Lock::new();
    let script = format!("trap '' TERM; {DAEMON}; echo ready; while :; do sleep 1000; done");
    let finished = cancelled_when_ready(&deaf, &script).await;
    assert_eq!((finished.ended, finished.cut_off), (ProcessEnd::Signal(9), true));
    assert_eq!(text(&finished.stdout), "ready\n", "what came before is kept");
    assert!(!deaf.is_held());

    // Stopped ones hear nothing until they are killed.
    let stopped = Lock::new();
    let finished = cancelled_when_ready(&stopped, STOPPED).await;
    assert_eq!(finished.ended, ProcessEnd::Signal(9));
    assert!(!stopped.is_held());
}

/// It reports that it is ready once it is stopped.
const STOPPED: &str = "(until grep -q 'State:.T' /proc/$$/status; do :; done; echo ready) & \
                       kill -s STOP $$";

async fn cancelled_when_ready(
    lock: &Lock,
    script: &str,
) -> toolcrib_capabilities::process::ProcessOutput {
    let cancellation = CancellationToken::new();
    let ready = cancellation.clone();
    let processes = Processes::any();
    let run = processes.run(lock.held_by(script), &cancellation, move |_, _| ready.cancel());
    tokio::time::timeout(crate::support::HANGS, run).await.expect("it hangs").unwrap()
}

#[tokio::test]
async fn a_dropped_program_is_killed_at_once() {
    let lock = Lock::new();
    let cancellation = CancellationToken::new();
    let processes = Processes::any();
    let script = format!("trap '' TERM; {DAEMON}; while :; do sleep 1000; done");
    {
        let mut run = pin!(processes.run(lock.held_by(&script), &cancellation, |_, _| {}));
        tokio::select! {
            _ = &mut run => panic!("it ended"),
            () = lock.wait_until_held(true) => {}
        }
    }
    lock.wait_until_held(false).await;
}

#[tokio::test]
async fn a_fork_bomb_ends_with_its_time() {
    let lock = Lock::new();
    let cancellation = CancellationToken::new();
    // Every one starts two, down to so many levels that all of them together are a few hundred.
    let bomb = "b() { [ $1 -gt 0 ] && { b $(($1-1)) & b $(($1-1)) & }; \
                trap '' TERM; while :; do sleep 1000; done; }; b 7 & echo ready; wait";
    let run = run_until(lock.held_by(bomb), &cancellation);
    let cancel = async {
        lock.wait_until_held(true).await;
        // However many have begun by then.
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancellation.cancel();
    };
    let (finished, ()) = tokio::join!(run, cancel);
    assert!(finished.unwrap().cut_off);
    assert!(!lock.is_held());
}

#[tokio::test]
async fn a_program_cannot_end_those_who_watch_it() {
    // Every visible process gets a signal: PID 1 of its namespace, its group, and any process that
    // is not its child.
    let lock = Lock::new();
    let script = "trap '' TERM HUP INT; \
                  kill -s KILL 1 2>/dev/null; kill -s TERM 0; kill -s INT -1; echo alive";
    let finished = run(lock.held_by(&format!("{DAEMON}; {script}"))).await.unwrap();
    assert_eq!((finished.ended, text(&finished.stdout)), (ProcessEnd::Code(0), "alive\n"));
    assert!(!lock.is_held());
    let finished = run(lock.held_by(&format!("{DAEMON}; kill -s KILL 0; kill -s KILL -1"))).await;
    assert_eq!(finished.unwrap().ended, ProcessEnd::Signal(9));
    assert!(!lock.is_held());
}

#[tokio::test]
async fn the_memory_of_a_program_is_limited() {
    let mut spec = sh("head -c 300000000 /dev/zero | tail -c 300000000 | wc -c", &[]);
    spec.limits.memory = Some(100 * 1024 * 1024);
    let finished = run(spec.clone()).await.unwrap();
    assert_eq!(finished.ended.exceeded(), Some(ExceededLimit::Memory(100 << 20)), "{finished:?}");
    spec.limits.memory = Some(1024 * 1024 * 1024);
    let finished = run(spec).await.unwrap();
    assert_eq!(text(&finished.stdout).trim(), "300000000");
}
