//! `install` and `discover`: configuration files of MCP clients in a temporary home.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{Outcome, toolcrib};

/// A home folder, and a project beside it.
struct Home {
    dir: TempDir,
}

/// A value that no output may contain.
const SECRET: &str = "hush-5e1c88";

impl Home {
    fn new() -> Self {
        let this = Self { dir: TempDir::new().unwrap() };
        this.write("home/.keep", "");
        this.write("work/toolcrib.toml", "policy_default = \"allow\"\n");
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = toolcrib();
        command.args(args).current_dir(self.path("work")).env("HOME", self.path("home"));
        for name in
            ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME"]
        {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Outcome {
        self.command(args).output().unwrap().into()
    }

    /// Runs it for the project beside the home, with success.
    fn install(&self, args: &[&str]) -> Outcome {
        let project = self.path("work");
        let mut all = vec!["install", "--project", project.to_str().unwrap(), "--yes"];
        all.extend(args);
        let outcome = self.run(&all);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        outcome
    }

    fn uninstall(&self, args: &[&str]) -> Outcome {
        let mut all = vec!["install", "--uninstall", "--yes"];
        all.extend(args);
        self.run(&all)
    }

    /// Text without the folder of this test and the path of the program.
    fn plain(&self, text: &str) -> String {
        let program = Path::new(env!("CARGO_BIN_EXE_toolcrib")).canonicalize().unwrap();
        text.replace(program.to_str().unwrap(), "[program]")
            .replace(self.path("").to_str().unwrap().trim_end_matches('/'), "[dir]")
    }

    fn args(&self) -> Value {
        json!(["serve", "--project", self.path("work")])
    }
}

fn program() -> String {
    let program = Path::new(env!("CARGO_BIN_EXE_toolcrib")).canonicalize().unwrap();
    program.to_str().unwrap().to_owned()
}

/// Every client: its file below the home, before and the path of the entry.
const FILES: [(&str, &str, &str); 11] = [
    ("claude-code", ".claude.json", "mcpServers"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
    ("cursor", ".cursor/mcp.json", "mcpServers"),
    ("vscode", ".config/Code/User/mcp.json", "servers"),
    ("windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers"),
    (
        "cline",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        "mcpServers",
    ),
    ("gemini", ".gemini/settings.json", "mcpServers"),
    ("copilot", ".copilot/mcp-config.json", "mcpServers"),
    ("zed", ".config/zed/settings.json", "context_servers"),
    ("opencode", ".config/opencode/opencode.json", "mcp"),
    ("codex", ".codex/config.toml", "mcp_servers"),
];

#[test]
#[cfg(target_os = "linux")]
fn each_client_gets_one_entry_and_the_file_comes_back_byte_for_byte() {
    let home = Home::new();
    for (client, file, key) in FILES {
        let file = format!("home/{file}");
        let is_toml = file.ends_with(".toml");
        let before = if is_toml {
            format!(
                "# mine\nmodel = \"m\"   # kept\n\n[{key}.mine]\ncommand = 'x'\nenv = {{ K = \"{SECRET}\" }}\n"
            )
        } else {
            format!(
                "\u{feff}// mine\r\n{{\r\n\t\"theme\": \"x\", /* kept */\r\n\t\"{key}\": {{\r\n\t\t\"mine\": {{ \"command\": \"x\", \
                 \"env\": {{ \"K\": \"{SECRET}\" }} }},\r\n\t}},\r\n}}\r\n"
            )
        };
        home.write(&file, &before);
        fs::set_permissions(home.path(&file), fs::Permissions::from_mode(0o640)).unwrap();
        let outcome = home.install(&["--client", client]);
        assert!(!outcome.stdout.contains(SECRET), "{client}: {}", outcome.stdout);
        let after = home.read(&file);
        assert!(after.contains("mine") && after.contains("kept"), "{client}: {after}");
        let mode = home.path(&file).metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640, "{client}");
        for line in before.lines() {
            let is_kept = after.contains(line.trim_end_matches(['\r', ',']));
            assert!(is_kept, "{client}: {line:?} is lost in {after}");
        }
        // What was written can be read again, by `--import` of another command.
        let copy = if is_toml { "copy.toml" } else { "copy.json" };
        home.write(copy, after.trim_start_matches('\u{feff}'));
        let copy = home.path(copy);
        let listed = home.run(&["discover", "--json"]);
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let files = listed["files"].as_array().unwrap();
        let found = files.iter().find(|found| found["client"] == client).unwrap();
        let names: Vec<_> = found["servers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|server| (&server["name"], &server["kind"]))
            .collect();
        let (mine, ours, kind) = (json!("mine"), json!("toolcrib"), json!("program"));
        let mine_kind =
            if client == "opencode" { found["servers"][0]["kind"].clone() } else { kind.clone() };
        assert_eq!(names, [(&mine, &mine_kind), (&ours, &kind)], "{client} {}", copy.display());

        let again = home.install(&["--client", client, "--json"]);
        let again: Value = serde_json::from_str(&again.stdout).unwrap();
        assert_eq!(again["outcome"], "present", "{client}");
        assert_eq!(home.read(&file), after, "{client}");

        let undone = home.uninstall(&["--client", client]);
        assert_eq!(undone.code, Some(0), "{client}: {}", undone.stderr);
        assert_eq!(home.read(&file), before, "{client}");
        assert_eq!(home.uninstall(&["--client", client]).code, Some(1), "{client}");
    }
}

#[test]
fn a_new_file_has_the_entry_alone_and_is_removed_again() {
    let home = Home::new();
    for (client, scope, file, entry) in [
        (
            "claude-code",
            "user",
            "home/.claude.json",
            json!({ "mcpServers": { "toolcrib": { "type": "stdio", "command": program(), "args": home.args() } } }),
        ),
        (
            "vscode",
            "project",
            "work/.vscode/mcp.json",
            json!({ "servers": { "toolcrib": { "type": "stdio", "command": program(), "args": home.args() } } }),
        ),
        (
            "copilot",
            "user",
            "home/.copilot/mcp-config.json",
            json!({ "mcpServers": { "toolcrib": { "type": "local", "command": program(), "args": home.args(), "tools": ["*"] } } }),
        ),
        (
            "opencode",
            "project",
            "work/opencode.json",
            json!({ "mcp": { "toolcrib": { "type": "local", "command": [program(), "serve", "--project", home.path("work")], "enabled": true } } }),
        ),
    ] {
        home.install(&["--client", client, "--scope", scope]);
        let text = home.read(file);
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), entry, "{client}");
        assert!(text.ends_with("}\n"), "{text:?}");
        assert_eq!(home.uninstall(&["--client", client, "--scope", scope]).code, Some(0));
        assert!(!home.path(file).exists(), "{client}");
    }
    home.install(&["--client", "codex", "--as", "ann"]);
    insta::assert_snapshot!(home.plain(&home.read("home/.codex/config.toml")), @r#"
    [mcp_servers.toolcrib]
    command = "[program]"
    args = ["serve", "--project", "[dir]/work", "--as", "ann"]
    "#);
}

#[test]
fn a_file_that_has_changed_since_loses_the_entry_only() {
    let home = Home::new();
    home.write("home/.cursor/mcp.json", "{ \"mcpServers\": { \"a\": { \"command\": \"x\" } } }\n");
    home.install(&["--client", "cursor"]);
    let later = home.read("home/.cursor/mcp.json").replace("\"a\"", "\"renamed\"");
    home.write("home/.cursor/mcp.json", &later);
    let outcome = home.uninstall(&["--client", "cursor"]);
    assert!(outcome.stdout.contains("which has changed since"), "{}", outcome.stdout);
    let left: Value = serde_json::from_str(&home.read("home/.cursor/mcp.json")).unwrap();
    assert_eq!(left, json!({ "mcpServers": { "renamed": { "command": "x" } } }));

    // An entry that a person has changed is theirs.
    home.install(&["--client", "cursor"]);
    let later = home.read("home/.cursor/mcp.json").replace("serve", "menu");
    home.write("home/.cursor/mcp.json", &later);
    let outcome = home.uninstall(&["--client", "cursor"]);
    assert_eq!(outcome.code, Some(1));
    assert!(outcome.stderr.contains("remove it by hand"), "{}", outcome.stderr);
    assert_eq!(home.read("home/.cursor/mcp.json"), later);

    // So is one that was there before.
    home.write(
        "home/.gemini/settings.json",
        r#"{ "mcpServers": { "toolcrib": { "command": "mine" } } }"#,
    );
    let project = home.path("work");
    let args = ["install", "--client", "gemini", "--yes", "-p", project.to_str().unwrap()];
    let outcome = home.run(&args);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("--replace"), "{}", outcome.stderr);

    // It is put back with what has changed since.
    let install = [&args[..], &["--replace"]].concat();
    assert_eq!(home.run(&install).code, Some(0));
    let later = home.read("home/.gemini/settings.json").replacen('{', r#"{ "theme": "dark","#, 1);
    home.write("home/.gemini/settings.json", &later);
    assert_eq!(home.run(&[&install[..], &["--as", "ann"]].concat()).code, Some(0));
    let later = home.read("home/.gemini/settings.json").replace("dark", "light");
    home.write("home/.gemini/settings.json", &later);
    let outcome = home.uninstall(&["--client", "gemini"]);
    assert!(outcome.stdout.contains("restored the former entry `toolcrib`"), "{outcome:?}");
    let left: Value = serde_json::from_str(&home.read("home/.gemini/settings.json")).unwrap();
    assert_eq!(
        left,
        json!({ "theme": "light", "mcpServers": { "toolcrib": { "command": "mine" } } })
    );
}

#[test]
fn nothing_is_written_without_consent_or_through_a_link() {
    let home = Home::new();
    let project = home.path("work");
    let project = project.to_str().unwrap();
    let outcome = home.run(&["install", "--client", "windsurf", "-p", project]);
    assert_eq!(outcome.code, Some(2));
    insta::assert_snapshot!(home.plain(&(outcome.stdout + &outcome.stderr)), @r#"
    [dir]/home/.codeium/windsurf/mcp_config.json (a new file)
    + {
    +   "mcpServers": {
    +     "toolcrib": {
    +       "command": "[program]",
    +       "args": ["serve", "--project", "[dir]/work"]
    +     }
    +   }
    + }
    error: the change was not made, because no person can be asked here; add `--yes`
    "#);
    let outcome = home.run(&["install", "--client", "windsurf", "-p", project, "--dry-run"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    assert!(!home.path("home/.codeium").exists());

    home.write("dotfiles/mcp.json", "{}");
    fs::create_dir_all(home.path("home/.cursor")).unwrap();
    symlink(home.path("dotfiles/mcp.json"), home.path("home/.cursor/mcp.json")).unwrap();
    let outcome = home.run(&["install", "--client", "cursor", "-p", project, "--yes"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("--follow-link"), "{}", outcome.stderr);
    assert_eq!(home.read("dotfiles/mcp.json"), "{}");
    home.install(&["--client", "cursor", "--follow-link"]);
    assert!(home.path("home/.cursor/mcp.json").symlink_metadata().unwrap().is_symlink());
    assert!(home.read("dotfiles/mcp.json").contains("serve"));

    for (text, why) in [
        ("{ \"mcpServers\": [] }", "is not a table of servers"),
        ("{ \"mcpServers\": ", "is not valid"),
        ("[]", "is not valid"),
        ("{ \"a\": 1, \"mcpServers\": {}, \"mcpServers\": { \"b\": 1 } }", "in one place only"),
    ] {
        home.write("home/.claude.json", text);
        let outcome = home.run(&["install", "--client", "claude-code", "-p", project, "--yes"]);
        assert_eq!(outcome.code, Some(1), "{text}");
        assert!(outcome.stderr.contains(why), "{text}: {}", outcome.stderr);
        assert_eq!(home.read("home/.claude.json"), text);
    }
    // The gateway would start itself.
    home.write("home/.cursor/own.json", "{ \"mcpServers\": {} }");
    home.write("home/.claude.json", "{ \"mcpServers\": {} }");
    let own = home.path("home/.claude.json");
    let args = ["install", "--client", "claude-code", "--no-project", "--yes", "--import"];
    let outcome = home.run(&[&args[..], &[own.to_str().unwrap()]].concat());
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("Toolcrib itself"), "{}", outcome.stderr);
    let outcome =
        home.run(&["install", "--client", "windsurf", "--scope", "project", "-p", project, "-y"]);
    assert!(outcome.stderr.contains("no configuration of a project"), "{}", outcome.stderr);
}

#[test]
fn discover_names_servers_and_never_values() {
    let home = Home::new();
    home.write(
        "home/.claude.json",
        &json!({ "mcpServers": {
            "git": { "command": SECRET, "args": [SECRET], "env": { "T": SECRET } },
            "docs": { "type": "http", "url": format!("https://{SECRET}.example"), "headers": { "Authorization": SECRET } },
            "sse": { "type": "sse", "url": SECRET },
            "off": { "command": "x", "disabled": true } } })
        .to_string(),
    );
    home.write(
        "home/.codex/config.toml",
        &format!("[mcp_servers.rs]\ncommand = \"{SECRET}\"\nbearer = \"{SECRET}\"\n"),
    );
    home.write("home/.config/zed/settings.json", "{ // none\n \"theme\": \"x\" }");
    home.write(
        "work/.vscode/mcp.json",
        &format!(
            "{{ \"servers\": {{ \"w\": {{ \"command\": \"{SECRET}\" }} }}, \"inputs\": [], }}"
        ),
    );
    home.write("home/.cursor/mcp.json", &format!("{{ \"{SECRET}"));
    let outcome = home.run(&["discover"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let json = home.run(&["discover", "--json"]);
    for text in [&outcome.stdout, &outcome.stderr, &json.stdout, &json.stderr] {
        assert!(!text.contains(SECRET), "{text}");
    }
    insta::assert_snapshot!(home.plain(&(outcome.stdout + &outcome.stderr)), @r"
    Claude Code  [dir]/home/.claude.json
      git  program
      docs  endpoint
      sse  not usable here: server `sse` uses HTTP+SSE (`sse`), which MCP replaced by Streamable HTTP, and which is not supported here
      off  disabled
    Cursor  [dir]/home/.cursor/mcp.json
      this is not JSON: Unterminated string literal
    VS Code, this folder  [dir]/work/.vscode/mcp.json
      w  program
    Zed  [dir]/home/.config/zed/settings.json
      no servers
    Codex  [dir]/home/.codex/config.toml
      rs  program
    to list the tools of a file: toolcrib mcp list --import FILE
    ");
}

#[test]
fn a_program_in_a_cache_is_not_installed() {
    let home = Home::new();
    let program = env!("CARGO_BIN_EXE_toolcrib");
    for cached in ["uv/archive-v0/x/bin/toolcrib", "npm/_npx/x/node_modules/t/bin/toolcrib"] {
        let copy = home.path(cached);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(program, &copy).unwrap();
        let mut command = Command::new(&copy);
        command.args(["install", "--client", "cursor", "-p", ".", "--dry-run"]);
        command.current_dir(home.path("work")).env("HOME", home.path("home"));
        let outcome = Outcome::from(command.output().unwrap());
        assert_eq!(outcome.code, Some(2), "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stderr.contains("`uv tool install`"), "{}", outcome.stderr);
    }
}

#[test]
fn servers_of_a_project_are_added_and_removed_with_its_comments_kept() {
    let home = Home::new();
    let before = "policy_default = \"allow\"  # kept\n\n[mcp.old]   # mine\ncommand = 'x'\n";
    home.write("work/toolcrib.toml", before);
    let mcp = |args: &[&str]| {
        let project = home.path("work");
        let flags = ["mcp", args[0], "--project", project.to_str().unwrap()];
        home.run(&[&flags[..], &args[1..]].concat())
    };
    let token = "Authorization=Bearer ${DOCS_TOKEN:-none}";
    assert_eq!(mcp(&["add", "git", "uvx", "mcp-server-git", "--repository", "."]).code, Some(0));
    let outcome = mcp(&["add", "--set", token, "docs", "https://docs.example/mcp"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    insta::assert_snapshot!(home.read("work/toolcrib.toml"), @r#"
    policy_default = "allow"  # kept

    [mcp.old]   # mine
    command = 'x'

    [mcp.git]
    command = "uvx"
    args = ["mcp-server-git", "--repository", "."]

    [mcp.docs]
    url = "https://docs.example/mcp"
    headers = { Authorization = "Bearer ${DOCS_TOKEN:-none}" }
    "#);
    assert_eq!(mcp(&["add", "git", "other"]).code, Some(2));
    for (words, help) in [
        (&["--env", "K=V", "--", "notes"][..], "`--set NAME=VALUE`"),
        (&["-e", "K=V", "notes"], "`--set NAME=VALUE`"),
        (&["--header=A: b", "https://x.example"], "`--set NAME=VALUE`"),
        (&["--transport", "http", "https://x.example"], "a URL is a server over HTTP"),
        (&["--stdio", "notes"], "follow the program"),
    ] {
        for command in [&["mcp", "add", "notes", "-p", "."][..], &["check-server"]] {
            let outcome = home.run(&[command, words].concat());
            assert_eq!(outcome.code, Some(2), "{words:?}: {}", outcome.stderr);
            assert!(outcome.stderr.contains(help), "{words:?}: {}", outcome.stderr);
        }
    }
    let outcome = mcp(&["add", "--set", &format!("API_KEY={SECRET}"), "x", "run"]);
    assert_eq!(outcome.code, Some(2));
    assert!(!outcome.stderr.contains(SECRET), "{}", outcome.stderr);
    let outcome = mcp(&["get", "docs"]);
    insta::assert_snapshot!(home.plain(&outcome.stdout), @r#"
    declared `[mcp.docs]` in [dir]/work/toolcrib.toml
      url = "https://docs.example/mcp"
      headers = {"Authorization":"Bearer ${DOCS_TOKEN:-none}"}
    "#);
    let present = home.read("work/toolcrib.toml");
    // The project would not load any more.
    assert_eq!(mcp(&["add", "bad", "http://10.0.0.1/", "more"]).code, Some(2));
    assert_eq!(
        mcp(&["add", "--set", "Authorization=${NOT_SET_HERE}", "bad", "https://x.example"]).code,
        Some(2)
    );
    assert_eq!(home.read("work/toolcrib.toml"), present);
    assert_eq!(mcp(&["remove", "git"]).code, Some(0));
    assert_eq!(mcp(&["remove", "docs"]).code, Some(0));
    assert_eq!(home.read("work/toolcrib.toml"), before);
    assert_eq!(mcp(&["remove", "docs"]).code, Some(2));
}

/// The entries of a gateway at a URL: the fields beside the URL and the token, and how it is named.
#[test]
#[cfg(target_os = "linux")]
fn each_client_gets_the_entry_of_a_gateway_at_a_url_and_no_token() {
    let url = "https://tools.example/mcp";
    let headers = |value: &str| json!({ "Authorization": format!("Bearer {value}") });
    let home = Home::new();
    for (client, file, key) in FILES {
        let install = |args: &[&str]| {
            let args = [&["install", "--yes", "--client", client, "--url", url], args].concat();
            home.run(&args)
        };
        let outcome = install(&["--token-variable", "TOOLCRIB_TOKEN"]);
        let expected = match client {
            "claude-code" => {
                json!({ "type": "http", "url": url, "headers": headers("${TOOLCRIB_TOKEN}") })
            }
            "vscode" => {
                json!({ "type": "http", "url": url, "headers": headers("${env:TOOLCRIB_TOKEN}") })
            }
            "cursor" => json!({ "url": url, "headers": headers("${env:TOOLCRIB_TOKEN}") }),
            "windsurf" => json!({ "serverUrl": url, "headers": headers("${env:TOOLCRIB_TOKEN}") }),
            "gemini" => json!({ "httpUrl": url, "headers": headers("${TOOLCRIB_TOKEN}") }),
            "opencode" => json!({
                "type": "remote", "url": url, "headers": headers("{env:TOOLCRIB_TOKEN}"), "enabled": true,
            }),
            "codex" => json!({ "url": url, "bearer_token_env_var": "TOOLCRIB_TOKEN" }),
            _ => {
                let reason = if client == "claude-desktop" { "no servers" } else { "no variables" };
                assert!(outcome.stderr.contains(reason), "{client}: {}", outcome.stderr);
                assert_eq!(
                    (outcome.code, install(&[]).code),
                    (Some(2), Some(i32::from(client == "claude-desktop") * 2))
                );
                match client {
                    "copilot" => json!({ "type": "http", "url": url, "tools": ["*"] }),
                    "cline" => json!({ "type": "streamableHttp", "url": url }),
                    "zed" => json!({ "url": url }),
                    _ => continue,
                }
            }
        };
        let file = format!("home/{file}");
        let text = home.read(&file);
        let servers: Value = match client {
            "codex" => toml_edit::de::from_str(&text).unwrap(),
            _ => serde_json::from_str(&text).unwrap(),
        };
        assert_eq!(servers[key]["toolcrib"], expected, "{client}");
        // The reader of imported files understands it.
        let path = home.path(&file);
        let listed = home
            .command(&[
                "mcp",
                "list",
                "--offline",
                "--no-project",
                "--import",
                path.to_str().unwrap(),
            ])
            .env("TOOLCRIB_TOKEN", SECRET)
            .output()
            .unwrap();
        let listed = Outcome::from(listed);
        assert!(listed.stdout.contains("toolcrib"), "{client}: {listed:?}");
        assert_eq!(home.uninstall(&["--client", client]).code, Some(0), "{client}");
    }
    for (args, problem) in [
        (["--url", "https://u:p@tools.example/mcp"], "a user or a password"),
        (["--url", "https://tools.example/mcp#part"], "has a fragment (`#…`)"),
        (["--url", "https://tools.example/m\tcp"], "the character `\\t` is not valid"),
        (["--url", "https://tools.example/${TOKEN}"], "the character `{` is not valid"),
        (["--url", " https://tools.example/mcp"], "the character ` ` is not valid"),
        (["--url", "https://tools.example/mcp?key=1"], "a parameter may be a secret"),
        (["--token-variable", "T"], "--url"),
    ] {
        let refused = home.run(&[&["install", "--client", "cursor"], &args[..]].concat());
        assert_eq!(refused.code, Some(2), "{args:?}");
        assert!(refused.stderr.contains(problem), "{args:?}: {}", refused.stderr);
    }
    for other in [&["--url", url][..], &["--uninstall"]] {
        for option in [&["--project", "."][..], &["--state", "s"], &["--locked"]] {
            let both =
                home.run(&[&["install", "--yes", "--client", "cursor"], other, option].concat());
            let said = format!("leave out `{}`", option[0]);
            assert_eq!(both.code, Some(2), "{other:?} {option:?}: {both:?}");
            assert!(both.stderr.contains(&said), "{other:?} {option:?}: {}", both.stderr);
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_token_of_a_gateway_at_a_url_is_not_sent_unencrypted() {
    let home = Home::new();
    let install = |url: &str, args: &[&str]| {
        let all = ["install", "--yes", "--replace", "--client", "cursor", "--url", url];
        home.run(&[&all[..], args].concat())
    };
    for host in ["tools.example", "192.168.1.5:8808", "tools.localhost"] {
        let url = format!("http://{host}/mcp");
        let refused = install(&url, &["--token-variable", "TOOLCRIB_TOKEN"]);
        assert_eq!(refused.code, Some(2), "{url}: {refused:?}");
        let problem = "which would send the token unencrypted; use https";
        assert!(refused.stderr.contains(problem), "{url}: {}", refused.stderr);
        assert!(!home.path("home/.cursor/mcp.json").exists(), "{url}");
    }
    for url in ["http://127.0.0.1:8808/mcp", "http://localhost/mcp", "http://[::1]:8808/mcp"] {
        let installed = install(url, &["--token-variable", "TOOLCRIB_TOKEN"]);
        assert_eq!(installed.code, Some(0), "{url}: {installed:?}");
    }
    let without = install("http://tools.example/mcp", &[]);
    assert_eq!(without.code, Some(0), "there is no token: {without:?}");
}

/// A file may have the servers in braces, as a value of one line or of several.
#[test]
#[cfg(target_os = "linux")]
fn servers_in_braces_of_a_toml_file_are_edited_in_their_braces() {
    let url = "https://tools.example/mcp";
    let entry = format!("toolcrib = {{ url = \"{url}\" }}");
    let files = [
        (
            "mcp_servers = { a = { command = \"x\" } }\n",
            format!("{{ a = {{ command = \"x\" }}, {entry} }}"),
        ),
        (
            "mcp_servers = {a={command=\"x\"}} # kept\n",
            format!("{{a={{command=\"x\"}}, {entry}}} # kept"),
        ),
        ("mcp_servers = {}\n", format!("{{ {entry}}}")),
        (
            "mcp_servers = {\n  a = { command = \"x\" } # kept\n}\n",
            format!("{{\n  a = {{ command = \"x\" }}, {entry} # kept\n}}"),
        ),
        ("mcp_servers.a = { command = \"x\" }\n", "\n\n[mcp_servers.toolcrib]".to_owned()),
    ];
    for (before, part) in files {
        let home = Home::new();
        let whole = format!("model = \"m\"\n{before}\n[tui]\ntheme = \"dark\"\n");
        home.write("home/.codex/config.toml", &whole);
        let installed = home.run(&["install", "--yes", "--client", "codex", "--url", url]);
        assert_eq!(installed.code, Some(0), "{before}: {installed:?}");
        let text = home.read("home/.codex/config.toml");
        assert!(text.contains(&part), "{text}");
        let values: Value = toml_edit::de::from_str(&text).unwrap();
        assert_eq!(values["mcp_servers"]["toolcrib"], json!({ "url": url }), "{text}");
        assert_eq!((&values["model"], &values["tui"]["theme"]), (&json!("m"), &json!("dark")));
        // Not the stored file: the entry is taken out of this one.
        home.write("home/.codex/config.toml", &format!("{text}# more\n"));
        assert_eq!(home.uninstall(&["--client", "codex"]).code, Some(0), "{before}");
        assert_eq!(home.read("home/.codex/config.toml"), format!("{whole}# more\n"));
    }
    // Line ends and the byte order mark stay.
    let home = Home::new();
    let whole = "\u{feff}model = \"m\"\r\n[tui]\r\ntheme = \"dark\"\r\n";
    home.write("home/.codex/config.toml", whole);
    assert_eq!(home.run(&["install", "--yes", "--client", "codex", "--url", url]).code, Some(0));
    let text = home.read("home/.codex/config.toml");
    assert!(
        text.starts_with('\u{feff}') && text.matches('\n').count() == text.matches("\r\n").count()
    );
    home.write("home/.codex/config.toml", &format!("{text}# more\r\n"));
    assert_eq!(home.uninstall(&["--client", "codex"]).code, Some(0));
    assert_eq!(home.read("home/.codex/config.toml"), format!("{whole}# more\r\n"));
    for (wrong, problem) in [
        ("mcp_servers = 1\n", "has a key `mcp_servers` that is not a table of servers"),
        ("mcp_servers = { a = 1\n", "is not valid"),
    ] {
        let home = Home::new();
        home.write("home/.codex/config.toml", wrong);
        let refused = home.run(&["install", "--yes", "--client", "codex", "--url", url]);
        assert_eq!(refused.code, Some(1), "{wrong}: {refused:?}");
        assert!(refused.stderr.contains(problem), "{wrong}: {}", refused.stderr);
        assert_eq!(home.read("home/.codex/config.toml"), wrong);
    }
}
