//! The candidates that shells offer.

use std::{env, ffi::OsString, fs, path::Path, process::Command};

use tempfile::TempDir;

use crate::{
    mcp_server,
    support::{Project, config_home, toolcrib},
    terminal::Terminal,
};

/// The script of a shell.
fn script(shell: &str) -> String {
    let output = toolcrib().args(["completions", shell]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A shell that finds the program, in a folder that is also the home of its user.
fn shell(name: &str, folder: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_toolcrib")).parent().unwrap();
    let path = env::var_os("PATH").unwrap();
    let folders = [program.to_owned()].into_iter().chain(env::split_paths(&path));
    let path: OsString = env::join_paths(folders).unwrap();
    let mut shell = Command::new(name);
    shell.current_dir(folder).env("HOME", folder).env("PATH", path);
    shell.env("XDG_CONFIG_HOME", config_home());
    shell
}

/// The candidates of bash for the last word of a command line.
fn completed(folder: &Path, line: &str) -> Vec<String> {
    let script = script("bash");
    // Bash ends a word at `=` too, and at `@`, of which its program completes the whole.
    let spaced = line.replace('=', " = ").replace('@', "@ ");
    let word = match line.rsplit_once([' ', '=']) {
        Some((_, last)) => last,
        None => line,
    };
    let asking = format!(
        "{script}\nIFS=' ' read -ra COMP_WORDS <<< '{spaced}'\n[[ '{line}' == *' ' ]] && COMP_WORDS+=('')\n\
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; COMP_LINE='{line}'\n\
         _clap_complete_toolcrib toolcrib '{word}' before\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let output = shell("bash", folder).args(["--norc", "-c", &asking]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let found = String::from_utf8(output.stdout).unwrap();
    found.lines().map(|line| line.trim_end().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn bash_completes_commands_options_and_the_names_of_a_project() {
    let project = Project::copy_of("support-desk");
    let desk = project.path();
    assert_eq!(completed(desk, "toolcrib re"), ["resume", "replay"]);
    assert_eq!(completed(desk, "toolcrib run --rec"), ["--record"]);
    assert_eq!(completed(desk, "toolcrib explain track_"), ["track_shipment"]);
    assert_eq!(completed(desk, "toolcrib run --skill ship"), ["shipping"]);
    let elsewhere = TempDir::new().unwrap();
    let named = format!("toolcrib explain -p {} track_", desk.display());
    assert_eq!(completed(elsewhere.path(), &named), ["track_shipment"]);
    assert!(completed(elsewhere.path(), "toolcrib explain track_").is_empty());
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(script(shell).contains("TOOLCRIB_COMPLETE"), "{shell}");
    }
}

#[test]
fn bash_completes_the_value_after_an_equals_sign() {
    let project = Project::copy_of("support-desk");
    let desk = project.path();
    assert_eq!(completed(desk, "toolcrib run --skill=ship"), ["shipping"]);
    assert!(completed(desk, "toolcrib run --skill=").contains(&"shipping".to_owned()));
    let elsewhere = TempDir::new().unwrap();
    let named = format!("toolcrib explain --project={} track_", desk.display());
    assert_eq!(completed(elsewhere.path(), &named), ["track_shipment"]);
}

#[test]
fn a_project_in_the_home_folder_is_completed_and_read() {
    let home = TempDir::new().unwrap();
    Project::copy_desk(&home.path().join("desk"));
    fs::write(home.path().join("desktop.txt"), "").unwrap();
    let home = home.path();
    assert_eq!(completed(home, "toolcrib run -p ~/de"), ["~/desk/"]);
    assert_eq!(completed(home, "toolcrib explain -p ~/desk track_"), ["track_shipment"]);
    assert_eq!(completed(home, "toolcrib run -p ~/desk --skill ship"), ["shipping"]);
}

#[test]
fn a_file_name_is_no_command_for_bash() {
    let folder = TempDir::new().unwrap();
    for name in ["n$(touch ran).txt", "p;touch ran", "it's", "a b"] {
        fs::write(folder.path().join(name), "").unwrap();
    }
    let completed =
        |word: &str| completed(folder.path(), &format!("toolcrib run x --attach {word}"));
    assert_eq!(completed("n"), [r"n\$\(touch\ ran\).txt"]);
    assert_eq!(completed("p"), [r"p\;touch\ ran"]);
    assert_eq!(completed("i"), [r"it\'s"]);
    assert_eq!(completed("a"), [r"a\ b"]);
}

#[test]
fn zsh_does_not_escape_the_tilde_of_a_home_folder() {
    if Command::new("zsh").arg("--version").output().is_err() {
        return toolcrib_skip::skip(
            "zsh is not installed; install it, such as by `apt-get install zsh`",
        );
    }
    let home = TempDir::new().unwrap();
    Project::copy_desk(&home.path().join("desk"));
    fs::write(home.path().join("_toolcrib"), script("zsh")).unwrap();
    let mut command = shell("zsh", home.path());
    command.args(["-f", "-i"]);
    let mut terminal = Terminal::start(&command, 200);
    terminal.send("PS1='re''ady> '; fpath=($HOME $fpath); autoload -U compinit; compinit -u -D\n");
    terminal.wait_for("ready> ");
    terminal.send("toolcrib run -p ~/de\t");
    terminal.wait_for("desk/");
    terminal.send("\u{15}toolcrib explain -p ~/desk track_\t");
    terminal.wait_for("track_shipment");
    terminal.send("\u{15}exit\n");
    let (_, _, raw) = terminal.end();
    assert!(!raw.contains('\\'), "{raw}");
}

#[test]
fn sessions_and_runs_are_completed_for_their_owner() {
    let project = Project::copy_of("support-desk");
    let desk = project.path();
    for words in [&["--session", "refunds"][..], &["--session", "rest", "--as", "ann"], &[]] {
        assert_eq!(project.toolcrib(&[&["run", "hello"], words].concat()).code, Some(0));
    }
    let list = project.json(&["sessions"]).1;
    let id = list["sessions"][0]["id"].as_str().unwrap();
    assert_eq!(completed(desk, "toolcrib show ").first().map(String::as_str), Some(id));
    for command in
        ["show", "resume", "export", "follow", "cancel", "sessions delete", "run --session"]
    {
        assert_eq!(completed(desk, &format!("toolcrib {command} re")), ["refunds"], "{command}");
    }
    assert_eq!(completed(desk, "toolcrib show --as ann re"), ["rest"]);
    assert_eq!(completed(desk, "toolcrib trace re"), ["refunds/1"]);
    assert_eq!(completed(desk, "toolcrib replay --as ann re"), ["rest/1"]);
    assert_eq!(completed(desk, &format!("toolcrib trace {id}")), [format!("{id}/1")]);
}

#[test]
fn approvals_that_wait_and_grants_are_completed() {
    let project = crate::approvals::project();
    let folder = project.path();
    assert!(completed(folder, "toolcrib approve ").iter().all(|word| word.starts_with('-')));
    assert_eq!(project.toolcrib(&["run", "Pay nine"]).code, Some(4));
    let waiting = project.json(&["approvals"]).1;
    let id = waiting["approvals"][0]["id"].as_str().unwrap();
    for command in ["approve", "deny", "approvals show"] {
        let first = completed(folder, &format!("toolcrib {command} "));
        assert_eq!(first.first().map(String::as_str), Some(id), "{command}");
    }
    assert!(!completed(folder, "toolcrib approvals revoke ").contains(&id.to_owned()));
    assert_eq!(project.toolcrib(&["approve", id, "--for", "1h"]).code, Some(0));
    assert!(!completed(folder, "toolcrib approve ").contains(&id.to_owned()));
    let grants = project.json(&["approvals"]).1;
    let grant = grants["grants"][0]["id"].as_str().unwrap();
    assert!(completed(folder, "toolcrib approvals revoke ").contains(&grant.to_owned()));
}

#[test]
fn models_and_vendors_are_completed() {
    let file = "policy_default = 'allow'\n[model.own]\nvendor = 'ollama'\nmodel = 'qwen3'\n";
    let project = Project::of(&[("toolcrib.toml", file)]);
    let folder = project.path();
    assert_eq!(completed(folder, "toolcrib models remove ol"), ["ollama"]);
    assert_eq!(completed(folder, "toolcrib models add anth"), ["anthropic"]);
    assert_eq!(completed(folder, "toolcrib run --model=o"), ["own", "openai", "ollama"]);
    assert_eq!(completed(folder, "toolcrib resume --model gem"), ["gemini"]);
    let elsewhere = TempDir::new().unwrap();
    assert_eq!(completed(elsewhere.path(), "toolcrib chat --model o"), ["openai", "ollama"]);
}

#[test]
fn files_are_completed_after_an_at_sign_and_for_the_tools_without_a_project() {
    let folder = TempDir::new().unwrap();
    fs::create_dir(folder.path().join("notes")).unwrap();
    fs::write(folder.path().join("note.txt"), "").unwrap();
    let folder = folder.path();
    for command in ["run", "submit", "call tool", "mcp call server tool"] {
        let found = completed(folder, &format!("toolcrib {command} @no"));
        assert_eq!(found, ["@note.txt", "@notes/"], "{command}");
    }
    assert!(completed(folder, "toolcrib run no").is_empty());
    assert_eq!(completed(folder, "toolcrib run --with no"), ["note.txt", "notes/"]);
    assert_eq!(completed(folder, "toolcrib chat --with fi"), ["files"]);
}

#[test]
fn servers_and_their_pinned_tools_are_completed_without_a_start() {
    let file = "policy_default = 'allow'\n[mcp.shop]\ncommand = 'python3'\nargs = ['server.py']\n\
                [[tool]]\nkind = 'command'\nname = 'own'\ndescription = 'Prints.'\nprogram = 'true'\n";
    let schema = r#"{ "type": "object", "properties": { "n": { "type": "integer" } } }"#;
    let tool = |name: &str| {
        format!(r#"{{ "name": "{name}", "description": "Pays.", "inputSchema": {schema} }}"#)
    };
    let tools = format!(
        r#"{{ "tools": [{}, {}, {}], "prompts": [] }}"#,
        tool("pay"),
        tool("other"),
        tool("$(touch x)")
    );
    let project = Project::of(&[
        ("toolcrib.toml", file),
        ("server.py", mcp_server::SERVER),
        ("tools.json", &tools),
    ]);
    let folder = project.path();
    let values = |line: &str| {
        let mut found = completed(folder, line);
        found.retain(|word| !word.starts_with('-'));
        found
    };
    for command in ["mcp call", "mcp test", "mcp get", "mcp remove", "mcp logs", "lock diff"] {
        assert_eq!(values(&format!("toolcrib {command} ")), ["shop"], "{command}");
    }
    assert!(values("toolcrib mcp call shop ").is_empty(), "its tools are not known yet");
    let accepted = project.toolcrib(&["lock", "accept", "--yes"]);
    assert_eq!(accepted.code, Some(0), "{}", accepted.stderr);
    project.write("server.py", "raise SystemExit(1)");
    for command in ["mcp call", "lock accept"] {
        assert_eq!(values(&format!("toolcrib {command} shop ")), ["other", "pay"], "{command}");
    }
    assert!(values("toolcrib mcp call another ").is_empty());
    assert_eq!(values("toolcrib call "), ["own"]);
}
