//! Models behind vendors' APIs: the same project, the same decisions, over each protocol.

mod users;

use std::{fs, process::Command, sync::Arc};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolcrib_models::{ScriptedModel, Vendor};
use toolcrib_testbed::{Bytes, CannedServer, ModelServer, ModelServerBuilder, Recorder, Reply};

use crate::{
    model_faults::{
        accepted,
        wire::{self, Answer},
    },
    support::{Outcome, Project, toolcrib},
};

const ASK: &str = "I was charged twice for order 1042, please refund one charge";
const KEY: &str = "sk-not-a-real-key-1234567890";

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

/// A server of OpenAI's protocol on which the project's script decides.
struct Served {
    server: ModelServer,
    // Its tasks live as long as it does.
    _runtime: Runtime,
}

fn serve(desk: &Project, change: impl FnOnce(ModelServerBuilder) -> ModelServerBuilder) -> Served {
    let script = fs::read_to_string(desk.path().join("script.toml")).unwrap();
    let model = Arc::new(ScriptedModel::from_toml("script:script.toml", &script).unwrap());
    let runtime = runtime();
    let builder = change(ModelServer::builder(model).key(KEY).model_name("desk"));
    let server = runtime.block_on(builder.start()).unwrap();
    Served { server, _runtime: runtime }
}

/// A server of a vendor's protocol with prepared answers.
pub(crate) struct Prepared {
    vendor: Vendor,
    server: CannedServer,
    _runtime: Runtime,
}

impl Prepared {
    pub(crate) fn new(vendor: Vendor, replies: Vec<Reply>) -> Self {
        let runtime = runtime();
        let server = runtime.block_on(CannedServer::start(replies)).unwrap();
        Self { vendor, server, _runtime: runtime }
    }

    /// The same, where each answer comes in pieces of seven bytes.
    pub(crate) fn saying(vendor: Vendor, answers: impl IntoIterator<Item = Answer>) -> Self {
        Self::new(vendor, answers.into_iter().map(|said| reply(vendor, &said)).collect())
    }

    /// Gives the program the server's address and a key.
    pub(crate) fn set<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let version = if self.vendor == Vendor::OpenAi { "/v1" } else { "" };
        let url = format!("{}{version}", self.server.url());
        let [key, ..] = self.vendor.key_variables() else { panic!("no key") };
        command.env(self.vendor.base_url_variable(), url).env(key, KEY)
    }

    /// The program with this server's model.
    pub(crate) fn command(&self, project: &Project, args: &[&str]) -> Command {
        let model = format!("{}:test-model", self.vendor);
        let mut command = project.command(args);
        self.set(command.args(["--model", &model]));
        command
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<toolcrib_testbed::Recorded> {
        self.server.recorder().requests()
    }

    fn run(&self, desk: &Project, args: &[&str]) -> Outcome {
        let model = format!("{}:desk", self.vendor);
        let mut command = desk.command(&["run", "--model", &model]);
        self.set(command.args(args)).output().unwrap().into()
    }
}

/// A project with a database of notes, and a tool `add` that inserts one. The rest of its file is given.
pub(crate) fn notes(toml: &str) -> Project {
    let add = r#"
[database.d]
file = "d.db"
seed = "seed.sql"
[[tool]]
kind = "sql"
name = "add"
description = "Adds."
statements = ["INSERT INTO n (text) VALUES (:text) RETURNING id, text"]
[tool.params]
text = { type = "string" }
"#;
    Project::of(&[
        ("toolcrib.toml", &format!("{toml}{add}")),
        ("seed.sql", "CREATE TABLE n(id INTEGER PRIMARY KEY, text TEXT);"),
        ("s.toml", "[[rule]]\ntext = \"Done.\"\n"),
    ])
}

pub(crate) fn reply(vendor: Vendor, said: &Answer) -> Reply {
    let stream = wire::frames(vendor, said).concat();
    wire::reply(vendor).pieces(stream.as_bytes().chunks(7).map(Bytes::copy_from_slice))
}

/// The response of a vendor's server to a request for its models.
fn listing(vendor: Vendor, model: &str) -> Reply {
    let (list, name) = match vendor {
        Vendor::OpenAi | Vendor::Anthropic => ("data", "id"),
        _ => ("models", "name"),
    };
    Reply::json(200, &json!({ list: [{ name: model }] }))
}

/// The desk's model in a run on [`ASK`]: a skill, two reads, the refund, the answer.
fn answers(run: &Value) -> Vec<Answer> {
    let [skill, charges, refunds, refund] = run["tool_calls"].as_array().unwrap().as_slice() else {
        panic!("{run}");
    };
    let calling = |calls: &[&Value]| {
        calls.iter().fold(Answer::default(), |said, call| {
            let name = call["name"].as_str().unwrap();
            said.calling(name, name, &[&call["args"].to_string()])
        })
    };
    let answer = Answer::text(&[run["answer"].as_str().unwrap()]);
    vec![calling(&[skill]), calling(&[charges, refunds]), calling(&[refund]), answer]
}

/// Removes values that differ from run to run, or between vendors.
fn comparable(mut run: Value) -> Value {
    for key in ["turn_id", "session", "model", "duration_ms", "usage"] {
        run.as_object_mut().unwrap().remove(key);
    }
    for call in run["tool_calls"].as_array_mut().unwrap() {
        call.as_object_mut().unwrap().remove("duration_ms");
    }
    run
}

fn show_the_key(recorder: &Recorder) -> bool {
    recorder.requests().iter().all(|request| {
        request.headers.iter().any(|(_, value)| value.to_str().unwrap().contains(KEY))
    })
}

#[test]
fn the_desk_does_the_same_over_every_protocol() {
    let (code, scripted) = Project::desk().json(&["run", ASK]);
    assert_eq!(code, Some(0));
    let expected = comparable(scripted.clone());
    let check = |desk: &Project, outcome: &Outcome, recorder: &Recorder, which: &str| {
        let run: Value = serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|_| panic!("{which}: {}", outcome.stderr));
        assert_eq!(run["error"], Value::Null, "{which}");
        assert!(run["usage"]["input_tokens"].as_u64().unwrap() > 0, "{which}");
        assert_eq!(comparable(run), expected, "{which}");
        assert_eq!(desk.refunds(1042), 1, "{which}");
        assert!(show_the_key(recorder), "{which}: each request shows the key");
    };
    for vendor in Vendor::ALL {
        let desk = Project::desk();
        let served = Prepared::saying(vendor, answers(&scripted));
        let outcome = served.run(&desk, &["--json", ASK]);
        check(&desk, &outcome, served.server.recorder(), &vendor.to_string());
        for request in served.server.recorder().requests() {
            assert_eq!(accepted::check(vendor, "desk", &request.json().unwrap()), Ok(()));
        }
    }
    // Here the model decides on what it reads in the requests.
    for bytes in [None, Some(1), Some(7)] {
        let desk = Project::desk();
        let served = serve(&desk, |server| match bytes {
            Some(bytes) => server.chunk_bytes(bytes),
            None => server,
        });
        let mut command = desk.command(&["run", "--json", "--model", "openai:desk", ASK]);
        command.env("OPENAI_BASE_URL", served.server.base_url()).env("OPENAI_API_KEY", KEY);
        let outcome = command.output().unwrap().into();
        check(&desk, &outcome, served.server.recorder(), &format!("{bytes:?}"));
    }
}

#[test]
fn a_key_is_nowhere_but_in_the_request() {
    for vendor in Vendor::ALL {
        let desk = Project::desk();
        // A refusal may repeat the key.
        let said = wire::error_body(vendor, &format!("Incorrect API key provided: {KEY}"));
        let served = Prepared::new(vendor, vec![Reply::json(401, &said)]);
        let [events, recording] =
            ["events.jsonl", "recording.toml"].map(|name| desk.path().join(name));
        let [events, recording] = [&events, &recording].map(|path| path.to_str().unwrap());
        let outcome = served.run(&desk, &["-v", ASK, "--events", events, "--record", recording]);
        assert_eq!(outcome.code, Some(1), "{vendor}: {}", outcome.stderr);
        assert!(show_the_key(served.server.recorder()), "{vendor}");
        let events = fs::read_to_string(events).unwrap();
        assert!(events.contains(r#""error_class":"auth""#), "{vendor}: {events}");
        assert!(outcome.stderr.contains("check the key"), "{vendor}: {}", outcome.stderr);
        assert!(!std::path::Path::new(recording).exists(), "{vendor}: nothing was said");
        for text in [&outcome.stdout, &outcome.stderr, &events] {
            assert!(!text.contains(KEY), "{vendor}: {text}");
        }
    }
}

#[test]
fn what_was_recorded_is_played_back() {
    let (_, scripted) = Project::desk().json(&["run", ASK]);
    let desk = Project::desk();
    let served = Prepared::saying(Vendor::Anthropic, answers(&scripted));
    let recording = desk.path().join("recorded.toml");
    let path = recording.to_str().unwrap();
    let first = served.run(&desk, &["--json", "--record", path, ASK]);
    let first: Value = serde_json::from_str(&first.stdout).unwrap();
    drop(served);

    let replayed = Project::desk();
    let (_, second) = replayed.json(&["run", "--model", &format!("script:{path}"), ASK]);
    assert_eq!(comparable(second), comparable(first));
    assert_eq!(replayed.refunds(1042), 1);

    let nothing = desk.path().join("nothing.toml");
    let args = ["run", "--model", "ollama:m", "--base-url", "http://127.0.0.1:9", "--record"];
    let args: Vec<_> = args.into_iter().chain([nothing.to_str().unwrap(), ASK]).collect();
    let failed = desk.toolcrib(&args);
    assert!(failed.stderr.contains("recorded nothing"), "{}", failed.stderr);
    assert!(!nothing.exists());

    let again = desk.toolcrib(&["run", "--record", path, ASK]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("already exists; name a new file"), "{}", again.stderr);
}

#[test]
fn tool_choices_replace_the_steps_of_a_run() {
    let desk = Project::desk();
    let run = |choices: &[&str]| {
        let mut args = vec!["run", "--json", ASK];
        for choice in choices {
            args.extend(["--tool-choice", choice]);
        }
        let outcome = desk.toolcrib(&args);
        serde_json::from_str::<Value>(&outcome.stdout).unwrap_or_else(|_| json!(outcome.stderr))
    };
    let followed = run(&["read_skill", "required", "auto"]);
    assert_eq!(followed["stopped"], "answered", "{followed}");
    let ignored = run(&["read_skill", "list_charges"]);
    let message = ignored["error"]["message"].as_str().unwrap();
    assert!(message.contains("it had to call `list_charges` and no other tool"), "{message}");
    let unknown = run(&["list charges"]);
    assert!(unknown["error"]["message"].as_str().unwrap().contains("list charges"), "{unknown}");
}

/// The program in a folder, on the project in it, if any.
fn within(args: &[&str], dir: &std::path::Path) -> Command {
    let mut command = toolcrib();
    command.args(args).current_dir(dir);
    if dir.join("toolcrib.toml").exists() {
        command.args(["-p", "."]);
    }
    command
}

#[test]
fn without_a_model_and_without_a_key_the_text_says_what_to_set() {
    let project = Project::of(&[("toolcrib.toml", "")]);
    let outcome: Outcome = within(&["run", "Hello"], project.path()).output().unwrap().into();
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @r#"error: no model is named, and none is configured; run `toolcrib models add`, or set ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY or OLLAMA_HOST, or name one with `--model`; a scripted model needs no key: `--model script:FILE`"#);
    let outcome: Outcome =
        within(&["run", "--model", "openai", "Hello"], project.path()).output().unwrap().into();
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @r#"error: `--model`: there is no key for openai: set OPENAI_API_KEY, or run `toolcrib models add openai`"#);
}

#[test]
fn without_a_model_the_first_that_is_configured_is_taken_and_named() {
    let desk = Project::of(&[
        ("script.toml", "[[rule]]\ntext = 'Hello to you.'\n"),
        (
            "toolcrib.toml",
            "[model.none]\nvendor = 'gemini'\nkey = 'secret:NONE'\n\
            [secrets]\nNONE = { env = 'TOOLCRIB_TEST_NOT_SET' }\n",
        ),
    ]);
    let vendor = Vendor::Anthropic;
    let hello = reply(vendor, &Answer::text(&["Hello to you."]));
    let served = Prepared::new(vendor, vec![listing(vendor, "claude-sonnet-5-5"), hello]);
    let outcome: Outcome =
        served.set(&mut within(&["run", "Hello"], desk.path())).output().unwrap().into();
    assert_eq!(outcome.stdout.trim(), "Hello to you.", "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains(
            "no model is named; using anthropic:claude-sonnet-5-5, the first configured one \
             (ANTHROPIC_API_KEY)"
        ),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_local_server_is_queried_for_its_models() {
    let desk = Project::of(&[("toolcrib.toml", "")]);
    for vendor in Vendor::ALL {
        let hello = reply(vendor, &Answer::text(&["Hello to you."]));
        let served = Prepared::new(vendor, vec![listing(vendor, "qwen3"), hello]);
        let outcome: Outcome =
            served.set(&mut within(&["run", "Hello"], desk.path())).output().unwrap().into();
        assert_eq!(outcome.stdout.trim(), "Hello to you.", "{vendor}: {}", outcome.stderr);
        let taken = format!("using {vendor}:qwen3, the first configured one");
        assert!(outcome.stderr.contains(&taken), "{vendor}: {}", outcome.stderr);
    }
    // Also if the vendor alone is named, on the command line or by the project.
    let vendor = Vendor::OpenAi;
    for (file, args) in [
        ("", &["run", "--model", "openai", "Hello"][..]),
        ("[agent]\nmodel = 'openai'\n", &["run", "Hello"]),
    ] {
        desk.write("toolcrib.toml", file);
        let hello = reply(vendor, &Answer::text(&["Hello to you."]));
        let served = Prepared::new(vendor, vec![listing(vendor, "qwen3"), hello]);
        let outcome: Outcome = served.set(&mut within(args, desk.path())).output().unwrap().into();
        assert_eq!(outcome.stdout.trim(), "Hello to you.", "{}", outcome.stderr);
        assert!(outcome.stderr.contains("model openai:qwen3"), "{}", outcome.stderr);
        let sent: Value = serde_json::from_slice(&served.requests()[1].body).unwrap();
        assert_eq!(sent["model"], "qwen3");
    }
    desk.write("toolcrib.toml", "");
    let gone: Outcome = within(&["run", "Hello"], desk.path())
        .env("OLLAMA_HOST", "127.0.0.1:9")
        .output()
        .unwrap()
        .into();
    assert_eq!(gone.code, Some(1));
    insta::assert_snapshot!(gone.stderr, @r#"error: the models of OLLAMA_HOST (http://127.0.0.1:9/) cannot be listed: no connection to `127.0.0.1` on port 9: Connection refused (os error 111); check host and port, and that the server runs; name one with `--model`"#);
}

#[test]
fn unusable_models_are_listed_with_the_reason() {
    let desk =
        Project::of(&[("script.toml", "[[rule]]\ntext = 'Hello.'\n"), ("toolcrib.toml", "")]);
    let served = serve(&desk, |server| server);
    let url = served.server.base_url();
    desk.write(
        "toolcrib.toml",
        &format!(
            "[model.good]\nvendor = 'openai'\nmodel = 'desk'\nbase_url = '{url}'\nkey = 'secret:GOOD'\n\
             [model.other]\nvendor = 'openai'\nmodel = 'other'\nbase_url = '{url}'\nkey = 'secret:GOOD'\n\
             [model.wrong]\nvendor = 'openai'\nmodel = 'desk'\nbase_url = '{url}'\nkey = 'secret:WRONG'\n\
             [model.closed]\nvendor = 'ollama'\nmodel = 'm'\nbase_url = 'http://127.0.0.1:9'\n\
             [model.keyless]\nvendor = 'anthropic'\nkey = 'secret:NONE'\n\
             [secrets]\nGOOD = {{ env = 'GOOD_VALUE' }}\nWRONG = {{ env = 'WRONG_VALUE' }}\n\
             NONE = {{ env = 'TOOLCRIB_TEST_NOT_SET' }}\n"
        ),
    );
    let run = |args: &[&str]| -> Outcome {
        within(args, desk.path())
            .env("GOOD_VALUE", KEY)
            .env("WRONG_VALUE", "wrong-key-123")
            .output()
            .unwrap()
            .into()
    };
    let listed = run(&["models"]);
    assert_eq!(listed.code, Some(0));
    insta::assert_snapshot!(listed.stdout.replace(&url, "URL"), @r#"
    ✓ good openai:desk at URL (toolcrib.toml:1)
        reachable, 1 model
    ✓ other openai:other at URL (toolcrib.toml:6)
        reachable, 1 model; it does not list `other`
    ✗ wrong openai:desk at URL (toolcrib.toml:11)
        status 401: check the key and its permissions; it says: Incorrect API key provided: [redacted]
    ✗ closed ollama:m at http://127.0.0.1:9/ (toolcrib.toml:16)
        no connection to `127.0.0.1` on port 9: Connection refused (os error 111); check host and port, and that the server runs
    ✗ keyless anthropic:claude-sonnet-5-5 at https://api.anthropic.com/ (toolcrib.toml:20)
        the secret `NONE` cannot be read: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set
    - gemini
        not configured: run `toolcrib models add gemini`, or set GOOGLE_API_KEY or GEMINI_API_KEY
    "#);
    let refused = run(&["run", "--model", "wrong", "Hello"]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("`toolcrib models` shows which models and keys"),
        "{refused:?}"
    );
    assert!(listed.stderr.contains("a run that names no model uses good"), "{}", listed.stderr);
    assert!(!format!("{}{}", listed.stdout, listed.stderr).contains("wrong-key-123"));

    let listed: Value = serde_json::from_str(&run(&["models", "--json"]).stdout).unwrap();
    assert_eq!(listed["models"][0]["listed"], true);
    assert_eq!(listed["models"][1]["listed"], false);
    assert_eq!(listed["models"][2]["error_class"], "auth");
    assert_eq!(listed["models"][4]["configured"], false);

    // Without a project, too.
    let empty = tempfile::tempdir().unwrap();
    let listed: Outcome = within(&["models"], empty.path()).output().unwrap().into();
    assert_eq!(listed.code, Some(0));
    insta::assert_snapshot!(listed.stdout, @r#"
    - anthropic
        not configured: run `toolcrib models add anthropic`, or set ANTHROPIC_API_KEY
    - openai
        not configured: run `toolcrib models add openai`, or set OPENAI_API_KEY
    - gemini
        not configured: run `toolcrib models add gemini`, or set GOOGLE_API_KEY or GEMINI_API_KEY
    - ollama
        not configured: run `toolcrib models add ollama:MODEL`, or set OLLAMA_HOST
    "#);
}

#[test]
fn the_model_that_the_project_names_is_listed_under_that_name() {
    let desk =
        Project::of(&[("script.toml", "[[rule]]\ntext = 'Hello.'\n"), ("toolcrib.toml", "")]);
    let served = serve(&desk, |server| server);
    let url = served.server.base_url();
    let models = |agent: &str| -> Value {
        // Both declared models have one name with their vendor.
        let file = format!(
            "[agent]\nmodel = '{agent}'\n\
             [model.first]\nvendor = 'openai'\nmodel = 'desk'\nbase_url = 'http://127.0.0.1:9/v1'\n\
             [model.second]\nvendor = 'openai'\nmodel = 'desk'\nbase_url = '{url}'\n"
        );
        desk.write("toolcrib.toml", &file);
        let mut command = desk.command(&["models", "--json"]);
        let command = command.env("OPENAI_BASE_URL", &url).env("OPENAI_API_KEY", KEY);
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let names = |listed: &Value| -> Vec<String> {
        let models = listed["models"].as_array().unwrap();
        models.iter().map(|model| model["name"].as_str().unwrap().to_owned()).collect()
    };
    let declared = models("second");
    assert_eq!(declared["named"], "second");
    let of_vendor = models("openai:desk");
    assert_eq!(of_vendor["named"], "openai:desk");
    let expected = ["openai:desk", "first", "second", "anthropic", "gemini", "ollama"];
    assert_eq!(names(&of_vendor), expected, "it stands there once: {of_vendor}");
    let [first, ..] = of_vendor["models"].as_array().unwrap().as_slice() else { panic!() };
    assert_eq!((&first["origin"], &first["listed"]), (&"toolcrib.toml".into(), &true.into()));
    let ollama = models("ollama:m");
    assert_eq!(ollama["models"][0]["name"], "ollama:m");
    assert!(!names(&ollama).contains(&"ollama".to_owned()), "{ollama}");
}

#[test]
fn what_the_environment_says_wrong_breaks_no_project_and_is_named() {
    let key = "sk-with-a-line-feed-1\n";
    let project = Project::of(&[
        ("script.toml", "[[rule]]\ntext = 'Hello.'\n"),
        (
            "toolcrib.toml",
            "[model.plain]\nvendor = 'anthropic'\n\
             [model.secret]\nvendor = 'openai'\nkey = 'secret:MINE'\n\
             [secrets]\nMINE = { env = 'MY_VALUE' }\n",
        ),
    ]);
    let run = |args: &[&str], dir: &std::path::Path| -> Outcome {
        let mut command = within(args, dir);
        command.env("MY_VALUE", key).env("ANTHROPIC_API_KEY", KEY).env("GEMINI_API_KEY", key);
        command.env("ANTHROPIC_BASE_URL", "http://far.example").output().unwrap().into()
    };
    let checked = run(&["check"], project.path());
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    insta::assert_snapshot!(checked.stderr, @r#"
    toolcrib.toml:1:8: warning: ANTHROPIC_BASE_URL: the base URL is http to `far.example`, which would send the key unencrypted; use https, or set no key
      help: until this is changed, a run on this model fails
    toolcrib.toml:5:7: warning: the secret `MINE`: the key cannot be sent: it contains whitespace or non-ASCII characters
      help: until this is changed, a run on this model fails
    "#);
    let scripted = run(&["run", "--model", "script:script.toml", "Hi"], project.path());
    assert_eq!((scripted.code, scripted.stdout.trim()), (Some(0), "Hello."));

    let none = run(&["run", "Hi"], project.path());
    assert_eq!(none.code, Some(2));
    let none_of_them = none.stderr.lines().last().unwrap();
    let reasons = [
        "plain: ANTHROPIC_BASE_URL: ",
        "secret: the secret `MINE`: ",
        ": GEMINI_API_KEY is not a valid key",
    ];
    assert!(none_of_them.starts_with("error: no model is named, and none can be used ("));
    for reason in reasons {
        assert!(none_of_them.contains(reason), "{reason}: {none_of_them}");
    }
    let chosen = run(&["run", "--model", "anthropic", "Hi"], project.path());
    assert_eq!(chosen.code, Some(2));
    assert!(chosen.stderr.contains("`--model`: ANTHROPIC_BASE_URL: the base URL is http to"));

    let empty = tempfile::tempdir().unwrap();
    let listed = run(&["models"], empty.path());
    insta::assert_snapshot!(listed.stdout, @r#"
    ✗ anthropic:claude-sonnet-5-5 at https://api.anthropic.com/ (ANTHROPIC_API_KEY)
        ANTHROPIC_BASE_URL: the base URL is http to `far.example`, which would send the key unencrypted; use https, or set no key
    ✗ gemini:gemini-3.8-flash at https://generativelanguage.googleapis.com/ (GEMINI_API_KEY)
        GEMINI_API_KEY is not a valid key: it contains whitespace or a non-ASCII character
    - openai
        not configured: run `toolcrib models add openai`, or set OPENAI_API_KEY
    - ollama
        not configured: run `toolcrib models add ollama:MODEL`, or set OLLAMA_HOST
    "#);
    for outcome in [checked, scripted, none, chosen, listed] {
        assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains(key.trim()));
    }
}
