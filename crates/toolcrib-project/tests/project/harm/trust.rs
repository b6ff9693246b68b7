//! The checked bytes were not the used ones.

use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
    sync::{Arc, Mutex},
};

use toolcrib_project::{Action, Consent, LoadError, LoadOptions, Mode, Project, Review, Verdict};

use crate::folder::Folder;

/// Answers a review, after it did something to the project.
struct Meddler<F>(F, Verdict, Mutex<Option<Review>>);

impl<F> std::fmt::Debug for Meddler<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Meddler")
    }
}

impl<F: Fn() + Send + Sync> Consent for Meddler<F> {
    fn review(&self, review: &Review) -> Verdict {
        (self.0)();
        *self.2.lock().unwrap() = Some(review.clone());
        self.1.clone()
    }

    fn replace(&self, _: &[PathBuf]) -> bool {
        true
    }
}

fn load(
    folder: &Folder,
    meddle: impl Fn() + Send + Sync + 'static,
    verdict: Verdict,
) -> (Result<Project, LoadError>, Option<Review>) {
    let consent = Arc::new(Meddler(meddle, verdict, Mutex::default()));
    let options = LoadOptions {
        mode: Mode::Run { fresh: false },
        consent: Some(Arc::clone(&consent) as _),
        ..LoadOptions::default()
    };
    let project = Project::load(folder.path(), &options);
    let review = consent.2.lock().unwrap().take();
    (project, review)
}

const PROJECT: &str = r#"
mcp_files = ["servers.json"]
[database.desk]
file = "desk.db"
seed = "seed.sql"
[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "true"
schema_file = "schema.json"
stdin = "json"
"#;

/// A file, its text, and one that decides otherwise.
const FILES: [(&str, &str, &str); 4] = [
    ("toolcrib.toml", PROJECT, "program = \"false\""),
    ("servers.json", r#"{ "mcpServers": { "a": { "command": "true" } } }"#, "{}"),
    ("schema.json", r#"{ "type": "object", "title": "first" }"#, r#"{ "type": "object" }"#),
    ("seed.sql", "CREATE TABLE a (first);", "CREATE TABLE b (second);"),
];

#[test]
fn files_that_changed_while_they_were_judged_were_used_as_they_are_now() {
    let mut folder = Folder::new();
    for (name, text, _) in FILES {
        folder = folder.file(name, text);
    }
    let path = folder.path().to_owned();
    let swap = move || {
        FILES.iter().for_each(|(name, _, then)| {
            fs::write(path.join(name), then).unwrap();
        });
    };
    let (project, review) = load(&folder, swap, Verdict::Use);
    let (project, review) = (project.unwrap(), review.unwrap());
    let tool = &project.tools()[0];
    assert_eq!(tool.input_schema()["title"], "first", "{:?}", tool.input_schema());
    assert_eq!(project.mcp_servers().len(), 1);
    let handle = project.databases()[0].read_only();
    handle.describe("SELECT first FROM a").unwrap();

    // The review is that of what was used.
    for (name, text, _) in FILES {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let (_, again) = load(&folder, || (), Verdict::Use);
    assert_eq!(again.unwrap().changes_since(&review), []);
    for (name, text, _) in FILES {
        let other = text.replace("\"true\"", "\"false\"").replace("object", "object\", \"x\": \"");
        fs::write(folder.path().join(name), other.replace("first", "second")).unwrap();
        let (_, changed) = load(&folder, || (), Verdict::Use);
        assert_ne!(changed.unwrap().changes_since(&review), [], "{name}");
        fs::write(folder.path().join(name), text).unwrap();
    }
}

#[test]
fn a_project_that_was_refused_was_made_all_the_same() {
    let mut folder = Folder::new();
    for (name, text, _) in FILES {
        folder = folder.file(name, text);
    }
    let before = folder.listing();
    let (refused, _) = load(&folder, || (), Verdict::Refuse("no".to_owned()));
    assert!(matches!(refused, Err(LoadError::NotTrusted { .. })), "{refused:?}");
    assert_eq!(folder.listing(), before);
    let (held, _) = load(&folder, || (), Verdict::LookOnly("not now".into()));
    let held = held.unwrap();
    assert_eq!(held.held(), Some("not now"));
    assert!(!held.mcp_servers().is_empty());
    assert!(held.mcp_servers().iter().all(|server| server.client().is_err()));
}

#[test]
fn some_of_the_user_s_authority_was_not_told() {
    let folder = Folder::with(
        r#"
mcp_files = ["servers.json"]
[agent]
model = "anthropic"
[mcp.program]
command = "node"
args = ["${HOME}/x.js", "two words"]
cwd = "../elsewhere"
env = { A = "secret:ONE", B = "${PATH}" }
[mcp.endpoint]
url = "https://mcp.example/x"
headers = { Authorization = "Bearer {secret:TWO}" }
allow_addresses = ["10.0.0.0/8"]
[mcp.login]
url = "https://behind.example/x"
auth = { client_id = "${V_CLIENT:-me}", client_secret = "secret:EIGHT", issuer = "https://issuer.example" }
[hub.tools]
url = "https://hub.example/tools"
headers = { Authorization = "{secret:THREE}" }
key = []
ttl = "1s"
call = { method = "POST", url = "https://run.example/{tool}", body = "{arguments}" }
[model.own]
vendor = "openai"
model = "m"
base_url = "https://model.example/v1"
key = "secret:FOUR"
[serve]
audit = "/nowhere/audit.jsonl"
[serve.tls]
certificate = "../cert.pem"
key = "../key.pem"
[serve.oauth]
resource = "https://tools.example/mcp"
issuer = "https://logins.example"
allow_addresses = ["172.16.0.0/12"]
[[serve.token]]
secret = "secret:FIVE"
[[tool]]
kind = "command"
name = "command"
description = "Runs."
program = "bin/uvx"
args = ["thing"]
inherit_env = ["SIX"]
[[tool]]
kind = "http"
name = "http"
description = "Asks."
url = "https://api.example/x"
headers = { Key = "{secret:SEVEN}" }
[[tool]]
kind = "http"
name = "inside"
description = "Asks."
url = "https://api.example/x"
allow_addresses = ["192.168.0.0/16"]
[[tool]]
kind = "http"
name = "public"
description = "Asks."
url = "https://public.example/x"
[secrets]
ONE = { env = "V_ONE" }
TWO = { env = "V_TWO" }
THREE = { env = "V_THREE" }
FOUR = { env = "V_FOUR" }
FIVE = { env = "V_FIVE" }
SEVEN = { env = "V_SEVEN" }
EIGHT = { env = "V_EIGHT" }
"#,
    )
    .file(
        "servers.json",
        r#"{ "mcpServers": {
            "file": { "command": "npx", "args": ["x", "${HOME}"], "env": { "SET": "hush-hush" } },
            "unset": { "command": "${NO_SUCH_VARIABLE:-rm}" },
            "off": { "command": "never", "disabled": true }
        } }"#,
    )
    .file("bin/uvx", "#!/bin/sh\n");
    fs::set_permissions(folder.path().join("bin/uvx"), fs::Permissions::from_mode(0o755)).unwrap();
    let (project, review) = load(&folder, || (), Verdict::LookOnly("judged".into()));
    project.unwrap();
    let powers = review.unwrap().powers;
    let all = powers.iter().map(|power| format!("{power}\n")).collect::<String>();
    for told in [
        "MCP server `program` (toolcrib.toml:",
        "starts: node ${HOME}/x.js \"two words\"",
        "in the folder: ../elsewhere",
        "with these variables set: A, B",
        "receives from your environment: HOME, PATH, V_ONE",
        "sends requests to: https://mcp.example/x",
        "also at addresses of your network: 10.0.0.0/8",
        "receives from your environment: V_TWO",
        "sends requests to: https://hub.example/tools",
        "sends requests to: https://run.example/{tool}",
        "V_THREE",
        "sends requests to: https://model.example/v1",
        "V_FOUR",
        "V_FIVE",
        "the login of MCP server `login` (toolcrib.toml:",
        "sends requests to: https://issuer.example",
        "receives from your environment: V_CLIENT, V_EIGHT",
        "adds lines to the file: /nowhere/audit.jsonl",
        "/cert.pem",
        "reads the file: ",
        "/key.pem",
        "sends requests to: https://logins.example",
        "172.16.0.0/12",
        "starts: bin/uvx thing",
        "not pinned: thing",
        "SIX",
        "sends requests to: https://api.example/x",
        "V_SEVEN",
        "192.168.0.0/16",
        "ANTHROPIC_API_KEY",
        "MCP server `file` (servers.json:",
        "starts: npx x ${HOME}",
        "with these variables set: SET",
        "starts: rm",
    ] {
        assert!(all.contains(told), "{told}:\n{all}");
    }
    for untold in ["hush-hush", "never"] {
        assert!(!all.contains(untold), "{untold}:\n{all}");
    }
    let (trusted, shown): (Vec<_>, Vec<_>) = powers.iter().partition(|power| power.needs_trust);
    let is_public = |power: &&toolcrib_project::Power| power.to_string().contains("public.example");
    assert!(!trusted.iter().any(is_public) && shown.iter().all(is_public), "{shown:?}");
    let starts = powers.iter().filter(|power| matches!(power.action, Action::Start { .. }));
    assert_eq!(starts.count(), 4);
}

#[test]
fn a_seed_without_an_end_ran_until_it_was_interrupted() {
    let project = "[database.desk]\nfile = \"desk.db\"\nseed = \"seed.sql\"\n";
    let endless = "CREATE TABLE a (x);\n\
                   WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) \
                   SELECT count(*) FROM n;";
    // It runs for ten seconds.
    if env::var_os("TOOLCRIB_FULL").is_some() {
        let folder = Folder::new().file("toolcrib.toml", project).file("seed.sql", endless);
        let refused = Project::load(folder.path(), &LoadOptions::default()).unwrap_err();
        let refused = refused.to_string();
        let expected = refused.contains("seed.sql:2") && refused.contains("it takes more than");
        assert!(expected, "{refused}");
    }
    // One that grows without an end, too.
    for grows in [
        "CREATE TABLE a (x);\nINSERT INTO a SELECT zeroblob(100000000);",
        "CREATE TABLE a (x);\nPRAGMA max_page_count = 4294967294;",
    ] {
        let folder = Folder::new().file("toolcrib.toml", project).file("seed.sql", grows);
        let refused = Project::load(folder.path(), &LoadOptions::default()).unwrap_err();
        assert!(refused.to_string().contains("seed.sql:2"), "{refused}");
    }
}
