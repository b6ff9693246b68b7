//! The profile of the program: how often a user runs each part of it. With it, the compiler optimizes what
//! is run for speed and the rest for size, and places together what is run together.

use std::{
    env,
    path::{Path, PathBuf},
};

use super::{Target, cargo, empty, tools};
use crate::{
    packages,
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// What the program is run for.
const TRAINING: &str = "xtask/package/training.py";

/// The oldest LLVM that reads the counts of a program of the required Rust version.
const LLVM: u32 = 19;

/// Compiles the program with counters, runs it, and merges the counts. Returns their file.
pub(super) fn measure(workspace: &Workspace, target: &Target) -> Result<PathBuf, Problem> {
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
    let profile = folder.join("toolcrib.profdata");
    run(
        workspace.program(merge).args(["merge", "-o"]).arg(&profile).arg(&counts),
        "the counts must fit the program and LLVM",
    )?;
    Ok(profile)
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
/// then. The compiler does not warn of functions without counts.
pub(super) fn check(workspace: &Workspace, program: &Path) -> Result<(), Problem> {
    let sections = output(
        workspace.program("readelf").args(["--sections", "--wide"]).arg(program),
        "install binutils for `readelf`",
    )?;
    let [usual, unlikely] = [".text", ".text.unlikely"].map(|name| bytes_of(&sections, name));
    if unlikely > usual {
        return Ok(());
    }
    Err(Problem::new(
        format!("{usual} bytes of the program's code are usual, and {unlikely} are unlikely"),
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
}
