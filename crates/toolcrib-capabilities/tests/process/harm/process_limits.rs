//! Programs had all rights of the host, and no resource limits. All tests but those with a separate
//! host run again as a user without rights: see `hosts`.

use std::{
    env, fs,
    process::{Command, Stdio},
    time::Duration,
};

use toolcrib_capabilities::process::{
    ExceededLimit, ProcessEnd, ProcessSpec, process_limit, support,
};

use crate::{
    hosts::succeeds,
    support::{run, sh, text},
    talking,
};

const ROLE: &str = "TOOLCRIB_TEST_HARM_ROLE";
const MARKER: &str = "TOOLCRIB_TEST_MARKER";

/// Looks for the marker in all that `/proc` shows of other processes.
const SEARCH: &str = "for process in /proc/[0-9]*; do \
    (tr '\\0' '\\n' < $process/environ) 2>/dev/null | grep TOOLCRIB_TEST_MARKER; \
    [ $process = /proc/$$ ] || ! (: < $process/mem) 2>/dev/null || echo \"$process is open\"; \
    done; echo searched";

fn rights() -> ProcessSpec {
    sh("grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs):' /proc/self/status; cat", &[])
}

const NO_RIGHTS: &str = "CapInh:\t0000000000000000\nCapPrm:\t0000000000000000\n\
    CapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000\n\
    NoNewPrivs:\t1\n";

#[tokio::test]
async fn a_program_had_the_capabilities_of_its_host() {
    assert_eq!(text(&run(rights()).await.unwrap().stdout), NO_RIGHTS);
    let mut talks = talking::start(rights()).await;
    assert_eq!(talking::hear(&mut talks).await, NO_RIGHTS.lines().next().unwrap());
}

#[tokio::test]
async fn a_fork_bomb_took_all_processes_there_were() {
    process_limit().unwrap();
    for most in [20, 40] {
        let mut spec = sh("i=0; while :; do sleep 1000 & i=$((i+1)); echo $i; done", &[]);
        spec.limits.processes = Some(most);
        let finished = run(spec).await.unwrap();
        assert_eq!(finished.ended, ProcessEnd::Code(2), "{finished:?}");
        let children = text(&finished.stdout).lines().last().unwrap().parse::<u32>().unwrap();
        assert_eq!(children, most - 1, "it is one itself");
        // The next program has its own limit.
        assert_eq!(text(&run(sh("echo $(echo lives)", &[])).await.unwrap().stdout), "lives\n");
    }
}

#[tokio::test]
async fn a_program_lifted_its_own_limits() {
    let script = "echo 4000000 > /proc/sys/kernel/pid_max; echo 300 > /proc/sys/kernel/ns_last_pid; \
                  umount /proc/sys; umount /proc; unshare --user --map-root-user umount /proc; \
                  unshare --user --map-root-user --mount sh -c 'umount -l /proc/sys; \
                  echo 4000000 > /proc/sys/kernel/pid_max'; \
                  ulimit -u 100000; ulimit -f unlimited; ulimit -t unlimited; \
                  i=0; while :; do sleep 1000 & i=$((i+1)); echo $i; done";
    let mut spec = sh(script, &[]);
    spec.limits.processes = Some(20);
    let finished = run(spec).await.unwrap();
    assert_eq!(text(&finished.stdout).lines().last(), Some("19"), "{finished:?}");
}

#[test]
fn root_without_capabilities_changed_the_machine() {
    // Another user may not write these files in the first place, root needs no capability.
    let before = fs::read("/proc/sys/kernel/core_pattern").unwrap();
    let script = "for file in /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do \
                  (: >> $file) 2>/dev/null && echo \"$file is open\"; done; \
                  mkdir /sys/fs/cgroup/toolcrib 2>/dev/null && echo \"/sys is open\"; echo tried";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let finished = runtime.block_on(run(sh(script, &[]))).unwrap();
    assert_eq!(text(&finished.stdout), "tried\n");
    assert_eq!(fs::read("/proc/sys/kernel/core_pattern").unwrap(), before);
}

#[test]
fn root_without_capabilities_opened_devices_of_the_machine() {
    // Another user may not open them in the first place; a device that every user may open is left out.
    let script = "for device in /dev/mem /dev/vda /dev/sda /dev/nvme0n1 /dev/loop0 /dev/loop-control \
                  /dev/kvm /dev/fuse /dev/tty0; do \
                  [ -e $device ] && [ -z \"$(find $device -perm /o+r)\" ] && (: < $device) 2>/dev/null && echo \"$device is open\"; done; \
                  head -c1 /dev/zero | wc -c; head -c1 /dev/urandom > /dev/null && echo random; \
                  [ -d /dev/shm ] && : > /dev/shm/toolcrib-$$ && rm /dev/shm/toolcrib-$$ && echo shared";
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let finished = runtime.block_on(run(sh(script, &[]))).unwrap();
    assert_eq!(text(&finished.stdout), "1\nrandom\nshared\n", "{finished:?}");
}

#[tokio::test]
async fn a_file_grew_until_the_disk_was_full() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    for script in ["exec head -c 10000000 /dev/zero > \"$1\"", "exec truncate -s 1T \"$1\""] {
        let mut spec = sh(script, &[file.to_str().unwrap()]);
        if script.contains("head") {
            spec.limits.file_size = Some(1024 * 1024);
        }
        let ended = run(spec).await.unwrap().ended;
        assert_eq!(ended.to_string(), "SIGXFSZ", "{script}");
        assert_eq!(ended.exceeded(), Some(ExceededLimit::FileSize));
        assert!(fs::metadata(&file).unwrap().len() <= 1024 * 1024);
    }
}

#[tokio::test]
async fn a_program_computed_for_ever() {
    let burn = async |before: &str| {
        let mut spec = sh(&format!("{before} while :; do :; done"), &[]);
        spec.limits.cpu_time = Some(Duration::from_millis(1));
        run(spec).await.unwrap().ended
    };
    let (ended, stubborn) = tokio::join!(burn(""), burn("trap '' XCPU;"));
    assert_eq!(
        (ended.to_string(), ended.exceeded()),
        ("SIGXCPU".into(), Some(ExceededLimit::CpuTime))
    );
    assert_eq!(stubborn, ProcessEnd::Signal(9));
}

#[tokio::test]
async fn limits_that_nobody_set_were_none() {
    let finished = run(sh("ulimit -f; ulimit -t; ulimit -c", &[])).await.unwrap();
    assert_eq!(text(&finished.stdout), "8388608\n600\n0\n", "4 GiB in blocks of 512 bytes");
}

/// This binary as a host whose environment, and whose parent's, contains the marker.
fn host(role: &str, before: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", &format!("{before} \"$0\" \"$@\"; exit $?")])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "harm::process_limits::hosts_own_role", "--nocapture"])
        .env(ROLE, role)
        .env(MARKER, "secret")
        .stdin(Stdio::null());
    command
}

/// Not a separate test: the hosts of the others.
#[tokio::test]
async fn hosts_own_role() {
    let Ok(role) = env::var(ROLE) else { return };
    let mut spec = sh(SEARCH, &[]);
    let mut rights = rights();
    if role == "stray" {
        support().unwrap_err();
        process_limit().unwrap_err();
        spec.allow_stray_children = true;
        rights.allow_stray_children = true;
    }
    assert_eq!(text(&run(spec.clone()).await.unwrap().stdout), "searched\n");
    // Of its files nothing is denied to it.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display();
    spec.args[1] =
        format!("cd {path} && mkdir a b && : > a/x && ln a/x b/y && mv b/y a/z && echo moved")
            .into();
    assert_eq!(text(&run(spec).await.unwrap().stdout), "moved\n");
    assert_eq!(text(&run(rights).await.unwrap().stdout), NO_RIGHTS);
    // The host itself can go on as before.
    assert!(fs::read_dir("/proc/self/fd").unwrap().count() > 2);
    assert!(fs::read_to_string("/proc/self/status").unwrap().contains("VmHWM"));
}

#[test]
fn a_program_read_the_environment_of_its_host() {
    succeeds(&mut host("in_namespace", ""));
}

#[test]
fn a_program_without_namespace_read_the_environment_of_its_host() {
    let forbid = "unshare --user --map-root-user /bin/sh -c \
                  'echo 0 > /proc/sys/user/max_pid_namespaces && exec \"$0\" \"$@\"'";
    succeeds(&mut host("stray", forbid));
}
