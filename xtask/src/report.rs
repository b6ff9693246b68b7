//! What `cargo xtask test` prints at its end besides the steps: skipped tests, and the processor time.

use std::{
    cell::Cell,
    collections::BTreeSet,
    env, fs, io,
    process::{Child, ExitStatus},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use wait4::Wait4 as _;

thread_local! {
    /// The processor time of the programs that this thread has waited for.
    static SPENT: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Waits for a program; its processor time counts for the [work](Report::measured) of this thread.
pub(crate) fn wait(child: Child) -> io::Result<ExitStatus> {
    let used = child.wait4()?;
    SPENT.set(SPENT.get() + used.rusage.utime + used.rusage.stime);
    Ok(used.status)
}

/// The results that several steps and threads collect.
#[derive(Default)]
pub(crate) struct Report(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// The processor time of this process and its children before it became this program.
    before: Option<Duration>,
    /// Parts of the processor time.
    parts: Vec<(String, Duration)>,
    skipped: BTreeSet<String>,
}

impl Report {
    /// Begins with the processor time that the process has used: `.ci/run` becomes cargo, and cargo becomes
    /// this program, so that `cargo fetch` and the compilation of this program are in it.
    pub(crate) fn begin() -> Self {
        Self(Mutex::new(Entries { before: total(), ..Entries::default() }))
    }

    /// Does some work, and adds the processor time of the programs that it waits for.
    pub(crate) fn measured<T>(&self, part: impl Into<String>, work: impl FnOnce() -> T) -> T {
        let before = SPENT.get();
        let done = work();
        self.entries().parts.push((part.into(), SPENT.get() - before));
        done
    }

    /// Adds the skipped tests in the output of a program.
    pub(crate) fn add_skipped(&self, output: &[u8]) {
        let output = String::from_utf8_lossy(output);
        self.entries().skipped.extend(output.lines().filter_map(skipped).map(str::to_owned));
    }

    /// Whether tests were skipped where none may be.
    pub(crate) fn is_skip_an_error(&self) -> bool {
        let is_ci = env::var_os("CI").is_some_and(|ci| !ci.is_empty());
        is_ci && !self.entries().skipped.is_empty()
    }

    /// Prints the entries, if there are any.
    pub(crate) fn print(&self) {
        let Entries { before, parts, skipped } = &*self.entries();
        if parts.is_empty() {
            return;
        }
        eprintln!("\n{} skipped tests", skipped.len());
        for line in skipped {
            eprintln!("  {line}");
        }
        let mut parts = parts.clone();
        parts.sort_by_key(|(_, spent)| std::cmp::Reverse(*spent));
        let whole = total();
        if let (Some(before), Some(whole)) = (*before, whole) {
            let known: Duration = parts.iter().map(|(_, spent)| *spent).sum();
            parts.push(("other steps".to_owned(), whole.saturating_sub(before + known)));
            parts.push(("before: `cargo fetch`, compiling xtask".to_owned(), before));
            parts.push(("total".to_owned(), whole));
        }
        eprintln!("\nprocessor time, user and system");
        for (part, spent) in parts {
            eprintln!("{:>8.1} s  {part}", spent.as_secs_f64());
        }
    }

    fn entries(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The test and the reason in a line of `toolcrib_skip::skip`. With one thread, the test harness has begun the
/// line with the name of the test.
fn skipped(line: &str) -> Option<&str> {
    let harness = line.split_once(" ... skipped: ").filter(|(test, _)| test.starts_with("test "));
    line.strip_prefix("skipped: ").or(harness.map(|(_, rest)| rest))
}

/// The processor time of this process and the children that it has waited for; `None` where there is no
/// `/proc`.
fn total() -> Option<Duration> {
    /// The ticks of a second, which are the same on all of Linux's usual architectures.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the name of the program, which may contain spaces. The fields 14 to 17 are the times.
    let (_, fields) = stat.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(4);
    let ticks: f64 = times.map(|time| time.parse::<f64>().ok()).sum::<Option<f64>>()?;
    Some(Duration::from_secs_f64(ticks / TICKS))
}

#[cfg(test)]
mod tests {
    use std::{process::Command, time::Duration};

    use super::{Report, SPENT, skipped, total, wait};

    #[test]
    fn skipped_tests_are_found_in_the_output_of_a_test_program() {
        let report = Report::default();
        report.add_skipped(
            b"running 3 tests\nskipped: a::b: no perl\nskipped: a::b: no perl\ntest a::b ... ok\n\
              test a::c ... skipped: main: no namespaces\nok\n\
              expected: the step is skipped: no\nwas skipped: \xff\n\ntest result: ok.\n",
        );
        let skipped: Vec<String> = report.entries().skipped.iter().cloned().collect();
        assert_eq!(skipped, ["a::b: no perl", "main: no namespaces"]);
    }

    #[test]
    fn a_line_of_another_text_is_not_a_skip() {
        assert_eq!(skipped("[skipped as invalid JSON: 2]"), None);
        assert_eq!(skipped("the rest ... skipped: 3"), None);
    }

    #[test]
    fn the_processor_time_of_a_program_and_of_its_children_counts_once() {
        let report = Report::default();
        let work = "sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'; true";
        report.measured("work", || {
            let child = Command::new("sh").args(["-c", work]).spawn().unwrap();
            assert!(wait(child).unwrap().success());
        });
        report.measured("nothing", || {});
        let parts = report.entries().parts.clone();
        let spent = SPENT.get();
        assert!(spent > Duration::ZERO);
        assert_eq!(parts, [("work".to_owned(), spent), ("nothing".to_owned(), Duration::ZERO)]);
        // A tick is a hundredth of a second, and four numbers are rounded down.
        if let Some(total) = total() {
            assert!(total + Duration::from_millis(40) >= spent, "{total:?} {spent:?}");
        }
    }
}
