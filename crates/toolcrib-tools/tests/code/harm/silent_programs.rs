//! Programs that are not installed looked like failed ones, and problems in the middle of a large output were
//! lost.

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_tools::code::CodeTool;

use crate::App;

#[tokio::test]
async fn a_missing_program_is_not_available_and_nothing_is_installed() {
    let package = r#"{ "name": "x", "scripts": {} }"#;
    let python = [("pyproject.toml", ""), ("a.py", "x = 1\n")];
    let node = [("package.json", package), ("a.ts", "let x = 1;\n")];
    for (files, tool, program, next) in [
        (&node, CodeTool::Lint, "eslint", "`npm install --save-dev eslint`"),
        (&node, CodeTool::Typecheck, "tsc", "`npm install --save-dev typescript`"),
        (&node, CodeTool::RunTests, "the script \"test\"", "package.json"),
        (&python, CodeTool::Lint, "ruff", "`python3 -m pip install ruff`"),
        (&python, CodeTool::Typecheck, "mypy", "`python3 -m pip install mypy`"),
    ] {
        let app = App::new(files);
        // A program that would install something.
        let npm = "#!/bin/sh\necho > started\n";
        fs::write(app.0.path().join("npm"), npm).unwrap();
        let result = app.call_among(&["python3"], tool, json!({})).await;
        assert_eq!(result.code, Some(ErrorCode::NotAvailable), "{result:?}");
        assert!(result.text.contains(&format!("not installed: {program}: ")), "{result:?}");
        assert!(result.text.contains(next), "{result:?}");
    }
    let app = App::new(&python);
    let result = app.call_among(&["python3"], CodeTool::RunTests, json!({})).await;
    assert_eq!(result.code, Some(ErrorCode::NotAvailable), "{result:?}");
    assert!(result.text.contains("pip install pytest"), "{result:?}");
}

#[tokio::test]
async fn a_program_of_a_folder_above_is_run_and_npx_installs_nothing() {
    let package = r#"{ "scripts": { "typecheck": "npx no-such-checker" } }"#;
    let linter =
        "#!/bin/sh\necho \"$PWD/b.js\"\necho '  3:5  error  Missing semicolon  semi'\nexit 1\n";
    let app = App::new(&[("sub/package.json", package), ("node_modules/.bin/eslint", linter)]);
    let eslint = app.0.path().join("node_modules/.bin/eslint");
    fs::set_permissions(eslint, fs::Permissions::from_mode(0o700)).unwrap();
    let args = json!({ "folder": "sub" });
    let found = app.call_among(&[], CodeTool::Lint, args.clone()).await;
    assert!(found.text.contains("b.js:3:5: error: Missing semicolon"), "{found:?}");
    let refused = app.call(CodeTool::Typecheck, args).await;
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable), "{refused:?}");
    assert!(refused.text.contains("by npx may be missing; install the dep"), "{refused:?}");
}

#[tokio::test]
async fn a_problem_in_the_middle_of_a_large_output_is_found() {
    let test = "seq 1 200000; echo 'src/a.ts(3,5): error TS2322: lost'; seq 1 50000; false";
    let package = json!({ "scripts": { "test": test } }).to_string();
    let app = App::new(&[("package.json", &package)]);
    let result = app.call(CodeTool::RunTests, json!({})).await;
    assert!(result.text.contains("\nsrc/a.ts:3:5: error: "), "{result:?}");
}
