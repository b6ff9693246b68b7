//! Measures replicas of one gateway that share a PostgreSQL database: how many calls two answer beside one,
//! and the processor time of a call beside that of a gateway with SQLite.

use std::{
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use futures_util::future::try_join_all;
use tokio::runtime::Builder;
use toolcrib_benches::{Cell, Outcome, Table, median, micros};
use toolcrib_testbed::PostgresServer;

use crate::{
    COMMAND,
    client::{Era, Target},
    program::{Processors, Program, free_address},
    roles, served,
    ways::{Setup, missing},
};

/// The name of this part for `--ways`.
pub(crate) const NAME: &str = "replicas";

/// The limit of a token for each replica, and so the number of callers of each.
const CALLERS: usize = 8;

/// The time that the server behind the replicas waits before each response.
const WAIT: Duration = Duration::from_millis(20);

/// The pause between two readings of a long test.
const PAUSE: Duration = Duration::from_secs(60);

const TOKEN: &str = "a-token-of-the-bench-1";

const PROJECT: &str = r#"
policy_default = "allow"
[secrets]
TOKEN = { env = "TOOLCRIB_BENCH_TOKEN" }
KEY = { env = "TOOLCRIB_BENCH_KEY" }
STORE = { env = "TOOLCRIB_BENCH_STORE" }
MARKS = { env = "TOOLCRIB_BENCH_MARKS" }
[artifacts]
[[serve.token]]
secret = "secret:TOKEN"
principal = "ann"
max_concurrent = 8
"#;

const SHARED: &str = r#"
[sessions]
store = "secret:STORE"
[approvals]
key = "secret:KEY"
marks = "secret:MARKS"
"#;

const LOCAL: &str = "[sessions]\n[approvals]\n";

/// The tables of this part, or none without the program or without PostgreSQL.
pub(crate) fn tables(setup: &Setup, rounds: usize) -> Outcome<Vec<Table>> {
    let Some(team) = Team::start(setup)? else { return Ok(Vec::new()) };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    Ok(vec![runtime.block_on(scale(&team, rounds))?, runtime.block_on(cost(&team, rounds))?])
}

/// Calls two replicas for the time, and returns the memory and the descriptors of each, minute by minute.
pub(crate) fn soak(setup: &Setup, time: Duration) -> Outcome<Vec<Table>> {
    let Some(team) = Team::start(setup)? else { return Ok(Vec::new()) };
    let (wait, runtime) = (team.server(WAIT)?, Builder::new_current_thread().enable_all().build()?);
    let replicas = [team.replica(&wait, SHARED)?, team.replica(&wait, SHARED)?];
    let both = [&replicas[0], &replicas[1]];
    let (begun, mut rows) = (Instant::now(), Vec::new());
    while begun.elapsed() < time {
        let read = Instant::now();
        while read.elapsed() < PAUSE {
            for era in [Era::Sessions, Era::Stateless] {
                runtime.block_on(rate(&both, era))?;
            }
        }
        let mut row = vec![Cell::from(begun.elapsed().as_secs() / 60)];
        for replica in &replicas {
            row.extend([replica.program.memory().into(), replica.program.descriptors().into()]);
        }
        eprintln!("{} of {} s", begun.elapsed().as_secs(), time.as_secs());
        rows.push(row);
    }
    let columns = vec!["minutes", "one: MiB", "descriptors", "two: MiB", "descriptors"];
    Ok(vec![Table { title: "Two replicas, called for long", command: COMMAND, columns, rows }])
}

/// The databases, and the programs of replicas.
struct Team<'a> {
    postgres: PostgresServer,
    toolcrib: &'a Path,
    folder: tempfile::TempDir,
}

/// A running gateway.
struct Replica {
    program: Program,
    address: SocketAddr,
}

impl<'a> Team<'a> {
    fn start(setup: &'a Setup) -> Outcome<Option<Self>> {
        let (Some(toolcrib), Some(postgres)) = (&setup.toolcrib, PostgresServer::durable()) else {
            missing("replicas");
            return Ok(None);
        };
        // The databases `test_0`, of the store, and `test_1`, of the marks.
        for _ in 0..2 {
            postgres.database("")?;
        }
        Ok(Some(Self { postgres, toolcrib, folder: tempfile::tempdir()? }))
    }

    /// A folder that nothing has yet.
    fn folder(&self) -> Outcome<PathBuf> {
        Ok(tempfile::tempdir_in(self.folder.path())?.keep())
    }

    /// The server behind the replicas.
    fn server(&self, wait: Duration) -> Outcome<Replica> {
        let address = free_address()?;
        let port = address.port().to_string();
        let command = roles::own(&[roles::ECHO_HTTP, &port, &wait.as_millis().to_string()])?;
        self.listening(command, &self.folder()?, address)
    }

    /// A gateway of a separate machine: its home and its state are its own.
    fn replica(&self, server: &Replica, more: &str) -> Outcome<Replica> {
        let (folder, address) = (self.folder()?, free_address()?);
        let server = format!("[mcp.echo]\nurl = \"http://{}/mcp\"\n", server.address);
        fs::write(folder.join("toolcrib.toml"), format!("{PROJECT}{more}{server}"))?;
        let mut command = Command::new(self.toolcrib);
        command.args(["serve", "--http", &address.to_string(), "--project"]).arg(&folder);
        command.arg("--state").arg(folder.join("state")).env("HOME", &folder);
        command.env("XDG_CONFIG_HOME", folder.join("config"));
        command.env("TOOLCRIB_BENCH_TOKEN", TOKEN);
        command.env("TOOLCRIB_BENCH_KEY", "0123456789abcdef0123456789abcdef");
        command.env("TOOLCRIB_BENCH_STORE", self.postgres.url("owner", "test_0"));
        command.env("TOOLCRIB_BENCH_MARKS", self.postgres.url("owner", "test_1"));
        self.listening(command, &folder, address)
    }

    fn listening(
        &self,
        mut command: Command,
        folder: &Path,
        address: SocketAddr,
    ) -> Outcome<Replica> {
        command.stdout(Stdio::null());
        let mut program = Program::start(command, folder, "program")?;
        program.wait_for(address)?;
        Ok(Replica { program, address })
    }
}

impl Replica {
    fn target(&self, era: Era) -> Target {
        let (address, token) = (self.address, Some(TOKEN.to_owned()));
        Target { address, token, tool: served::TOOL.into(), era }
    }
}

/// The calls per second of all these replicas together, each with its callers, and the share of time in which
/// the processors were busy.
async fn rate(replicas: &[&Replica], era: Era) -> Outcome<(f64, f64)> {
    let targets: Vec<Target> = replicas.iter().map(|replica| replica.target(era)).collect();
    let rounds = targets.iter().map(|target| target.measured(CALLERS, Processors::now));
    let rounds = try_join_all(rounds).await.map_err(|error| {
        let said = replicas.iter().map(|replica| replica.program.said()).collect::<String>();
        format!("{error}\n{said}")
    })?;
    let busy = rounds.iter().map(|one| one.after.busy_since(&one.before)).fold(0.0, f64::max);
    Ok((rounds.iter().map(|one| one.round.rate).sum(), busy))
}

async fn scale(team: &Team<'_>, rounds: usize) -> Outcome<Table> {
    let server = team.server(WAIT)?;
    let (one, two) = (team.replica(&server, SHARED)?, team.replica(&server, SHARED)?);
    let mut rows = Vec::new();
    for (name, era) in [("sessions", Era::Sessions), ("stateless", Era::Stateless)] {
        let mut found = Vec::new();
        for round in 0..=rounds {
            let (alone, _) = rate(&[&one], era).await?;
            let (both, busy) = rate(&[&one, &two], era).await?;
            // The first round is a warm-up.
            if round > 0 {
                found.push([alone, both, both / alone, busy * 100.0]);
            }
        }
        let mut row = vec![Cell::from(name)];
        row.extend(medians(&found));
        row.push(1.8.into());
        rows.push(row);
    }
    let columns = vec![
        "8 calls at a time each, of 20 ms",
        "one replica, calls/s",
        "two, calls/s",
        "two / one",
        "processors busy, %",
        "goal",
    ];
    Ok(Table { title: "Two replicas on one PostgreSQL", command: COMMAND, columns, rows })
}

async fn cost(team: &Team<'_>, rounds: usize) -> Outcome<Table> {
    let server = team.server(Duration::ZERO)?;
    let gateways = [team.replica(&server, LOCAL)?, team.replica(&server, SHARED)?];
    let mut rows = Vec::new();
    for (name, era) in [("sessions", Era::Sessions), ("stateless", Era::Stateless)] {
        let mut found = Vec::new();
        for round in 0..=rounds {
            let mut each = [0.0; 2];
            // In turns: the one that is first comes after a pause, in which sessions end.
            let mut order: Vec<_> = gateways.iter().zip(&mut each).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for (gateway, cost) in order {
                let read = || gateway.program.processor_time();
                let found = gateway.target(era).measured(CALLERS, read).await?;
                *cost = micros(found.after - found.before) / found.calls as f64;
            }
            // The first round is a warm-up.
            if round > 0 {
                let [local, shared] = each;
                found.push([local, shared, shared / local]);
            }
        }
        let mut row = vec![Cell::from(name)];
        row.extend(medians(&found));
        row.push(1.1.into());
        rows.push(row);
    }
    let columns = vec!["8 callers", "SQLite, µs", "PostgreSQL, µs", "PostgreSQL / SQLite", "goal"];
    let title = "A gateway's processor time of a call whose rules read nothing that is shared";
    Ok(Table { title, command: COMMAND, columns, rows })
}

/// The median of each figure of all rounds.
fn medians<const N: usize>(rounds: &[[f64; N]]) -> impl Iterator<Item = Cell> {
    let each = |at| rounds.iter().filter_map(move |figures| figures.get(at).copied());
    (0..N).map(move |at| median(each(at)).into())
}
