//! Processes, rights and resources of the host.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use toolcrib_capabilities::process::{ExceededLimit, ProcessEnd, SandboxTier, process_limit};
use toolcrib_skip::skip;

use crate::{
    sandbox::{CONFINED, Home, is_possible},
    support::{DAEMON, HOLD, is_held, run, text},
};

/// A process of the host, killed at the end.
struct Sleeper(std::process::Child);

impl Sleeper {
    fn new() -> Self {
        let mut sleep = Command::new("sleep");
        Self(sleep.arg("1000").stdin(Stdio::null()).spawn().unwrap())
    }

    fn lives(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn no_process_of_the_host_is_killed_or_read() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let mut sleeper = Sleeper::new();
        let (pid, host) = (sleeper.0.id(), std::process::id());
        let script = format!(
            "kill -9 {pid}; kill -9 {host}; kill -9 $PPID; cat /proc/{host}/environ /proc/{pid}/maps; \
             cat /proc/{host}/mem; (kill -9 -1); echo tried"
        );
        let finished = run(Home::new().sh(tier, &script)).await.unwrap();
        assert!(sleeper.lives(), "{tier}: {finished:?}");
        assert!(["tried\n", ""].contains(&text(&finished.stdout)), "{tier}: {finished:?}");
    }
}

#[tokio::test]
async fn daemons_end_with_the_program() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let lock = home.project.join("out/lock");
        std::fs::write(&lock, "").unwrap();
        let mut spec = home.sh(tier, &format!("{HOLD}{DAEMON}; (setsid sh -c 'sleep 1000 &' &)"));
        spec.args.truncate(3);
        spec.args.push(lock.clone().into());
        assert_eq!(run(spec).await.unwrap().ended, ProcessEnd::Code(0), "{tier}");
        assert!(!is_held(&lock), "{tier}: a daemon is left");
    }
}

#[tokio::test]
async fn a_fork_bomb_stays_inside_its_limit() {
    if let Err(missing) = process_limit() {
        return skip(missing);
    }
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let mut spec = home.sh(tier, "i=0; while :; do sleep 1000 & i=$((i+1)); echo $i; done");
        spec.limits.processes = Some(30);
        let finished = run(spec).await.unwrap();
        assert_eq!(finished.ended, ProcessEnd::Code(2), "{tier}: {finished:?}");
        let (_, output) = home.output(tier, "echo $(echo lives)").await;
        assert_eq!(output, "lives\n", "{tier}");
    }
}

#[tokio::test]
async fn memory_file_size_and_time_are_limited() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let mut spec = home.sh(tier, "x=$(head -c 400000000 /dev/zero | tr '\\0' x); echo $?");
        spec.limits.memory = Some(128 << 20);
        let finished = run(spec).await.unwrap();
        assert_ne!(finished.ended, ProcessEnd::Code(0), "{tier}: {finished:?}");

        let (_, output) = home.output(tier, "head -c 400000000 /dev/zero > \"$TMPDIR/big\"").await;
        assert!(output.contains("No space left"), "{tier}, temporary folder: {output}");

        let mut spec = home.sh(tier, "head -c 2000000 /dev/zero > out/big");
        spec.limits.file_size = Some(1 << 20);
        run(spec).await.unwrap();
        let size = home.project.join("out/big").metadata().unwrap().len();
        assert!(size <= 1 << 20, "{tier}: {size}");

        let mut spec = home.sh(tier, "while :; do :; done");
        spec.limits.cpu_time = Some(Duration::from_secs(1));
        let ended = run(spec).await.unwrap().ended;
        assert_eq!(ended.exceeded(), Some(ExceededLimit::CpuTime), "{tier}: {ended:?}");
    }
}

#[tokio::test]
async fn no_program_gains_rights_mounts_or_namespaces() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let script = "grep -E '^(CapEff|CapBnd|NoNewPrivs)' /proc/self/status; \
                      mount -t tmpfs none out && echo mounted; \
                      umount /dev/shm && echo unmounted; umount /proc && echo unmounted; \
                      mount -o remount,rw / && echo remounted; \
                      su -c 'echo gained' nobody </dev/null; \
                      unshare -Urm mount -t tmpfs none out && echo mounted; \
                      chroot / echo changed; echo x > /proc/sys/kernel/core_pattern && echo set";
        let finished = run(Home::new().sh(tier, script)).await.unwrap();
        let stdout = text(&finished.stdout);
        assert!(stdout.starts_with("CapEff:\t0000000000000000\nCapBnd:"), "{tier}: {stdout}");
        assert!(stdout.ends_with("NoNewPrivs:\t1\n"), "{tier}: {finished:?}");
    }
}

#[tokio::test]
async fn no_program_in_full_makes_a_namespace() {
    if !is_possible(SandboxTier::Full) {
        return;
    }
    let script = "for flags in -U -n -m -p -i -u -C -T; do unshare $flags true && echo $flags; done; \
                  nsenter -t $$ -n true && echo entered";
    let finished = run(Home::new().sh(SandboxTier::Full, script)).await.unwrap();
    assert_eq!(text(&finished.stdout), "", "{finished:?}");
    let finished = run(Home::new().sh(SandboxTier::Tree, "unshare -U true && echo made")).await;
    // Where user namespaces are switched off, nothing is shown by this.
    println!("without the filter: {:?}", finished.unwrap().ended);
}
