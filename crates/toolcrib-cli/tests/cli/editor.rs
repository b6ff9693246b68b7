//! Texts for shells, manuals and editors.

use std::{env, fs, path::Path, process::Command};

use serde_json::Value;

use crate::support::{Project, config_home, toolcrib};

fn printed(args: &[&str]) -> String {
    let output = toolcrib().args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The candidates of bash for the last word of a command line.
fn completed(folder: &Path, line: &str) -> Vec<String> {
    let script = printed(&["completions", "bash"]);
    // As bash splits a line, which stops a word at `=` and `:` too.
    let spaced = line.replace('=', " = ").replace(':', " : ");
    let is_split = line.ends_with(['=', ':']);
    let word = if is_split { "" } else { "${COMP_WORDS[COMP_CWORD]}" };
    let asking = format!(
        "{script}\nIFS=' ' read -ra COMP_WORDS <<< '{spaced}'\n[[ '{line}' == *' ' ]] && COMP_WORDS+=('')\n\
         COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; COMP_LINE='{line}'\n\
         _clap_complete_toolcrib toolcrib \"{word}\" before\n\
         printf '%s\\n' \"${{COMPREPLY[@]}}\""
    );
    let program = Path::new(env!("CARGO_BIN_EXE_toolcrib")).parent().unwrap();
    let path = format!("{}:{}", program.display(), env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &asking]).current_dir(folder).env("PATH", path);
    bash.env("XDG_CONFIG_HOME", config_home()).env("HOME", folder);
    let output = bash.output().unwrap();
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
    let elsewhere = tempfile::TempDir::new().unwrap();
    let named = format!("toolcrib explain -p {} track_", desk.display());
    assert_eq!(completed(elsewhere.path(), &named), ["track_shipment"]);
    assert!(completed(elsewhere.path(), "toolcrib explain track_").is_empty());

    assert_eq!(project.toolcrib(&["run", "hello"]).code, Some(0));
    let session = project.json(&["sessions"]).1["sessions"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(completed(desk, "toolcrib show ").first(), Some(&session));
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(printed(&["completions", shell]).contains("TOOLCRIB_COMPLETE"), "{shell}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let page = printed(&["man"]);
    assert!(page.contains(".TH toolcrib 1") && page.contains("Exit codes"), "{page}");
    let dir = tempfile::TempDir::new().unwrap();
    let folder = dir.path().join("man/man1");
    printed(&["man", "--dir", folder.to_str().unwrap()]);
    let pages: Vec<_> = fs::read_dir(&folder).unwrap().map(|page| page.unwrap()).collect();
    let names: Vec<_> = pages.iter().map(|page| page.file_name().into_string().unwrap()).collect();
    for name in ["toolcrib.1", "toolcrib-run.1", "toolcrib-mcp-list.1", "toolcrib-completions.1"] {
        assert!(names.iter().any(|known| known == name), "{names:?}");
    }
    let run = fs::read_to_string(folder.join("toolcrib-run.1")).unwrap();
    assert!(run.contains("\\-\\-record") && run.contains("Examples"), "{run}");
}

#[test]
fn the_schema_is_printed_with_json_and_without() {
    let schema: Value = serde_json::from_str(&printed(&["schema"])).unwrap();
    assert_eq!(schema["properties"]["agent"]["additionalProperties"], false);
    assert_eq!(serde_json::from_str::<Value>(&printed(&["schema", "--json"])).unwrap(), schema);
    for command in [&["man", "--json"][..], &["completions", "bash", "--json"]] {
        let output = toolcrib().args(command).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let refused: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(refused.to_string().contains("is not JSON"), "{refused}");
    }
}

#[test]
fn pages_that_cannot_be_written_are_an_error() {
    let dir = tempfile::TempDir::new().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let output = toolcrib().args(["man", "--dir"]).arg(file.join("man1")).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("file/man1") && said.contains("manual pages"), "{said}");
}
