//! A measured program: started, inspected, and ended with all its children.

use std::{
    fs::{self, File},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process_group};
use toolcrib_benches::Outcome;

/// Time limit for a program to begin to listen.
const STARTING: Duration = Duration::from_secs(30);

/// Time limit for a program to exit by itself.
const ENDING: Duration = Duration::from_secs(5);

/// A running program, as the first of a separate process group.
pub(crate) struct Program {
    child: Child,
    log: PathBuf,
}

impl Program {
    /// Starts it, with its standard error in a file of this name in the folder.
    pub(crate) fn start(mut command: Command, folder: &Path, name: &str) -> Outcome<Self> {
        use std::os::unix::process::CommandExt as _;

        let log = folder.join(format!("{name}.log"));
        command.process_group(0).stdin(Stdio::piped()).stderr(File::create(&log)?);
        let child = command.spawn().map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { child, log })
    }

    /// Its standard input and output, once.
    pub(crate) fn pipes(&mut self) -> Outcome<(ChildStdin, ChildStdout)> {
        let stdin = self.child.stdin.take().ok_or("it has no stdin")?;
        Ok((stdin, self.child.stdout.take().ok_or("it has no stdout")?))
    }

    /// Waits until the address is open.
    pub(crate) fn wait_for(&mut self, address: SocketAddr) -> Outcome {
        let began = Instant::now();
        while TcpStream::connect(address).is_err() {
            if self.child.try_wait()?.is_some() || began.elapsed() > STARTING {
                return Err(format!("nothing listens at {address}: {}", self.said()).into());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// Its standard error up to now.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The memory of the largest process among this and its children, in MiB; those that are this
    /// bench in another role do not count.
    pub(crate) fn memory(&self) -> f64 {
        let own = std::env::current_exe().ok();
        let mut largest: f64 = 0.0;
        let mut family = vec![self.child.id()];
        while let Some(id) = family.pop() {
            let process = PathBuf::from(format!("/proc/{id}"));
            let is_own = fs::read_link(process.join("exe")).ok() == own;
            // The program itself counts in every role.
            if !is_own || id == self.child.id() {
                largest = largest.max(resident(&process));
            }
            family.extend(children(&process));
        }
        largest
    }

    /// The processor time of the process without its children, in the kernel's hundredths of a second.
    pub(crate) fn processor_time(&self) -> Outcome<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        // The name of the program, in parentheses, may contain spaces.
        let (_, after) = stat.rsplit_once(')').ok_or("the kernel says no processor time")?;
        let times = after.split_whitespace().skip(11).take(2).flat_map(str::parse::<u64>);
        Ok(Duration::from_millis(10 * times.sum::<u64>()))
    }

    /// The number of its open files and connections.
    pub(crate) fn descriptors(&self) -> u64 {
        let open = fs::read_dir(format!("/proc/{}/fd", self.child.id()));
        open.map_or(0, |open| open.count() as u64)
    }
}

/// The times of all processors, busy and in all, in hundredths of a second.
pub(crate) struct Processors(u64, u64);

impl Processors {
    pub(crate) fn now() -> Outcome<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        let line = stat.lines().next().ok_or("the kernel says no times")?;
        let times: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
        // The fourth and the fifth time are those without work.
        let idle: u64 = times.iter().skip(3).take(2).sum();
        let all: u64 = times.iter().take(8).sum();
        Ok(Self(all - idle, all))
    }

    /// The share of the time since an earlier reading in which they were busy, from 0 to 1.
    pub(crate) fn busy_since(&self, before: &Self) -> f64 {
        (self.0 - before.0) as f64 / (self.1 - before.1) as f64
    }
}

fn resident(process: &Path) -> f64 {
    let status = fs::read_to_string(process.join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    kib.unwrap_or_default() / 1024.0
}

/// Any thread may have started a child.
fn children(process: &Path) -> Vec<u32> {
    let Ok(threads) = fs::read_dir(process.join("task")) else { return Vec::new() };
    let each = threads.flatten().filter_map(|thread| {
        let ids = fs::read_to_string(thread.path().join("children")).ok()?;
        Some(ids.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
    });
    each.flatten().collect()
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let signal = |signal| {
            // It may already have exited, which is fine.
            let _ = group.map(|group| kill_process_group(group, signal));
        };
        signal(Signal::TERM);
        let began = Instant::now();
        while matches!(self.child.try_wait(), Ok(None)) && began.elapsed() < ENDING {
            sleep(Duration::from_millis(20));
        }
        signal(Signal::KILL);
        let _ = self.child.wait();
    }
}

/// A free local port.
pub(crate) fn free_address() -> Outcome<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}
