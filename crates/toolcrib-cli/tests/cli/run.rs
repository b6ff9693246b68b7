//! Running, calling, and what is printed.

use std::{fs, io::Write as _, process::Stdio};

use serde_json::{Value, json};

use crate::support::{Project, toolcrib};

const REFUND: &str = "I was charged twice for order 1042, please refund one charge";

fn events(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn the_json_of_a_run_has_its_shape() {
    let desk = Project::desk();
    let (code, run) = desk.json(&["run", REFUND]);
    assert_eq!(code, Some(0));
    assert_eq!(run["stopped"], "answered");
    assert_eq!(run["error"], Value::Null);
    assert_eq!(run["iterations"], 4);
    let calls = run["tool_calls"].as_array().unwrap();
    let names: Vec<_> = calls.iter().map(|call| call["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_skill", "list_charges", "list_refunds", "refund_duplicate_charge"]);
    for call in calls {
        assert_eq!((&call["ok"], &call["code"]), (&json!(true), &Value::Null));
        assert!(call["duration_ms"].is_u64() && call["value"].is_string(), "{call}");
        assert!(!call["value"].as_str().unwrap().contains("<untrusted"), "{call}");
    }
    assert_eq!(calls[3]["structured"]["changed"], 1);
    assert_eq!(run["errors"], json!([]));
    assert!(run["duration_ms"].is_u64() && run["turn_id"].is_string(), "{run}");
    assert!(run["usage"]["input_tokens"].as_u64().unwrap() > 0);
    assert!(run["usage"]["cost_usd"].is_number());
    let menus = run["menus"].as_array().unwrap();
    assert_eq!(menus.len(), 4);
    assert_eq!(menus[0]["withheld_count"], 10);
    assert_eq!(menus[1]["offered"].as_array().unwrap().len(), 4);
    assert_eq!(menus[1]["fingerprint"], menus[3]["fingerprint"]);
}

#[test]
fn events_are_a_lossless_file_in_order_that_ends_with_the_turn() {
    let desk = Project::desk();
    let file = desk.path().join("events.jsonl");
    fs::write(&file, "left over\n").unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(desk.toolcrib(&["run", REFUND, "--events", path]).code, Some(0));
    let events = events(&fs::read_to_string(&file).unwrap());
    let names: Vec<_> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        names[..8],
        [
            "agent.turn_start",
            "agent.iteration_start",
            "tools.discovery_started",
            "tools.discovery_completed",
            "tools.discovery_started",
            "tools.discovery_completed",
            "tools.offered",
            "model.start",
        ]
    );
    assert_eq!(*names.last().unwrap(), "agent.turn_end");
    for (position, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], position + 1);
    }
    let starts = names.iter().filter(|name| **name == "tool.start").count();
    let ends = names.iter().filter(|name| **name == "tool.end").count();
    assert_eq!((starts, ends), (4, 4));
    assert_eq!(names.iter().filter(|name| **name == "skill.activated").count(), 1);

    let outcome = desk.toolcrib(&["run", REFUND, "--events", "-"]);
    let on_stderr = events_of(&outcome.stderr);
    assert_eq!(on_stderr.last().unwrap()["type"], "agent.turn_end");
    assert!(outcome.stdout.contains("already refunded"));
}

fn events_of(text: &str) -> Vec<Value> {
    events(text)
}

#[test]
fn quiet_prints_the_answer_alone() {
    let desk = Project::desk();
    let outcome = desk.toolcrib(&["run", "-q", REFUND]);
    assert_eq!(outcome.stderr, "");
    assert_eq!(outcome.stdout.lines().count(), 1);
}

#[test]
fn identity_reaches_the_events() {
    let desk = Project::desk();
    let outcome = desk.toolcrib(&[
        "run",
        "hello",
        "--events",
        "-",
        "--as",
        "ann",
        "--tenant",
        "acme",
        "--session",
        "c-7",
    ]);
    for event in events(&outcome.stderr) {
        assert_eq!(
            event["identity"],
            json!({"tenant": "acme", "principal": "ann", "conversation": "c-7"})
        );
    }
}

#[test]
fn a_secret_of_the_environment_is_nowhere() {
    let desk = Project::desk();
    let file = desk.path().join("events.jsonl");
    let secret = "hunter2-\"quoted\"-hunter2";
    for format in ["--json", "--verbose"] {
        let output = desk
            .command(&["call", "search_tickets", &format!("text={secret}"), format])
            .env("DESK_API_KEY", secret)
            .output()
            .unwrap();
        let shown = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(shown.contains("[redacted]"), "{shown}");
    }
    let output = desk
        .command(&["run", &format!("show ticket {secret}"), "--events", file.to_str().unwrap()])
        .env("DESK_API_KEY", secret)
        .output()
        .unwrap();
    let written = fs::read_to_string(&file).unwrap();
    assert!(!written.contains("hunter2"), "{written}");
    assert!(output.status.success());
}

#[test]
fn arguments_come_as_pairs_as_json_from_a_file_and_from_standard_input() {
    let desk = Project::desk();
    desk.write("args.json", r#"{"order_id": 1042}"#);
    let at = format!("@{}", desk.path().join("args.json").display());
    let mut answers = Vec::new();
    for argument in ["order_id=1042", r#"{"order_id": 1042}"#, "order_id:=1042", &at] {
        let (code, call) = desk.json(&["call", "list_charges", argument]);
        assert_eq!(code, Some(0), "{call}");
        answers.push(call["value"].clone());
    }
    let mut child = desk
        .command(&["call", "list_charges", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(br#"{"order_id": 1042}"#).unwrap();
    let output = child.wait_with_output().unwrap();
    let call: Value = serde_json::from_slice(&output.stdout).unwrap();
    answers.push(call["value"].clone());
    assert!(answers.windows(2).all(|pair| pair[0] == pair[1]), "{answers:#?}");
}

#[test]
fn words_without_quotes_and_piped_text_are_messages() {
    let script = "[[rule]]\ntext = \"You said: {{ user }}\"\n";
    let project = Project::of(&[
        ("toolcrib.toml", "[agent]\nmodel = \"script:s.toml\"\n"),
        ("s.toml", script),
    ]);
    let words = project.toolcrib(&["run", "-q", "what", "do", "we", "know"]);
    assert_eq!(words.stdout, "You said: what do we know\n", "{}", words.stderr);
    for args in [&["run", "-q"][..], &["run", "-q", "-"]] {
        let mut command = project.command(args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"a question\n").unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stdout), "You said: a question\n");
    }
    let nothing = project.toolcrib(&["run"]);
    assert_eq!(nothing.code, Some(2));
    insta::assert_snapshot!(nothing.stderr, @r#"error: the message is empty; say what the agent should do: toolcrib run "MESSAGE", or pipe it"#);
}

#[test]
fn a_warning_of_the_project_is_shown_once_and_counted_elsewhere() {
    let project = Project::of(&[
        ("toolcrib.toml", "[agent]\nmodel = \"script:s.toml\"\n"),
        ("s.toml", "[[rule]]\ncalls = [{ tool = \"gone\" }]\n"),
    ]);
    let full = "warning: the project has no tool `gone`";
    assert!(project.toolcrib(&["check"]).stderr.contains(full));
    assert!(project.toolcrib(&["tools", "-v"]).stderr.contains(full));
    let counted = project.toolcrib(&["tools"]);
    insta::assert_snapshot!(counted.stderr, @"1 warning about the project's files; add -v to see all");
}

#[test]
fn arguments_that_never_end_are_refused() {
    let desk = Project::desk();
    let output = desk.command(&["call", "list_charges", "@/dev/zero"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("/dev/zero cannot be read: it is longer than 64 MiB"), "{said}");
}

#[test]
fn a_call_that_is_refused_says_what_was_expected_and_never_the_value() {
    let desk = Project::desk();
    for (argument, code, said) in [
        ("order_id=s3cr3t", "input_invalid", "`order_id`"),
        ("order_id=1.5", "input_invalid", "`order_id`"),
        ("other=s3cr3t", "input_invalid", "order_id"),
        ("{\"order_id\": s3cr3t", "input_invalid", "not valid JSON"),
        ("[1]", "input_invalid", "object"),
    ] {
        let (exit, call) = desk.json(&["call", "list_charges", argument]);
        let value = call["value"].as_str().unwrap();
        assert_eq!((exit, call["code"].as_str()), (Some(1), Some(code)), "{call}");
        assert!(value.contains(said) && !value.contains("s3cr3t"), "{value}");
    }
    // A tool that is not offered reads like one that never was, in every spelling.
    let unknown = desk.json(&["call", "no_such_tool"]).1;
    for name in ["refund_duplicate_charge", "Refund_Duplicate_Charge"] {
        let (exit, call) = desk.json(&["call", name, "order_id=1042"]);
        assert_eq!((exit, call["code"].as_str()), (Some(1), Some("not_available")));
        let told = call["value"].as_str().unwrap().replace(name, "no_such_tool");
        assert_eq!(Some(told.as_str()), unknown["value"].as_str());
    }
    let (exit, call) = desk.json(&["call", "list_charges ", "order_id=1042"]);
    assert_eq!((exit, call["code"].as_str()), (Some(1), Some("not_available")), "{call}");
    assert_eq!(desk.refunds(1042), 0);
}

#[test]
fn a_model_that_goes_on_for_ever_is_wrapped_up() {
    let desk = Project::desk();
    desk.write(
        "loop.toml",
        r#"
        [[rule]]
        tools_allowed = false
        text = "I gave up."
        [[rule]]
        calls = [{ tool = "check_stock", args = { sku = "x" } }]
    "#,
    );
    let (code, run) = desk.json(&["run", "go", "--model", "script:loop.toml"]);
    assert_eq!(code, Some(0));
    assert_eq!((&run["stopped"], &run["iterations"]), (&json!("max_iterations"), &json!(10)));
    assert_eq!(run["answer"], "I gave up.");
}

#[test]
fn a_model_without_a_rule_fails_and_says_what_it_saw() {
    let desk = Project::desk();
    desk.write("empty.toml", "[[rule]]\nuser = 'never'\ntext = 'x'\n");
    let (code, run) = desk.json(&["run", "go", "--model", "script:empty.toml"]);
    assert_eq!((code, &run["stopped"]), (Some(1), &json!("failed")));
    assert_eq!(run["error"]["code"], "model_failed");
    assert_eq!(run["error"]["source"], "script:empty.toml");
    let message = run["error"]["message"].as_str().unwrap();
    assert!(message.contains("rule 1") && message.contains("go"), "{message}");
    assert_eq!(run["answer"], Value::Null);
}

#[test]
fn a_run_that_takes_too_long_times_out() {
    let desk = Project::desk();
    desk.write("slow.toml", "[[rule]]\ndelay_ms = 60000\ntext = 'late'\n");
    let (code, run) =
        desk.json(&["run", "go", "--model", "script:slow.toml", "--timeout", "200ms"]);
    assert_eq!((code, &run["stopped"]), (Some(1), &json!("timeout")));
    assert_eq!(run["error"]["code"], "timeout");
}

/// A call that blocks inside one function of the database hears nothing of its deadline.
#[test]
fn an_unknown_outcome_is_reported_as_such() {
    let project = Project::of(&[
        (
            "toolcrib.toml",
            r#"
            [agent]
            model = "script:script.toml"
            [database.db]
            file = "db.db"
            seed = "seed.sql"
            [[tool]]
            kind = "sql"
            name = "mark"
            description = "Marks, some day."
            timeout = "50ms"
            statements = ["INSERT INTO marks SELECT 1 WHERE instr(printf('%.*c', 2000000, 'a'), printf('%.*c', 1000000, 'a') || 'b')"]
        "#,
        ),
        ("seed.sql", "CREATE TABLE marks (mark INTEGER);"),
        (
            "script.toml",
            "[[rule]]\ncalled = 'mark'\ntext = 'Who knows.'\n[[rule]]\ncalls = [{ tool = 'mark' }]\n",
        ),
    ]);
    let outcome = project.toolcrib(&["run", "go"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    for told in [
        "outcome_unknown",
        "changed  nothing for certain\n",
        "unknown  mark {}: check the effect before a retry\n",
    ] {
        assert!(outcome.stderr.contains(told), "{told:?} is not in:\n{}", outcome.stderr);
    }
}

#[test]
fn what_is_hidden_in_a_result_is_shown_on_the_terminal() {
    let desk = Project::desk();
    desk.write(
        "hidden.toml",
        "[[rule]]\ntext = 'a\u{202e}b\u{200b}c\u{e0041} 👩\u{200d}👧 ❤\u{fe0f}'\n",
    );
    let outcome = desk.toolcrib(&["run", "go", "-q", "--model", "script:hidden.toml"]);
    let shown = "a\\u{202e}b\\u{200b}c\\u{e0041} 👩\u{200d}👧 ❤\u{fe0f}\n";
    assert_eq!(outcome.stdout, shown);
}

#[test]
fn help_shows_examples_and_exit_codes() {
    for command in ["run", "menu", "call", "check", "init"] {
        let output = toolcrib().args([command, "--help"]).output().unwrap();
        let help = String::from_utf8(output.stdout).unwrap();
        assert!(help.contains("Examples:") && help.contains("--json"), "{help}");
    }
    let help = toolcrib().arg("--help").output().unwrap();
    assert!(String::from_utf8(help.stdout).unwrap().contains("Exit codes:"));
    assert_eq!(toolcrib().arg("--no-such-flag").output().unwrap().status.code(), Some(2));
}

#[test]
fn fresh_is_refused_while_another_process_uses_the_database() {
    let desk = Project::desk();
    desk.write("slow.toml", "[[rule]]\ndelay_ms = 60000\ntext = 'late'\n");
    let events = desk.path().join("events.jsonl");
    let mut holder = desk
        .command(&[
            "run",
            "go",
            "--model",
            "script:slow.toml",
            "--events",
            events.to_str().unwrap(),
        ])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    crate::support::wait_for(|| {
        fs::read_to_string(&events).is_ok_and(|e| e.contains("model.start"))
    });
    let (code, run) = desk.json(&["run", "--fresh", REFUND]);
    assert_eq!((code, &run["error"]["code"]), (Some(1), &json!("database_unavailable")), "{run}");
    assert!(run["error"]["message"].as_str().unwrap().contains("in use"));
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_eq!(desk.json(&["run", "--fresh", REFUND]).0, Some(0));
}

#[test]
fn an_answer_with_a_schema_is_data_or_an_error() {
    let desk = Project::desk();
    let schema = desk.path().join("refund.json");
    let of_order =
        r#"{"type":"object","properties":{"order":{"type":"integer"}},"required":["order"]}"#;
    fs::write(&schema, of_order).unwrap();
    desk.write(
        "data.toml",
        "[[rule]]\nuser = 'not valid'\ntext = '{\"order\": 1042}'\n\
         [[rule]]\nuser = 'never'\ntext = 'no'\n\
         [[rule]]\nuser = 'JSON Schema'\ntext = 'It is order 1042.'\n",
    );
    let schema = schema.to_str().unwrap();
    let args = ["run", "which?", "--model", "script:data.toml", "--schema", schema];
    let (code, run) = desk.json(&args);
    assert_eq!((code, &run["value"]), (Some(0), &json!({ "order": 1042 })), "{run}");
    let text = desk.toolcrib(&args);
    assert_eq!(serde_json::from_str::<Value>(&text.stdout).unwrap(), json!({ "order": 1042 }));

    desk.write("never.toml", "[[rule]]\ntext = 'It is order 1042.'\n");
    let failed =
        desk.toolcrib(&["run", "which?", "--model", "script:never.toml", "--schema", schema]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    assert!(failed.stderr.contains("no answer of 3 was valid"), "{}", failed.stderr);

    let missing = desk.toolcrib(&["run", "which?", "--schema", "nosuch.json"]);
    assert_eq!(missing.code, Some(2), "{}", missing.stderr);
    desk.write("broken.json", r#"{"type": "nonsense"}"#);
    let broken = desk.path().join("broken.json");
    let broken = desk.toolcrib(&["run", "which?", "--schema", broken.to_str().unwrap()]);
    assert_eq!(broken.code, Some(2), "{}", broken.stderr);
    assert!(broken.stderr.contains("the schema of the answer cannot be enforced"));
}

#[test]
fn a_dry_run_shows_the_calls_and_makes_none_that_have_an_effect() {
    let desk = Project::desk();
    let script = r#"
[[rule]]
step = 1
calls = [{ tool = "read_skill", args = { id = "billing" } }]
[[rule]]
step = 2
calls = [
    { tool = "list_charges", args = { order_id = 1042 } },
    { tool = "refund_duplicate_charge", args = { order_id = 1042 } },
]
[[rule]]
text = "Planned."
"#;
    desk.write("dry.toml", script);
    let dry = ["run", "--dry-run", "--model", "script:dry.toml", REFUND];
    let run = desk.toolcrib(&dry);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let plan = "plan     1 call would be made:\n  refund_duplicate_charge {\"order_id\":1042}\n";
    assert!(run.stderr.contains(plan), "{}", run.stderr);
    assert!(run.stderr.contains("changed  nothing"), "{}", run.stderr);
    assert_eq!(desk.refunds(1042), 0);
    let (_, sessions) = desk.json(&["sessions"]);
    assert_eq!(sessions["sessions"], json!([]));

    let (code, run) = desk.json(&dry);
    assert_eq!(code, Some(0));
    let calls = run["tool_calls"].as_array().unwrap();
    let plans: Vec<_> = calls.iter().map(|call| call.get("plan")).collect();
    let planned = json!({ "approval_rule": null, "approval_reason": null });
    // The others read a skill and a database.
    assert_eq!(plans, [None, None, Some(&planned)]);
    assert!(calls[1]["value"].as_str().unwrap().contains("charge_id"), "{}", calls[1]);

    for with in [["-c", "-q"], ["--session", "s"], ["--fresh", "--yes"]] {
        let refused = desk.toolcrib(&[&["run", "--dry-run"][..], &with, &["x"]].concat());
        assert_eq!(refused.code, Some(2), "{with:?}: {}", refused.stderr);
    }
}

#[test]
fn a_call_can_be_checked_without_being_made() {
    let desk = Project::desk();
    let toml = desk.path().join("toolcrib.toml");
    let rule = "\n[[policy]]\neffect = \"ask\"\ntool = \"refund_*\"\nreason = \"Money leaves.\"\n";
    let text = fs::read_to_string(&toml).unwrap() + rule;
    fs::write(&toml, text).unwrap();
    let refund =
        ["call", "--dry-run", "refund_duplicate_charge", "order_id=1042", "--skill", "billing"];
    let call = desk.toolcrib(&refund);
    assert_eq!(call.code, Some(0), "{}", call.stderr);
    assert!(call.stdout.contains("the call would need approval"), "{}", call.stdout);
    assert!(
        call.stderr.contains("needs approval by policy rule 3 (toolcrib.toml:"),
        "{}",
        call.stderr
    );
    assert!(call.stderr.contains(": Money leaves."), "{}", call.stderr);
    assert_eq!(desk.refunds(1042), 0);
    let wrong =
        ["call", "--dry-run", "refund_duplicate_charge", "order_id=x", "--skill", "billing"];
    let (code, wrong) = desk.json(&wrong);
    assert_eq!((code, &wrong["code"]), (Some(1), &json!("input_invalid")));
}
