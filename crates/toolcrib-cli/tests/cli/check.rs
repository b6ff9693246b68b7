//! All errors of a project are reported at once, each with its position.

use serde_json::Value;

use crate::support::Project;

pub(crate) const BROKEN: &str = r#"
[agent]
modle = "script:script.toml"

[database.desk]
file = "desk.db"
seed = "seed.sql"
sed = "x"

[[tool]]
kind = "sql"
name = "look up"
description = "Looks up."
read_only = true
statements = ["SELECT 1 AS one"]

[[tool]]
kind = "sql"
name = "list"
description = "Lists."
read_only = true
statements = ["SELECT x FROM nowhere"]

[[tool]]
kind = "sql"
name = "list"
description = "Lists again."
read_only = true
statements = ["SELECT :id AS id"]
[tool.params]
id = { type = "integr", descriptoin = "An id." }

[[policy]]
effect = "refuse"
role = "nobody"
"#;

#[test]
fn all_problems_are_reported_together_with_place_and_help() {
    let project = Project::of(&[("toolcrib.toml", BROKEN), ("seed.sql", "")]);
    let (code, check) = project.json(&["check"]);
    assert_eq!(code, Some(2));
    let errors = check["errors"].as_array().unwrap();
    let lines: Vec<_> = errors.iter().map(|error| error["line"].as_u64().unwrap()).collect();
    assert_eq!(lines, [3, 8, 12, 22, 26, 31, 31, 33, 34, 35], "{errors:#?}");
    for error in errors {
        assert_eq!(error["file"], "toolcrib.toml");
        assert!(error["column"].as_u64().unwrap() >= 1);
        assert!(error["message"].is_string());
    }
    assert!(!project.state().exists());
}

#[test]
fn the_support_desk_has_no_errors() {
    let desk = Project::desk();
    let (code, check) = desk.json(&["check"]);
    assert_eq!(code, Some(0), "{check}");
    assert_eq!(check["errors"], Value::Array(vec![]));
    assert_eq!(check["warnings"], Value::Array(vec![]));
    let skills: Vec<_> = check["skills"]
        .as_array()
        .unwrap()
        .iter()
        .map(|skill| skill["id"].as_str().unwrap())
        .collect();
    assert_eq!(skills, ["account", "billing", "shipping"]);
}

#[test]
fn check_counts_the_characters_of_the_menu() {
    let folder = tempfile::TempDir::new().unwrap();
    let dir = folder.path().join("notes");
    let run = |args: &[&str]| -> crate::support::Outcome {
        crate::support::toolcrib().args(args).arg(&dir).output().unwrap().into()
    };
    assert_eq!(run(&["init"]).code, Some(0));
    let skill =
        "---\nname: plain\ndescription: Use it when a text must be plain.\n---\nBe plain.\n";
    std::fs::create_dir(dir.join("skills/plain")).unwrap();
    std::fs::write(dir.join("skills/plain/SKILL.md"), skill).unwrap();
    let menu = run(&["menu", "-p"]).stdout;
    let (_, characters) = menu.split_once("offered (4 tools, ").unwrap();
    let characters = characters.split_once(" characters)").unwrap().0;
    let check = run(&["check", "-p"]).stdout;
    let counted = format!(
        "3 tools (2 with write access) and `read_skill`, {characters} characters for the model"
    );
    assert!(check.contains(&counted), "{check}");
    assert!(check.contains("\n  skill plain: no tools\n"), "{check}");
}

#[test]
fn where_there_is_no_project_the_error_says_what_to_do() {
    let empty = tempfile::TempDir::new().unwrap();
    let output =
        crate::support::toolcrib().arg("check").current_dir(empty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("init") && said.contains("--project"), "{said}");
}
