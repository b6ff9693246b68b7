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
const VENDORS: [(Protocol, &str, &str, &str); 5] = [
    (Protocol::OpenAi, "openai", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
    (Protocol::OpenAiResponses, "responses", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
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
        let model = model(desk, protocol, vendor);
        let mut command = desk.command(&["run", "--model", &model]);
        command.args(args).env(url, self.server.base_url(protocol)).env(key, KEY);
        command.output().unwrap().into()
    }
}

/// What the model is called. A server that is not OpenAI's is spoken to by Responses where the
/// project says so.
fn model(desk: &Project, protocol: Protocol, vendor: &str) -> String {
    if protocol != Protocol::OpenAiResponses {
        return format!("{vendor}:desk");
    }
    let file = fs::read_to_string(desk.path().join("toolcrib.toml")).unwrap();
    let section =
        format!("[model.{vendor}]\nvendor = 'openai'\nmodel = 'desk'\napi = 'responses'\n");
    desk.write("toolcrib.toml", &format!("{file}\n{section}"));
    vendor.to_owned()
}

/// What differs from run to run, and what a model's vendor decides.
fn comparable(mut run: Value) -> Value {
    for key in ["run_id", "model", "duration_ms", "usage"] {
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
            // OpenAI's own Chat Completions show no thoughts.
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
        let model = model(&desk, protocol, vendor);
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
        assert!(!std::path::Path::new(recording).exists(), "{vendor}: nothing was said");
        for text in [&outcome.stdout, &outcome.stderr, &events] {
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

    let nothing = desk.path().join("nothing.toml");
    let args = ["run", "--model", "ollama:m", "--base-url", "http://127.0.0.1:9", "--record"];
    let args: Vec<_> = args.into_iter().chain([nothing.to_str().unwrap(), ASK]).collect();
    let failed = desk.toolcrib(&args);
    assert!(failed.stderr.contains("recorded nothing"), "{}", failed.stderr);
    assert!(!nothing.exists());

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

/// The program in a folder, on the project in it if there is one.
fn within(args: &[&str], dir: &std::path::Path) -> std::process::Command {
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
    insta::assert_snapshot!(outcome.stderr, @r#"error: no model is named, and none is configured; set ANTHROPIC_API_KEY or OPENAI_API_KEY or GEMINI_API_KEY or OLLAMA_HOST, or name one with `--model`; a scripted model needs no key: `--model script:FILE`"#);
    let outcome: Outcome =
        within(&["run", "--model", "openai", "Hello"], project.path()).output().unwrap().into();
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
    let outcome: Outcome = within(&["run", "Hello"], desk.path())
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
fn a_server_of_ones_own_is_asked_which_models_it_has() {
    let desk = Project::of(&[
        ("script.toml", "[[rule]]\ntext = 'Hello to you.'\n"),
        ("toolcrib.toml", ""),
    ]);
    let served = serve(&desk, |server| server.model_name("qwen3"));
    // Responses are spoken to such a server only where a project says so.
    for (protocol, vendor, url, _) in
        VENDORS.into_iter().filter(|one| one.0 != Protocol::OpenAiResponses)
    {
        let outcome: Outcome = within(&["run", "Hello"], desk.path())
            .env(url, served.server.base_url(protocol))
            // Two of them want a key in any case, and a server of one's own takes what it is told.
            .env("OPENAI_API_KEY", if vendor == "openai" { KEY } else { "" })
            .env("ANTHROPIC_API_KEY", if vendor == "anthropic" { KEY } else { "" })
            .env("GEMINI_API_KEY", if vendor == "gemini" { KEY } else { "" })
            .output()
            .unwrap()
            .into();
        assert_eq!(outcome.stdout.trim(), "Hello to you.", "{vendor}: {}", outcome.stderr);
        let taken = format!("taking {vendor}:qwen3, the first that is configured");
        assert!(outcome.stderr.contains(&taken), "{vendor}: {}", outcome.stderr);
    }
    let gone: Outcome = within(&["run", "Hello"], desk.path())
        .env("OLLAMA_HOST", "127.0.0.1:9")
        .output()
        .unwrap()
        .into();
    assert_eq!(gone.code, Some(1));
    insta::assert_snapshot!(gone.stderr, @r#"error: which models are there (OLLAMA_HOST, http://127.0.0.1:9/) cannot be told: no connection to `127.0.0.1`: Connection refused (os error 111); check host and port, and that the server runs; name one with `--model`"#);
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
        reachable, 1 model; `other` is not among them
    ✗ wrong openai:desk at URL (toolcrib.toml:11)
        status 401: check the key, and what it is allowed to do; it says: Incorrect API key provided: [redacted]
    ✗ closed ollama:m at http://127.0.0.1:9/ (toolcrib.toml:16)
        no connection to `127.0.0.1`: Connection refused (os error 111); check host and port, and that the server runs
    ✗ keyless anthropic:claude-sonnet-5-5 at https://api.anthropic.com/ (toolcrib.toml:20)
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
    let listed: Outcome = within(&["models"], empty.path()).output().unwrap().into();
    assert_eq!(listed.code, Some(0));
    insta::assert_snapshot!(listed.stdout, @r#"
    - anthropic
        not configured: set ANTHROPIC_API_KEY
    - openai
        not configured: set OPENAI_API_KEY
    - gemini
        not configured: set GOOGLE_API_KEY or GEMINI_API_KEY
    - ollama
        not configured: set OLLAMA_HOST, or name a model: --model ollama:MODEL
    "#);
}

#[test]
fn the_model_that_the_project_names_is_listed_under_that_name() {
    let desk =
        Project::of(&[("script.toml", "[[rule]]\ntext = 'Hello.'\n"), ("toolcrib.toml", "")]);
    let served = serve(&desk, |server| server);
    let url = served.server.base_url(Protocol::OpenAi);
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
    toolcrib.toml:1:8: warning: ANTHROPIC_BASE_URL: the base URL is http to `far.example`, and everybody on the way could read the key; use https, or give no key
      help: until that is changed, a run on this model fails
    toolcrib.toml:5:7: warning: the secret `MINE`: the key cannot be sent: it holds white space or characters outside of ASCII
      help: until that is changed, a run on this model fails
    "#);
    let scripted = run(&["run", "--model", "script:script.toml", "Hi"], project.path());
    assert_eq!((scripted.code, scripted.stdout.trim()), (Some(0), "Hello."));

    let none = run(&["run", "Hi"], project.path());
    assert_eq!(none.code, Some(2));
    let none_of_them = none.stderr.lines().last().unwrap();
    let reasons = [
        "plain: ANTHROPIC_BASE_URL: ",
        "secret: the secret `MINE`: ",
        ": GEMINI_API_KEY holds no key",
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
        ANTHROPIC_BASE_URL: the base URL is http to `far.example`, and everybody on the way could read the key; use https, or give no key
    ✗ gemini:gemini-3.8-flash at https://generativelanguage.googleapis.com/ (GEMINI_API_KEY)
        GEMINI_API_KEY holds no key: there is white space in it, or a character outside of ASCII
    - openai
        not configured: set OPENAI_API_KEY
    - ollama
        not configured: set OLLAMA_HOST, or name a model: --model ollama:MODEL
    "#);
    for outcome in [checked, scripted, none, chosen, listed] {
        assert!(!format!("{}{}", outcome.stdout, outcome.stderr).contains(key.trim()));
    }
}
