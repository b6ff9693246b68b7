//! Known secrets in definitions of tools, prompts and resources reached models, clients, the output of
//! commands and files: only results were redacted.

use std::{fs, path::Path, process::Command};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};
use toolcrib_models::Vendor;

use crate::{
    gateway::{Piped, message},
    model_faults::wire::Answer,
    models::Prepared,
    support::{Project, python_server},
};

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
/// One that can be a name.
const NAME: &str = "hunter2hunter2hunter2";
const ROTATED: &str = "another-value-of-the-secret-with-42/chars";

/// A server that lists the content of `definitions.json`.
const SERVER: &str = r#"
def answer(method, params):
    file = json.load(open("definitions.json", encoding="utf-8"))
    if method == "initialize":
        return {"capabilities": {"tools": {}, "prompts": {}, "resources": {}},
                "serverInfo": {"name": file["server"], "version": file["server"]},
                "instructions": file["instructions"]}
    if method == "tools/list":
        return {"tools": file["tools"]}
    if method == "prompts/list":
        return {"prompts": file["prompts"]}
    if method == "resources/list":
        return {"resources": file["resources"]}
    if method == "resources/templates/list":
        return {"resourceTemplates": file["templates"]}
"#;

/// The secret in each encoding that redaction knows.
fn spellings(secret: &str) -> Vec<String> {
    let bytes = |one: &dyn Fn(u8) -> String| secret.bytes().map(one).collect::<String>();
    let percent = bytes(&|byte| format!("%{byte:02X}"));
    vec![
        secret.to_owned(),
        percent.replace('%', "%25"),
        percent,
        secret.replace('/', "%2F").replace('+', "%2B"),
        bytes(&|byte| format!("\\u00{byte:02x}")),
        bytes(&|byte| format!("\\x{byte:02x}")),
        secret.replace('/', "\\/"),
        bytes(&|byte| format!("&#{byte};")),
        bytes(&|byte| format!("&#x{byte:x};")),
        bytes(&|byte| format!("={byte:02X}")),
        bytes(&|byte| format!("{byte:02x}")),
        secret.bytes().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":"),
        STANDARD.encode(secret),
        URL_SAFE_NO_PAD.encode(format!("user:{secret}")),
        // Split by a character that cleaning removes.
        secret.replacen("XUtn", "XU\u{200b}tn", 1),
    ]
}

/// Fails if a text contains the secret in any of its spellings, or their parts.
fn assert_clean(outlet: &str, text: &str) {
    for secret in [SECRET, NAME] {
        for spelling in spellings(secret) {
            let escaped = json!(spelling).to_string();
            let escaped = escaped.trim_matches('"');
            assert!(
                !text.contains(&spelling) && !text.contains(escaped),
                "{outlet} shows `{spelling}`: {text}"
            );
        }
    }
    assert!(!text.contains("wJalrXU") && !text.contains("hunter2h"), "{outlet}: {text}");
}

fn definitions(secret: &str) -> Value {
    let tool = |name: String, said: &str, schema: Value| {
        json!({
            "name": name,
            "title": format!("Title {said}"),
            "description": format!("Use it when you need thing {name}. The key is {said}."),
            "inputSchema": schema,
            "_meta": { "note": said },
        })
    };
    let spellings = spellings(secret);
    let mut tools: Vec<_> = spellings
        .iter()
        .enumerate()
        .map(|(at, said)| {
            let schema = json!({
                "type": "object",
                "description": said,
                "properties": { "a": { "type": "string", "title": said, "examples": [said] } },
            });
            tool(format!("free{at}"), said, schema)
        })
        .collect();
    for (at, part) in [
        json!({ "a": { "enum": ["x", secret] } }),
        json!({ "a": { "const": { "deep": [secret] } } }),
        json!({ "a": { "default": secret } }),
        json!({ "a": { "pattern": secret } }),
        json!({ (secret): { "type": "string" } }),
    ]
    .into_iter()
    .enumerate()
    {
        let schema = json!({ "type": "object", "properties": part });
        tools.push(tool(format!("bound{at}"), "a text", schema));
    }
    tools.push(tool(format!("get_{NAME}"), "a text", json!({ "type": "object" })));
    let item = |at: usize, said: &String| {
        json!({ "name": format!("free{at}"), "title": said, "description": said,
                "uri": format!("x://{at}"), "uriTemplate": format!("x://{at}/{{id}}"),
                "arguments": [{ "name": "a", "description": said }] })
    };
    let mut items: Vec<_> = spellings.iter().enumerate().map(|(at, said)| item(at, said)).collect();
    items.push(json!({ "name": secret, "uri": format!("x://{secret}"),
                       "uriTemplate": format!("x://{secret}/{{id}}") }));
    items.push(json!({ "name": "bound", "uri": format!("x://b/{NAME}"),
                       "uriTemplate": format!("y://{NAME}/{{id}}"),
                       "arguments": [{ "name": secret }] }));
    json!({ "server": secret, "instructions": spellings.join(" "), "tools": tools,
            "prompts": items, "resources": items, "templates": items })
}

/// How many texts are free of parts that calls depend on.
fn free() -> usize {
    spellings(SECRET).len()
}

fn project() -> Project {
    let file = format!(
        "policy_default = 'allow'\n[mcp.s]\ncommand = 'python3'\nargs = ['server.py']\n\
         lint_allow = ['*']\n\
         [[tool]]\nkind = 'command'\nname = 'own'\nprogram = '/bin/true'\n\
         description = 'Use it with {SECRET} when you need it.'\n\
         [[tool]]\nkind = 'command'\nname = 'own_{NAME}'\nprogram = '/bin/true'\n\
         description = 'Use it when you need it.'\n"
    );
    Project::of(&[
        ("toolcrib.toml", &file),
        ("server.py", &python_server(SERVER)),
        ("definitions.json", &definitions(SECRET).to_string()),
    ])
}

fn command(project: &Project, args: &[&str], config: &Path) -> Command {
    with_secret(project.command(args), config, SECRET)
}

fn with_secret(mut command: Command, config: &Path, secret: &str) -> Command {
    command.env("OUTLET_API_KEY", secret).env("OUTLET_NAME_TOKEN", NAME);
    command.env("XDG_CONFIG_HOME", config);
    command
}

fn said(command: &mut Command) -> String {
    let output = command.output().unwrap();
    String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap()
}

/// The commands that show definitions.
const COMMANDS: [&[&str]; 19] = [
    &["menu"],
    &["menu", "--json"],
    &["menu", "--why"],
    &["tools"],
    &["tools", "--verbose"],
    &["tools", "--json"],
    &["find", "thing free1"],
    &["find", "thing free1", "--json"],
    &["lint"],
    &["lint", "--json"],
    &["explain", "mcp__s__free1"],
    &["explain", "mcp__s__bound0", "--json"],
    &["mcp", "list"],
    &["mcp", "test", "s"],
    &["mcp", "test", "s", "--json"],
    &["check"],
    &["lock", "diff"],
    &["lock", "diff", "--json"],
    &["doctor"],
];

#[test]
fn one_secret_went_through_every_outlet_of_the_program() {
    let project = project();
    let config = project.path().join("config");
    for args in COMMANDS {
        assert_clean(&args.join(" "), &said(&mut command(&project, args, &config)));
    }

    // What is withheld says so.
    let menu = said(&mut command(&project, &["menu", "--json"], &config));
    let menu: Value = serde_json::from_str(&menu).unwrap();
    assert_eq!(menu["offered"].as_array().unwrap().len(), free() + 1, "{menu}");
    let withheld = menu["withheld"].as_array().unwrap();
    let by_secret = withheld
        .iter()
        .filter(|held| held["reason"].as_str().unwrap().contains("contains a known secret"));
    assert_eq!(by_secret.count(), 7, "{menu}");

    // A server checked by itself, and a catalog in a file.
    let mut check = command(&project, &["check-server", "python3", "server.py"], &config);
    check.current_dir(project.path());
    assert_clean("check-server", &said(&mut check));
    let lint = with_secret(crate::support::toolcrib(), &config, SECRET)
        .args(["lint", "definitions.json"])
        .current_dir(project.path())
        .output()
        .unwrap();
    assert_clean("lint FILE", &String::from_utf8(lint.stdout).unwrap());

    // The model, the events, the stored session and the pins.
    let model = Prepared::saying(Vendor::OpenAi, [Answer::text(&["Done."])]);
    let events = project.path().join("events.jsonl");
    let args = ["run", "--model", "openai:test-model", "--session", "one"];
    let mut run = command(&project, &args, &config);
    model.set(run.arg(format!("--events={}", events.display())).arg("Do it."));
    let said_by_run = said(&mut run);
    assert_clean("run", &said_by_run);
    let requests = model.requests();
    assert!(!requests.is_empty(), "{said_by_run}");
    for request in requests {
        let body = String::from_utf8_lossy(&request.body).into_owned();
        assert!(body.contains("mcp__s__free1"), "{body}");
        assert_clean("the model's request", &body);
    }
    assert_clean("--events", &fs::read_to_string(&events).unwrap());
    let mut files = Vec::new();
    for folder in [project.state(), config.clone()] {
        files.extend(all_files(&folder));
    }
    files.push(project.path().join("toolcrib.lock"));
    assert!(files.iter().any(|file| file.ends_with("sessions.db")), "{files:?}");
    for file in files {
        let content = fs::read(&file).unwrap();
        assert_clean(&file.display().to_string(), &String::from_utf8_lossy(&content));
    }

    // A gateway's client.
    let mut client = Piped::start(&mut command(&project, &["serve"], &config));
    for (id, method, offered) in [
        (10, "tools/list", free() + 1),
        (11, "prompts/list", free()),
        (12, "resources/list", free()),
        (13, "resources/templates/list", free()),
    ] {
        let answer = client.ask(&message(id, method, &json!({})));
        assert_clean(method, &answer.to_string());
        let lists = answer["result"].as_object().unwrap().values();
        let longest = lists.filter_map(Value::as_array).map(Vec::len).max();
        assert_eq!(longest, Some(offered), "{method}: {answer}");
    }
    let name = format!("mcp__s__{SECRET}");
    let refused = client.ask(&message(14, "prompts/get", &json!({ "name": "mcp__s__bound" })));
    assert!(refused["error"].to_string().contains("contains a known secret"), "{refused}");
    let refused = client.ask(&message(15, "prompts/get", &json!({ "name": name })));
    assert!(refused["error"].is_object(), "{refused}");
    let uri = format!("x://{SECRET}");
    let refused = client.ask(&message(16, "resources/read", &json!({ "uri": uri })));
    assert_clean("resources/read", &refused.to_string());
    assert!(refused["error"].to_string().contains("contains a known secret"), "{refused}");
    client.end();
}

fn all_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    let Ok(entries) = fs::read_dir(folder) else { return files };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(all_files(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn the_instructions_for_clients_carried_a_secret() {
    let project = project();
    let config = project.path().join("config");
    let mut serve = command(&project, &["serve"], &config);
    let piped = serve.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = piped.stderr(std::process::Stdio::null()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let begin = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
                        "clientInfo": { "name": "t", "version": "1" } });
    std::io::Write::write_all(&mut stdin, (message(1, "initialize", &begin) + "\n").as_bytes())
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(
        &mut std::io::BufReader::new(child.stdout.take().unwrap()),
        &mut line,
    )
    .unwrap();
    drop(stdin);
    child.wait().unwrap();
    assert!(line.contains("describes itself"), "{line}");
    assert_clean("initialize", &line);
}

#[test]
fn the_rotation_of_a_secret_changed_pins() {
    let project = project();
    let config = project.path().join("config");
    let accepted = said(&mut command(&project, &["lock", "accept"], &config));
    assert_clean("lock accept", &accepted);
    let pinned = fs::read_to_string(project.path().join("toolcrib.lock")).unwrap();
    project.write("definitions.json", &definitions(ROTATED).to_string());
    let mut diff = with_secret(project.command(&["lock", "diff", "--json"]), &config, ROTATED);
    let diff = diff.output().unwrap();
    let changes = String::from_utf8(diff.stdout).unwrap();
    assert_eq!(diff.status.code(), Some(0), "{changes}");
    // Another text is still a change.
    project.write("definitions.json", &definitions("no secret, but another text").to_string());
    let mut diff = with_secret(project.command(&["lock", "diff"]), &config, ROTATED);
    assert_eq!(diff.output().unwrap().status.code(), Some(1));
    assert_eq!(fs::read_to_string(project.path().join("toolcrib.lock")).unwrap(), pinned);
}

#[test]
fn a_pin_that_contains_a_secret_in_clear_is_rewritten_without_a_change() {
    let project = project();
    let config = project.path().join("config");
    // As if the secret was not known yet.
    let mut call = project.command(&["lock", "accept"]);
    call.env("XDG_CONFIG_HOME", &config).env("OUTLET_NAME_TOKEN", NAME);
    said(&mut call);
    let shows = || {
        let files = all_files(&config.join("toolcrib/pins"));
        files.iter().any(|file| fs::read_to_string(file).unwrap_or_default().contains(SECRET))
    };
    assert!(shows());
    let mut called = command(&project, &["call", "mcp__s__free0", "--json"], &config);
    let called = said(&mut called);
    assert!(!called.contains("has changed"), "{called}");
    assert!(!shows(), "the record still contains it");
}
