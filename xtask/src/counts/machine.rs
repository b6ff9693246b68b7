use std::{
    collections::{BTreeMap, BTreeSet},
    fs, thread,
};

use crate::{
    problem::Problem,
    workspace::{Workspace, output},
};

/// The facts that counts depend on beside the code, by name.
#[derive(Debug)]
pub(super) struct Machine(pub(super) BTreeMap<String, String>);

impl Machine {
    /// The facts of this machine.
    pub(super) fn here(workspace: &Workspace) -> Result<Self, Problem> {
        let facts = [
            ("rustc", output(workspace.program("rustc").arg("--version"), "install Rust")?),
            ("cpu", cpu()),
            ("valgrind", valgrind(workspace)?),
            ("libc", libc(workspace)),
            ("dependencies", dependencies(workspace)?),
        ];
        Ok(Self(facts.map(|(name, value)| (name.to_owned(), value)).into()))
    }

    fn get(&self, name: &str) -> &str {
        self.0.get(name).map_or("unknown", String::as_str)
    }

    /// The facts that differ from another machine's.
    pub(super) fn differences(&self, there: &Self) -> Vec<String> {
        let names = self.0.keys().chain(there.0.keys().filter(|name| !self.0.contains_key(*name)));
        names
            .filter(|name| self.get(name) != there.get(name))
            .map(|name| format!("{name}: {}, was {}", self.get(name), there.get(name)))
            .collect()
    }
}

/// The number and model of the processors.
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
         counted with it",
    )
}

/// Its version decides on the instructions of `malloc` and `memcpy`; unknown without glibc.
fn libc(workspace: &Workspace) -> String {
    output(workspace.program("getconf").arg("GNU_LIBC_VERSION"), "")
        .unwrap_or_else(|_| "unknown".to_owned())
}

/// A digest of the versions and features of the program's dependencies. The whole of `Cargo.lock`
/// also changes with test dependencies, and then the commit of the baseline would be built without
/// need.
fn dependencies(workspace: &Workspace) -> Result<String, Problem> {
    let tree = output(
        workspace
            .cargo(["tree", "--package", "toolcrib-benches", "--edges", "normal,build"])
            .args(["--prefix", "none", "--format", "{f} {p}"]),
        "check that `cargo tree` works; it is a part of cargo",
    )?;
    // Crates of the workspace have their folder in parentheses.
    let lines: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(" (").next()).collect();
    let lines: Vec<&str> = lines.into_iter().collect();
    Ok(format!("{:016x}", fnv(lines.join("\n").as_bytes())))
}

/// FNV-1a: distinguishes files, without cryptographic security.
fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
