//! PostgreSQL's binaries, and a server for the crash table. Tests start theirs by `testbed`, on which the
//! checks must not depend.

use std::{
    env, fs, io,
    net::{TcpListener, TcpStream},
    os::unix::{
        fs::{MetadataExt as _, chown},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Child, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::{
    packages::install_of_system,
    problem::Problem,
    workspace::{Workspace, output},
};

const HELP: &str = "install PostgreSQL, such as by `apt-get install postgresql`";

/// The user `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65_534;

/// The time limit of a start: many times the usual one.
const START: Duration = Duration::from_secs(300);

/// Creates the cluster in the folder `$1` with the binaries in `$2`, runs the server on port `$3`, and
/// removes the folder when the standard input ends, which it does with the process that started it.
const SCRIPT: &str = r#"
"$2/initdb" -D "$1/data" -U owner -A trust -E UTF8 --locale=C --no-sync >"$1/initdb.log" 2>&1 || exit 1
"$2/postgres" -D "$1/data" -k "" -c listen_addresses=127.0.0.1 -p "$3" >"$1/log" 2>&1 &
pid=$!
cat >/dev/null
kill -INT $pid
wait $pid
rm -rf "$1"
"#;

/// Installs the system's package, where this user may; else the tests say that they are skipped.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    if binaries().is_some() {
        return Ok(());
    }
    install_of_system(workspace, "postgresql", HELP)
}

/// The version, as the server prints it.
pub(crate) fn version(workspace: &Workspace) -> Result<String, Problem> {
    let server = binaries().unwrap_or_default().join("postgres");
    output(workspace.program(server).arg("--version"), HELP)
}

/// Starts a server with its defaults and its own cluster. It ends when the standard input of the process
/// is closed. Returns the URL of a database, too.
pub(crate) fn start(workspace: &Workspace) -> Result<(Child, String), Problem> {
    let missing = || Problem::new("PostgreSQL is missing".to_owned(), HELP);
    let binaries = binaries().ok_or_else(missing)?;
    start_with(workspace, &binaries).map_err(|error| {
        let problem = format!("the PostgreSQL server does not start: {error}");
        Problem::new(problem, "start `initdb` and `postgres` of its package by hand")
    })
}

fn start_with(workspace: &Workspace, binaries: &Path) -> io::Result<(Child, String)> {
    // Free at this moment; the server fails to start otherwise.
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    // Not in the target folder, which `nobody` may be unable to reach.
    let folder = env::temp_dir().join(format!("toolcrib-xtask-pg-{}-{port}", std::process::id()));
    fs::create_dir(&folder)?;
    let mut command = workspace.program("sh");
    command.args(["-c", SCRIPT, "sh"]).arg(&folder).arg(binaries).arg(port.to_string());
    command.current_dir(&folder).env("HOME", &folder);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    if fs::metadata("/proc/self")?.uid() == 0 {
        chown(&folder, Some(NOBODY), Some(NOBODY))?;
        command.uid(NOBODY).gid(NOBODY);
    }
    let mut process = command.spawn()?;
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        if began.elapsed() > START || process.try_wait()?.is_some() {
            let logs = ["initdb.log", "log"].map(|name| fs::read_to_string(folder.join(name)));
            return Err(io::Error::other(logs.map(Result::unwrap_or_default).concat()));
        }
        thread::sleep(Duration::from_millis(50));
    }
    Ok((process, format!("postgres://owner@127.0.0.1:{port}/postgres?sslmode=disable")))
}

/// The folder with the server's programs: Debian does not put it into the `PATH`.
fn binaries() -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let of_debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = of_debian.map(|version| version.path().join("bin"));
    let has_both =
        |folder: &PathBuf| ["initdb", "postgres"].iter().all(|name| folder.join(name).exists());
    env::split_paths(&path).chain(folders).find(has_both)
}
