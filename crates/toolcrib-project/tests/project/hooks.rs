//! Programs that decide on calls.

use std::{fs, os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib_core::{ToolCall, ToolResult};
use toolcrib_engine::{ExecutorError, TurnEnd, TurnOptions};
use toolcrib_project::{Consent, LoadOptions, Project, Review, Verdict};

use crate::folder::{Folder, RUN};

const TOOLS: &str = "
[[tool]]
kind = 'command'
name = 'say'
description = 'Says it.'
program = 'echo'
args = ['{text}']
[tool.params]
text = { type = 'string', description = 'The text.' }
[[tool]]
kind = 'command'
name = 'other'
description = 'Another.'
program = 'echo'
args = ['other']
[[hook]]
at = 'before_call'
name = 'guard'
tool = 's*y'
program = './guard.sh'
inherit_env = ['PATH']
";

pub(crate) struct Ran {
    pub(crate) result: ToolResult,
    denied: Vec<Value>,
}

pub(crate) fn folder(script: &str, more: &str) -> Folder {
    let folder =
        Folder::with(&format!("{TOOLS}{more}")).file("guard.sh", format!("#!/bin/sh\n{script}\n"));
    let file = folder.path().join("guard.sh");
    fs::set_permissions(file, fs::Permissions::from_mode(0o700)).unwrap();
    folder
}

pub(crate) fn call(folder: &Folder, tool: &str) -> Ran {
    call_in(&folder.load_as(RUN).unwrap(), tool)
}

fn call_in(project: &Project, tool: &str) -> Ran {
    let engine = project.engine_builder().build().unwrap();
    let denied = Arc::<Mutex<Vec<Value>>>::default();
    let seen = Arc::clone(&denied);
    let listening = engine.events().on("policy.denied", move |event| {
        seen.lock().push(serde_json::to_value(event).unwrap());
    });
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let result = runtime.enable_all().build().unwrap().block_on(async {
        let mut turn = engine.turn(TurnOptions::default().principal("ann")).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let args = if tool == "say" { json!({ "text": "hello" }) } else { json!({}) };
        iteration.execute(vec![ToolCall::new("c1", tool, args)]).await.remove(0)
    });
    listening.unwrap().unsubscribe();
    let denied = denied.lock().clone();
    Ran { result, denied }
}

/// Has not trusted the project, and keeps what it does.
#[derive(Debug, Default)]
struct User(Mutex<String>);

impl Consent for User {
    fn review(&self, review: &Review) -> Verdict {
        *self.0.lock() = review.powers.iter().map(|power| format!("{power}\n")).collect();
        Verdict::LookOnly("it is not trusted yet".into())
    }

    fn replace(&self, _: &[PathBuf]) -> bool {
        false
    }
}

pub(crate) fn code(ran: &Ran) -> &'static str {
    ran.result.code.map_or("ok", |code| code.as_str())
}

#[test]
fn a_hook_allows_denies_and_rewrites_by_exit_code_or_json() {
    let ran = call(&folder("cat >seen.json", ""), "say");
    assert_eq!((code(&ran), &*ran.result.value), ("ok", "hello"), "{:?}", ran.result.cause);

    for script in [
        "echo 'not \u{1b}[31mnow' >&2; exit 2",
        "echo '{\"decision\":\"deny\",\"reason\":\"not [31mnow\"}'",
    ] {
        let ran = call(&folder(script, ""), "say");
        assert_eq!((code(&ran), &*ran.result.value), ("denied", "not [31mnow"), "{script}");
        assert_eq!(ran.denied[0]["rule"], "middleware `hook guard`");
    }
    let script = "echo '{\"decision\":\"rewrite\",\"args\":{\"text\":\"bye\"}}'";
    let ran = call(&folder(script, ""), "say");
    assert_eq!((code(&ran), &*ran.result.value), ("ok", "bye"));
    assert_eq!(ran.result.args, json!({ "text": "bye" }));
    // Rewritten arguments are validated.
    let script = "echo '{\"decision\":\"rewrite\",\"args\":{\"text\":7}}'";
    assert_eq!(code(&call(&folder(script, ""), "say")), "input_invalid");
    // It decides on the tools that it names.
    assert_eq!(code(&call(&folder("exit 2", ""), "other")), "ok");
}

#[test]
fn a_hook_reads_the_call_and_only_the_declared_environment() {
    let folder = folder("cat >&2; env >&2; exit 2", "");
    let ran = call(&folder, "say");
    let (read, environment) = ran.result.value.split_once('\n').unwrap();
    let read: Value = serde_json::from_str(read).unwrap();
    assert_eq!((&read["at"], &read["tool"]), (&json!("before_call"), &json!("say")));
    assert_eq!((&read["args"], &read["principal"]), (&json!({ "text": "hello" }), &json!("ann")));
    assert!(environment.contains("PATH=") && !environment.contains("HOME="), "{environment}");
}

#[test]
fn a_hook_without_a_decision_denies() {
    for (script, why) in [
        ("exit 1", "it ended with exit code 1; a hook ends with 0, or with 2 to deny"),
        ("echo broken >&2; kill -9 $$", "broken"),
        ("echo yes", "is not a decision such as"),
        ("echo '{\"decision\":\"allow\",\"args\":{}}'", "its decision is none of allow"),
        ("echo '{\"decision\":\"maybe\"}'", "its decision is none of allow"),
        ("echo '{\"ok\":true}'", "unknown key `ok`"),
        ("yes | head -c 200", "at most 100 are read"),
        ("sleep 6000", "it gave no decision within 300ms"),
    ] {
        let timeout = if script.starts_with("sleep") { "300ms" } else { "5m" };
        let folder = folder(script, &format!("timeout = '{timeout}'\nmax_output_bytes = 100\n"));
        let ran = call(&folder, "say");
        assert_eq!(code(&ran), "denied", "{script}");
        assert!(ran.result.value.contains("could not be checked"), "{}", ran.result.value);
        let reason = ran.denied[0]["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{script}: {reason}");
    }
}

#[test]
fn a_hook_of_a_project_that_starts_nothing_denies_and_mistakes_have_their_place() {
    let folder_of_hook = folder("exit 0", "");
    let user = Arc::new(User::default());
    let offline = LoadOptions { mode: RUN, offline: true, ..LoadOptions::default() };
    let consent = Some(Arc::clone(&user) as Arc<dyn Consent>);
    let found = LoadOptions { mode: RUN, consent, ..LoadOptions::default() };
    for (options, why) in [(offline, "--offline"), (found, "not trusted yet")] {
        let ran = call_in(&Project::load(folder_of_hook.path(), &options).unwrap(), "say");
        assert_eq!(code(&ran), "denied", "{why}");
        let reason = ran.denied[0]["reason"].as_str().unwrap();
        assert!(reason.contains(why), "{reason}");
    }
    let powers = user.0.lock().clone();
    assert!(powers.contains("hook `guard` (toolcrib.toml:"), "{powers}");
    assert!(powers.contains("starts: ./guard.sh"), "{powers}");

    let wrong = [
        ("at = 'after'", "at"),
        ("name = 'guard'\nprogram = 'true'", "`at` is missing"),
        ("at = 'before_call'\nprogram = 'true'", "`name` is missing"),
        ("at = 'before_call'\nname = 'a'", "`program` is missing"),
        ("at = 'before_call'\nname = 'a'\nprogram = './gone'", "gone"),
        ("at = 'before_call'\nname = 'a'\nprogram = 'true'\ntool = 'sey'", "sey"),
        ("at = 'before_call'\nname = 'guard'\nprogram = 'true'", "two hooks are called `guard`"),
    ];
    for (text, expected) in wrong {
        let found = folder("exit 0", &format!("[[hook]]\n{text}\n")).problems().to_string();
        assert!(found.contains(expected), "{text}: {found}");
    }
    let secret = "[[hook]]\nat = 'before_call'\nname = 'b'\nprogram = 'true'\n\
        env = { T = 'secret:TOKEN' }\n[secrets]\nTOKEN = { env = 'HOOK_TOKEN' }\n";
    let found = folder("exit 0", secret).problems().to_string();
    assert!(found.contains("a hook reads no secrets"), "{found}");
}

/// A turn of one iteration with one call; the number of its iterations, or why it did not go on.
fn turn(folder: &Folder) -> Result<u32, String> {
    let project = folder.load_as(RUN).unwrap();
    let engine = project.engine_builder().build().unwrap();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(async {
        let runner = toolcrib_engine::TurnRunner::new(engine);
        let executor = async |mut cx: toolcrib_engine::IterationContext| {
            cx.execute(vec![ToolCall::new("c1", "other", json!({}))]).await;
            cx.ack()?;
            Ok::<_, ExecutorError>(())
        };
        let outcome = runner.run(TurnOptions::default().principal("ann"), executor).await.unwrap();
        match outcome.end {
            TurnEnd::Acked => Ok(outcome.iterations),
            TurnEnd::Failed(error) => Err(error.to_string()),
            other => panic!("{other:?}"),
        }
    })
}

#[test]
fn hooks_around_turns_and_iterations_let_pass_or_end_the_turn() {
    let hooks = ["before_turn", "before_iteration", "after_iteration", "after_turn"].map(|at| {
        format!("[[hook]]\nat = '{at}'\nname = '{at}'\nprogram = './guard.sh'\nargs = ['{at}']\ninherit_env = ['PATH']\n")
    });
    let hooks = hooks.concat();
    let script =
        "cat >>seen.json; test \"$1\" != \"$(cat stop)\" || { echo 'not today' >&2; exit 2; }";
    let folder = folder(script, &hooks).file("stop", "none");
    turn(&folder).unwrap();
    let seen = fs::read_to_string(folder.path().join("seen.json")).unwrap();
    let seen: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let places: Vec<_> = seen.iter().map(|one| one["at"].as_str().unwrap()).collect();
    assert_eq!(places, ["before_turn", "before_iteration", "after_iteration", "after_turn"]);
    assert_eq!((&seen[0]["principal"], &seen[0]["iteration"]), (&json!("ann"), &json!(0)));
    assert_eq!((&seen[1]["personality"], &seen[1]["iteration"]), (&json!("default"), &json!(1)));

    for place in ["before_turn", "before_iteration", "after_iteration", "after_turn"] {
        fs::write(folder.path().join("stop"), place).unwrap();
        let error = turn(&folder).unwrap_err();
        assert!(error.contains(&format!("hook {place}")), "{place}: {error}");
    }
}

#[test]
fn a_hook_around_a_turn_names_no_tool() {
    let hook = "[[hook]]\nat = 'after_turn'\nname = 'late'\ntool = 'say'\nprogram = './guard.sh'\n";
    let problems = folder("true", hook).problems().to_string();
    assert!(problems.contains("a hook at `after_turn` decides on no call"), "{problems}");
}
