//! Projects that are begun.

use std::fs;

use serde_json::Value;

use crate::support::toolcrib;

#[test]
fn begun_projects_run_at_once() {
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
    for flag in ["--project", "--state"] {
        let output = toolcrib()
            .args(["init", "new", flag, "elsewhere"])
            .current_dir(dir.path())
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(flag) && said.contains("DIR"), "{said}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    let before = toolcrib().args(["-p", "elsewhere", "init", "new"]).output().unwrap();
    assert_eq!(before.status.code(), Some(2));
    let help =
        |args: &[&str]| String::from_utf8(toolcrib().args(args).output().unwrap().stdout).unwrap();
    for flag in ["--project", "--state"] {
        assert!(!help(&["init", "--help"]).contains(flag));
        assert!(help(&["check", "--help"]).contains(flag) && help(&["--help"]).contains(flag));
    }
}
