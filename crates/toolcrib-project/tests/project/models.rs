//! Models under names of the project's own.

use toolcrib_core::Model as _;
use toolcrib_models::Vendor;
use toolcrib_project::{LoadError, LoadOptions, Project};

use crate::{documented::block, folder::Folder};

fn refused(folder: &Folder, model: &str, base_url: Option<&str>) -> String {
    let options = LoadOptions {
        model: Some(model.to_owned()),
        base_url: base_url.map(str::to_owned),
        ..LoadOptions::default()
    };
    match Project::load(folder.path(), &options) {
        Err(LoadError::Model { problem }) => problem,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_declared_model_is_what_its_section_says() {
    let key = "vendor = \"anthropic\"\nkey = \"secret:LOCAL_KEY\"";
    let declared = block("## Models").replace("vendor = \"anthropic\"", key);
    let declared = declared.replace("LOCAL_MODEL_KEY", "PATH");
    // PATH is always there, and has no character that a key could not have.
    let project = Folder::with(&format!("[agent]\nmodel = \"local\"\n{declared}")).load();
    let [local, long] = project.models() else { panic!("{:?}", project.models()) };
    assert_eq!((&*long.name, long.model.vendor()), ("long", Vendor::Anthropic));
    assert_eq!((&*local.name, &*local.origin), ("local", "toolcrib.toml:3"));
    assert_eq!(local.model.vendor(), Vendor::OpenAi);
    assert_eq!((local.model.name(), local.model.model()), ("openai:qwen3", "qwen3"));
    assert_eq!(local.model.base_url(), "http://127.0.0.1:8080/v1");
    assert!(local.model.has_key() && local.model.no_key().is_none());
    assert_eq!(project.model().unwrap().name(), "openai:qwen3");
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    assert!(!format!("{project:?}{local:?}").contains(&std::env::var("PATH").unwrap()));
}

#[test]
fn without_its_key_a_model_is_there_and_a_warning() {
    let project = Folder::with(
        "[agent]\nmodel = 'mine'\n[model.mine]\nvendor = 'anthropic'\nkey = 'secret:KEY'\n\
         [secrets]\nKEY = { env = 'TOOLCRIB_TEST_NOT_SET' }\n",
    )
    .load();
    insta::assert_snapshot!(project.warnings(), @r#"
    toolcrib.toml:5:7: warning: the secret `KEY` cannot be read: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set
        help: until this is changed, a run on this model fails
    "#);
    assert!(project.models()[0].model.no_key().unwrap().contains("TOOLCRIB_TEST_NOT_SET"));
    assert!(project.agent_builder().build().is_ok());
}

#[test]
fn everything_that_is_wrong_with_models_is_said_at_its_place() {
    let folder = Folder::with(
        r#"
[agent]
model = "locl"
[model]
name = "x"
[model.openai]
vendor = "ollama"
model = "m"
[model."a:b"]
vendor = "ollama"
model = "m"
[model.local]
vendor = "opnai"
model = "m"
[model.keys]
vendor = "gemini"
key = "sk-1234"
[model.secret]
vendor = "gemini"
key = "secret:NONE"
[model.url]
vendor = "openai"
base_url = "ftp://x/"
[model.query]
vendor = "openai"
base_url = "https://user:pw@host/v1"
[model.clear]
vendor = "openai"
base_url = "http://models.example/v1"
key = "secret:HOME"
[model.unnamed]
vendor = "ollama"
[model.spaced]
vendor = "ollama"
model = "a b"
[model.api]
vendor = "gemini"
api = "responses"
[model.apis]
vendor = "openai"
base_url = "http://[::1]:1/v1"
api = "response"
[model.ranges]
vendor = "ollama"
model = "m"
max_output_tokens = 0
temperature = 3.0
reasoning = "lots"
timeout = "2 parsecs"
keey = 1
[secrets]
HOME = { env = "PATH" }
"#,
    );
    // Warnings are of the tester's environment.
    let errors: Vec<_> = folder.problems().errors().map(ToString::to_string).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    toolcrib.toml:3:9: unknown model `locl`
        help: did you mean `local`?
    toolcrib.toml:5:8: `name` is not a model
        help: the model to use is named under [agent], model = "…"; declare your own model as `[model.NAME]`, with `vendor` and `model` below it
    toolcrib.toml:6:8: `openai` is not a valid model name here
        help: choose a name without a colon; openai, anthropic, gemini, ollama and script are reserved
    toolcrib.toml:9:8: `a:b` is not a valid model name here
        help: choose a name without a colon; openai, anthropic, gemini, ollama and script are reserved
    toolcrib.toml:13:10: `vendor` cannot be `opnai`
        help: did you mean `openai`?
    toolcrib.toml:17:7: this is not a reference to a secret
        help: write key = "secret:NAME", and below a [secrets]: NAME = { env = "VARIABLE" }; the key itself does not belong in this file
    toolcrib.toml:20:7: unknown secret `NONE`
        help: there is only `HOME`
    toolcrib.toml:23:12: the base URL cannot be used: it begins with `ftp:`, and with neither http:// nor https://
    toolcrib.toml:26:12: the base URL cannot be used: it contains a user or a password; pass them in a header
    toolcrib.toml:29:12: the base URL is http to `models.example`, which would send the key unencrypted; use https, or set no key
    toolcrib.toml:31:8: `[model.unnamed]` does not name a model of ollama
        help: write model = "…", with the vendor's name of the model
    toolcrib.toml:35:9: `a b` is not a valid model name: it contains whitespace, control characters or path segments
    toolcrib.toml:38:7: gemini has one API, and `responses` is one of OpenAI's; set none
    toolcrib.toml:42:7: `api` cannot be `response`
        help: did you mean `responses`?
    toolcrib.toml:46:21: `max_output_tokens` must be from 1 to 10000000
    toolcrib.toml:47:15: `temperature` must be a finite number from 0 to 2
    toolcrib.toml:48:13: `reasoning` cannot be `lots`
        help: the values are `low`, `medium`, `high`
    toolcrib.toml:49:11: `timeout` is not a duration: unknown time unit "parsecs", supported units: ns, us/µs, ms, sec, min, hours, days, weeks, months, years (and few variations)
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:50:1: unknown key `keey` in `[model.ranges]`
        help: did you mean `key`?
    "#);
}

#[test]
fn a_model_that_is_chosen_must_be_one() {
    let folder = Folder::with("[model.local]\nvendor = 'openai'\nbase_url = 'http://[::1]:1/v1'\n");
    insta::assert_snapshot!(refused(&folder, "gpt", None), @r#"unknown model `gpt`; write anthropic:MODEL, openai:MODEL, gemini:MODEL, ollama:MODEL, "script:FILE" for a scripted model, or the name of a [model.NAME] of the project"#);
    insta::assert_snapshot!(refused(&folder, "locl", None), @r#"unknown model `locl`; did you mean `local`?"#);
    insta::assert_snapshot!(refused(&folder, "antropic:claude", None), @r#"unknown model `antropic:claude`; did you mean `anthropic:claude`?"#);
    insta::assert_snapshot!(refused(&folder, "ollama", None), @r#"no model is named; write `ollama:MODEL`"#);
    insta::assert_snapshot!(refused(&folder, "local", Some("http://[::1]:2/v1")), @r#"a base URL requires a vendor's model, and `local` is not one; write for example openai:MODEL"#);
    insta::assert_snapshot!(refused(&folder, "openai:m", Some("http//x")), @r#"the base URL cannot be used: it begins with neither http:// nor https://"#);
    insta::assert_snapshot!(refused(&folder, "openai:m", Some("https://x/v1?a=b")), @r#"the base URL has a query (`?…`); give the part before it"#);
    insta::assert_snapshot!(refused(&folder, "openai:m\n", Some("https://x/v1")), @r#"`m\n` is not a valid model name: it contains whitespace, control characters or path segments"#);
    let options = LoadOptions {
        model: Some("openai:m".to_owned()),
        base_url: Some("http://far.example/v1/".to_owned()),
        ..LoadOptions::default()
    };
    let project = Project::load(folder.path(), &options).unwrap();
    assert_eq!(project.model().unwrap().name(), "openai:m");
}
