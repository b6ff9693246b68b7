//! Models behind vendors' APIs: the same project, the same decisions, over each protocol.

use std::{fs, sync::Arc};

use serde_json::{Value, json};
use tokio::runtime::Runtime;
use toolcrib_models::ScriptedModel;
use toolcrib_testbed::{ModelServer, ModelServerBuilder, Protocol};

use crate::support::{Outcome, Project, toolcrib};

const ASK: &str = "I was charged twice for order 1042, please refund one charge";
const KEY: &str = "sk-not-a-real-key-1234567890";

/// A vendor, what it is called, and where its address and its key stand in the environment.
const VENDORS: [(Protocol, &str, &str, &str); 4] = [
    (Protocol::OpenAi, "openai", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    (Protocol::Anthropic, "anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
    (Protocol::Gemini, "gemini", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
    (Protocol::Ollama, "ollama", "OLLAMA_HOST", "OLLAMA_API_KEY"),
];

/// A server behind which the desk's script decides.
struct Served {
    server: ModelServer,
    // Its tasks live as long as it does.
    _runtime: Runtime,
}

fn serve(desk: &Project, change: impl FnOnce(ModelServerBuilder) -> ModelServerBuilder) -> Served {
    let script = fs::read_to_string(desk.path().join("script.toml")).unwrap();
    let model = Arc::new(ScriptedModel::from_toml("script:script.toml", &script).unwrap());
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let builder = change(ModelServer::builder(model).key(KEY).model_name("desk"));
    let server = runtime.block_on(builder.start()).unwrap();
    Served { server, _runtime: runtime }
}

impl Served {
    fn run(&self, desk: &Project, protocol: Protocol, args: &[&str]) -> Outcome {
        let (_, vendor, url, key) = VENDORS.into_iter().find(|one| one.0 == protocol).unwrap();
        let model = format!("{vendor}:desk");
        let mut command = desk.command(&["run", "--model", &model]);
        command.args(args).env(url, self.server.base_url(protocol)).env(key, KEY);
        command.output().unwrap().into()
    }
}

/// What differs from run to run, and what a model's vendor decides.
fn comparable(mut run: Value) -> Value {
    for key in ["run_id", "duration_ms", "usage"] {
        run.as_object_mut().unwrap().remove(key);
    }
    for call in run["tool_calls"].as_array_mut().unwrap() {
        call.as_object_mut().unwrap().remove("duration_ms");
    }
    run
}

#[test]
fn the_desk_does_the_same_over_every_protocol() {
    let scripted = Project::desk();
    let (code, expected) = scripted.json(&["run", ASK]);
    assert_eq!(code, Some(0));
    let expected = comparable(expected);
    for (protocol, vendor, ..) in VENDORS {
        for chunk in [None, Some(1), Some(7)] {
            let desk = Project::desk();
            // OpenAI's own API shows no thoughts.
            let thinks = protocol != Protocol::OpenAi;
            let served = serve(&desk, |server| match chunk {
                Some(bytes) => server.chunk_bytes(bytes),
                None => server.thoughts(thinks),
            });
            let outcome = served.run(&desk, protocol, &["--json", ASK]);
            let run: Value = serde_json::from_str(&outcome.stdout)
                .unwrap_or_else(|_| panic!("{vendor}: {}", outcome.stderr));
            assert_eq!(run["error"], Value::Null, "{vendor}");
            assert!(run["usage"]["input_tokens"].as_u64().unwrap() > 0, "{vendor}");
            assert_eq!(comparable(run), expected, "{vendor}");
            assert_eq!(desk.refunds(1042), 1, "{vendor}");
            let key = served.server.recorder().requests().iter().all(|request| {
                request.headers.iter().any(|(_, value)| value.to_str().unwrap().contains(KEY))
            });
            assert!(key, "{vendor}: each request shows the key");
        }
    }
}

#[test]
fn a_wrap_up_is_answered_and_the_history_is_valid() {
    for (protocol, vendor, ..) in VENDORS {
        let desk = Project::desk();
        let file = fs::read_to_string(desk.path().join("toolcrib.toml")).unwrap();
        desk.write("toolcrib.toml", &file.replace("max_iterations = 10", "max_iterations = 1"));
        let script = "[[rule]]\nstep = 2\ntext = 'That is all.'\n\
                      [[rule]]\ncalls = [{ tool = 'get_order', args = { order_id = 1 } }, { tool = 'get_order', args = { order_id = 'x' } }]\n";
        desk.write("script.toml", script);
        let served = serve(&desk, |server| server);
        let outcome = served.run(&desk, protocol, &["--json", "Go"]);
        let run: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(run["answer"], "That is all.", "{vendor}: {run}");
        assert_eq!(run["stopped"], "max_iterations", "{vendor}");
        let requests = served.server.recorder().requests();
        let tools = |at: usize| requests[at].json().unwrap()["tools"].clone();
        assert_eq!(tools(0), tools(1), "{vendor}: the tool block stays");
    }
}

#[test]
fn a_key_is_nowhere_but_in_the_request() {
    for (protocol, vendor, url, key) in VENDORS {
        let desk = Project::desk();
        // The server expects another key, and its refusal may repeat ours.
        let served = serve(&desk, |server| server.key("another-key"));
        let model = format!("{vendor}:desk");
        let events = desk.path().join("events.jsonl");
        let recording = desk.path().join("recording.toml");
        let [events, recording] = [&events, &recording].map(|path| path.to_str().unwrap());
        let args = ["run", "-v", "--model", &model, ASK, "--events", events, "--record", recording];
        let outcome: Outcome = desk
            .command(&args)
            .env(url, served.server.base_url(protocol))
            .env(key, KEY)
            .output()
            .unwrap()
            .into();
        assert_eq!(outcome.code, Some(1), "{vendor}: {}", outcome.stderr);
        let events = fs::read_to_string(events).unwrap();
        assert!(events.contains(r#""error_class":"auth""#), "{vendor}: {events}");
        assert!(outcome.stderr.contains("check the key"), "{vendor}: {}", outcome.stderr);
        let recording = fs::read_to_string(recording).unwrap();
        for text in [&outcome.stdout, &outcome.stderr, &events, &recording] {
            assert!(!text.contains(KEY), "{vendor}: {text}");
        }
    }
}

#[test]
fn what_was_recorded_is_played_back() {
    let desk = Project::desk();
    let served = serve(&desk, |server| server);
    let recording = desk.path().join("recorded.toml");
    let path = recording.to_str().unwrap();
    let first = served.run(&desk, Protocol::Anthropic, &["--json", "--record", path, ASK]);
    let first: Value = serde_json::from_str(&first.stdout).unwrap();
    drop(served);

    let replayed = Project::desk();
    let (_, second) = replayed.json(&["run", "--model", &format!("script:{path}"), ASK]);
    assert_eq!(comparable(second), comparable(first));
    assert_eq!(replayed.refunds(1042), 1);

    let again = desk.toolcrib(&["run", "--record", path, ASK]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("is there already; name a new file"), "{}", again.stderr);
}

#[test]
fn a_choice_of_tools_stands_for_a_step() {
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

/// The program without any key of the tester's.
fn without_keys(args: &[&str], dir: &std::path::Path) -> std::process::Command {
    let mut command = toolcrib();
    command.args(args).current_dir(dir);
    for variable in
        ["GOOGLE_API_KEY"].into_iter().chain(VENDORS.iter().flat_map(|one| [one.2, one.3]))
    {
        command.env_remove(variable);
    }
    command
}

#[test]
fn without_a_model_and_without_a_key_the_text_says_what_to_set() {
    let project = Project::of(&[("toolcrib.toml", "")]);
    let outcome: Outcome = without_keys(&["run", "Hello"], project.path()).output().unwrap().into();
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @r#"error: no model is named, and none is configured; set ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY, or name one with `--model ollama:MODEL`; a scripted model needs no key: `--model script:FILE`"#);
    let outcome: Outcome = without_keys(&["run", "--model", "openai", "Hello"], project.path())
        .output()
        .unwrap()
        .into();
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(outcome.stderr, @r#"error: `--model`: there is no key for openai: set OPENAI_API_KEY"#);
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
    let served = serve(&desk, |server| server.model_name("claude-sonnet-5-5"));
    let outcome: Outcome = without_keys(&["run", "Hello"], desk.path())
        .env("ANTHROPIC_API_KEY", KEY)
        .env("ANTHROPIC_BASE_URL", served.server.base_url(Protocol::Anthropic))
        .output()
        .unwrap()
        .into();
    assert_eq!(outcome.stdout.trim(), "Hello to you.", "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains(
            "no model is named; taking anthropic:claude-sonnet-5-5, the first that is configured \
             (ANTHROPIC_API_KEY)"
        ),
        "{}",
        outcome.stderr
    );
}

#[test]
fn models_are_listed_with_why_not() {
    let desk =
        Project::of(&[("script.toml", "[[rule]]\ntext = 'Hello.'\n"), ("toolcrib.toml", "")]);
    let served = serve(&desk, |server| server);
    let url = served.server.base_url(Protocol::OpenAi);
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
        without_keys(args, desk.path())
            .env("GOOD_VALUE", KEY)
            .env("WRONG_VALUE", "wrong-key-123")
            .output()
            .unwrap()
            .into()
    };
    let listed = run(&["models"]);
    assert_eq!(listed.code, Some(0));
    insta::assert_snapshot!(listed.stdout.replace(&url, "URL"), @r#"
    ✓ good  openai:desk at URL (toolcrib.toml:1)
        reachable, 1 model
    ✓ other  openai:other at URL (toolcrib.toml:6)
        reachable, 1 model; `other` is not among them
    ✗ wrong  openai:desk at URL (toolcrib.toml:11)
        status 401: check the key, and what it is allowed to do; it says: Incorrect API key provided: [redacted]
    ✗ closed  ollama:m at http://127.0.0.1:9/ (toolcrib.toml:16)
        no connection to `127.0.0.1`: Connection refused (os error 111); check host and port, and that the server runs
    ✗ keyless  anthropic:claude-sonnet-5-5 at https://api.anthropic.com/ (toolcrib.toml:20)
        the secret `NONE` cannot be read: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set
    - gemini
        not configured: set GOOGLE_API_KEY or GEMINI_API_KEY
    "#);
    assert!(listed.stderr.contains("a run that names no model takes good"), "{}", listed.stderr);
    assert!(!format!("{}{}", listed.stdout, listed.stderr).contains("wrong-key-123"));

    let listed: Value = serde_json::from_str(&run(&["models", "--json"]).stdout).unwrap();
    assert_eq!(listed["models"][0]["listed"], true);
    assert_eq!(listed["models"][1]["listed"], false);
    assert_eq!(listed["models"][2]["error_class"], "auth");
    assert_eq!(listed["models"][4]["configured"], false);

    // Without a project, too.
    let empty = tempfile::tempdir().unwrap();
    let listed: Outcome = without_keys(&["models"], empty.path()).output().unwrap().into();
    assert_eq!(listed.code, Some(0));
    insta::assert_snapshot!(listed.stdout, @r#"
    - anthropic
        not configured: set ANTHROPIC_API_KEY
    - openai
        not configured: set OPENAI_API_KEY
    - gemini
        not configured: set GOOGLE_API_KEY or GEMINI_API_KEY
    - ollama
        not configured: name one of its models: --model ollama:MODEL
    "#);
}
