//! Tools of the kind `terminal`.

use std::fs;

use serde_json::json;
use toolcrib_capabilities::process::{SandboxTier, sandbox_support};
use toolcrib_core::ToolContextParts;
use toolcrib_project::Project;
use toolcrib_skip::skip;

use crate::folder::{Folder, RUN};

const TERMINAL: &str = "
[[tool]]
kind = 'terminal'
working_dir = 'work'
sandbox_write = ['work']
";

/// Whether this machine enforces the default tier; if not, such a project does not load, and its test is
/// skipped.
fn is_possible() -> bool {
    sandbox_support(SandboxTier::Files).map_err(skip).is_ok()
}

fn folder(text: &str) -> Folder {
    Folder::with(text).file("work/a.txt", "one\n").file("secret.txt", "the secret\n")
}

fn run(project: &Project, command: &str) -> String {
    let tool = project.tools().iter().find(|tool| tool.name().as_str() == "terminal").unwrap();
    let cx = ToolContextParts::detached().into();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let called = runtime.block_on(tool.call(json!({ "command": command }), cx));
    called.map_or_else(
        |error| format!("{} {:?}", error.message, error.cause_chain()),
        |output| output.value,
    )
}

#[test]
fn a_shell_reads_and_changes_what_its_sandbox_names() {
    if !is_possible() {
        return;
    }
    let folder = folder(TERMINAL);
    let project = folder.load_as(RUN).unwrap();
    let names: Vec<_> = project.tools().iter().map(|tool| tool.name().as_str()).collect();
    let all = ["terminal", "start_job", "list_jobs", "read_job", "wait_for_job", "stop_job"];
    assert_eq!(names, all);
    assert_eq!(run(&project, "cat a.txt; echo two > b.txt; ls"), "one\na.txt\nb.txt");
    let hidden = run(&project, "cat ../secret.txt");
    assert!(!hidden.contains("the secret"), "{hidden}");
    assert!(run(&project, "echo x > ../toolcrib.toml").starts_with("exit code"));
    assert_eq!(fs::read_to_string(folder.path().join("toolcrib.toml")).unwrap(), TERMINAL);
    assert_eq!(run(&project, "echo $TERM $NO_COLOR"), "dumb 1");
}

#[test]
fn a_project_without_jobs_has_one_tool_and_a_written_tier_is_used() {
    let text = "[[tool]]\nkind = 'terminal'\nname = 'build'\nmax_jobs = 0\nsandbox = 'tree'\n";
    let project = folder(text).load_as(RUN).unwrap();
    let [tool] = project.tools() else { panic!("{:?}", project.tools()) };
    assert_eq!((tool.name().as_str(), tool.toolset()), ("build_terminal", Some("terminal")));
    assert!(tool.untrusted() && tool.open_world() && tool.annotations().destructive);
}

#[test]
fn mistakes_are_named_once_with_their_place() {
    let problems = |text: &str| folder(text).problems().to_string();
    for (keys, expected) in [
        ("shell = 'no-such-shell'", "toolcrib.toml:3:9: there is no program `no-such-shell`"),
        ("max_jobs = 65", "max_jobs"),
        ("program = 'sh'", "unknown key `program`"),
        ("job_timeout = 5", "job_timeout"),
        ("name = 'my shell'", "my shell"),
        ("sandbox = 'tree'\nsandbox_write = ['work']", "has no effect in the sandbox `tree`"),
        ("working_dir = 'none'", "none"),
        ("env = { A = 'secret:NONE' }", "NONE"),
    ] {
        let found = problems(&format!("[[tool]]\nkind = 'terminal'\n{keys}\n"));
        assert!(found.contains(expected), "{keys}: {found}");
        assert_eq!(found.matches("toolcrib.toml:").count(), 1, "{keys}: {found}");
    }
}
