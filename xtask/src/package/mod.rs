//! `cargo xtask package`: the program as a Python wheel, as npm packages and as an archive, each installed
//! into an empty environment and tried there.

mod archive;
mod licenses;
mod npm;
mod page;
mod profile;
mod symbols;
mod target;
mod trial;
mod wheel;

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

pub(crate) use self::target::Target;
use self::trial::Trial;
use crate::{
    packages::{self, unwritable},
    peers,
    problem::Problem,
    workspace::{Workspace, output, run, unreadable},
};

/// The tools that build packages, in exact versions, with the digest of each file.
const REQUIREMENTS: &str = "xtask/package/requirements.txt";

/// The maximum size of a wheel.
const MAX_WHEEL: u64 = 15 * 1024 * 1024;

/// The files with the licenses of Toolcrib.
const LICENSES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

/// The program, and the texts that are delivered with it.
struct Built<'a> {
    workspace: &'a Workspace,
    target: &'a Target,
    version: String,
    /// The program.
    program: PathBuf,
    /// Completions, manual pages and licenses.
    texts: PathBuf,
    /// The folder of the finished packages.
    finished: PathBuf,
}

impl Built<'_> {
    /// The name of the archive and of the folder in it, as `cargo binstall` expects.
    fn name_of_archive(&self) -> String {
        format!("toolcrib-{}-{}", self.version, self.target.triple)
    }
}

/// Installs the tools into a separate folder, unless these versions are there; and Node.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    packages::install_once(workspace, &tools(workspace), REQUIREMENTS)?;
    peers::install(workspace)
}

/// Builds and tries the packages for machines like this one.
pub(crate) fn build(workspace: &Workspace) -> Result<(), Problem> {
    build_for(workspace, &Target::here()?)
}

/// The same without a C library: one program for every Linux.
pub(crate) fn build_musl(workspace: &Workspace) -> Result<(), Problem> {
    build_for(workspace, &Target::here()?.musl()?)
}

fn build_for(workspace: &Workspace, target: &Target) -> Result<(), Problem> {
    let began = Instant::now();
    let program = compile(workspace, target)?;
    eprintln!("built in {:.0} s: {}", began.elapsed().as_secs_f64(), program.display());
    symbols::check(workspace, target, &program)?;
    let folder = workspace.target().join("package");
    let texts = empty(texts(workspace))?;
    let finished = empty(folder.join(target.triple))?;
    write_texts(workspace, &program, &texts)?;
    let version = version(workspace)?;
    let built = Built { workspace, target, version, program, texts, finished };
    let wheel = wheel::write(&built)?;
    let npm = npm::write(&built)?;
    let archive = archive::write(&built)?;
    let all: Vec<&Path> = [&wheel, &archive].into_iter().chain(&npm).map(|path| &**path).collect();
    archive::write_sums(&built, &all)?;
    for package in &all {
        eprintln!("{:>9} bytes  {}", size(package)?, package.display());
    }
    if size(&wheel)? > MAX_WHEEL {
        return Err(Problem::new(
            format!("{} is larger than {MAX_WHEEL} bytes", wheel.display()),
            "find the crate that has grown: `cargo bloat --profile dist --crates`",
        ));
    }
    let trial = Trial::in_folder(&built, empty(folder.join("trial"))?);
    trial.archive(&archive)?;
    if target.is_musl() && cfg!(target_env = "gnu") {
        eprintln!(
            "not tried here: the wheel and the npm packages, which refuse a machine with glibc"
        );
        return Ok(());
    }
    trial.wheel(&wheel)?;
    trial.npm(&npm)
}

/// Compiles the program as it is released: for what its users do, and against an old C library, whatever
/// this machine has.
pub(crate) fn compile(workspace: &Workspace, target: &Target) -> Result<PathBuf, Problem> {
    let profile = profile::measure(workspace, target)?;
    let mut flags = vec![format!("-Cprofile-use={}", profile.counts.display())];
    if target.uses_zig() {
        flags.push(format!("-Clink-arg=-Wl,-T,{}", profile.order.display()));
    }
    run(
        &mut cargo(workspace, target, &flags)?,
        "if the target is missing, `rustup target add` it; the program must compile without a newer C \
         library than that of its wheel",
    )?;
    let program = workspace.target().join(target.triple).join("dist").join("toolcrib");
    if target.uses_zig() {
        profile::check(workspace, &program)?;
    }
    Ok(program)
}

/// A build of the program with these flags of the compiler.
fn cargo(workspace: &Workspace, target: &Target, flags: &[String]) -> Result<Command, Problem> {
    let command = if target.uses_zig() { "zigbuild" } else { "build" };
    let mut cargo = workspace.cargo([command, "--locked", "--profile", "dist"]);
    cargo.args(["--package", "toolcrib-cli", "--bin", "toolcrib"]);
    cargo.args(["--target", &target.triple_of_build()]);
    let bin = tools(workspace).join("venv").join("bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([bin].into_iter().chain(env::split_paths(&path)));
    let path = path.map_err(|error| Problem::new(error.to_string(), "remove it from the PATH"))?;
    cargo.env("PATH", path).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    Ok(cargo)
}

/// Writes completions, manual pages and licenses.
fn write_texts(workspace: &Workspace, program: &Path, texts: &Path) -> Result<(), Problem> {
    let completions = texts.join("completions");
    fs::create_dir_all(&completions).map_err(|error| unwritable(&completions, &error))?;
    for (shell, name) in
        [("bash", "toolcrib.bash"), ("zsh", "_toolcrib"), ("fish", "toolcrib.fish")]
    {
        let script = output(workspace.program(program).args(["completions", shell]), "fix it")?;
        write(&completions.join(name), &(script + "\n"))?;
    }
    let man = texts.join("man").join("man1");
    output(workspace.program(program).args(["man", "--dir"]).arg(&man), "fix it")?;
    for name in LICENSES {
        copy(&workspace.root().join(name), &texts.join(name))?;
    }
    write_licenses(workspace)
}

/// Writes the licenses of the crates in the program.
pub(crate) fn write_licenses(workspace: &Workspace) -> Result<(), Problem> {
    let folder = texts(workspace);
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    write(&folder.join("THIRD-PARTY.txt"), &licenses::of_dependencies(workspace)?)
}

/// The folder of completions, manual pages and licenses.
fn texts(workspace: &Workspace) -> PathBuf {
    workspace.target().join("package").join("texts")
}

fn tools(workspace: &Workspace) -> PathBuf {
    workspace.target().join("package").join("tools")
}

fn version(workspace: &Workspace) -> Result<String, Problem> {
    let manifest = workspace.read("Cargo.toml")?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|rest| rest.strip_suffix('"')).map(str::to_owned);
    version.ok_or_else(|| Problem::new("Cargo.toml has no version", "write one"))
}

/// An empty folder at this path.
fn empty(folder: PathBuf) -> Result<PathBuf, Problem> {
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritable(&folder, &error)),
        _ => fs::create_dir_all(&folder)
            .map_err(|error| unwritable(&folder, &error))
            .map(|()| folder),
    }
}

fn write(path: &Path, text: &str) -> Result<(), Problem> {
    fs::write(path, text).map_err(|error| unwritable(path, &error))
}

/// Copies a file with its permissions, and creates the folder of the copy.
fn copy(from: &Path, to: &Path) -> Result<(), Problem> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    fs::copy(from, to).map(drop).map_err(|error| unwritable(to, &error))
}

fn size(path: &Path) -> Result<u64, Problem> {
    fs::metadata(path).map(|found| found.len()).map_err(|error| unreadable(path, &error))
}
