//! Projects that are begun.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::{Value, json};
use toolcrib_models::Vendor;
use toolcrib_testbed::Reply;

use crate::{
    models::Prepared,
    support::{Outcome, toolcrib},
};

#[test]
fn a_new_project_runs_at_once() {
    let dir = tempfile::TempDir::new().unwrap();
    let project = dir.path().join("notes");
    let begin = || toolcrib().args(["init", "--json"]).arg(&project).output().unwrap();
    let output = begin();
    assert_eq!(output.status.code(), Some(0));
    let begun: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(begun["created"].as_array().unwrap().len() >= 4);
    let check = toolcrib().args(["check", "-p"]).arg(&project).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
    // Also found from a folder inside it.
    let run = toolcrib()
        .args(["run", "-q", "what do we know about the printer?"])
        .current_dir(project.join("skills"))
        .output()
        .unwrap();
    assert_eq!(run.status.code(), Some(0), "{}", String::from_utf8_lossy(&run.stderr));
    assert!(!run.stdout.is_empty());
    assert_eq!(begin().status.code(), Some(2), "an existing project is never overwritten");
}

#[test]
fn the_command_to_try_is_one_for_a_shell() {
    let dir = tempfile::TempDir::new().unwrap();
    for folder in ["plain", "sp ace/ü", "it's $HOME"] {
        let begun = toolcrib().args(["init", folder]).current_dir(dir.path()).output().unwrap();
        let said = String::from_utf8(begun.stderr).unwrap();
        let command = said.trim_end().strip_prefix("Try: toolcrib ").unwrap();
        let tried = std::process::Command::new("sh")
            .args(["-c", &format!("\"$TOOLCRIB\" {command}")])
            .env("TOOLCRIB", toolcrib().get_program())
            .current_dir(dir.path())
            .output()
            .unwrap();
        assert!(tried.status.success(), "{command}: {}", String::from_utf8_lossy(&tried.stderr));
    }
    let plain = toolcrib().args(["init", "other"]).current_dir(dir.path()).output().unwrap();
    assert!(String::from_utf8(plain.stderr).unwrap().contains(" -p other "));
}

#[test]
fn a_flag_that_init_has_no_use_for_is_refused() {
    let dir = tempfile::TempDir::new().unwrap();
    let refused = [
        &["--project", "elsewhere"][..],
        &["--state", "elsewhere"],
        &["--import", "elsewhere"],
        &["--no-project"],
        &["--allow-stray-children"],
        &["--trust", "elsewhere"],
        &["--locked"],
    ];
    for option in refused {
        let flag = option[0];
        let output =
            toolcrib().args(["init", "new"]).args(option).current_dir(dir.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(flag) && said.contains("DIR"), "{said}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let before = toolcrib().args(["-p", "elsewhere", "init", "new"]).output().unwrap();
    assert_eq!(before.status.code(), Some(2));
    let help =
        |args: &[&str]| String::from_utf8(toolcrib().args(args).output().unwrap().stdout).unwrap();
    for flag in refused.map(|option| option[0]) {
        for other in [&["init"][..], &["models", "add"], &["secret", "set"], &["discover"]] {
            assert!(!help(&[other, &["--help"]].concat()).contains(flag), "{other:?} {flag}");
        }
        assert!(help(&["check", "--help"]).contains(flag) && help(&["--help"]).contains(flag));
        let is_of_imports = !["--project", "--state"].contains(&flag);
        assert_eq!(help(&["run", "-h"]).contains(&format!("{flag} ")), !is_of_imports, "{flag}");
    }
    assert!(help(&["trust", "--help"]).contains("--project"));
}

#[test]
fn an_option_without_an_effect_on_a_command_is_neither_listed_nor_accepted() {
    let unused = [
        ("discover", "--locked"),
        ("discover", "--state=s"),
        ("schema", "--quiet"),
        ("man", "--project=p"),
        ("sessions", "--locked"),
        ("sessions delete x", "--locked"),
        ("mcp logs files", "--locked"),
        ("mcp get files", "-v"),
        ("models", "--import=x"),
        ("models", "--store=postgres://db.example"),
        ("models remove openai", "--store=postgres://db.example"),
        ("trust", "--store=postgres://db.example"),
        ("install --client cursor", "--store=postgres://db.example"),
        ("lock diff", "--locked"),
        ("doctor", "--no-project"),
        ("secret list", "--trust=files"),
    ];
    for (command, option) in unused {
        let words = command.split(' ');
        let output = toolcrib().args(words.clone()).arg(option).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        let flag = match option {
            "-v" => "--verbose",
            other => other.split('=').next().unwrap(),
        };
        assert_eq!(output.status.code(), Some(2), "{command} {option}: {said}");
        assert!(said.contains(&format!("leave out `{flag}`")), "{command} {option}: {said}");
        let before = toolcrib().arg(option).args(words.clone()).output().unwrap();
        assert_eq!(before.status.code(), Some(2), "{option} {command}");
        let help = toolcrib().args(words).arg("--help").output().unwrap();
        let help = String::from_utf8(help.stdout).unwrap();
        assert!(help.contains("Usage:") && !help.contains(flag), "{command} {option}: {help}");
    }
    // Without an effect on one form of the command only.
    for (words, flag) in [
        (["lint", "tools.json", "--locked"], "--locked"),
        (["lint", "tools.json", "--state=s"], "--state"),
        (["trust", "--list", "-p."], "--project"),
    ] {
        let output = toolcrib().args(words).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {said}");
        assert!(said.contains("leave out ") && said.contains(&format!("`{flag}`")), "{said}");
    }
    let json = toolcrib().args(["discover", "--locked", "--json"]).output().unwrap();
    let refused: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        refused["error"]["message"],
        "`discover` does not use `--locked`: it reads the files of MCP clients; leave out `--locked`"
    );
}

#[test]
fn servers_of_a_client_run_where_they_did_and_unusable_ones_are_named() {
    let dir = tempfile::TempDir::new().unwrap();
    let from = dir.path().join("from");
    fs::create_dir_all(from.join(".vscode")).unwrap();
    fs::copy(crate::mcp_server::server(), from.join("server.py")).unwrap();
    let servers = r#"{ "theme": "private", "servers": {
        "small": { "command": "python3", "args": ["server.py", "${TOOLCRIB_NO:-small}"],
                   "env": { "MARK": "${workspaceFolder}", "API_TOKEN": "hush-1c44d0" } },
        "old": { "type": "sse", "url": "https://old.example/sse" },
        "asks": { "command": "x", "env": { "K": "${input:tok}" } },
        "unset": { "command": "x", "args": ["${TOOLCRIB_NO}"] },
        "clear": { "url": "http://a.example/mcp", "headers": { "Authorization": "hush-1c44d0" } },
        "off": { "command": "x", "disabled": true } } }"#;
    fs::write(from.join(".vscode/mcp.json"), servers).unwrap();
    let run = |args: &[&str]| -> Outcome {
        toolcrib().args(args).current_dir(dir.path()).output().unwrap().into()
    };
    let begun = run(&["init", "new", "--from", "from/.vscode/mcp.json"]);
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    let file = fs::read_to_string(dir.path().join("new/toolcrib.toml")).unwrap();
    for name in ["old", "asks", "unset", "clear", "off"] {
        let notice = format!("the MCP server `{name}` is left out: ");
        assert!(begun.stderr.contains(&notice), "{name}: {}", begun.stderr);
        assert!(file.contains(&format!("# Left out: {name}, because ")), "{file}");
    }
    assert!(begun.stderr.contains("contains secrets (API_TOKEN of small)"), "{}", begun.stderr);
    assert!(!begun.stderr.contains("hush-"), "{}", begun.stderr);
    let path = dir.path().join("new/.mcp.json");
    let copy = fs::read_to_string(&path).unwrap();
    assert!(copy.contains("${TOOLCRIB_NO:-small}") && !copy.contains("private"), "{copy}");
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);

    let check = run(&["check", "-p", "new"]);
    assert_eq!(check.code, Some(0), "{}{}", check.stdout, check.stderr);
    let asked = run(&["call", "-p", "new", "mcp__small__mark"]);
    assert!(asked.stderr.contains("it waits for approval"), "{}{}", asked.stdout, asked.stderr);
    let allowed = file.replace("effect = \"ask\"", "effect = \"allow\"");
    fs::write(dir.path().join("new/toolcrib.toml"), allowed).unwrap();
    let marked = run(&["call", "-p", "new", "mcp__small__mark"]);
    let from = from.canonicalize().unwrap();
    let expected = format!("mark={0} cwd={0} ", from.display());
    assert!(marked.stdout.contains(&expected), "{}{}", marked.stdout, marked.stderr);
}

#[test]
fn a_project_begins_with_a_file_or_a_url() {
    let dir = tempfile::TempDir::new().unwrap();
    let document = json!({ "openapi": "3.1.0", "servers": [{ "url": "/v1" }],
        "paths": { "/orders": { "get": { "operationId": "listOrders" } } } });
    let replies = [document, json!([{ "id": 7 }])].map(|body| Reply::json(200, &body));
    let served = Prepared::new(Vendor::OpenAi, replies.into());
    let url = format!("{}/openapi.json", served.url());
    let begun =
        toolcrib().args(["init", "shop", "--from", &url]).current_dir(dir.path()).output().unwrap();
    let said = String::from_utf8_lossy(&begun.stderr).into_owned();
    assert_eq!(begun.status.code(), Some(0), "{said}");
    assert!(said.contains("Try: toolcrib menu -p shop"), "{said}");
    let check = toolcrib().args(["check", "-p", "shop"]).current_dir(dir.path()).output().unwrap();
    assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stderr));
    let called = toolcrib()
        .args(["call", "-p", "shop", "listOrders"])
        .current_dir(dir.path())
        .output()
        .unwrap();
    let answered = String::from_utf8_lossy(&called.stdout).into_owned();
    assert!(answered.contains(r#"[{"id":7}]"#), "{answered} {:?}", called.stderr);
    let requests = served.requests();
    let paths: Vec<_> = requests.iter().map(|one| &*one.path_and_query).collect();
    assert_eq!(paths, ["/openapi.json", "/v1/orders"]);

    fs::write(dir.path().join("notes.md"), "# Notes").unwrap();
    for (from, expected) in [("notes.md", 2), ("missing.yaml", 2), ("http://127.0.0.1:1/a", 1)] {
        let output = toolcrib()
            .args(["init", "other", "--from", from])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(expected), "{said}");
        assert!(said.contains(from.split('/').next().unwrap()), "{said}");
        assert!(!dir.path().join("other").exists());
    }
}

#[test]
fn a_project_begun_from_a_file_asks_before_it_writes_and_passes_check_and_lint() {
    let dir = tempfile::TempDir::new().unwrap();
    let run = |args: &[&str]| -> Outcome {
        toolcrib().args(args).current_dir(dir.path()).output().unwrap().into()
    };
    let database = rusqlite::Connection::open(dir.path().join("shop.db")).unwrap();
    database.execute_batch("CREATE TABLE customers (id INTEGER PRIMARY KEY, city TEXT)").unwrap();
    let document = r#"{ "openapi": "3.1.0", "servers": [{ "url": "https://api.example" }], "paths": { "/orders": {
        "get": { "operationId": "listOrders", "summary": "The orders" },
        "post": { "operationId": "addOrder", "summary": "An order", "requestBody": { "content": {
            "application/json": { "schema": { "type": "object", "properties": { "city": {} } } } } } } } } }"#;
    fs::write(dir.path().join("openapi.json"), document).unwrap();
    let servers = format!(
        r#"{{ "mcpServers": {{ "small": {{ "command": "python3", "args": [{:?}, "small"], "excludeTools": ["dangling"] }} }} }}"#,
        crate::mcp_server::server()
    );
    fs::write(dir.path().join("servers.json"), servers).unwrap();

    for from in ["shop.db", "openapi.json", "servers.json"] {
        let project = format!("from_{}", from.split('.').next().unwrap());
        let begun = run(&["init", &project, "--from", from]);
        assert_eq!(begun.code, Some(0), "{}", begun.stderr);
        let check = run(&["check", "-p", &project]);
        assert_eq!(check.code, Some(0), "{from}: {}{}", check.stdout, check.stderr);
        let lint = run(&["lint", "-p", &project]);
        assert_eq!(lint.code, Some(0), "{from}: {}{}", lint.stdout, lint.stderr);
    }
    let file = fs::read_to_string(dir.path().join("from_shop/toolcrib.toml")).unwrap();
    assert!(file.contains("file = \"../shop.db\""), "{file}");
    let servers = fs::read_to_string(dir.path().join("from_servers/.mcp.json")).unwrap();
    assert!(servers.contains("\"cwd\": \"..\""), "{servers}");
    let begun = run(&["init", ".", "--from", "servers.json"]);
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    let servers = fs::read_to_string(dir.path().join(".mcp.json")).unwrap();
    assert!(servers.contains("\"cwd\": \".\""), "{servers}");

    let rows =
        run(&["call", "-p", "from_shop", "shop_query", "sql=SELECT count(*) AS n FROM customers"]);
    assert_eq!(rows.code, Some(0), "{}{}", rows.stdout, rows.stderr);
    let added = run(&["call", "-p", "from_openapi", "addOrder"]);
    assert!(added.stderr.contains("it waits for approval"), "{}{}", added.stdout, added.stderr);
    let explained = run(&["explain", "-p", "from_openapi", "listOrders"]);
    assert!(!explained.stdout.contains("It may change something."), "{}", explained.stdout);
}

#[test]
fn the_tools_of_every_kind_pass_lint() {
    let dir = tempfile::TempDir::new().unwrap();
    rusqlite::Connection::open(dir.path().join("shop.db"))
        .unwrap()
        .execute_batch("CREATE TABLE customers (id INTEGER PRIMARY KEY)")
        .unwrap();
    let project = r#"
policy_default = "allow"
[agent]
model = "script:script.toml"
[database.shop]
file = "shop.db"
[files.work]
folder = "work"
write = true
[[tool]]
kind = "files"
[[tool]]
kind = "terminal"
[[tool]]
kind = "memory"
scope = "principal"
[[tool]]
kind = "todo"
[[tool]]
kind = "clarify"
[[tool]]
kind = "code"
[[tool]]
kind = "web"
[[tool]]
kind = "sql_explore"
name = "shop"
description = "The customers of a shop."
"#;
    fs::create_dir(dir.path().join("work")).unwrap();
    fs::write(dir.path().join("toolcrib.toml"), project).unwrap();
    fs::write(dir.path().join("script.toml"), "[[rule]]\nname = \"x\"\ntext = \"x\"\n").unwrap();
    let lint: Outcome =
        toolcrib().args(["lint", "-p", "."]).current_dir(dir.path()).output().unwrap().into();
    assert_eq!(lint.code, Some(0), "{}{}", lint.stdout, lint.stderr);
}
