//! The kind `code`, with the compilers and test runners of this machine.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::disallowed_methods, reason = "the tests prepare files")]

mod harm;

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use toolcrib_core::{ErrorCode, ToolCall, ToolResult};
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_skip::skip;
use toolcrib_tools::{
    Declaration,
    code::CodeTool,
    command::{ArgItem, CommandToolSpec},
};

struct App(TempDir);

impl App {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        Self(dir)
    }

    async fn call(&self, tool: CodeTool, args: Value) -> ToolResult {
        self.call_with(tool, args, |_| {}).await
    }

    /// A call in which only these programs are installed.
    async fn call_among(&self, programs: &[&str], tool: CodeTool, args: Value) -> ToolResult {
        let installed = tempfile::tempdir().unwrap();
        // A version manager's program is a script, which needs more programs.
        let path = format!("/usr/bin:/bin:{}", std::env::var("PATH").unwrap());
        for program in [&["sh", "grep", "ls", "env"], programs].concat() {
            let mut folders = std::env::split_paths(&path);
            let found = folders.find_map(|folder| folder.join(program).canonicalize().ok());
            symlink(found.unwrap(), installed.path().join(program)).unwrap();
        }
        let path = installed.path().to_str().unwrap().to_owned();
        let among = move |spec: &mut CommandToolSpec| {
            spec.inherit_env.clear();
            spec.env = vec![("PATH".to_owned(), path.clone())];
        };
        self.call_with(tool, args, among).await
    }

    async fn call_with(
        &self,
        tool: CodeTool,
        args: Value,
        change: impl Fn(&mut CommandToolSpec),
    ) -> ToolResult {
        let base = Declaration { untrusted: false, ..Declaration::new("", "") };
        let base = Declaration { timeout: Some(Duration::from_secs(300)), ..base };
        let declaration = tool.declaration(&base, None);
        let mut spec = CommandToolSpec::new(declaration, "sh", self.0.path());
        spec.args = vec![ArgItem::from("-c")];
        spec.inherit_env = ["PATH", "HOME"].map(str::to_owned).into();
        spec.working_dir = Some(".".into());
        change(&mut spec);
        let engine = Engine::builder().tool(tool.build(spec).unwrap()).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        iteration.execute(vec![ToolCall::new("c", tool.name(None), args)]).await.remove(0)
    }
}

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[tokio::test]
async fn an_error_of_the_rust_compiler_has_its_place_and_a_fixed_file_none() {
    let manifest = "[package]\nname = 'app'\nversion = '0.1.0'\nedition = '2021'\n";
    let app = App::new(&[
        ("Cargo.toml", manifest),
        ("src/lib.rs", "pub fn two() -> u8 {\n    \"2\"\n}\n"),
    ]);
    let broken = app.call(CodeTool::Typecheck, json!({})).await;
    assert!(broken.code.is_none(), "{broken:?}");
    assert!(broken.text.contains("\nsrc/lib.rs:2:5: error: mismatched types"), "{}", broken.text);
    let data = broken.structured.unwrap();
    assert_eq!((&data["ok"], &data["problems"][0]["line"]), (&json!(false), &json!(2)));
    fs::write(app.0.path().join("src/lib.rs"), "pub fn two() -> u8 {\n    2\n}\n").unwrap();
    let fixed = app.call(CodeTool::Typecheck, json!({})).await;
    assert!(
        fixed.text.ends_with("cargo check --all-targets --message-format short: no problems"),
        "{fixed:?}"
    );
}

#[tokio::test]
async fn an_error_of_python_has_its_place() {
    let app = App::new(&[("sub/pyproject.toml", ""), ("sub/a.py", "def f():\n    return (1\n")]);
    // A linter that the project has: the compiler, by the name of the module.
    let linter = "import compileall, sys\nif __name__ == '__main__':\n  \
                  sys.exit(not compileall.compile_dir('.', quiet=1))\n";
    fs::write(app.0.path().join("sub/flake8.py"), linter).unwrap();
    let args = json!({ "folder": "sub" });
    let found = app.call_among(&["python3"], CodeTool::Lint, args).await;
    assert!(found.text.contains("a.py:2"), "{found:?}");
    assert_eq!(found.structured.unwrap()["ok"], json!(false));
}

/// A filter that matched no test was a success with 0 passed tests.
#[tokio::test]
async fn a_filter_that_matches_no_test_is_no_success() {
    let test = "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n";
    let app = App::new(&[("test_a.py", test)]);
    let run = async |filter: &str| {
        app.call_among(&["python3"], CodeTool::RunTests, json!({ "filter": filter })).await
    };
    let found = run("test_a").await;
    assert!(found.text.ends_with("unittest -k test_a: 1 passed"), "{found:?}");
    let none = run("test_b").await;
    let expected = "unittest -k test_b: no test ran; none that runs matches `filter`\n";
    assert!(none.text.contains(expected), "{none:?}");
    assert_eq!(none.structured.unwrap()["ok"], json!(false));
}

#[tokio::test]
async fn an_output_that_no_reader_knows_is_shown_without_the_mark_of_the_program() {
    if !has("npm") {
        return skip("npm is not installed");
    }
    let package = r#"{ "name": "x", "scripts": { "test": "echo it is odd; exit 3" } }"#;
    let app = App::new(&[("package.json", package)]);
    let failed = app.call(CodeTool::RunTests, json!({})).await;
    let expected = "npm test --silent: failed with exit code 3, 0 problems\nit is odd";
    assert_eq!(&*failed.text, expected);
}

#[tokio::test]
async fn a_failed_test_of_node_has_its_place() {
    if !has("npm") {
        return skip("npm is not installed");
    }
    let package = r#"{ "name": "x", "scripts": { "test": "node --test" } }"#;
    let test = "const test = require('node:test');\nconst assert = require('node:assert');\n\
                test('adds', () => { assert.strictEqual(1 - 2, 3); });\ntest('is', () => {});\n";
    let app = App::new(&[("package.json", package), ("a.test.js", test)]);
    let failed = app.call(CodeTool::RunTests, json!({})).await;
    assert!(
        failed.text.starts_with("npm test --silent: 1 passed, 1 failed\na.test.js:3:"),
        "{failed:?}"
    );
    assert!(failed.text.contains("test adds failed: Expected values to be"), "{failed:?}");
}

#[tokio::test]
async fn a_folder_without_code_and_a_missing_program_say_what_to_do() {
    let app = App::new(&[("notes.md", ""), ("go/go.mod", "module x\n")]);
    let none = app.call(CodeTool::Lint, json!({})).await;
    assert_eq!(none.code, Some(ErrorCode::InputInvalid));
    assert!(none.text.contains("name the `folder` of the code"), "{none:?}");
    let missing = app.call(CodeTool::Lint, json!({ "folder": "none" })).await;
    assert!(missing.text.starts_with("`folder` cannot be entered:"), "{missing:?}");
    let option = app.call(CodeTool::RunTests, json!({ "filter": "--version" })).await;
    assert_eq!(option.code, Some(ErrorCode::InputInvalid));
    let unknown = app.call(CodeTool::Lint, json!({ "language": "cobol" })).await;
    assert_eq!(unknown.code, Some(ErrorCode::InputInvalid));
    if !has("go") {
        let missing = app.call(CodeTool::RunTests, json!({ "folder": "go" })).await;
        assert_eq!(missing.code, Some(ErrorCode::NotAvailable), "{missing:?}");
        assert!(missing.text.contains("not installed: go: install Go"), "{missing:?}");
    }
}

#[tokio::test]
async fn a_run_that_takes_too_long_is_stopped() {
    let app = App::new(&[("setup.py", ""), (".venv/bin/python", "#!/bin/sh\nsleep 600\n")]);
    let python = app.0.path().join(".venv/bin/python");
    fs::set_permissions(python, fs::Permissions::from_mode(0o700)).unwrap();
    let base = Declaration { timeout: Some(Duration::from_secs(1)), ..Declaration::new("", "") };
    let declaration = CodeTool::RunTests.declaration(&base, None);
    let mut spec = CommandToolSpec::new(declaration, "sh", app.0.path());
    spec.working_dir = Some(".".into());
    spec.inherit_env = vec!["PATH".to_owned()];
    let tool = CodeTool::RunTests.build(spec).unwrap();
    let cx = toolcrib_core::ToolContextParts::detached().into();
    let stopped = tool.call(json!({}), cx).await.unwrap_err();
    assert_eq!(stopped.code, ErrorCode::Timeout);
    assert!(stopped.message.contains("was stopped after 1 s; run fewer tests"), "{stopped:?}");
}
