//! Files of MCP clients, as their products write them.

use std::path::Path;

use toolcrib_config::{Diagnostics, Problems};
use toolcrib_mcp::server::{FileServer, ServerTarget, ServersFile, Transport, read_servers};

fn read(text: &str) -> ServersFile {
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
    let file = if text.starts_with('#') { "config.toml" } else { ".mcp.json" };
    read_servers(file, text, Path::new("/work dir"), &variables, &env_file)
}

/// All problems, including those of servers.
fn problems(text: &str) -> Diagnostics {
    let found = read(text);
    let problems = Problems::new(".mcp.json");
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
fn what_is_wrong_is_told_at_its_place_and_all_at_once() {
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
    .mcp.json:8:76: args[2] must be a text in quotes; this is a number
    .mcp.json:8:79: server `unset` cannot be used: `${input:x}` is known to an editor only; write its value, or `${VAR}` with an environment variable
    .mcp.json:9:25: `command` must be a text in quotes; this is a number
    .mcp.json:9:36: `args` must be a list; this is a text
    .mcp.json:9:55: `A` must be a text in quotes; this is a number
    .mcp.json:9:58: `A` occurs twice here; the first is at .mcp.json:9
        help: keep one of them
    .mcp.json:9:82: `disabled` must be `true` or `false`; this is a text
    .mcp.json:10:25: server `blank` has a blank `command`
    .mcp.json:11:30: warning: not used here, in server `waits`: `timeout`
        help: its unit differs between products; write `timeout` below a [mcp.NAME] of the project
    .mcp.json:13:3: `twice` occurs twice here; the first is at .mcp.json:12
        help: keep one of them
    .mcp.json:14:3: warning: `a b` is named `a_b` here
    .mcp.json:15:3: warning: `a.b` is named `a_b` here
    .mcp.json:15:3: `a.b` would be named `a_b` here, like the server at .mcp.json:14
        help: rename one of them
    .mcp.json:16:3: `…` is not a valid name of an MCP server: it contains '…'; use 1 to 32 of the characters a-z, A-Z, 0-9, `_` and `-`, without `__` and not ending in `_`
        help: give it another name
    .mcp.json:17:13: `number` must be an object in `{…}`; this is a number
    "#
    );
}

/// Each usable server: its name, and its program with arguments and environment, or its URL
/// with headers.
fn reached(text: &str) -> String {
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
    let found: String = read(text).servers.iter().map(line).collect();
    format!("{found}{}", problems(text))
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
    config.toml:10:1: warning: not used here, in server `a`: `startup_timeout_sec`
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
