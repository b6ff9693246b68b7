//! Texts for manuals and editors.

use std::fs;

use serde_json::Value;

use crate::support::toolcrib;

fn printed(args: &[&str]) -> String {
    let output = toolcrib().args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
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
