//! Files of MCP clients, as their products write them.

use std::{path::Path, time::Duration};

use toolcrib_config::{Diagnostics, Problems};
use toolcrib_mcp::server::{FileServer, ServerTarget, ServersFile, Transport, read_servers};

fn read(text: &str) -> ServersFile {
    read_file(if text.starts_with('#') { "config.toml" } else { ".mcp.json" }, text)
}

fn read_file(file: &str, text: &str) -> ServersFile {
    let variables = |name: &str| match name {
        "HOME" => Some("/home/me".to_owned()),
        "DOCS_TOKEN" => Some("t-0123456".to_owned()),
        _ => None,
    };
    let env_file = |path: &Path| match path.to_str() {
        Some("/work dir/.env") => Ok("API_KEY=of-the-file\nB=file # b\n".to_owned()),
        Some("/work dir/bad.env") => Ok("hush-hush".to_owned()),
        _ => Err("does not exist".to_owned()),
    };
    read_servers(file, text, Path::new("/work dir"), &variables, &env_file)
}

/// All problems, including those of servers.
fn problems(text: &str) -> Diagnostics {
    problems_of(".mcp.json", read(text))
}

fn problems_of(file: &str, found: ServersFile) -> Diagnostics {
    let problems = Problems::new(file);
    problems.merge(found.problems);
    found.servers.into_iter().for_each(|server| problems.merge(server.problems));
    problems.into_diagnostics()
}

#[test]
fn files_of_several_products_are_read_as_they_are() {
    let text = r#"{
            // Claude Code, Claude Desktop, Cursor
            "mcpServers": {
                "git": { "command": "uvx", "args": ["mcp-server-git", "--repository", "${HOME}/x"] },
                "My docs": {
                    "type": "http", "url": "https://docs.example/mcp",
                    "headers": { "Authorization": "Bearer ${DOCS_TOKEN}", "X-A": "b" },
                },
                "off": { "command": "${NOT_SET}", "disabled": true },
                "files": {
                    "command": "${NO:-./run}", "cwd": "sub", "env": { "API_KEY": "hush-hush", "A": "1" },
                    "alwaysAllow": ["x"], "autoApprove": [],
                },
            },
            "globalShortcut": "",
        }"#;
    let found = read(text);
    insta::assert_snapshot!(problems(text), @r#"
    .mcp.json:5:17: warning: `My docs` is named `My_docs` here
    .mcp.json:12:21: warning: not used here, in server `files`: `alwaysAllow`, `autoApprove`
    "#);
    insta::assert_debug_snapshot!(found.servers, @r#"
    [
        FileServer {
            name: "git",
            at: Spot {
                file: ".mcp.json",
                line: 4,
                column: 17,
            },
            disabled: false,
            transport: Some(
                Stdio(
                    Stdio {
                        command: "uvx",
                        args: [
                            "mcp-server-git",
                            "--repository",
                            "/home/me/x",
                        ],
                        env: [],
                        working_dir: Some(
                            "/work dir",
                        ),
                        ..
                    },
                ),
            ),
            ..
        },
        FileServer {
            name: "My_docs",
            at: Spot {
                file: ".mcp.json",
                line: 5,
                column: 17,
            },
            disabled: false,
            transport: Some(
                Http(
                    Http {
                        url: "https://docs.example/mcp",
                        headers: [
                            "Authorization",
                            "X-A",
                        ],
                        ..
                    },
                ),
            ),
            ..
        },
        FileServer {
            name: "off",
            at: Spot {
                file: ".mcp.json",
                line: 9,
                column: 17,
            },
            disabled: true,
            transport: None,
            ..
        },
        FileServer {
            name: "files",
            at: Spot {
                file: ".mcp.json",
                line: 10,
                column: 17,
            },
            disabled: false,
            transport: Some(
                Stdio(
                    Stdio {
                        command: "./run",
                        args: [],
                        env: [
                            "API_KEY",
                            "A",
                        ],
                        working_dir: Some(
                            "/work dir/sub",
                        ),
                        ..
                    },
                ),
            ),
            ..
        },
    ]
    "#);
    let secrets: Vec<_> = found.servers.iter().map(|server| server.secrets.clone()).collect();
    assert_eq!(
        secrets,
        [vec![], vec!["t-0123456", "Bearer t-0123456", "t-0123456"], vec![], vec!["hush-hush"]]
    );
    for text in [
        r#"{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}"#,
        r#"{"mcp": {"servers": {"a": {"command": "x"}}}}"#,
        r#"{"mcpServers": {"a": {"serverUrl": "https://a.example/mcp"}}}"#,
        r#"{"mcpServers": {"a": {"type": "streamableHttp", "url": "https://a.example/mcp"}}}"#,
        r#"{"mcpServers": {}}"#,
    ] {
        let found = read(text);
        assert_eq!(problems(text), Diagnostics::default(), "{text}");
        let servers = usize::from(text != r#"{"mcpServers": {}}"#);
        assert_eq!(found.servers.len(), servers, "{text}");
        assert!(found.servers.iter().all(|server| server.transport.is_some()), "{text}");
    }
}

#[test]
fn all_problems_are_reported_at_once_with_their_places() {
    insta::assert_snapshot!(problems(""), @r#"
    .mcp.json:1:1: this file is empty
        help: write { "mcpServers": { "git": { "command": "uvx", "args": ["mcp-server-git"] } } }
    "#);
    insta::assert_snapshot!(problems("{ \"mcpServers\": {\n  'a': 1 } }"), @".mcp.json:2:3: this is not JSON: Single-quoted strings are not allowed");
    insta::assert_snapshot!(problems("[]"), @".mcp.json:1:1: this file must be an object in `{…}`; this is a list");
    insta::assert_snapshot!(
        problems(r#"{ "servers": {}, "mcpServers": {} }"#),
        @".mcp.json:1:3: warning: `servers` is ignored, because the file has `mcpServers` too"
    );
    insta::assert_snapshot!(problems(r#"{ "tools": {} }"#), @r#"
    .mcp.json:1:1: `mcpServers` is missing in this file
        help: write { "mcpServers": { "git": { "command": "uvx", "args": ["mcp-server-git"] } } }
    "#);
    insta::assert_snapshot!(
        problems(
            r#"{ "mcpServers": {
  "sse": { "type": "sse", "url": "https://a.example/sse" },
  "kind": { "type": "htpp", "url": "https://a.example" },
  "both": { "command": "x", "url": "https://a.example" },
  "none": { "args": [] },
  "comand": { "comand": "x" },
  "lacks": { "type": "http", "command": "x" },
  "unset": { "command": "é${NOT_SET}", "args": ["a", "${workspaceFolder}", 1, "\u0024{input:x}"] },
  "types": { "command": 1, "args": "x", "env": { "A": 2, "A": "3" }, "disabled": "no" },
  "blank": { "command": " " },
  "waits": { "command": "x", "timeout": 60 },
  "twice": { "command": "x" },
  "twice": { "command": "y" },
  "a b": { "command": "x" },
  "a.b": { "command": "x" },
  "…": { "command": "x" },
  "number": 1
} }"#
        ),
        @r#"
    .mcp.json:2:20: server `sse` uses HTTP+SSE (`sse`), which MCP replaced by Streamable HTTP, and which is not supported here
        help: write "type": "http" and the server's URL for Streamable HTTP, which often ends in /mcp
    .mcp.json:3:21: server `kind` has an unknown `type`: `htpp`
        help: did you mean `http`?
    .mcp.json:4:36: server `both` has both `command` and `url`
        help: keep one of them, or choose one with "type"
    .mcp.json:5:11: server `none` has neither `command` nor `url`
        help: write "command": "…" for a program, or "url": "https://…"
    .mcp.json:6:13: server `comand` has neither `command` nor `url`
        help: write "command": "…" for a program, or "url": "https://…"
    .mcp.json:6:15: warning: not used here, in server `comand`: `comand`
        help: did you mean `command`?
    .mcp.json:7:12: server `lacks` has no `url`
        help: write "url": "https://…"
    .mcp.json:8:27: server `unset` cannot be used: the environment variable `NOT_SET` is not set; set it, or write `${NOT_SET:-DEFAULT}`
    .mcp.json:8:79: server `unset` cannot be used: `${input:x}` is known to an editor only; write its value, or `${VAR}` with an environment variable
    .mcp.json:9:25: `command` must be a text in quotes; this is a number
    .mcp.json:9:36: `args` must be a list; this is a text
    .mcp.json:9:58: `A` occurs twice here; the first is at .mcp.json:9
        help: keep one of them
    .mcp.json:9:82: `disabled` must be `true` or `false`; this is a text
    .mcp.json:10:25: server `blank` has a blank `command`
    .mcp.json:13:3: `twice` occurs twice here; the first is at .mcp.json:12
        help: keep one of them
    .mcp.json:14:3: warning: `a b` is named `a_b` here
    .mcp.json:15:3: warning: `a.b` is named `a_b_2e7336dc` here
    .mcp.json:16:3: warning: `…` is named `server_b4935894` here
    .mcp.json:17:13: `number` must be an object in `{…}`; this is a number
    "#
    );
}

/// Each usable server: its name, and its program with arguments and environment, or its URL
/// with headers.
fn reached(text: &str) -> String {
    let file = if text.starts_with('#') { "config.toml" } else { ".mcp.json" };
    reached_in(file, text)
}

pub(crate) fn reached_in(file: &str, text: &str) -> String {
    let line = |server: &FileServer| {
        let transport = server.transport.as_ref().map(Transport::target);
        let reach = match transport {
            Some(ServerTarget::Program { command, args, env, .. }) => {
                format!("{command} {args:?} {env:?}")
            }
            Some(ServerTarget::Endpoint { url, headers }) => format!("{url} {headers:?}"),
            None if server.disabled => "disabled".to_owned(),
            _ => "unusable".to_owned(),
        };
        format!("{}: {reach}\n", server.name)
    };
    let found = read_file(file, text);
    let servers: String = found.servers.iter().map(line).collect();
    format!("{servers}{}", problems_of(file, found))
}

#[test]
fn files_of_zed_opencode_codex_and_of_projects_are_read() {
    insta::assert_snapshot!(reached(r#"{ "theme": "x", "context_servers": {
        "a": { "source": "custom", "command": "run", "args": ["${userHome}", "${workspaceFolder}/x"] },
        "old": { "command": { "path": "old", "args": ["1"], "env": { "E": "1" } } },
        "ext": { "source": "extension", "settings": {} } } }"#), @r#"
    a: run ["/home/me", "/work dir/x"] []
    old: old ["1"] [("E", "1")]
    ext: unusable
    .mcp.json:4:16: server `ext` has neither `command` nor `url`
        help: write "command": "…" for a program, or "url": "https://…"
    .mcp.json:4:41: warning: not used here, in server `ext`: `settings`
    "#);
    insta::assert_snapshot!(reached(r#"{ "$schema": "https://opencode.ai/config.json", "mcp": {
        "a": { "type": "local", "command": ["bun", "x", "y"], "environment": { "T": "{env:DOCS_TOKEN}" } },
        "b": { "type": "remote", "url": "https://b.example", "enabled": false },
        "c": { "type": "remote", "url": "https://c.example", "headers": { "A": "{file:x}" } } } }"#), @r#"
    a: bun ["x", "y"] [("T", "t-0123456")]
    b: disabled
    c: unusable
    .mcp.json:4:80: server `c` reads a value from a file (`{file:…}`), which is not supported here
        help: write `${VAR}` with an environment variable
    "#);
    insta::assert_snapshot!(reached("# Codex\nmodel = \"m\"\n[tools]\nweb_search = true\n\
        [mcp_servers.a]\ncommand = \"npx\"\nargs = [\"-y\", \"a\"]\nenv_vars = [\"HOME\", \"NO\"]\n\
        enabled_tools = [\"x\"]\nstartup_timeout_sec = 20\n[mcp_servers.a.env]\nK = \"v\"\n\
        [mcp_servers.b]\nurl = \"https://b.example\"\nbearer_token_env_var = \"DOCS_TOKEN\"\n\
        http_headers = { X = \"1\" }\nenv_http_headers = { Y = \"HOME\", Z = \"NO\" }\n\
        [mcp_servers.c]\ncommand = 1\n"), @r#"
    a: npx ["-y", "a"] [("HOME", "/home/me"), ("K", "v")]
    b: https://b.example [("X", "1"), ("Y", "/home/me"), ("Authorization", "Bearer t-0123456")]
    c: unusable
    config.toml:19:11: `command` must be a text in quotes; this is a number
    "#);
    insta::assert_snapshot!(reached("# bad\n[mcp_servers"), @r"config.toml:2:13: this is not TOML: unclosed table, expected `]`");
    insta::assert_snapshot!(reached(r#"{ "mcpServers": { "a": { "command": "user" }, "u": { "command": "u" } },
        "projects": {
            "/work dir": { "mcpServers": { "a": { "command": "near" } } },
            "/": { "mcpServers": { "a": { "command": "far" }, "f": { "command": "far" } } },
            "/other": { "mcpServers": { "o": { "command": "other" } } } } }"#), @r"
    a: near [] []
    f: far [] []
    u: u [] []
    ");
}

#[test]
fn an_env_file_gives_variables_that_env_replaces() {
    insta::assert_snapshot!(reached(r#"{ "servers": {
        "a": { "command": "x", "envFile": "${workspaceFolder}/.env", "env": { "B": "own" } },
        "b": { "command": "x", "envFile": "bad.env" },
        "c": { "command": "x", "envFile": "no.env" } } }"#), @r#"
    a: x [] [("API_KEY", "of-the-file"), ("B", "own")]
    b: unusable
    c: unusable
    .mcp.json:3:43: server `b` cannot be used: line 1 of its `envFile` is invalid
        help: write one NAME=VALUE a line
    .mcp.json:4:43: server `c` cannot be used: its `envFile` does not exist
    "#);
}

#[test]
fn a_server_of_the_registry_is_run_by_the_runner_of_its_package() {
    insta::assert_snapshot!(reached(r#"{
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.someone/weather", "description": "d", "version": "1.2.0",
        "packages": [
            { "registryType": "mcpb", "identifier": "https://x.example/a.mcpb" },
            { "registryType": "npm", "identifier": "@someone/weather", "version": "1.2.0",
              "transport": { "type": "stdio" },
              "packageArguments": [
                { "type": "positional", "value": "serve" },
                { "type": "named", "name": "--units", "default": "metric" },
                { "type": "named", "name": "--unset", "valueHint": "x" },
                { "type": "positional", "value": "{dir}/x", "variables": { "dir": { "default": "/tmp" } } } ],
              "environmentVariables": [
                { "name": "DOCS_TOKEN", "isRequired": true, "isSecret": true },
                { "name": "OPTIONAL" } ] } ] }"#), @r#"weather: npx ["-y", "@someone/weather@1.2.0", "serve", "--units", "metric", "/tmp/x"] [("DOCS_TOKEN", "t-0123456")]"#);
    insta::assert_snapshot!(reached(r#"{ "server": { "name": "a/b", "packages": [
        { "registryType": "oci", "identifier": "docker.io/a/b", "version": "2",
          "environmentVariables": [ { "name": "HOME" } ] } ] }, "_meta": {} }"#), @r#"b: docker ["run", "-i", "--rm", "-e", "HOME", "docker.io/a/b:2"] [("HOME", "/home/me")]"#);
    insta::assert_snapshot!(reached(r#"{ "name": "a/c", "packages": [
        { "registryType": "pypi", "identifier": "c", "version": "3",
          "environmentVariables": [ { "name": "NOT_SET", "isRequired": true } ] } ],
        "remotes": [ { "type": "sse", "url": "https://c.example/sse" },
          { "type": "streamable-http", "url": "https://c.example/{tenant}", "variables": { "tenant": { "default": "t" } },
            "headers": [ { "name": "X", "value": "Bearer {DOCS_TOKEN}", "variables": { "DOCS_TOKEN": { "isSecret": true } } } ] } ] }"#), @r#"c: https://c.example/t [("X", "Bearer t-0123456")]"#);
    insta::assert_snapshot!(reached(r#"{ "name": "a/d", "packages": [
        { "registryType": "pypi", "identifier": "d", "version": "3", "transport": { "type": "stdio" },
          "packageArguments": [ { "type": "positional", "valueHint": "folder", "isRequired": true } ] },
        { "registryType": "npm", "identifier": "--evil", "version": "3" } ],
        "remotes": [ { "type": "sse", "url": "https://c.example/sse" } ] }"#), @r"
    d: unusable
    .mcp.json:1:1: this server cannot be used: package `d`: it needs a value for `folder`; a package has no usable `identifier`; remote `https://c.example/sse`: its type `sse` is not supported
        help: write it as an entry of `mcpServers`, with the values that it needs
    ");
}

/// How one server, under the name `s` of `mcpServers`, is reached.
fn entry(entry: &str) -> String {
    reached(&format!(r#"{{ "mcpServers": {{ "s": {entry} }} }}"#))
}

#[test]
fn an_invalid_entry_does_not_spoil_the_others() {
    let good = r#""good": { "command": "run" }"#;
    for bad in [
        r#""a": 1"#,
        r#""a": null"#,
        r#""a": []"#,
        r#""a": {}"#,
        r#""a": { "command": "x", "toolPolicy": "strict" }"#,
        r#""a": { "command": "x", "args": "y" }"#,
        r#""a": { "command": 1 }"#,
        r#""a": { "command": "x", "env": { "A": {} } }"#,
        r#""a": { "type": "carrier-pigeon", "url": "https://a.example" }"#,
        r#""a": { "transport": "sse", "url": "https://a.example/sse" }"#,
        r#""a": { "url": true }"#,
        r#""a": { "command": "x", "options": { "toolFilter": { "mode": "odd", "list": [] } } }"#,
        r#""a": { "command": "x", "options": { "blockedTools": ["b"] } }"#,
        r#""a": { "command": "x", "settings": { "deep": { "tool_permissions": { "b": "no" } } } }"#,
        r#""a": { "command": "x", "disabled": "perhaps" }"#,
    ] {
        let found = read(&format!(r#"{{ "mcpServers": {{ {bad}, {good} }} }}"#));
        assert_eq!(found.problems.errors().count(), 0, "{bad}: {}", found.problems);
        let usable = |server: &FileServer| {
            server.transport.is_some() && server.problems.errors().next().is_none()
        };
        let usable: Vec<_> = found.servers.iter().filter(|server| usable(server)).collect();
        assert_eq!(usable.len(), 1, "{bad}");
        assert_eq!(&*usable[0].name, "good", "{bad}");
    }
}

#[test]
fn names_of_any_length_and_alphabet_are_imported() {
    let named = |name: &str| {
        let found = read(&format!(r#"{{ "mcpServers": {{ "{name}": {{ "command": "x" }} }} }}"#));
        assert_eq!(found.problems.errors().count(), 0, "{name}");
        found.servers[0].name.to_string()
    };
    for (written, name) in [
        ("git", "git"),
        ("awslabs.aws-documentation-mcp-server", "awslabs_aws-documentati_c94c5884"),
        ("awslabs.aws-documentation-mcp-servers", "awslabs_aws-documentati_cdcba6eb"),
        (
            "github.com/modelcontextprotocol/servers/tree/main/src/filesystem",
            "github_com_modelcontext_98396fc8",
        ),
        ("文件", "server_39932f24"),
        ("Größe", "Gr_e_aedc3f80"),
        ("", "server_e3b0c442"),
        ("My docs", "My_docs"),
        ("a__b", "a_b"),
        ("@scope/name", "scope_name"),
        ("ends_", "ends"),
    ] {
        assert_eq!(named(written), name, "{written}");
    }
    // A valid name is kept, whatever others would become.
    let both = r#"{ "mcpServers": { "a b": { "command": "x" }, "a_b": { "command": "y" } } }"#;
    let names: Vec<_> = read(both).servers.iter().map(|server| server.name.to_string()).collect();
    assert_eq!(names, ["a_b_c8687a08", "a_b"]);
}

#[test]
fn servers_without_a_key_around_them_are_read_if_all_are_servers() {
    for flat in [
        r#"{ "a": { "command": "x" } }"#,
        r#"{ "a": { "command": ["x", "y"] }, "b": { "url": "https://b.example" } }"#,
        r#"{ "$schema": "https://x.example", "a": { "type": "http", "url": "https://b.example" } }"#,
        r#"{ "mcp": { "command": "x" } }"#,
        r#"{ "servers": { "command": "x" }, "tools": { "serverUrl": "https://b.example" } }"#,
    ] {
        let found = read(flat);
        assert!(!found.servers.is_empty(), "{flat}");
        assert!(found.servers.iter().all(|server| server.transport.is_some()), "{flat}");
        assert_eq!(problems(flat), Diagnostics::default(), "{flat}");
    }
    for other in [
        r#"{ "a": { "command": "x" }, "theme": "dark" }"#,
        r#"{ "a": { "command": "x" }, "b": {} }"#,
        r#"{ "scripts": { "command": { "x": 1 } } }"#,
        r#"{ "$schema": "https://x.example" }"#,
    ] {
        let found = read(other);
        assert!(found.lacks_servers && found.servers.is_empty(), "{other}");
    }
}

#[test]
fn keys_beside_the_servers_restrict_or_are_ignored() {
    let with =
        |key: &str| read(&format!(r#"{{ {key}, "mcpServers": {{ "a": {{ "command": "x" }} }} }}"#));
    for neutral in [
        r#""tools": { "sandbox": true }"#,
        r#""tools": { "shell": { "pager": "cat" }, "sandbox": "docker" }"#,
        r#""tools": []"#,
        r#""enableAllProjectMcpServers": true"#,
        r#""enableAllProjectMcpServers": false"#,
        r#""permissions": { "allow": ["Bash(ls)"] }"#,
        r#""theme": "dark""#,
        r#""mcp": { "serverCommand": "x" }"#,
    ] {
        let found = with(neutral);
        assert_eq!(found.problems.errors().count(), 0, "{neutral}");
        assert_eq!(found.servers[0].problems.errors().count(), 0, "{neutral}");
    }
    for narrowing in [
        r#""tools": { "exclude": ["a"] }"#,
        r#""tools": ["a"]"#,
        r#""mcpServerPolicy": "strict""#,
        r#""toolPermissions": {}"#,
        r#""mcp.access": "none""#,
    ] {
        let found = with(narrowing);
        assert_eq!(found.problems.errors().count(), 0, "{narrowing}");
        assert_ne!(found.servers[0].problems.errors().count(), 0, "{narrowing}");
    }
}

#[test]
fn a_filter_of_a_proxy_is_applied() {
    let tools = |filter: &str| {
        let text = format!(r#"{{ "mcpServers": {{ "a": {{ "command": "x", {filter} }} }} }}"#);
        let found = read(&text);
        assert_eq!(found.servers[0].problems.errors().count(), 0, "{filter}");
        found.servers.into_iter().next().unwrap().tools
    };
    let block = tools(
        r#""options": { "logEnabled": true, "toolFilter": { "mode": "block", "list": ["b"] } }"#,
    );
    assert_eq!((block.only, block.except), (None, vec!["b".into()]));
    let allow = tools(r#""toolFilter": { "mode": "allow", "list": ["b", "c"] }"#);
    assert_eq!(allow.only, Some(vec!["b".into(), "c".into()]));
}

#[test]
fn values_and_words_are_read_as_they_are_meant() {
    for (text, expected) in [
        (
            r#"{ "command": "x", "args": [1, true, "a", 1.50] }"#,
            r#"s: x ["1", "true", "a", "1.50"] []"#,
        ),
        (
            r#"{ "command": "x", "env": { "A": 1, "B": false } }"#,
            r#"s: x [] [("A", "1"), ("B", "false")]"#,
        ),
        (
            r#"{ "url": "https://a.example", "headers": { "X": 7 } }"#,
            r#"s: https://a.example [("X", "7")]"#,
        ),
        (r#"{ "command": "x", "disabled": "true" }"#, "s: disabled"),
        (r#"{ "command": "x", "enabled": "False" }"#, "s: disabled"),
        (r#"{ "type": "HTTP", "url": "https://a.example" }"#, "s: https://a.example []"),
        (r#"{ "type": "Streamable-HTTP", "url": "https://a.example" }"#, "s: https://a.example []"),
        (r#"{ "type": "streamable_http", "url": "https://a.example" }"#, "s: https://a.example []"),
        (r#"{ "type": "streamable http", "url": "https://a.example" }"#, "s: https://a.example []"),
        (r#"{ "type": "STDIO", "command": "x" }"#, "s: x [] []"),
        (r#"{ "transport": "stdio", "command": "x" }"#, "s: x [] []"),
        (
            r#"{ "transport": "streamable-http", "url": "https://a.example" }"#,
            "s: https://a.example []",
        ),
        (
            r#"{ "transport": { "type": "http" }, "url": "https://a.example" }"#,
            "s: https://a.example []",
        ),
        (r#"{ "transportType": "http", "url": "https://a.example" }"#, "s: https://a.example []"),
    ] {
        assert_eq!(entry(text).lines().next().unwrap(), expected, "{text}");
        assert_eq!(entry(text).lines().count(), 1, "{text}: {}", entry(text));
    }
    let text = r#"{ "url": "https://a.example", "oauth": { "clientId": "${DOCS_TOKEN}", "callbackPort": 8080 } }"#;
    let found = read(&format!(r#"{{ "mcpServers": {{ "s": {text} }} }}"#));
    let oauth = found.servers[0].oauth.as_ref().unwrap();
    assert_eq!((&*oauth.client_id, oauth.redirect_port), ("t-0123456", Some(8080)));
}

#[test]
fn a_command_line_is_split_where_no_shell_would_do_more() {
    let split = entry(r#"{ "command": "npx -y @scope/server@1.2", "args": ["a b"] }"#);
    assert!(split.starts_with(r#"s: npx ["-y", "@scope/server@1.2", "a b"] []"#), "{split}");
    assert!(
        split.contains("these words of its `command`: `npx`, `-y`, `@scope/server@1.2`"),
        "{split}"
    );
    for whole in [
        "npx -y x && rm y",
        "npx -y 'a b'",
        "sh -c $X",
        "a | b",
        "a > b",
        "a; b",
        "run `x`",
        "a *",
        "C:\\\\Program Files\\\\x.exe",
        "a ~/b",
        "a #b",
        "a (b)",
    ] {
        let found = entry(&format!(r#"{{ "command": "{whole}" }}"#));
        assert!(!found.contains("these words"), "{found}");
    }
}

#[test]
fn timeouts_have_the_unit_of_the_product_whose_file_it_is() {
    let timeouts = |file: &str, text: &str| {
        let no_file = |_: &Path| Err("does not exist".to_owned());
        let found = read_servers(file, text, Path::new("/"), &|_| None, &no_file);
        let server = found.servers.into_iter().next().unwrap();
        assert_eq!(server.problems.errors().count(), 0, "{file}");
        let warned = server.problems.iter().count();
        let seconds = |limit: Option<Duration>| limit.map(|limit| limit.as_secs_f64());
        (seconds(server.timeouts.call), seconds(server.timeouts.start), warned)
    };
    let with = |timeout: &str| {
        format!(r#"{{ "mcpServers": {{ "a": {{ "command": "x", "timeout": {timeout} }} }} }}"#)
    };
    for (file, timeout, expected) in [
        ("/home/me/.mcp.json", "300000", Some(300.0)),
        ("/home/me/.mcp.json", "500", Some(0.5)),
        ("/home/me/.gemini/settings.json", "600000", Some(600.0)),
        ("/x/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "3600", Some(3_600.0)),
        ("/x/.roo/mcp.json", "300", Some(300.0)),
        ("/x/.kiro/settings/mcp.json", "\"60000\"", Some(60.0)),
        // A product that the file does not tell.
        ("/x/servers.json", "60", Some(60.0)),
        ("/x/servers.json", "300000", Some(300.0)),
    ] {
        assert_eq!(timeouts(file, &with(timeout)), (expected, None, 0), "{file} {timeout}");
    }
    for wrong in ["0", "-5", "\"soon\"", "[]", "1e400"] {
        assert_eq!(timeouts("/x/servers.json", &with(wrong)), (None, None, 1), "{wrong}");
    }
    let zed = r#"{ "context_servers": { "a": { "command": "x", "timeout": 90 } } }"#;
    assert_eq!(timeouts("settings.json", zed), (Some(90.0), None, 0));
    let opencode = r#"{ "mcp": { "a": { "command": ["x"], "timeout": 5000 } } }"#;
    assert_eq!(timeouts("opencode.json", opencode), (None, None, 1), "it limits the listing only");
    let codex =
        "[mcp_servers.a]\ncommand = 'x'\ntool_timeout_sec = 120\nstartup_timeout_sec = 20.5\n";
    assert_eq!(timeouts("config.toml", codex), (Some(120.0), Some(20.5), 0));
}

/// Two names of which one could not be told from the other were two servers.
#[test]
fn of_names_that_differ_only_by_case_the_later_has_a_digest() {
    insta::assert_snapshot!(reached(r#"{ "mcpServers": {
        "GitHub": { "command": "a" }, "github": { "command": "b" }, "GITHUB": { "command": "c" },
        "a b": { "command": "d" }, "A_B": { "command": "e" } } }"#), @r#"
    GitHub: a [] []
    github_c0b0109d: b [] []
    GITHUB_9d1d9cfc: c [] []
    a_b: d [] []
    A_B_6c1908f9: e [] []
    .mcp.json:2:39: warning: `github` is named `github_c0b0109d` here
    .mcp.json:2:69: warning: `GITHUB` is named `GITHUB_9d1d9cfc` here
    .mcp.json:3:9: warning: `a b` is named `a_b` here
    .mcp.json:3:36: warning: `A_B` is named `A_B_6c1908f9` here
    "#);
}

#[test]
fn names_that_differ_only_by_their_unicode_form_are_one_name() {
    let text = "{ \"mcpServers\": { \"caf\u{e9}\": { \"command\": \"a\" }, \
                \"cafe\u{301}\": { \"command\": \"b\" } } }";
    insta::assert_snapshot!(reached(text), @r"
    caf_850f7dc4: a [] []
    .mcp.json:1:19: warning: `café` is named `caf_850f7dc4` here
    .mcp.json:1:47: warning: `café` is named `caf_850f7dc4` here
    .mcp.json:1:47: `café` would be named `caf_850f7dc4` here
        help: rename it
    ");
}
