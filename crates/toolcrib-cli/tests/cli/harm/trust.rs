//! Looking at a project started what it declares.

mod changes;
mod edits;
mod own_edits;
mod owners;
mod serve;
mod state;

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::Command,
};

use tempfile::TempDir;

use crate::support::{Outcome, Project, at_terminal, toolcrib};

/// A found project, and a user without any consent.
struct Found {
    project: Project,
    config: TempDir,
}

impl Found {
    fn of(files: &[(&str, &str)]) -> Self {
        Self { project: Project::of(files), config: TempDir::new().unwrap() }
    }

    /// One with a server, a tool and a folder below it.
    fn with_server() -> Self {
        Self::of(&[("toolcrib.toml", SERVER), ("below/here.txt", "")])
    }

    fn path(&self) -> PathBuf {
        self.project.path().canonicalize().unwrap()
    }

    /// The program in a folder below the project, which is not named.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolcrib();
        let below = self.path().join("below");
        fs::create_dir_all(&below).unwrap();
        command.args(args).current_dir(below).env("XDG_CONFIG_HOME", self.config.path());
        command.env("SPY_KEY", "hush-4f1c9d2e");
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).output().unwrap().into()
    }

    fn named(&self, args: &[&str]) -> Outcome {
        let mut command = self.command(args);
        command.arg("-p").arg(self.path()).output().unwrap().into()
    }

    fn trust(&self) {
        let trusted = self.run(&["trust"]);
        assert_eq!(trusted.code, Some(0), "{}", trusted.stderr);
    }

    /// Whether the server or the tool was started since the last call.
    fn was_started(&self) -> bool {
        fs::remove_file(self.path().join("below/started")).is_ok()
    }
}

const SERVER: &str = r#"
policy_default = "allow"

[mcp.spy]
command = "sh"
args = ["-c", "touch below/started", "two words"]
env = { LD_PRELOAD = "x.so", KEY = "secret:SPY" }
on_failure = "omit"

[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "touch"
args = ["below/started"]
inherit_env = ["SPY_TOO"]

[secrets]
SPY = { env = "SPY_KEY" }
"#;

const LOOKING: [&[&str]; 9] = [
    &["menu"],
    &["menu", "--json"],
    &["tools"],
    &["explain", "look"],
    &["lint"],
    &["mcp", "list"],
    &["check"],
    &["skills"],
    &["models"],
];

#[test]
fn looking_at_a_found_project_started_its_program() {
    let found = Found::with_server();
    for args in LOOKING {
        let looked = found.run(args);
        assert!(!found.was_started(), "{args:?}");
        assert!(matches!(looked.code, Some(0 | 1)), "{args:?}: {}", looked.stderr);
        let command = format!("toolcrib trust {}", found.path().display());
        assert!(looked.stderr.contains(&command), "{args:?}: {}", looked.stderr);
        // One line about it, and the actions only on request.
        let lines = looked.stderr.lines().filter(|line| line.starts_with("note:")).count();
        assert_eq!(lines, 1, "{args:?}: {}", looked.stderr);
        assert!(!looked.stderr.contains("starts: sh"), "{args:?}: {}", looked.stderr);
        let looked = found.run(&[args, &["-v"]].concat());
        assert!(looked.stderr.contains("starts: sh"), "{args:?}: {}", looked.stderr);
        assert!(!found.was_started(), "{args:?}");
    }
    // The server's tools are not there, for this reason; declared ones are.
    let menu = found.run(&["menu", "--why"]);
    assert!(menu.stdout.contains("look") && menu.stdout.contains("not trusted"), "{}", menu.stdout);
    // A named project is trusted, and inspecting it starts the server.
    found.named(&["mcp", "list"]);
    assert!(found.was_started());
    found.trust();
    found.run(&["mcp", "list"]);
    assert!(found.was_started());
}

#[test]
fn looking_offline_started_and_dialed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let dials = format!(
        r#"{SERVER}
[mcp.far]
url = "{url}/mcp"
[hub.tools]
url = "{url}/tools"
allow_addresses = ["127.0.0.1/32"]
key = []
ttl = "1s"
call = {{ method = "POST", url = "{url}/{{tool}}", body = "{{arguments}}" }}
[model.own]
vendor = "openai"
model = "m"
base_url = "{url}/v1"
key = "secret:SPY"
"#
    );
    let found = Found::of(&[("toolcrib.toml", &dials)]);
    let dialed = || listener.accept().is_ok();
    for args in LOOKING {
        let looked = found.run(args);
        assert!(!dialed() && !found.was_started(), "{args:?}: not trusted");
        assert!(matches!(looked.code, Some(0 | 1)), "{args:?}: {}", looked.stderr);
        let args = [args, &["--offline"]].concat();
        let looked = found.named(&args);
        assert!(!dialed() && !found.was_started(), "{args:?}: offline");
        assert!(matches!(looked.code, Some(0 | 1)), "{args:?}: {}", looked.stderr);
    }
    let refused = found.run(&["run", "--model", "own", "hello"]);
    assert_eq!((refused.code, dialed()), (Some(2), false), "{}", refused.stderr);
}

#[test]
fn a_found_project_ran_without_being_asked_about() {
    let found = Found::with_server();
    let uses: [&[&str]; 5] = [
        &["call", "look"],
        &["run", "hello"],
        &["serve"],
        &["mcp", "test", "spy"],
        &["mcp", "call", "spy", "x"],
    ];
    for args in uses {
        let refused = found.run(args);
        assert_eq!(refused.code, Some(2), "{args:?}: {}", refused.stderr);
        assert!(!found.was_started(), "{args:?}");
        for shown in [
            "sh -c \"touch below/started\" \"two words\"",
            "LD_PRELOAD=x.so, KEY\n",
            "SPY_KEY",
            "SPY_TOO",
            "touch below/started",
            &format!("toolcrib trust {}", found.path().display()),
        ] {
            assert!(refused.stderr.contains(shown), "{args:?}: {shown}: {}", refused.stderr);
        }
    }
    let refused = found.run(&["call", "look", "--json"]);
    assert!(refused.stdout.contains("not_trusted"), "{}", refused.stdout);
    assert_eq!(found.named(&["call", "look"]).code, Some(0));
    assert!(found.was_started());
}

#[test]
fn a_project_without_authority_needs_no_trust() {
    let found = Found::of(&[]);
    Project::copy_desk(&found.path());
    let menu = found.run(&["menu"]);
    assert_eq!((menu.code, menu.stderr.contains("trust")), (Some(0), false), "{}", menu.stderr);
    let call = found.run(&["call", "list_charges", "order_id=1042"]);
    assert_eq!(call.code, Some(0), "{}", call.stderr);
    assert_eq!(fs::read_dir(found.config.path()).unwrap().count(), 0);
}

#[test]
fn the_terminal_was_not_asked() {
    let found = Found::with_server();
    for (answer, code) in [("\n", 2), ("n\n", 2), ("", 2), ("y\n", 0)] {
        let (got, said) = at_terminal(&found.command(&["call", "look"]), "[y/N]", answer);
        assert_eq!(got, Some(code), "{answer:?}: {said}");
        assert!(said.contains("sh -c \"touch below/started\""), "{said}");
        assert_eq!(found.was_started(), code == 0, "{answer:?}: {said}");
    }
    // It asks once.
    assert_eq!(found.run(&["call", "look"]).code, Some(0));
}

#[test]
fn the_text_of_a_hostile_project_drove_the_terminal() {
    let hostile = r#"
policy_default = "allow"
[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "touch"
args = ["\u001b[2K\rstarts: ls\n  starts: ls", "\u202eevil", "\u009b1A"]
"#;
    let found = Found::of(&[("toolcrib.toml", hostile)]);
    for args in [&["call", "look"] as &[_], &["check", "-v"], &["trust"]] {
        let said = found.run(args).stderr;
        assert!(said.contains("\\u{1b}[2K\\rstarts: ls\\n"), "{args:?}: {said}");
        assert!(!said.contains("\n  starts: ls"), "{args:?}: {said}");
        assert!(said.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{args:?}: {said:?}");
    }
}

#[test]
fn a_command_line_in_an_imported_file_was_asked_about_as_one_program() {
    let servers = r#"{ "mcpServers": {
        "words": { "command": "npx -y @scope/server@1.2.3", "args": ["two words"] },
        "whole": { "command": "./my server" } } }"#;
    let found = Found::of(&[
        ("toolcrib.toml", "policy_default = \"allow\"\nmcp_files = [\".mcp.json\"]\n"),
        (".mcp.json", servers),
        ("my server", "#!/bin/sh\n"),
    ]);
    let (_, asked) = at_terminal(&found.command(&["call", "mcp__words__a"]), "[y/N]", "n\n");
    let shown = found.run(&["trust"]).stderr;
    for said in [asked, shown] {
        assert!(said.contains("starts: npx -y @scope/server@1.2.3 \"two words\""), "{said}");
        // A file of that name is one program.
        assert!(said.contains("my server\""), "{said}");
    }
}

#[test]
fn check_did_not_warn_of_programs_that_may_change_any_day() {
    let declared = |command: &str, args: &str| {
        format!("policy_default = \"allow\"\n[mcp.x]\ncommand = '{command}'\nargs = {args}\n")
    };
    let found = Found::of(&[("toolcrib.toml", &declared("npx", r#"["-y", "@scope/server"]"#))]);
    let told = "MCP server `x`: @scope/server has no fixed version";
    let checked = found.named(&["check"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
    assert!(checked.stderr.contains(told), "{}", checked.stderr);
    let checked = found.named(&["check", "--json"]).stdout;
    assert!(checked.contains(told), "{checked}");
    let trusted = found.run(&["trust"]).stderr;
    assert!(trusted.contains("not pinned: @scope/server "), "{trusted}");
    let pinned = declared("uvx", r#"["--from", "tool==1.2.3", "server"]"#);
    let checked = Found::of(&[("toolcrib.toml", &pinned)]).named(&["check"]);
    assert!(!checked.stderr.contains("no fixed version"), "{}", checked.stderr);
}

#[test]
fn values_that_decide_what_code_runs_were_not_shown() {
    let project = r#"
mcp_files = ["servers.json"]
policy_default = "allow"
[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "true"
env = { PATH = "./bin:/usr/bin", NODE_OPTIONS = "--require ./x.js", NOTE = "plain", API_KEY = "abcdefgh1" }
"#;
    let servers = r#"{ "mcpServers": { "a": { "command": "true",
        "env": { "PYTHONPATH": "lib", "TOKEN": "abcdefgh2" } } } }"#;
    let found = Found::of(&[("toolcrib.toml", project), ("servers.json", servers)]);
    let told = found.run(&["trust"]).stderr;
    let shown =
        ["PATH=./bin:/usr/bin", "NODE_OPTIONS=--require ./x.js", "NOTE", "PYTHONPATH=lib", "TOKEN"];
    for shown in shown {
        assert!(told.contains(shown), "{shown}: {told}");
    }
    assert!(!told.contains("plain") && !told.contains("abcdefgh"), "{told}");
}

/// The files below a folder, with their modes.
fn modes(dir: &Path) -> Vec<(PathBuf, u32)> {
    use std::os::unix::fs::PermissionsExt as _;
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o7777;
        found.push((path.clone(), mode));
        if path.is_dir() {
            found.extend(modes(&path));
        }
    }
    found
}
