//! Trusted files changed, and were still used.

use std::{fs, os::unix::fs::PermissionsExt as _};

use super::{Found, modes};

pub(super) const TOOL: &str = r#"
policy_default = "allow"
[[tool]]
kind = "command"
name = "look"
description = "Looks."
program = "touch"
args = ["below/started"]
"#;

#[test]
fn a_change_was_not_asked_about() {
    let project = format!(
        "mcp_files = [\".mcp.json\"]\n{TOOL}\n[plugin.crm]\npath = \"crm\"\nprograms = true\n\
         [[tool]]\nkind = \"command\"\nname = \"script\"\ndescription = \"Runs.\"\n\
         program = \"./script\"\n[[tool]]\nkind = \"command\"\nname = \"py\"\n\
         description = \"Runs.\"\nprogram = \"python3\"\nargs = [\"tool.py\"]\n[[tool]]\n\
         kind = \"command\"\nname = \"sh\"\ndescription = \"Runs.\"\nprogram = \"sh\"\n\
         args = [\"-e\", \"lib.inc\"]\n[agent]\n\
         model = \"script:model.toml\"\nsystem_file = \"system.md\"\n"
    );
    let found = Found::of(&[
        ("toolcrib.toml", &project),
        (".mcp.json", r#"{ "mcpServers": { "j": { "command": "true", "disabled": true } } }"#),
        ("crm/plugin.toml", "# nothing\n"),
        ("crm/skills/x/SKILL.md", "---\nname: x\ndescription: X.\n---\nX.\n"),
        ("script", "#!/bin/sh\n"),
        ("tool.py", "pass\n"),
        ("lib.inc", "true\n"),
        ("model.toml", "[[rule]]\ntext = \"hello\"\n"),
        ("system.md", "Be kind.\n"),
    ]);
    fs::set_permissions(found.path().join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    let is_trusted = || found.run(&["call", "look"]);
    for (file, part, other) in [
        ("toolcrib.toml", "[agent]", "[limits]\nmax_calls = 5\n[agent]"),
        (".mcp.json", "\"true\"", "\"false\""),
        ("crm/plugin.toml", "# nothing", "[mcp.x]\ncommand = \"true\""),
        ("crm/skills/x/SKILL.md", "name: x", "name: x\nallowed-tools: look"),
        ("script", "sh", "sh\n"),
        ("tool.py", "pass", "exit"),
        ("lib.inc", "true", "false"),
        ("model.toml", "hello", "goodbye"),
    ] {
        found.trust();
        let before = is_trusted();
        assert_eq!(before.code, Some(0), "{file}: {}", before.stderr);
        let path = found.path().join(file);
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, text.replace(part, other)).unwrap();
        found.was_started();
        let changed = is_trusted();
        assert_eq!(changed.code, Some(2), "{file}: {}", changed.stderr);
        assert!(changed.stderr.contains("has changed since you trusted it"), "{}", changed.stderr);
        assert!(changed.stderr.contains(file), "{file} is shown: {}", changed.stderr);
        assert!(!found.was_started(), "{file}");
        assert!(found.run(&["menu"]).stderr.contains("has changed"), "{file}");
        fs::write(&path, text).unwrap();
        assert_eq!(is_trusted().code, Some(0), "{file}: it is as it was trusted");
    }
    assert_eq!(found.run(&["trust", "--remove"]).code, Some(0));
    assert_eq!(is_trusted().code, Some(2));
}

#[test]
fn a_record_that_others_could_write_was_believed() {
    let found = Found::with_server();
    found.trust();
    for (path, mode) in modes(found.config.path()) {
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{}", path.display());
    }
    assert!(found.run(&["trust", "--list"]).stdout.contains(&*found.path().to_string_lossy()));
    let is_trusted = || found.run(&["call", "look"]).code == Some(0);
    assert!(is_trusted());
    for (path, mode) in modes(found.config.path()) {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode | 0o022)).unwrap();
        assert!(!is_trusted(), "{}", path.display());
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    // The record is of this folder.
    let other = Found::with_server();
    let copied = std::process::Command::new("cp")
        .arg("-rT")
        .args([found.config.path(), other.config.path()])
        .status()
        .unwrap();
    assert!(copied.success());
    assert_eq!(other.run(&["call", "look"]).code, Some(2));
    // A folder in the project is none of the user's.
    let mut inside = found.command(&["call", "look"]);
    fs::create_dir(found.path().join("below/config")).unwrap();
    let copied = std::process::Command::new("cp")
        .arg("-rT")
        .arg(found.config.path())
        .arg(found.path().join("below/config"))
        .status()
        .unwrap();
    assert!(copied.success());
    inside.env("XDG_CONFIG_HOME", "config").env_remove("HOME");
    assert_eq!(inside.output().unwrap().status.code(), Some(2));
}

#[test]
fn a_record_of_an_earlier_version_was_believed() {
    let found = Found::with_server();
    found.trust();
    let (record, _) = modes(found.config.path())
        .into_iter()
        .find(|(path, _)| path.extension().is_some_and(|extension| extension == "json"))
        .unwrap();
    let path = found.path().display().to_string();
    let digest = "0".repeat(64);
    for (text, said) in [
        (format!(r#"{{"path":{path:?},"digest":"{digest}"}}"#), "by another version"),
        (format!(r#"{{"path":{path:?},"facts":{{"actions":[]}}}}"#), "by another version"),
        (format!(r#"{{"path":{path:?}}}"#), "you have not trusted it"),
        ("{}".to_owned(), "you have not trusted it"),
    ] {
        fs::write(&record, &text).unwrap();
        let refused = found.run(&["call", "look"]);
        assert_eq!((refused.code, found.was_started()), (Some(2), false), "{text}");
        assert!(refused.stderr.contains(said), "{text}: {}", refused.stderr);
        assert!(refused.stderr.contains("starts: sh -c"), "{text}: {}", refused.stderr);
    }
    found.trust();
    assert_eq!(found.run(&["call", "look"]).code, Some(0));
}
