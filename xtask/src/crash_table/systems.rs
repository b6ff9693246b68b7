//! The systems, and how each is installed and started.

use std::{
    io,
    path::{Path, PathBuf},
    process::{Child, Command},
};

use super::{restate, stand_in::StandIn, worker::Variables};
use crate::{
    packages, postgres,
    problem::Problem,
    workspace::{Workspace, run},
};

const FOLDER: &str = "benches/crash-table";
const REQUIREMENTS: &str = "benches/crash-table/requirements.txt";

/// A row of the table.
pub(super) struct System {
    pub(super) name: &'static str,
    /// The name with its version, as it is shown.
    pub(super) shown: &'static str,
    /// What is stored where.
    pub(super) setting: &'static str,
    /// The key of an effect, as its documentation recommends.
    pub(super) key: &'static str,
    /// Whether the API ignores a repeated key, and the system sends one.
    pub(super) is_keyed: bool,
    pub(super) kills: u64,
    /// Whether the command is `fork.py`.
    pub(super) forks: bool,
    /// The processes at the same time, each with its own store and its own runs: more for a system that
    /// waits for long after a kill. Their number changes only the time that the row takes.
    pub(super) lanes: usize,
    /// Installs it, unless it is there.
    pub(super) install: fn(&Workspace) -> Result<(), Problem>,
    pub(super) command: fn(&Workspace) -> Command,
    /// The client of each run, where the process that is killed is only the server of it.
    pub(super) client: Option<Client>,
    /// Starts what is not killed.
    pub(super) server: fn(&Workspace, &Path) -> Result<Option<Server>, Problem>,
}

/// Lets a run end, given the variables of its server, unless its processes are not started again.
pub(super) type Client = fn(&Variables, &str, &StandIn) -> io::Result<()>;

/// A server that a system needs, stopped on drop.
pub(super) struct Server {
    pub(super) process: Child,
    /// How its clients find it.
    pub(super) variables: Vec<(&'static str, String)>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // A process that reads its standard input ends with it, in order.
        if self.process.stdin.take().is_none() {
            drop(self.process.kill());
        }
        drop(self.process.wait());
    }
}

const LANGGRAPH: System = System {
    name: "langgraph",
    shown: "LangGraph 1.2.24",
    setting: "`durability=\"sync\"`, SQLite",
    key: "the id of the call, which the checkpoint contains",
    is_keyed: false,
    kills: 300,
    forks: true,
    lanes: 8,
    install: install_python,
    command: |workspace| python(workspace, "langgraph_agent"),
    client: None,
    server: |_, _| Ok(None),
};

const DBOS: System = System {
    name: "dbos",
    shown: "DBOS 3.4.0",
    setting: "each response and effect is a step, SQLite",
    key: "the id of the workflow with that of the step",
    command: |workspace| python(workspace, "dbos_workflow"),
    ..LANGGRAPH
};

const PYDANTIC_AI: System = System {
    name: "pydantic-ai",
    shown: "pydantic-ai 2.68.0 with DBOS 3.4.0",
    setting: "`DBOSDurability`, each tool is a step, SQLite",
    key: "the id of the call, which the step of the response contains",
    command: |workspace| python(workspace, "pydantic_ai_dbos"),
    ..LANGGRAPH
};

const AGENT_FRAMEWORK: System = System {
    name: "agent-framework",
    shown: "Microsoft Agent Framework 1.23.0",
    setting: "each response and effect is a step, `FileCheckpointStorage`",
    key: "the id of the call, which the step of the response contains",
    command: |workspace| python(workspace, "agent_framework_workflow"),
    ..LANGGRAPH
};

const RESTATE: System = System {
    name: "restate",
    shown: "Restate 1.7.12, Python SDK 1.3.0",
    setting: "`ctx.run` for each response and effect, retries every 50 to 200 ms without end, one server",
    key: "`ctx.uuid()`",
    lanes: 1,
    install: |workspace| restate::install(workspace).and_then(|()| install_python(workspace)),
    command: |workspace| python(workspace, "restate_workflow"),
    server: restate::start,
    ..LANGGRAPH
};

const TOOLCRIB: System = System {
    name: "toolcrib",
    shown: "Toolcrib",
    setting: "SQLite",
    key: "`ToolContext::idempotency_key`",
    kills: 1_000,
    forks: false,
    // A killed process keeps its sessions for 15 seconds.
    lanes: 24,
    install: build_toolcrib,
    command: |workspace| workspace.program(workspace.target().join("debug/examples/crash-table")),
    ..LANGGRAPH
};

const TOOLCRIB_POSTGRES: System = System {
    name: "toolcrib-postgres",
    shown: "Toolcrib on PostgreSQL",
    setting: "PostgreSQL of Debian's package with its defaults",
    install: |workspace| postgres::install(workspace).and_then(|()| build_toolcrib(workspace)),
    server: |workspace, _| {
        let (process, url) = postgres::start(workspace)?;
        Ok(Some(Server { process, variables: vec![("CRASH_POSTGRES", url)] }))
    },
    ..TOOLCRIB
};

/// Also run by `cargo xtask frameworks`.
pub(super) const TOOLCRIB_RESTATE: System = System {
    name: "toolcrib-restate",
    shown: "Toolcrib on Restate 1.7.12",
    setting: "`examples/restate`, Rust SDK 0.13.0: SQLite, each segment is a handler of a virtual object, one server",
    key: "not measured with keys",
    kills: 300,
    lanes: 6,
    install: |workspace| {
        restate::install(workspace)?;
        let manifest = workspace.root().join("examples/restate/Cargo.toml").display().to_string();
        let mut cargo = workspace.cargo(["build", "--locked", "--manifest-path", &manifest]);
        cargo.env("CARGO_TARGET_DIR", workspace.target().join("frameworks"));
        run(&mut cargo, "fix the example for the version of the SDK that it names")
    },
    command: |workspace| {
        let program = workspace.target().join("frameworks/debug/example-restate");
        let mut command = workspace.program("sh");
        let script = r#"exec "$0" "$CRASH_ADDRESS" "$CRASH_STORE" "$CRASH_URL""#;
        command.args(["-c", script]).arg(program);
        command
    },
    client: Some(restate::settle),
    server: restate::start,
    ..TOOLCRIB
};

/// In the order of the table.
pub(super) const SYSTEMS: [System; 15] = [
    TOOLCRIB,
    System { name: "toolcrib-keyed", is_keyed: true, ..TOOLCRIB },
    TOOLCRIB_POSTGRES,
    System { name: "toolcrib-postgres-keyed", is_keyed: true, ..TOOLCRIB_POSTGRES },
    TOOLCRIB_RESTATE,
    DBOS,
    System { name: "dbos-keyed", is_keyed: true, ..DBOS },
    LANGGRAPH,
    System { name: "langgraph-keyed", is_keyed: true, ..LANGGRAPH },
    PYDANTIC_AI,
    System { name: "pydantic-ai-keyed", is_keyed: true, ..PYDANTIC_AI },
    AGENT_FRAMEWORK,
    System { name: "agent-framework-keyed", is_keyed: true, ..AGENT_FRAMEWORK },
    RESTATE,
    System { name: "restate-keyed", is_keyed: true, ..RESTATE },
];

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("crash-table").join("systems")
}

fn install_python(workspace: &Workspace) -> Result<(), Problem> {
    packages::install_once(workspace, &folder(workspace), REQUIREMENTS)
}

/// Starts `fork.py` with a module, in an environment with the Python systems.
fn python(workspace: &Workspace, module: &str) -> Command {
    let mut command = workspace.program(packages::interpreter(&folder(workspace)));
    command.arg(workspace.root().join(FOLDER).join("fork.py")).arg(module);
    command
}

fn build_toolcrib(workspace: &Workspace) -> Result<(), Problem> {
    let args = ["build", "--package", "toolcrib-benches", "--example", "crash-table"];
    run(&mut workspace.cargo(args), "fix the compiler errors above")
}
