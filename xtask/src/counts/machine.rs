use std::{collections::BTreeMap, fs, thread};

use crate::{
    problem::Problem,
    workspace::{Workspace, output, unreadable},
};

/// What counts depend on beside the code, each fact by its name.
#[derive(Debug)]
pub(super) struct Machine(pub(super) BTreeMap<String, String>);

impl Machine {
    /// What is true here.
    pub(super) fn here(workspace: &Workspace) -> Result<Self, Problem> {
        let lock = workspace.root().join("Cargo.lock");
        let lock = fs::read(&lock).map_err(|error| unreadable(&lock, &error))?;
        let facts = [
            ("rustc", output(workspace.program("rustc").arg("--version"), "install Rust")?),
            ("cpu", cpu()),
            ("valgrind", valgrind(workspace)?),
            ("libc", libc(workspace)),
            ("lock", format!("{:016x}", fnv(&lock))),
        ];
        Ok(Self(facts.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("unknown", String::as_str)
    }

    /// What is not as it was there.
    pub(super) fn differences(&self, there: &Self) -> Vec<String> {
        let names = self.0.keys().chain(there.0.keys().filter(|name| !self.0.contains_key(*name)));
        names
            .filter(|name| self.get(name) != there.get(name))
            .map(|name| format!("{name}: {}, and was {}", self.get(name), there.get(name)))
            .collect()
    }
}

/// How many processors there are, and which.
pub(crate) fn cpus() -> String {
    let number = thread::available_parallelism().map_or(1, usize::from);
    format!("{number} × {}", cpu())
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let named = info.lines().find_map(|line| line.strip_prefix("model name"));
    named.map_or("unknown", |name| name.trim_start_matches([' ', '\t', ':'])).to_owned()
}

fn valgrind(workspace: &Workspace) -> Result<String, Problem> {
    output(
        workspace.program("valgrind").arg("--version"),
        "`apt-get install valgrind` (or your system's package of that name): instructions are \
         counted with it, and this step cannot do without",
    )
}

/// Its version decides on the instructions of `malloc` and `memcpy`; unknown where there is no
/// glibc.
fn libc(workspace: &Workspace) -> String {
    output(workspace.program("getconf").arg("GNU_LIBC_VERSION"), "")
        .unwrap_or_else(|_| "unknown".to_owned())
}

/// FNV-1a: tells two files apart, and protects nothing.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
