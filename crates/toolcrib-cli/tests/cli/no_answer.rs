//! Models that give no answer: empty answers, turns that failed before, and vendors that want a wait.

use serde_json::{Value, json};
use toolcrib_models::Vendor;
use toolcrib_testbed::Reply;

use crate::{
    model_faults::{
        accepted,
        wire::{self, Answer},
    },
    models::{Prepared, notes},
    support::{Outcome, Project},
    terminal::Terminal,
};

/// A project whose failed requests are retried after a moment.
const AT_ONCE: &str = r#"
policy_default = "allow"
[agent]
model = "script:s.toml"
[[reliability]]
when = { stage = "model", error_class = ["empty_answer", "overloaded"] }
then = "retry"
base = "1ms"
"#;

/// The project without its rule.
fn by_default() -> Project {
    notes(AT_ONCE.split("[[reliability]]").next().unwrap())
}

fn run(server: &Prepared, project: &Project, args: &[&str]) -> Outcome {
    server.command(project, args).output().unwrap().into()
}

fn bodies(server: &Prepared) -> Vec<Value> {
    server.requests().iter().map(|request| request.json().unwrap()).collect()
}

fn said(vendor: Vendor, said: &Answer) -> Reply {
    wire::reply(vendor).piece(wire::frames(vendor, said).concat())
}

fn events(deltas: &[Value]) -> Reply {
    let chunk = |delta: &Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": null });
        format!("data: {}\n\n", json!({ "choices": [choice] }))
    };
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
    let chunks = deltas.iter().map(chunk).collect::<String>();
    Reply::sse().piece(format!("{chunks}data: {end}\n\ndata: [DONE]\n\n"))
}

#[test]
fn an_empty_answer_passed_as_a_success() {
    for vendor in Vendor::ALL {
        for text in ["", " \n\t"] {
            let project = notes(AT_ONCE);
            let empty = said(vendor, &Answer::text(&[text]));
            let server = Prepared::new(vendor, vec![empty; 3]);
            let ran = run(&server, &project, &["run", "--json", "go"]);
            assert_eq!(ran.code, Some(6), "{vendor}: {}{}", ran.stdout, ran.stderr);
            let outcome: Value = serde_json::from_str(&ran.stdout).unwrap();
            let error = &outcome["error"];
            assert_eq!(
                (&outcome["stopped"], &error["code"], &error["class"], &error["attempts"]),
                (&json!("failed"), &json!("model_failed"), &json!("empty_answer"), &json!(3)),
                "{vendor}"
            );
            assert_eq!(bodies(&server).len(), 3, "{vendor}");
        }
    }
}

#[test]
fn an_answer_of_reasoning_alone_passed_as_a_success() {
    let project = notes(AT_ONCE);
    let thought = events(&[json!({ "reasoning_content": "the answer is 4" })]);
    let server = Prepared::new(Vendor::OpenAi, vec![thought; 3]);
    let ran = run(&server, &project, &["run", "go"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(6), ""));
    let told = "no text and no call, only reasoning";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(ran.stderr.contains("no call was made before it"), "{}", ran.stderr);
}

#[test]
fn an_empty_answer_after_calls_hid_that_they_ran() {
    let project = notes(AT_ONCE);
    let call = Answer::default().calling("a", "add", &[r#"{"text":"one"}"#]);
    let again = Answer::default().calling("b", "add", &[r#"{"text":"two"}"#]).calling(
        "c",
        "no_such_tool",
        &["{}"],
    );
    let empty = events(&[json!({ "content": "" })]);
    let replies = [said(Vendor::OpenAi, &call), said(Vendor::OpenAi, &again)];
    let replies = replies.into_iter().chain(vec![empty; 3]).collect();
    let server = Prepared::new(Vendor::OpenAi, replies);
    let ran = run(&server, &project, &["run", "go"]);
    assert_eq!(ran.code, Some(6));
    let told = "calls before it: `add` (2 calls), `no_such_tool` (1 call, 1 failed)";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
    assert!(ran.stderr.contains("changed  add"), "{}", ran.stderr);
}

#[test]
fn a_typed_answer_that_is_empty_is_not_a_value() {
    let project = notes(AT_ONCE);
    project.write("schema.json", r#"{ "type": "integer" }"#);
    let server = Prepared::new(Vendor::OpenAi, vec![events(&[]); 3]);
    let args = ["run", "--schema", "schema.json", "go"];
    let output = server.command(&project, &args).current_dir(project.path()).output().unwrap();
    assert_eq!((output.status.code(), output.stdout.len()), (Some(6), 0));
}

#[test]
fn a_chat_goes_on_after_an_empty_answer() {
    let project = notes(AT_ONCE);
    let mut replies = vec![events(&[]); 3];
    replies.push(said(Vendor::OpenAi, &Answer::text(&["The second answer."])));
    let server = Prepared::new(Vendor::OpenAi, replies);
    let mut terminal = Terminal::start(&server.command(&project, &["chat"]), 100);
    terminal.wait_for("new session");
    terminal.wait_for("> ");
    terminal.send("first\r");
    terminal.wait_for("its answer is empty");
    terminal.send("second\r");
    terminal.wait_for("The second answer.");
    terminal.send("/quit\r");
    assert_eq!(terminal.end().0, Some(0));
    let sent = bodies(&server);
    let last = sent.last().unwrap();
    assert_eq!(accepted::check(Vendor::OpenAi, "test-model", last), Ok(()));
}

#[test]
fn a_session_whose_turn_failed_was_refused_for_ever() {
    let busy = || Reply::json(503, &json!({ "error": "loading model" }));
    let call = Answer::default().calling("a", "add", &[r#"{"text":"one"}"#]);
    for vendor in Vendor::ALL {
        let project = notes(AT_ONCE);
        let mut replies = vec![busy(), busy(), busy()];
        // The second turn fails after a result.
        replies.extend([said(vendor, &call), busy(), busy(), busy()]);
        replies.extend(vec![said(vendor, &Answer::text(&["FINAL"])); 2]);
        let server = Prepared::new(vendor, replies);
        let run = |message| run(&server, &project, &["run", "--session", "a", message]);
        assert_eq!([run("first").code, run("second").code], [Some(1), Some(1)], "{vendor}");
        for message in ["third", "fourth"] {
            let ran = run(message);
            assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "FINAL"), "{}", ran.stderr);
        }
        let sent = bodies(&server);
        for request in &sent {
            let accepted = accepted::check(vendor, "test-model", request);
            assert_eq!(accepted, Ok(()), "{vendor}: {request:#}");
        }
        // What was sent is sent again in the same bytes, by each process.
        let text = |request: &Value| {
            let list = request.get("messages").or(request.get("contents"));
            let list = list.or(request.get("input")).unwrap().as_array().unwrap().clone();
            let texts = list.iter().map(Value::to_string);
            let mark = r#","cache_control":{"type":"ephemeral"}"#;
            texts.map(|text| text.replace(mark, "")).collect::<Vec<_>>()
        };
        let [.., third, fourth] = &sent[..] else { panic!("{vendor}") };
        let (third, fourth) = (text(third), text(fourth));
        assert_eq!(fourth[..third.len()], third, "{vendor}");
        let notes = third.iter().filter(|text| text.contains("there is no answer here"));
        assert_eq!(notes.count(), 2, "{vendor}");
    }
}

#[test]
fn a_busy_vendor_is_asked_again_and_the_wait_is_shown() {
    let project = by_default();
    let busy = |status| Reply::new(status).header("retry-after", "0").body("{}");
    let answer = said(Vendor::OpenAi, &Answer::text(&["Here."]));
    let server = Prepared::new(Vendor::OpenAi, vec![busy(503), busy(429), answer]);
    let ran = run(&server, &project, &["run", "go"]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Here."), "{}", ran.stderr);
    for reason in ["the vendor is overloaded", "the vendor limits requests"] {
        let shown = ran
            .stderr
            .lines()
            .any(|line| line.contains("openai:test-model: waiting ") && line.ends_with(reason));
        assert!(shown, "{reason}: {}", ran.stderr);
    }
}

#[test]
fn an_account_without_credit_is_not_asked_again() {
    let error = |error: Value| json!({ "error": error });
    let spent = [
        (Vendor::OpenAi, 429, error(json!({ "message": "Spent.", "code": "insufficient_quota" }))),
        (Vendor::OpenAi, 429, error(json!({ "message": "Spent.", "type": "billing_not_active" }))),
        (Vendor::OpenAi, 429, error(json!({ "message": "Insufficient Balance", "code": "1113" }))),
        (Vendor::OpenAi, 403, error(json!({ "message": "You have no credits left." }))),
        (
            Vendor::Anthropic,
            429,
            error(
                json!({ "type": "rate_limit_error", "message": "Your credit balance is too low" }),
            ),
        ),
        (
            Vendor::Gemini,
            429,
            error(
                json!({ "status": "RESOURCE_EXHAUSTED", "message": "Your credits are depleted." }),
            ),
        ),
        (Vendor::Ollama, 429, json!({ "error": "insufficient credits" })),
    ];
    for (vendor, status, body) in spent {
        let project = by_default();
        let server = Prepared::new(vendor, vec![Reply::json(status, &body)]);
        let ran = run(&server, &project, &["run", "--json", "go"]);
        let outcome: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(outcome["error"]["class"], "quota", "{vendor}: {body}");
        assert_eq!((ran.code, bodies(&server).len()), (Some(1), 1), "{vendor}: {body}");
    }
}
