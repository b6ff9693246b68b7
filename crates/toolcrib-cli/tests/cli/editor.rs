//! Texts for shells, manuals and editors.

use std::{fs, process::Command};

use serde_json::Value;

use crate::support::toolcrib;

fn printed(args: &[&str]) -> String {
    let output = toolcrib().args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn bash_completes_commands_and_options() {
    let script = printed(&["completions", "bash"]);
    // As bash calls it: with the command, the word to complete, and the word before.
    let complete = |before: &str, word: &str| -> Vec<String> {
        let asking = format!(
            "{script}\nCOMP_WORDS=({before} {word}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
             _toolcrib toolcrib {word} \"${{COMP_WORDS[COMP_CWORD - 1]}}\"; echo \"${{COMPREPLY[@]}}\""
        );
        // Longer than one argument may be.
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), asking).unwrap();
        let output = Command::new("bash").arg("--norc").arg(file.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let found = String::from_utf8(output.stdout).unwrap();
        found.split_whitespace().map(str::to_owned).collect()
    };
    let mut commands = complete("toolcrib", "re");
    commands.sort();
    assert_eq!(commands, ["replay", "resume"]);
    assert_eq!(complete("toolcrib run", "--rec"), ["--record"]);
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(printed(&["completions", shell]).contains("doctor"), "{shell}");
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
