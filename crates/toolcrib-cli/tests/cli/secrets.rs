//! The user's vault, and projects that read it.

use std::{fs, io::Write as _, os::unix::fs::PermissionsExt as _, path::Path, process::Stdio};

use crate::support::{Outcome, Project, toolcrib};

const VALUE: &str = "hush-77b0c1d2";

const PROJECT: &str = r#"
[secrets]
KEY = { vault = "weather" }
[[tool]]
kind = "command"
name = "length"
description = "The length of the key."
program = "printenv"
args = ["KEY"]
env = { KEY = "secret:KEY" }
inherit_env = ["PATH"]
[tool.params]
"#;

fn secret(config: &Path, args: &[&str], input: &str) -> Outcome {
    let mut command = toolcrib();
    command.arg("secret").args(args).env("XDG_CONFIG_HOME", config);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap().into()
}

#[test]
fn a_secret_of_the_vault_reaches_its_tool_and_no_output() {
    let project = Project::of(&[("toolcrib.toml", PROJECT)]);
    let config = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| -> Outcome {
        project.command(args).env("XDG_CONFIG_HOME", config.path()).output().unwrap().into()
    };
    let check = run(&["check"]);
    let missing = "the vault entry `weather` is not set; run `toolcrib secret set weather`";
    let shown = format!("{}{}", check.stdout, check.stderr);
    assert!(shown.contains(missing), "{shown}");
    let refused = run(&["call", "length"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");

    let set = secret(config.path(), &["set", "weather"], &format!("{VALUE}\n"));
    assert_eq!((set.code, &*set.stderr), (Some(0), "weather is stored\n"), "{set:?}");
    let list = secret(config.path(), &["list"], "");
    assert_eq!(list.stdout, "weather\n");
    let file = config.path().join("toolcrib/vault/weather");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let called = run(&["call", "length"]);
    assert_eq!(called.code, Some(0), "{called:?}");
    assert!(called.stdout.contains("[redacted") && !called.stdout.contains(VALUE), "{called:?}");

    // A file that others can read is not used.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let refused = run(&["call", "length"]);
    assert_ne!(refused.code, Some(0), "{refused:?}");
    let check = run(&["check"]);
    let shown = format!("{}{}", check.stdout, check.stderr);
    assert!(shown.contains("chmod 600"), "{shown}");

    let removed = secret(config.path(), &["remove", "weather"], "");
    assert_eq!(removed.code, Some(0), "{removed:?}");
    let again = secret(config.path(), &["remove", "weather"], "");
    assert_eq!(again.code, Some(2), "{again:?}");
    assert_eq!(secret(config.path(), &["list"], "").stdout, "");
}

#[test]
fn bad_names_and_values_are_refused() {
    let config = tempfile::tempdir().unwrap();
    for name in ["../x", ".x", "a b", "ä"] {
        let set = secret(config.path(), &["set", name], "value-1234");
        assert_eq!(set.code, Some(2), "{name}: {set:?}");
    }
    let short = secret(config.path(), &["set", "short"], "abc\n");
    assert_eq!(short.code, Some(2), "{short:?}");
    assert!(short.stderr.contains("fewer than 4 characters") && !short.stderr.contains("abc"));
}
