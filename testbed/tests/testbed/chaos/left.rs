//! What is left of servers and clients.

use std::{fs, path::Path, time::Duration};

use tokio::{runtime::Handle, time::sleep};

/// How long it may take until something is gone that nobody waits for.
const PATIENCE: Duration = Duration::from_secs(30);

/// The running programs that a path stands in the command line of.
pub(crate) fn processes(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        // One that ends meanwhile has no command line any more, and nor has a zombie.
        let line = fs::read(entry.unwrap().path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(path) {
            found.push(line);
        }
    }
    found
}

/// Waits until no such program runs.
pub(crate) async fn no_process(path: &Path) {
    let mut left = processes(path);
    for _ in 0..PATIENCE.as_millis() / 20 {
        if left.is_empty() {
            return;
        }
        sleep(Duration::from_millis(20)).await;
        left = processes(path);
    }
    panic!("still running: {left:#?}");
}

pub(crate) fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

/// Waits until no more tasks are there than before.
pub(crate) async fn no_task(before: usize) {
    for _ in 0..PATIENCE.as_millis() / 20 {
        if tasks() <= before {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("{} tasks are left", tasks() - before);
}
