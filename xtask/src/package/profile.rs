//! The profile of the program: how often a user runs each part of it. With it, the compiler optimizes what
//! is run for speed and the rest for size, and the linker places a gateway's functions first.

use std::{
    collections::BTreeSet,
    env, fs, io,
    path::{Path, PathBuf},
};

use super::{Target, cargo, empty, tools, write};
use crate::{
    packages,
    problem::Problem,
    workspace::{Workspace, output, run, unreadable},
};

/// What the program is run for.
const TRAINING: &str = "xtask/package/training.py";

/// The beginning of the names of the files with a gateway's counts.
const GATEWAY: &str = "gateway-";

/// The oldest LLVM that reads the counts of a program of the required Rust version.
const LLVM: u32 = 19;

/// What was measured.
pub(super) struct Profile {
    /// The merged counts of all functions.
    pub(super) counts: PathBuf,
    /// The linker's script for the order of code.
    pub(super) order: PathBuf,
}

/// Compiles the program with counters, runs it, and merges the counts.
pub(super) fn measure(workspace: &Workspace, target: &Target) -> Result<Profile, Problem> {
    let merge = llvm_profdata(workspace)?;
    let folder = workspace.target().join("profiled");
    let program = folder.join(target.triple).join("dist").join("toolcrib");
    // Names of functions depend on the command, so it is that of the second build. Zig's linker knows no
    // counters, and this program needs no old C library: it only runs here.
    let mut flags = vec!["-Cprofile-generate".to_owned()];
    if target.uses_zig() {
        flags.push("-Clinker=cc".to_owned());
    }
    let mut cargo = cargo(workspace, target, &flags)?;
    run(cargo.arg("--target-dir").arg(&folder), "fix the compiler errors above")?;
    let counts = empty(folder.join("counts"))?;
    run(
        workspace
            .program(packages::interpreter(&tools(workspace)))
            .arg(workspace.root().join(TRAINING))
            .arg(program)
            .arg(workspace.root().join("examples"))
            .arg(empty(folder.join("training"))?)
            .env("LLVM_PROFILE_FILE", counts.join("%p-%m.profraw")),
        "the program must do what its users do",
    )?;
    const HELP: &str = "the counts must fit the program and LLVM";
    let all = folder.join("toolcrib.profdata");
    run(workspace.program(&merge).args(["merge", "-o"]).arg(&all).arg(&counts), HELP)?;
    let of_gateway = folder.join("gateway.profdata");
    let files = files_of_gateway(&counts).map_err(|error| unreadable(&counts, &error))?;
    run(workspace.program(&merge).args(["merge", "-o"]).arg(&of_gateway).args(files), HELP)?;
    let shown = ["show", "--all-functions", "--counts"];
    let shown = output(workspace.program(&merge).args(shown).arg(&of_gateway), HELP)?;
    let order = folder.join("order.ld");
    write(&order, &script(&functions_run(&shown)))?;
    Ok(Profile { counts: all, order })
}

fn files_of_gateway(counts: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = fs::read_dir(counts)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<PathBuf>>>()?;
    files.retain(|path| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(GATEWAY))
    });
    Ok(files)
}

/// The functions with counts in the output of `llvm-profdata show`.
fn functions_run(shown: &str) -> BTreeSet<&str> {
    let mut run = BTreeSet::new();
    let mut function = "";
    for line in shown.lines() {
        // A function that is local to a unit has the unit before its name.
        if let Some(name) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(':')) {
            function = name.rsplit(';').next().unwrap_or(name);
        } else if let Some((_, counts)) = line.split_once("Block counts: [")
            && counts.split([',', ']', ' ']).any(|count| !matches!(count, "" | "0"))
        {
            run.insert(function);
        }
    }
    run
}

/// A linker's script for the order of code. The functions that a gateway runs come first, so that it maps
/// less of the program, then those that run often; those that hardly run come last.
fn script(first: &BTreeSet<&str>) -> String {
    let section = |name: &&str| format!("*(.text.hot.{name} .text.{name} .text.unlikely.{name})\n");
    let first: String = first.iter().map(section).collect();
    format!(
        "SECTIONS {{ .text.gateway : {{\n{first}}} }} INSERT BEFORE .text;\n\
         SECTIONS {{ .text.hot : {{ *(.text.hot .text.hot.*) }} }} INSERT BEFORE .text;\n\
         SECTIONS {{ .text.unlikely : {{ *(.text.unlikely .text.unlikely.*) }} }} INSERT AFTER .text;\n"
    )
}

/// The program that merges counts: that of the toolchain, or a recent one on the `PATH`.
fn llvm_profdata(workspace: &Workspace) -> Result<PathBuf, Problem> {
    const HELP: &str =
        "`rustup component add llvm-tools`, or install LLVM 19 (Debian: `apt install llvm-19`)";
    let sysroot = output(workspace.program("rustc").args(["--print", "sysroot"]), HELP)?;
    let host = output(workspace.program("rustc").args(["--print", "host-tuple"]), HELP)?;
    let own = PathBuf::from(sysroot).join("lib/rustlib").join(host).join("bin/llvm-profdata");
    let path = env::var_os("PATH").unwrap_or_default();
    let names: Vec<_> =
        (LLVM..LLVM + 10).map(|version| format!("llvm-profdata-{version}")).collect();
    let others = env::split_paths(&path).flat_map(|folder| {
        let names = names.iter().map(String::as_str).chain(["llvm-profdata"]);
        names.map(|name| folder.join(name)).collect::<Vec<_>>()
    });
    let is_recent = |program: &PathBuf| {
        let version = output(workspace.program(program).arg("--version"), HELP).unwrap_or_default();
        let number = version.split("LLVM version ").nth(1).and_then(|rest| rest.split('.').next());
        number.and_then(|number| number.parse().ok()).is_some_and(|number: u32| number >= LLVM)
    };
    [own].into_iter().chain(others).filter(|program| program.is_file()).find(is_recent).ok_or_else(
        || Problem::new(format!("there is no llvm-profdata of LLVM {LLVM} or newer"), HELP),
    )
}

/// Checks that a program was optimized with a profile of the same functions: most of its code is unlikely
/// then, and some of it in the order of the script. The compiler does not warn of functions without counts,
/// nor the linker of missing ones.
pub(super) fn check(workspace: &Workspace, program: &Path) -> Result<(), Problem> {
    let sections = output(
        workspace.program("readelf").args(["--sections", "--wide"]).arg(program),
        "install binutils for `readelf`",
    )?;
    let [gateway, usual, unlikely] =
        [".text.gateway", ".text", ".text.unlikely"].map(|name| bytes_of(&sections, name));
    if gateway > 0 && unlikely > usual {
        return Ok(());
    }
    Err(Problem::new(
        format!(
            "{gateway} bytes of the program's code are a gateway's, {usual} are usual, and {unlikely} are \
             unlikely"
        ),
        "the names of functions in both builds must be equal: compare `-C metadata` of `cargo build -v`",
    ))
}

/// The size of a section in the table of `readelf`.
fn bytes_of(sections: &str, name: &str) -> u64 {
    let row = sections.lines().filter_map(|line| line.split_once("] "));
    let mut row = row.map(|(_, row)| row.split_whitespace());
    let size = row.find_map(|mut fields| (fields.next()? == name).then(|| fields.nth(3)));
    size.flatten().and_then(|size| u64::from_str_radix(size, 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_of_sections_are_read() {
        let sections = "  [Nr] Name      Type     Address          Off    Size   ES Flg Lk Inf Al\n  \
            [ 9] .text     PROGBITS 000000000096b980 96a980 5d42d6 00  AX  0   0 64\n  \
            [17] .text.unlikely PROGBITS 0000000000f3fc60 f3ec60 a70d49 00  AX  0   0 16\n";
        assert_eq!(super::bytes_of(sections, ".text"), 0x5d_42d6);
        assert_eq!(super::bytes_of(sections, ".text.unlikely"), 0xa7_0d49);
        assert_eq!(super::bytes_of(sections, ".text.hot"), 0);
    }

    #[test]
    fn functions_with_counts_come_first() {
        let shown = "Counters:\n  unit.1-cgu.0;_ZN3one17h1E:\n    Hash: 0x0a\n    Counters: 2\n    \
            Block counts: [0, 3]\n  _ZN3two17h2E:\n    Hash: 0x0b\n    Counters: 1\n    \
            Block counts: [7]\n  _ZN5never17h3E:\n    Hash: 0x0c\n    Counters: 3\n    \
            Block counts: [0, 0]\n";
        let run = super::functions_run(shown);
        assert_eq!(run.iter().copied().collect::<Vec<_>>(), ["_ZN3one17h1E", "_ZN3two17h2E"]);
        let script = super::script(&run);
        assert!(script.contains("*(.text.hot._ZN3one17h1E .text._ZN3one17h1E"), "{script}");
        assert!(!script.contains("never"), "{script}");
    }
}
