//! Tells a process that waits for something from one that waits for the machine.

use std::fs;

/// The processes that drive a run: that which is killed, and the servers that it needs.
pub(super) struct Watched(pub(super) Vec<u32>);

impl Watched {
    /// Whether all threads of these processes and their children sleep at this moment, or are gone: none
    /// runs, waits for a processor, or waits for the disk.
    pub(super) fn sleeps(&self) -> bool {
        self.0.iter().all(|process| sleeps(*process))
    }
}

fn sleeps(process: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    for task in tasks.map(|task| task.path()) {
        // The state follows the name, which may contain spaces and parentheses.
        let stat = fs::read_to_string(task.join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        if matches!(state, Some('R' | 'D')) {
            return false;
        }
        let children = fs::read_to_string(task.join("children")).unwrap_or_default();
        if !children.split_whitespace().filter_map(|child| child.parse().ok()).all(sleeps) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        process::{Child, Command},
        thread,
        time::Duration,
    };

    use super::Watched;

    /// How many of some samples find a program asleep, which is the child of a shell.
    fn asleep(program: &str) -> io::Result<usize> {
        // It ends by itself, also if the test fails.
        let mut shell: Child = Command::new("sh").args(["-c", program]).spawn()?;
        let watched = Watched(vec![shell.id()]);
        let samples = (0..40).map(|_| {
            thread::sleep(Duration::from_millis(25));
            watched.sleeps()
        });
        let slept = samples.filter(|sleeps| *sleeps).count();
        shell.kill()?;
        shell.wait()?;
        Ok(slept)
    }

    #[test]
    fn a_child_that_works_is_not_asleep_although_its_parent_waits() -> io::Result<()> {
        // A loaded machine may start it late.
        assert!(asleep("sleep 3; true")? > 0);
        assert!(asleep("timeout 3 sh -c 'while :; do :; done'; true")? < 20);
        Ok(())
    }
}
