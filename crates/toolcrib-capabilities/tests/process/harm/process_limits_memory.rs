//! The limit on memory was one on address space: Node and Java did not run, and many processes or shared
//! memory exceeded it. The limits are the default ones where nothing else is said.

use std::path::Path;

use toolcrib_capabilities::process::{
    ExceededLimit, ProcessEnd, ProcessLimits, ProcessOutput, ProcessSpec, find_program,
};
use toolcrib_skip::skip;

use crate::{
    sandbox::{CONFINED, Home, is_possible},
    support::{run, sh, text},
};

const MIB: u64 = 1 << 20;

/// The default limits, as a test compares them.
const PROCESS: ExceededLimit = ExceededLimit::Memory(1024 * MIB);
const TOTAL: ExceededLimit = ExceededLimit::TotalMemory(4096 * MIB);

/// Functions for the scripts: each fills so many MiB.
const FILL: &str = "
import mmap, os, sys, time, threading
def fill(memory, mib):
    piece = b'x' * (1 << 20)
    for i in range(mib): memory[i << 20:(i + 1) << 20] = piece
def private(mib):
    return bytearray(b'x') * (mib << 20)
def shared(mib):
    memory = mmap.mmap(-1, mib << 20)
    fill(memory, mib)
    return memory
def file(mib):
    fd = os.memfd_create('x')
    piece = b'x' * (1 << 20)
    for i in range(mib): os.write(fd, piece)
    return fd
def children(count, act):
    for _ in range(count):
        if os.fork() == 0:
            kept = act()
            time.sleep(1000)
    time.sleep(1000)
def wait():
    time.sleep(1000)
";

fn python(script: &str) -> ProcessSpec {
    let mut spec = ProcessSpec::new("/usr/bin/python3", "/");
    spec.args = ["-c".into(), format!("{FILL}\n{script}").into()].into();
    spec
}

async fn exceeded(spec: ProcessSpec) -> Option<ExceededLimit> {
    let finished = run(spec).await.unwrap();
    assert_eq!(text(&finished.stdout), "", "{finished:?}");
    assert_ne!(finished.ended, ProcessEnd::Code(0), "{finished:?}");
    finished.ended.exceeded()
}

#[tokio::test]
async fn one_process_gets_no_more_than_its_limit_of_any_memory() {
    for script in [
        "private(1500); wait()",
        "shared(1500); wait()",
        // The memory of a process whose first thread has ended.
        "import ctypes
def act():
    time.sleep(0.3); kept = private(1500); wait()
threading.Thread(target=act).start()
ctypes.CDLL(None).pthread_exit(None)",
        // In a child, which outlives its parent.
        "
if os.fork() == 0:
    if os.fork() == 0:
        kept = private(1500); wait()
    os._exit(0)
wait()",
    ] {
        assert_eq!(exceeded(python(script)).await, Some(PROCESS), "{script}");
    }
}

#[tokio::test]
async fn all_processes_together_get_no_more_than_their_limit() {
    assert_eq!(exceeded(python("children(100, lambda: private(60))")).await, Some(TOTAL));
    for script in [
        "children(100, lambda: shared(10))",
        "children(3, lambda: file(200))",
        // No process maps the files.
        "kept = [file(100) for _ in range(6)]; wait()",
        "children(3, lambda: (shared(100), file(100)))",
    ] {
        let mut spec = python(script);
        spec.limits.total_memory = Some(512 * MIB);
        assert_eq!(exceeded(spec).await, Some(ExceededLimit::TotalMemory(512 * MIB)), "{script}");
    }
}

#[tokio::test]
async fn shared_pages_are_counted_once() {
    for memory in ["private", "shared"] {
        let script = format!(
            "kept = {memory}(400)
pids = []
for _ in range(30):
    pid = os.fork()
    if pid == 0:
        if '{memory}' == 'shared': sum(kept[i << 12] for i in range(400 << 8))
        time.sleep(1)
        os._exit(0)
    pids.append(pid)
for pid in pids: os.waitpid(pid, 0)
print('done')"
        );
        let finished = run(python(&script)).await.unwrap();
        assert_eq!(text(&finished.stdout), "done\n", "{memory}: {finished:?}");
    }
}

#[tokio::test]
async fn every_tier_limits_memory() {
    for tier in CONFINED.into_iter().filter(|tier| is_possible(*tier)) {
        let home = Home::new();
        let mut spec = home.sh(tier, "exec python3 -c \"$PROGRAM\"");
        spec.env.push(("PROGRAM".into(), format!("{FILL}\nshared(300); wait()").into()));
        spec.limits.total_memory = Some(200 * MIB);
        let ended = run(spec).await.unwrap().ended;
        assert_eq!(ended.exceeded(), Some(ExceededLimit::TotalMemory(200 * MIB)), "{tier}");
    }
}

#[tokio::test]
async fn a_reservation_is_not_memory_and_a_large_request_fails() {
    let limits = run(sh("ulimit -v; ulimit -d; ulimit -c", &[])).await.unwrap();
    assert_eq!(text(&limits.stdout), "unlimited\n4194304\n0\n", "4 GiB in KiB, and no core");
    let mut spec = sh("ulimit -v; ulimit -d", &[]);
    spec.limits = ProcessLimits { memory: None, total_memory: None, ..spec.limits };
    assert_eq!(text(&run(spec).await.unwrap().stdout), "unlimited\nunlimited\n", "as the host");

    let reserved = "mmap.mmap(-1, 64 << 30, prot=0, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)";
    let finished = run(python(&format!("kept = {reserved}; print('reserved')"))).await.unwrap();
    assert_eq!(text(&finished.stdout), "reserved\n", "{finished:?}");
    let finished = run(python("private(5000)")).await.unwrap();
    assert_eq!(finished.ended, ProcessEnd::Code(1), "{finished:?}");
    assert!(text(&finished.stderr).contains("MemoryError"), "{finished:?}");
}

#[tokio::test]
async fn node_fetches_and_runs_webassembly_under_the_default_limits() {
    let Ok(node) = find_program("node", Path::new("/")) else {
        return skip("Node is not installed");
    };
    let script = "const server = require('http').createServer((_, response) => response.end('fetched')); \
        server.listen(0, '127.0.0.1', async () => { \
          const answer = await fetch(`http://127.0.0.1:${server.address().port}`); \
          console.log(await answer.text()); \
          const memory = new WebAssembly.Memory({ initial: 1, maximum: 65536 }); \
          console.log(memory.buffer.byteLength); server.close(); });";
    let mut spec = ProcessSpec::new(node, "/");
    spec.args = ["-e".into(), script.into()].into();
    assert_eq!(output(spec).await, "fetched\n65536\n");
}

#[tokio::test]
async fn java_compiles_and_runs_under_the_default_limits() {
    let (Ok(java), Ok(_)) =
        (find_program("java", Path::new("/")), find_program("javac", Path::new("/")))
    else {
        return skip("a JDK is not installed");
    };
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("Threads.java");
    let program = "public class Threads { public static void main(String[] args) throws Exception { \
        var threads = new Thread[50]; \
        for (int i = 0; i < 50; i++) { threads[i] = new Thread(() -> {}); threads[i].start(); } \
        for (var thread : threads) thread.join(); \
        System.out.println(\"joined\"); } }";
    std::fs::write(&source, program).unwrap();
    let mut spec = ProcessSpec::new(java, folder.path());
    spec.args = [source.into_os_string()].into();
    assert_eq!(output(spec).await, "joined\n");
}

async fn output(spec: ProcessSpec) -> String {
    let finished: ProcessOutput = run(spec).await.unwrap();
    assert_eq!(finished.ended, ProcessEnd::Code(0), "{finished:?}");
    text(&finished.stdout).to_owned()
}
