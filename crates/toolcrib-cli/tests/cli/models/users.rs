//! The models of a user, and conversations without a project.

use std::{
    fs,
    io::Write as _,
    os::unix::{ffi::OsStrExt as _, fs::PermissionsExt as _},
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib_models::{ScriptedModel, Vendor};
use toolcrib_testbed::{ModelServer, Recorded, Reply};

use super::{KEY, Prepared, Served, runtime};
use crate::{
    chat::at_prompt,
    model_faults::wire::Answer,
    support::{Outcome, Project, toolcrib},
    terminal::Terminal,
};

/// A user with their own configuration, in an empty folder.
struct User(TempDir);

impl User {
    fn new() -> Self {
        let this = Self(TempDir::new().unwrap());
        fs::create_dir(this.path("here")).unwrap();
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolcrib();
        command.args(args).current_dir(self.path("here"));
        command.env("XDG_CONFIG_HOME", self.path("config"));
        command.env("XDG_STATE_HOME", self.path("state"));
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).output().unwrap().into()
    }

    /// Adds a model with the key on standard input.
    fn add(&self, args: &[&str]) -> Outcome {
        self.add_key(&format!("{KEY}\n"), args)
    }

    fn add_key(&self, key: &str, args: &[&str]) -> Outcome {
        let mut command = self.command(&[&["models", "add", "--key-stdin"], args].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(key.as_bytes()).unwrap();
        child.wait_with_output().unwrap().into()
    }

    fn mode(&self, file: &str) -> u32 {
        fs::metadata(self.path(file)).unwrap().permissions().mode() & 0o777
    }
}

/// A model that greets, at a server that requires the key.
fn greeter() -> Served {
    let script = "[[rule]]\ntext = 'Hello to you.'\n";
    let model = Arc::new(ScriptedModel::from_toml("script:s.toml", script).unwrap());
    let runtime = runtime();
    let server = ModelServer::builder(model).key(KEY).model_name("desk");
    Served { server: runtime.block_on(server.start()).unwrap(), _runtime: runtime }
}

fn have_the_key(requests: &[Recorded]) -> bool {
    let mut values = requests.iter().flat_map(|request| request.headers.iter());
    values.any(|(_, value)| value.to_str().unwrap().contains(KEY))
}

#[test]
fn one_command_and_one_question_lead_from_nothing_to_an_answer() {
    let user = User::new();
    let none = user.run(&["run", "Hello"]);
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.stderr.contains("run `toolcrib models add`"), "{none:?}");

    let served = greeter();
    let url = served.server.base_url();
    let mut terminal = Terminal::start(&user.command(&["models", "add", "--base-url", &url]), 120);
    terminal.wait_for("Vendor (anthropic, openai, gemini, ollama), or VENDOR:MODEL: ");
    terminal.send("openai:desk\r");
    terminal.wait_for("Key of openai (not shown; Enter for none): ");
    terminal.send(&format!("{KEY}\r"));
    let (code, screen, raw) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    assert!(screen.contains("reachable, 1 model") && screen.contains("Try: toolcrib chat"));
    assert!(!raw.contains(KEY), "{raw}");
    assert_eq!(user.mode("config/toolcrib/models.json"), 0o600);
    assert_eq!(user.mode("config/toolcrib/model_keys/OPENAI_API_KEY"), 0o600);

    let mut terminal = Terminal::start(&user.command(&["chat"]), 120);
    terminal.wait_for("--with files|web|FILE.db|URL adds some");
    terminal.wait_for("scratch · openai:desk · new session · 0 tools");
    at_prompt(&mut terminal);
    terminal.send("Hello\r");
    terminal.wait_for("Hello to you.");
    at_prompt(&mut terminal);
    terminal.send("/quit\r");
    let (code, screen, _) = terminal.end();
    assert_eq!(code, Some(0), "{screen}");
    // The line at the end finds the session from any folder.
    let line = screen.split('`').find(|line| line.starts_with("toolcrib chat --session")).unwrap();
    let line = line.replace('\n', " ").replace("toolcrib chat", "run");
    let words: Vec<_> = line.split_whitespace().chain(["Hello"]).collect();
    let again = user.command(&words).current_dir("/").output().unwrap();
    assert_eq!(Outcome::from(again).stdout, "Hello to you.\n");

    let listed = user.run(&["models"]);
    assert!(listed.stdout.contains("✓ openai:desk at http://127.0.0.1"), "{listed:?}");
    assert!(listed.stdout.contains("(your default)"), "{listed:?}");
    assert!(listed.stderr.contains("a run that names no model uses openai:desk"), "{listed:?}");
    // The same base URL keeps the key, and another one does not.
    assert_eq!(user.run(&["models", "add", "openai:desk", "--base-url", &url]).code, Some(0));
    assert!(user.path("config/toolcrib/model_keys/OPENAI_API_KEY").exists());
    let moved = user.run(&["models", "add", "openai:m", "--base-url", "http://127.0.0.1:9/v1"]);
    assert_eq!(moved.code, Some(0), "{moved:?}");
    assert!(moved.stdout.contains("✗ openai:m"), "{moved:?}");
    assert!(moved.stderr.contains("no key was stored"), "{moved:?}");
    assert!(!moved.stderr.contains("Try:"), "{moved:?}");
    assert!(!user.path("config/toolcrib/model_keys/OPENAI_API_KEY").exists());

    // A secret of a project is not the key of a model.
    let mut secret = user.command(&["secret", "set", "ANTHROPIC_API_KEY"]);
    let mut secret = secret.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    secret.stdin.take().unwrap().write_all(KEY.as_bytes()).unwrap();
    assert!(secret.wait().unwrap().success());
    let listed = user.run(&["models", "--offline"]);
    assert!(listed.stdout.contains("run `toolcrib models add anthropic`"), "{listed:?}");
    assert_eq!(user.run(&["models", "remove", "anthropic"]).code, Some(2));

    for _ in 0..2 {
        assert_eq!(user.run(&["models", "add", "ollama:m", "--offline"]).code, Some(0));
        assert_eq!(user.run(&["models", "remove", "ollama"]).code, Some(0));
    }
    assert_eq!(user.run(&["models", "remove", "ollama"]).code, Some(2));
    assert_eq!(user.run(&["models", "remove", "openai"]).code, Some(0));
    assert!(user.run(&["run", "Hello"]).stderr.contains("none is configured"));
}

#[test]
fn what_cannot_be_added_is_refused_and_changes_nothing() {
    let user = User::new();
    let refused = |args: &[&str]| {
        let outcome = user.run(&[&["models", "add", "--offline"], args].concat());
        assert_eq!(outcome.code, Some(2), "{args:?}: {outcome:?}");
        outcome.stderr
    };
    assert!(refused(&["opnai:gpt-5"]).contains("did you mean `openai:gpt-5`?"));
    assert!(refused(&["gpt-5"]).contains("did you mean `openai:gpt-5`?"));
    assert!(refused(&["ollama"]).contains("write `ollama:MODEL`"));
    assert!(refused(&["openai"]).contains("add `--key-from-env VARIABLE` or `--key-stdin`"));
    let server = ["openai", "--base-url", "http://127.0.0.1:9/v1"];
    assert!(refused(&server).contains("`openai:MODEL`"));
    assert!(refused(&["openai:a b"]).contains("--key-from-env"));
    assert!(refused(&["openai", "--key-from-env", "TOOLCRIB_UNSET"]).contains("TOOLCRIB_UNSET"));
    let pasted = refused(&["openai", "--key-from-env", "sk-pasted"]);
    assert!(pasted.contains("not the key") && !pasted.contains("sk-pasted"), "{pasted}");
    let bytes = std::ffi::OsStr::from_bytes(b"sk-bytes\xff");
    let mut command = user.command(&["models", "add", "openai", "--key-from-env", "WORK_KEY"]);
    let not_text = Outcome::from(command.env("WORK_KEY", bytes).output().unwrap()).stderr;
    assert!(not_text.contains("WORK_KEY is not UTF-8") && !not_text.contains("sk-"), "{not_text}");
    assert!(refused(&["openai", "-p", "."]).contains("leave out `--project`"));
    for (key, problem) in [
        ("", "the key of `--key-stdin` is empty"),
        ("abc", "the key of `--key-stdin` has fewer than 4 characters"),
        (&"a".repeat(70_000), "at most 65536 bytes"),
    ] {
        let refused = user.add_key(key, &["openai:m", "--offline"]);
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(problem), "{refused:?}");
    }
    let clear = user.add(&["openai:m", "--offline", "--base-url", "http://far.example/v1"]);
    assert_eq!(clear.code, Some(2), "a key is not sent in the clear: {clear:?}");
    let with_env = user
        .command(&["models", "add", "openai:m", "--base-url", "http://127.0.0.1:9/v1"])
        .env("OPENAI_API_KEY", KEY)
        .output()
        .unwrap();
    assert!(Outcome::from(with_env).stderr.contains("the environment sets OPENAI_API_KEY"));
    assert!(!user.path("config/toolcrib/models.json").exists());
    assert!(!user.path("config/toolcrib/model_keys").exists());
}

#[test]
fn a_model_with_another_name_is_neither_added_nor_removed_silently() {
    let (user, served) = (User::new(), greeter());
    let url = served.server.base_url();
    let near = user.add(&["openai:dsk", "--base-url", &url]);
    assert!(near.stdout.contains("does not list `dsk`; did you mean `desk`?"), "{near:?}");
    let short = url.trim_end_matches("/v1");
    let short = user.add(&["openai:desk", "--base-url", short]);
    assert!(short.stdout.contains("it usually ends with `/v1`"), "{short:?}");
    assert_eq!(user.add(&["openai:desk", "--base-url", &url]).code, Some(0));
    let other = user.run(&["models", "remove", "openai:other"]);
    assert_eq!(other.code, Some(2), "{other:?}");
    assert!(other.stderr.contains("`openai:other` was not added; `toolcrib models remove openai`"));
    assert_eq!(user.run(&["run", "Hello"]).stdout, "Hello to you.\n");
    // The server is away, and no other model of the vendor appears in the list.
    drop(served);
    let listed = user.run(&["models"]).stdout;
    assert_eq!(listed.matches("openai:").count(), 1, "{listed}");
    assert_eq!(user.run(&["models", "remove", "openai:desk"]).code, Some(0));
}

#[test]
fn a_file_of_models_that_is_not_valid_is_named_with_its_problem() {
    let user = User::new();
    assert_eq!(user.add(&["openai:m", "--offline"]).code, Some(0));
    let file = user.path("config/toolcrib/models.json");
    for (text, problem) in [
        ("[]", "it is not a JSON object"),
        (r#"{"defualt": "openai:m"}"#, "unknown field `defualt`"),
        (r#"{"base_urls": {"opnai": "http://127.0.0.1:9/v1"}}"#, "`opnai` of `base_urls` is not"),
    ] {
        fs::write(&file, text).unwrap();
        for args in [&["models"][..], &["models", "remove", "openai"], &["run", "Hello"]] {
            let refused = user.run(args);
            assert_eq!(refused.code, Some(2), "{args:?}: {refused:?}");
            assert!(refused.stderr.contains("models.json: "), "{refused:?}");
            assert!(refused.stderr.contains(problem), "{refused:?}");
        }
    }
    fs::write(&file, r#"{"default": "openai:m", "base_urls": {"openai": "no url"}}"#).unwrap();
    let refused = user.run(&["models"]).stderr;
    assert!(refused.contains("`openai:m` is not valid: ") && refused.contains("URL"), "{refused}");
    fs::rename(&file, user.path("elsewhere.json")).unwrap();
    std::os::unix::fs::symlink(user.path("elsewhere.json"), &file).unwrap();
    assert!(user.run(&["models"]).stderr.contains("models.json: it is a symlink"));
}

#[test]
fn the_default_stands_between_the_project_and_the_environment() {
    let user = User::new();
    let key = format!("{KEY}-of-the-environment");
    let default = |args: &[&str]| -> Value {
        let mut command = user.command(&[&["models", "--offline", "--json"], args].concat());
        let listed = command.env("ANTHROPIC_API_KEY", &key).output().unwrap();
        let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
        let models = listed["models"].as_array().unwrap();
        let first = models.iter().find(|model| model["is_default"] == true);
        json!([listed["named"], first.map(|first| [&first["name"], &first["origin"]])])
    };
    let name = "anthropic:claude-sonnet-5-5";
    assert_eq!(default(&[]), json!([null, [name, "ANTHROPIC_API_KEY"]]));
    assert_eq!(user.add(&["openai:gpt-5", "--offline"]).code, Some(0));
    assert_eq!(default(&[]), json!([null, ["openai:gpt-5", "your default"]]));
    let project = Project::of(&[
        ("toolcrib.toml", "[agent]\nmodel = 'script:s.toml'\n"),
        ("s.toml", "[[rule]]\ntext = 'From the project.'\n"),
        ("t.toml", "[[rule]]\ntext = 'From the command line.'\n"),
    ]);
    let folder = project.path().to_str().unwrap();
    let run = |args: &[&str]| user.run(&[&["run", "-p", folder, "Hello"], args].concat()).stdout;
    assert_eq!(run(&[]), "From the project.\n");
    assert_eq!(run(&["--model", "script:t.toml"]), "From the command line.\n");
    project.write("toolcrib.toml", "[model.own]\nvendor = 'ollama'\nmodel = 'm'\n");
    assert_eq!(default(&["-p", folder]), json!([null, ["own", "toolcrib.toml:1"]]));

    // A default without its key is an error, not another vendor.
    fs::remove_file(user.path("config/toolcrib/model_keys/OPENAI_API_KEY")).unwrap();
    let lost = user.command(&["run", "Hello"]).env("ANTHROPIC_API_KEY", &key).output().unwrap();
    let lost = Outcome::from(lost);
    assert_eq!(lost.code, Some(2), "{lost:?}");
    let reason = "openai:gpt-5 (your default) cannot be used: there is no key for openai: set \
        OPENAI_API_KEY, or run `toolcrib models add openai`";
    assert!(lost.stderr.contains(reason), "{}", lost.stderr);
}

#[test]
fn a_stored_key_goes_only_where_it_was_stored_for() {
    let user = User::new();
    let hello = || Answer::text(&["Hello to you."]);
    let other = Prepared::saying(Vendor::OpenAi, [hello(), hello(), hello(), hello()]);
    let own = greeter();
    let (own_url, other_url) = (own.server.base_url(), format!("{}/v1", other.url()));
    assert_eq!(user.add(&["openai:desk", "--base-url", &own_url]).code, Some(0));
    assert!(have_the_key(&own.server.recorder().requests()));

    // A base URL of a project or of the command line is another place.
    let project = Project::of(&[(
        "toolcrib.toml",
        &format!(
            "[agent]\nmodel = 'other'\n[model.other]\nvendor = 'openai'\nmodel = 'desk'\n\
             base_url = '{other_url}'\n"
        ),
    )]);
    let folder = project.path().to_str().unwrap();
    let by_project = user.run(&["run", "-p", folder, "Hello"]);
    assert_eq!(by_project.stdout, "Hello to you.\n", "{by_project:?}");
    let named = ["run", "--model", "openai:desk", "--base-url", &other_url, "Hello"];
    assert_eq!(user.run(&named).stdout, "Hello to you.\n");
    let by_environment = user
        .command(&["run", "--model", "openai:desk", "Hello"])
        .env("OPENAI_BASE_URL", &other_url)
        .output()
        .unwrap();
    assert_eq!(Outcome::from(by_environment).stdout, "Hello to you.\n");
    assert_eq!(other.requests().len(), 3);
    // The default is at its own base URL, whatever the environment configures for its vendor.
    for (variable, value) in [("OPENAI_BASE_URL", &*other_url), ("OPENAI_API_KEY", "k-of-env")] {
        let default = user.command(&["run", "Hello"]).env(variable, value).output().unwrap();
        assert_eq!(Outcome::from(default).stdout, "Hello to you.\n");
    }
    assert_eq!(other.requests().len(), 3);
    assert!(!have_the_key(&other.requests()));

    // A project that is found and not trusted is not run, and its model not asked.
    let count = own.server.recorder().len();
    project.write("toolcrib.toml", "[agent]\nmodel = 'openai:desk'\n");
    for args in [["run", "Hello"], ["models", "--json"]] {
        let mut command = user.command(&args);
        let found = Outcome::from(command.current_dir(project.path()).output().unwrap());
        assert_ne!(found.stdout, "Hello to you.\n", "{found:?}");
    }
    // `models` lists the models at the user's base URL, and nothing else was requested.
    let requests = own.server.recorder().requests();
    assert!(requests[count..].iter().all(|request| request.body.is_empty()));
    let named = user.run(&["run", "-p", folder, "Hello"]);
    assert_eq!(named.stdout, "Hello to you.\n", "a named project is trusted: {named:?}");

    // A file that others can read or change is not used.
    for file in ["models.json", "model_keys/OPENAI_API_KEY"] {
        let path = user.path("config/toolcrib").join(file);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let open = user.run(&["run", "Hello"]);
        assert_eq!(open.code, Some(2), "{open:?}");
        assert!(open.stderr.contains(file), "{}", open.stderr);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert_eq!(user.run(&["run", "Hello"]).stdout, "Hello to you.\n");

    // A damaged file stops only what needs it.
    fs::write(user.path("config/toolcrib/models.json"), "{").unwrap();
    let damaged = user.run(&["run", "Hello"]);
    assert!(damaged.stderr.contains("correct the file, or remove it"), "{damaged:?}");
    let own =
        format!("[model.other]\nvendor = 'openai'\nmodel = 'desk'\nbase_url = '{other_url}'\n");
    project.write("toolcrib.toml", &own);
    let by_project = user.run(&["run", "-p", folder, "Hello"]);
    assert_eq!(by_project.stdout, "Hello to you.\n", "{by_project:?}");
}

/// A document with one operation, and its answer.
const DOCUMENT: &str = r#"{ "openapi": "3.1.0", "servers": [{ "url": "/v1" }],
    "paths": { "/orders": { "get": { "operationId": "listOrders" } } } }"#;

#[test]
fn a_conversation_without_a_project_has_only_the_tools_of_with() {
    let user = User::new();
    let script = user.path("script.toml");
    fs::write(
        &script,
        "[[rule]]\nnot_called = 'read_file'\ncalls = [\n\
         { tool = 'read_file', args = { path = 'hello.txt' } },\n\
         { tool = 'write_file', args = { path = 'new.txt', content = 'x' } },\n\
         { tool = 'shop_query', args = { sql = 'SELECT name FROM products' } },\n\
         { tool = 'listOrders', args = {} } ]\n[[rule]]\ntext = 'Done.'\n",
    )
    .unwrap();
    fs::write(user.path("here/hello.txt"), "a line of the folder\n").unwrap();
    let shop = rusqlite::Connection::open(user.path("shop.db")).unwrap();
    shop.execute_batch("CREATE TABLE products(name TEXT); INSERT INTO products VALUES('a saw')")
        .unwrap();
    let api = Prepared::new(
        Vendor::OpenAi,
        vec![
            Reply::json(200, &serde_json::from_str::<Value>(DOCUMENT).unwrap()),
            Reply::json(200, &json!([{ "id": 7 }])),
        ],
    );
    let model = format!("script:{}", script.display());
    let url = format!("{}/openapi.json", api.url());
    let with = ["--with", "files", "--with", "../shop.db", "--with", "web", "--with", &url];
    let args = [&["run", "--json", "--no-session", "--model", &model, "Go"], &with[..]].concat();
    let run = user.run(&args);
    let run: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let texts: Vec<_> =
        run["tool_calls"].as_array().unwrap().iter().map(Value::to_string).collect();
    for (text, expected) in texts.iter().zip(["a line of the folder", "denied", "a saw", "7"]) {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    assert!(!user.path("here/new.txt").exists(), "what changes something needs a person");
    assert_eq!(fs::read_dir(user.path("here")).unwrap().count(), 1, "nothing is written there");
    let scratch = fs::read_dir(user.path("state/toolcrib/scratch")).unwrap().next().unwrap();
    assert_eq!(scratch.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o700);

    // A folder that contains the keys does not open it.
    assert_eq!(user.add(&["openai:m", "--offline"]).code, Some(0));
    let peek = "calls = [{ tool = 'read_file', args = { path = 'config/toolcrib/model_keys/OPENAI_API_KEY' } }]";
    let peek =
        format!("[[rule]]\nstep = 1\n{peek}\n[[rule]]\ntext = '{{{{ errors.read_file }}}}'\n");
    fs::write(user.path("peek.toml"), peek).unwrap();
    let peek = format!("script:{}", user.path("peek.toml").display());
    let mut command = user.command(&["run", "--with", "files", "--model", &peek, "Go"]);
    let peeked = Outcome::from(command.current_dir(user.0.path()).output().unwrap());
    assert_eq!(peeked.stdout, "True\n", "{peeked:?}");

    // A file with the name of a keyword's folder does not take the keyword's place.
    fs::copy(user.path("shop.db"), user.path("here.db")).unwrap();
    fs::write(user.path("done.toml"), "[[rule]]\ntext = 'Done.'\n").unwrap();
    let done = format!("script:{}", user.path("done.toml").display());
    let both = ["--with", "../here.db", "--with", "files", "--with", "files"];
    let both = user.run(&[&["run", "--json", "--model", &done, "Go"], &both[..]].concat());
    assert_eq!(both.code, Some(0), "{both:?}");
    for tool in ["here_2_query", "read_file"] {
        assert!(both.stdout.contains(tool), "{both:?}");
    }

    // Each database has its own tools.
    let script = "[[rule]]\nstep = 1\ncalls = [\n\
        { tool = 'shop_query', args = { sql = 'SELECT name FROM products' } },\n\
        { tool = 'here_2_query', args = { sql = 'SELECT 6 * 7 AS n' } } ]\n[[rule]]\ntext = 'Done.'\n";
    fs::write(user.path("two.toml"), script).unwrap();
    let two = format!("script:{}", user.path("two.toml").display());
    let args = ["run", "--json", "--model", &two, "--with", "../shop.db", "--with", "../here.db"];
    let two = user.run(&[&args[..], &["Go"]].concat());
    assert_eq!(two.code, Some(0), "{two:?}");
    assert!(two.stdout.contains("a saw") && two.stdout.contains("42"), "{two:?}");

    // The same tools have the same sessions, and `-c` continues.
    let again = |more: &[&str]| {
        user.run(&[&["run", "--json", "--model", &model, "--with", "web", "Hi"], more].concat())
    };
    let [first, second] = [&[][..], &["-c"]].map(again).map(|outcome| {
        let run: Value = serde_json::from_str(&outcome.stdout).unwrap_or_default();
        run["session"].clone()
    });
    assert_eq!(first, second);
    assert_ne!(first, Value::Null);

    fs::write(user.path("here/relative.json"), DOCUMENT).unwrap();
    fs::write(user.path("here/bytes.db"), b"\xff\xfe\x00\x81").unwrap();
    for (with, problem) in [
        ("bytes.db", "is neither a SQLite database nor an OpenAPI document (it is not UTF-8"),
        ("..", "`..` is a folder; go there, and write `--with files`"),
        ("https://", "https:// is not a URL"),
        ("http://ann:hunter22@api.example/x.json", "the URL of api.example has a user"),
        ("relative.json", "name the document by its URL"),
        ("file", "did you mean `files`?"),
        ("nothing.db", "there is no file `nothing.db`"),
        ("hello.txt", "is neither a SQLite database nor an OpenAPI document"),
    ] {
        let refused = user.run(&["run", "--model", &model, "--with", with, "Hi"]);
        assert_eq!(refused.code, Some(2), "{with}: {refused:?}");
        assert!(refused.stderr.contains(problem), "{with}: {}", refused.stderr);
        assert!(!refused.stderr.contains("hunter22"), "{}", refused.stderr);
    }
    let desk = Project::desk();
    let beside = desk.toolcrib(&["run", "--with", "web", "Hi"]);
    assert_eq!(beside.code, Some(2), "{beside:?}");
    assert!(beside.stderr.contains("`--with` is for a conversation without a project"));
}

#[test]
fn a_document_gets_no_key_and_no_private_address_of_its_choice() {
    let user = User::new();
    let document = |server: &str| {
        json!({ "openapi": "3.1.0", "servers": [{ "url": server }], "security": [{ "key": [] }],
            "components": { "securitySchemes": { "key": { "type": "http", "scheme": "bearer" } } },
            "paths": { "/orders": { "get": { "operationId": "listOrders" } } } })
    };
    let foreign = Reply::json(200, &document("http://192.168.1.1"));
    let api = Prepared::new(Vendor::OpenAi, vec![foreign]);
    let script = "[[rule]]\nstep = 1\ncalls = [{ tool = 'listOrders', args = {} }]\n\
                  [[rule]]\ntext = 'Done.'\n";
    fs::write(user.path("script.toml"), script).unwrap();
    fs::write(user.path("here/openai.json"), document(&api.url()).to_string()).unwrap();
    let model = format!("script:{}", user.path("script.toml").display());
    let run = |args: &[&str]| -> Outcome {
        let mut command = user.command(args);
        // The names of the file and of the host as variables.
        command.env("OPENAI_API_KEY", KEY).env("DATA127_API_KEY", KEY).output().unwrap().into()
    };

    let of_file = run(&["run", "--model", &model, "--with", "openai.json", "Go"]);
    assert!(of_file.stderr.contains("sends none"), "{of_file:?}");
    assert!(of_file.stderr.contains("not on the public internet"), "{of_file:?}");
    assert!(!have_the_key(&api.requests()));

    let url = format!("{}/openapi.json", api.url());
    let of_url = run(&["run", "--model", &model, "--with", &url, "Go"]);
    assert!(of_url.stderr.contains("its tools do not call"), "{of_url:?}");
    assert!(!have_the_key(&api.requests()));
    for project in fs::read_dir(user.path("state/toolcrib/scratch")).unwrap() {
        let project = fs::read_to_string(project.unwrap().path().join("toolcrib.toml")).unwrap();
        assert!(!project.contains("API_KEY"), "{project}");
        assert!(!project.contains("\nallow_addresses = [\"192"), "{project}");
    }

    let begun = run(&["init", "new", "--from", "openai.json"]);
    assert!(begun.stderr.contains("OPENAI_TOOLS_KEY"), "{begun:?}");
    let project = fs::read_to_string(user.path("here/new/toolcrib.toml")).unwrap();
    assert!(!project.contains("OPENAI_API_KEY"), "{project}");
}
