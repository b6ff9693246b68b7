//! Processes and tasks that servers and clients leave.

use std::{fs, path::Path, time::Duration};

use tokio::{runtime::Handle, time::sleep};

/// Time limit for something to disappear that no one waits for.
const PATIENCE: Duration = Duration::from_secs(300);

/// The running programs with a path in their command line.
pub(crate) fn processes(path: &Path) -> Vec<String> {
    let path = path.to_str().unwrap();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        // A process that ends meanwhile has no command line any more, nor has a zombie.
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

/// Waits until there are no more tasks than before.
pub(crate) async fn no_task(before: usize) {
    for _ in 0..PATIENCE.as_millis() / 20 {
        if tasks() <= before {
            return;
        }
        sleep(Duration::from_millis(20)).await;
    }
    panic!("{} tasks are left", tasks() - before);
}
