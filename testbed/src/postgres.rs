//! A PostgreSQL server of the machine's binaries, in a temporary folder, for the tests of a process.

#![allow(clippy::disallowed_methods, reason = "it runs the machine's programs")]

use std::{
    env, fs,
    io::{self, Read as _, Write as _},
    os::unix::{fs::chown, process::CommandExt as _},
    path::{Path, PathBuf},
    process::{ChildStdin, Command, Stdio},
    sync::{
        OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use toolcrib_skip::skip;

/// The user `nobody`: the server refuses to run as root.
const NOBODY: u32 = 65_534;

const MISSING: &str =
    "PostgreSQL is not installed; install it, such as by `apt-get install postgresql`";

/// The time limit of a start: many times the usual one.
const START: Duration = Duration::from_secs(300);

/// Creates the cluster in the folder `$1` with the binaries in `$2`, runs the server with `fsync=$4`, stops
/// it at once and starts it again for each line of the standard input, and removes the folder when that
/// ends, which it does with the process of the tests.
const SCRIPT: &str = r#"
"$2/initdb" -D "$1/data" -U owner -A trust -E UTF8 --locale=C --no-sync >"$1/initdb.log" 2>&1 || exit 1
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -addext basicConstraints=critical,CA:FALSE -keyout "$1/data/server.key" -out "$1/server.crt" \
    >"$1/openssl.log" 2>&1 && cp "$1/server.crt" "$1/data/server.crt" && ssl=on || ssl=off
run() {
    "$2/postgres" -D "$1/data" -k "$1" -c fsync=$4 -c ssl=$ssl -c listen_addresses=localhost -p "$3" >>"$1/log" 2>&1 &
    pid=$!
}
run "$@"
while read -r _; do
    kill -QUIT $pid
    wait $pid
    run "$@"
done
kill -INT $pid
wait $pid
rm -rf "$1"
"#;

/// A running server. It ends with the process.
#[derive(Debug)]
pub struct PostgresServer {
    folder: PathBuf,
    port: u16,
    bin: PathBuf,
    /// The server ends when this closes.
    life: Mutex<ChildStdin>,
    databases: AtomicUsize,
}

impl PostgresServer {
    /// The server of this process; it is started by the first call. `None` if this machine has no
    /// PostgreSQL: the test is skipped.
    ///
    /// # Panics
    /// If it does not start, and without PostgreSQL where the variable `CI` is set.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<PostgresServer>> = OnceLock::new();
        let server = SERVER.get_or_init(|| Self::start("off")).as_ref();
        if server.is_none() {
            skip(MISSING);
        }
        server
    }

    /// A separate server, which syncs each acknowledged write to the disk. `None` as of
    /// [`shared`](Self::shared).
    ///
    /// # Panics
    /// Those of [`shared`](Self::shared).
    pub fn durable() -> Option<Self> {
        let server = Self::start("on");
        if server.is_none() {
            skip(MISSING);
        }
        server
    }

    /// Stops it at once, as `pg_ctl stop -m immediate` does, and waits until it runs again.
    ///
    /// # Errors
    /// Its log, if it does not run again.
    pub fn crash(&self) -> io::Result<()> {
        let begun = || self.psql("postgres", "SELECT pg_postmaster_start_time()");
        let before = begun()?;
        self.life.lock().write_all(b"\n")?;
        self.wait_for(|| begun().is_ok_and(|now| now != before))
    }

    #[expect(clippy::panic, reason = "for tests")]
    fn start(fsync: &str) -> Option<Self> {
        match Self::start_with(binaries()?, fsync) {
            Ok(server) => Some(server),
            Err(error) => panic!("the PostgreSQL server does not start: {error}"),
        }
    }

    fn start_with(bin: PathBuf, fsync: &str) -> io::Result<Self> {
        let name = format!("toolcrib-pg-{}-{fsync}", std::process::id());
        let folder = env::temp_dir().join(name);
        fs::create_dir(&folder)?;
        // Free at this moment; the server fails to start otherwise.
        let port = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "sh"]).arg(&folder).arg(&bin).args([&port.to_string(), fsync]);
        command.current_dir(&folder).env("HOME", &folder);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        if is_root()? {
            chown(&folder, Some(NOBODY), Some(NOBODY))?;
            command.uid(NOBODY).gid(NOBODY);
        }
        let life = command.spawn()?.stdin.take().ok_or_else(|| io::Error::other("no pipe"))?;
        let (life, databases) = (Mutex::new(life), AtomicUsize::new(0));
        let server = Self { folder, port, bin, life, databases };
        server.wait_for(|| server.psql("postgres", "SELECT 1").is_ok())?;
        Ok(server)
    }

    fn wait_for(&self, is_ready: impl Fn() -> bool) -> io::Result<()> {
        let begun = Instant::now();
        while !is_ready() {
            if begun.elapsed() > START {
                return Err(io::Error::other(self.logs()));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Creates a database, with a script that its owner runs.
    ///
    /// # Errors
    /// The output of `psql`.
    pub fn database(&self, script: &str) -> io::Result<String> {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"))?;
        // The default since version 15.
        self.psql(&name, "REVOKE CREATE ON SCHEMA public FROM PUBLIC")?;
        self.psql(&name, script)?;
        Ok(name)
    }

    /// Runs a script as the owner; returns its output without headers.
    ///
    /// # Errors
    /// The output of `psql`.
    pub fn psql(&self, database: &str, script: &str) -> io::Result<String> {
        let ran = Command::new(self.bin.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "owner", "-c", script])
            .arg("-h")
            .arg(&self.folder)
            .args(["-p", &self.port.to_string(), database])
            .output()?;
        if !ran.status.success() {
            return Err(io::Error::other(String::from_utf8_lossy(&ran.stderr).into_owned()));
        }
        Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    }

    /// The URL of a database over the Unix socket.
    pub fn url(&self, user: &str, database: &str) -> String {
        let Self { folder, port, .. } = self;
        format!("host={} port={port} user={user} dbname={database}", folder.display())
    }

    /// The URL of a database over TCP, with more parameters.
    pub fn tcp_url(&self, user: &str, database: &str, parameters: &str) -> String {
        format!("postgres://{user}@localhost:{}/{database}?{parameters}", self.port)
    }

    /// Its port on localhost.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The certificate of the server, which signs itself; it has none without `openssl`.
    pub fn certificate(&self) -> Option<PathBuf> {
        Some(self.folder.join("server.crt")).filter(|file| file.exists())
    }

    fn logs(&self) -> String {
        let mut all = String::new();
        for name in ["initdb.log", "log"] {
            let file = fs::File::open(self.folder.join(name));
            let _ = file.and_then(|mut file| file.read_to_string(&mut all));
        }
        all
    }
}

fn is_root() -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Ok(fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0))
}

/// The folder with the server's programs: Debian does not put it into the `PATH`.
fn binaries() -> Option<PathBuf> {
    let on_path = env::var_os("PATH").unwrap_or_default();
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut of_debian: Vec<_> = versions.map(|version| version.path().join("bin")).collect();
    of_debian.sort();
    let has_all = |folder: &Path| {
        ["initdb", "postgres", "psql"].iter().all(|program| folder.join(program).exists())
    };
    env::split_paths(&on_path).chain(of_debian.into_iter().rev()).find(|folder| has_all(folder))
}
