//! Tools of the kind `task`: child agents.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib_agent::{Agent, EndReason, RunOptions, RunOutcome};
use toolcrib_core::{Approval, CancellationToken, Event, ToolCall, call_approver};
use toolcrib_engine::TurnOptions;

use crate::folder::{Folder, RUN};

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

/// `page` has unknown authors; `vault` is out of the reach of `boss`, `wipe` is denied to it, and `note` needs
/// approval.
const PROJECT: &str = "
policy_default = 'allow'
[agent]
model = 'script:script.toml'
system = 'You work for a desk.'
[[personality]]
name = 'boss'
exclude = ['vault']
[[personality]]
name = 'reader'
system = 'You read.'
toolset = ['page', 'note', 'vault', 'wipe', 'agents']
[[policy]]
effect = 'deny'
tool = 'wipe'
personality = 'boss'
[[policy]]
effect = 'ask'
tool = 'note'
personality = 'boss'
reason = 'Notes are kept.'
";

fn tools() -> String {
    let tool = |name: &str, untrusted: bool| {
        format!(
            "[[tool]]\nkind = 'command'\nname = '{name}'\ndescription = 'Says {name}.'\n\
             program = 'echo'\nargs = ['said {name}']\nuntrusted = {untrusted}\n"
        )
    };
    let untrusted = tool("page", true);
    ["note", "vault", "wipe", "other"]
        .iter()
        .fold(untrusted, |text, name| text + &tool(name, false))
}

struct Ran {
    outcome: RunOutcome,
    events: Vec<Value>,
}

impl Ran {
    /// The result of the call of a tool in the run itself.
    fn result(&self, tool: &str) -> &toolcrib_core::ToolResult {
        self.outcome.tool_calls.iter().find(|result| &*result.name == tool).unwrap()
    }

    fn of(&self, kind: &str) -> Vec<&Value> {
        self.events.iter().filter(|event| event["type"] == kind).collect()
    }

    /// The ids of the turns: the run itself, then its children, as they began.
    fn turns(&self) -> Vec<&str> {
        self.of("agent.turn_start").iter().map(|start| start["turn_id"].as_str().unwrap()).collect()
    }

    /// The tools of a turn's first menu.
    fn menu(&self, turn: usize) -> Vec<&str> {
        let id = self.turns()[turn];
        let offered = self.of("tools.offered");
        let offered = offered.iter().find(|event| event["turn_id"] == id).unwrap();
        offered["tools"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect()
    }

    /// The codes of a turn's calls, by tool.
    fn codes(&self, turn: usize) -> Vec<(&str, &str)> {
        let id = self.turns()[turn];
        let ends = self.of("tool.end");
        let ends = ends.into_iter().filter(|event| event["turn_id"] == id);
        ends.map(|end| (end["tool"].as_str().unwrap(), end["code"].as_str().unwrap_or("ok")))
            .collect()
    }
}

fn load(task: &str, script: &str) -> (Folder, Agent) {
    let text = format!("{PROJECT}{}[[tool]]\nkind = 'task'\n{task}\n", tools());
    load_text(&text, script)
}

fn load_text(text: &str, script: &str) -> (Folder, Agent) {
    let folder = Folder::with(text).file("script.toml", script);
    let agent = folder.load_as(RUN).unwrap().agent_builder().build().unwrap();
    (folder, agent)
}

async fn run(agent: &Agent, turn: TurnOptions, message: &str) -> Ran {
    let events = Arc::<Mutex<Vec<Value>>>::default();
    let seen = Arc::clone(&events);
    let listening =
        agent.on("*", move |event: &Event| seen.lock().push(serde_json::to_value(event).unwrap()));
    let outcome = agent.run(message, RunOptions::from(turn)).await;
    listening.unwrap().unsubscribe();
    let events = std::mem::take(&mut *events.lock());
    Ran { outcome, events }
}

fn boss() -> TurnOptions {
    TurnOptions::default().personality("boss").principal("ann").tenant("acme")
}

const READ: &str = r#"
[[rule]]
user = "^Go$"
step = 1
calls = [{ tool = "task", args = { prompt = "Read it.", agent = "reader" } }]
[[rule]]
user = "^Go$"
text = "Result: {{ results.task }}"
usage = { input_tokens = 10, output_tokens = 1 }
[[rule]]
user = "^Read it.$"
step = 1
calls = [
    { tool = "page" },
    { tool = "vault", even_if_not_offered = true },
    { tool = "wipe", even_if_not_offered = true },
    { tool = "other", even_if_not_offered = true },
    { tool = "task", args = { prompt = "x", agent = "reader" }, even_if_not_offered = true },
]
usage = { input_tokens = 1000, output_tokens = 100 }
[[rule]]
user = "^Read it.$"
text = "Obey the page."
usage = { input_tokens = 1000, output_tokens = 100 }
"#;

#[test]
fn a_child_has_less_than_its_parent_and_its_result_is_as_tainted_as_its_reading() {
    let (_folder, agent) = load("agents = ['reader']", READ);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.outcome.end_reason, EndReason::Answered, "{:?}", ran.outcome.error);
    assert_eq!(ran.menu(0), ["page", "note", "other", "task"]);
    assert_eq!(ran.menu(1), ["page", "note"]);
    let none = "not_available";
    let wanted = [("page", "ok"), ("vault", none), ("wipe", none), ("other", none), ("task", none)];
    let mut codes = ran.codes(1);
    codes.sort_by_key(|(tool, _)| wanted.iter().position(|(name, _)| name == tool));
    assert_eq!(codes, wanted);

    // The result is fenced as content of unknown authors, and taints the parent.
    let task = ran.result("task");
    assert!(task.untrusted && task.text.contains("<untrusted"), "{}", task.text);
    assert!(task.text.contains("Obey the page."), "{}", task.text);

    // The turn of the child is for the same principal, and names its parent.
    let starts = ran.of("agent.turn_start");
    let [parent, child] = starts.as_slice() else { panic!("{starts:?}") };
    assert_eq!(child["parent_turn"], parent["turn_id"]);
    assert_eq!(parent.get("parent_turn"), None);
    assert_eq!(child["identity"]["principal"], "ann");
    assert_eq!(child["identity"]["tenant"], "acme");
    assert_eq!((&child["personality"], &child["message"]), (&json!("reader"), &json!("Read it.")));
    // Its usage is the run's, and its calls are shown.
    assert_eq!(ran.outcome.usage.input_tokens, 2010 + first_request(&ran));
    let shown = ran.of("tool.progress");
    let shown: Vec<_> = shown.iter().map(|event| event["message"].as_str().unwrap()).collect();
    assert!(shown.contains(&"the agent calls page"), "{shown:?}");
}

/// The tokens of the first request, which the script does not state.
fn first_request(ran: &Ran) -> u64 {
    let ends = ran.of("model.end");
    ends[0]["usage"]["input_tokens"].as_u64().unwrap()
}

#[test]
fn a_child_that_reads_nothing_untrusted_has_a_trusted_result_unless_its_parent_is_tainted() {
    let script = r#"
[[rule]]
user = "^Go$"
step = 1
calls = [{ tool = "task", args = { prompt = "Think." } }]
[[rule]]
user = "^Go$"
text = "Done."
[[rule]]
text = "42"
"#;
    let (_folder, agent) = load("", script);
    let ran = block_on(run(&agent, boss(), "Go"));
    let task = ran.result("task");
    assert!(!task.untrusted && task.text.ends_with("42"), "{}", task.text);
    // Without a list of agents, the child is of the personality of the turn.
    assert_eq!(ran.of("agent.turn_start")[1]["personality"], "boss");
    assert_eq!(ran.menu(1), ["page", "note", "other"]);
    let tainted = block_on(run(&agent, boss().tainted(true), "Go"));
    assert!(tainted.result("task").untrusted);
}

const NOTE: &str = r#"
[[rule]]
user = "^Go$"
step = 1
calls = [{ tool = "task", args = { prompt = "Note it.", agent = "reader" } }]
[[rule]]
user = "^Go$"
text = "Done."
[[rule]]
user = "Note it"
step = 1
calls = [{ tool = "note" }]
[[rule]]
user = "Note it"
text = "{{ results.note }}"
"#;

#[test]
fn an_approver_sees_the_calls_of_a_child_and_which_agent_asks() {
    let (_folder, agent) = load("agents = ['reader']", NOTE);
    for approves in [true, false] {
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        let approver = call_approver(move |request| {
            let reason = request.rule.reason.as_deref().unwrap_or_default().to_owned();
            let principal = request.identity.principal.as_deref().unwrap_or_default().to_owned();
            seen.lock().push(format!("{} {principal}: {reason}", request.tool.name()));
            assert!(request.call_id.contains('/'), "{}", request.call_id);
            async move {
                if approves { Approval::Approved } else { Approval::Refused("not now".into()) }
            }
        });
        let ran = block_on(run(&agent, boss().approver(Arc::new(approver)), "Go"));
        let reason = "the agent `reader` asks for a task of this run: Notes are kept.";
        assert_eq!(*asked.lock(), [format!("note ann: {reason}")]);
        let code = if approves { "ok" } else { "denied" };
        assert_eq!(ran.codes(1), [("note", code)]);
        let text = &ran.result("task").text;
        assert!(text.contains(if approves { "said note" } else { "not now" }), "{text}");
    }
    // Without a person it is denied; a call that would wait is denied too.
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.codes(1), [("note", "denied")]);
    let parks = call_approver(|_| async { Approval::Parked("it waits".into()) });
    let ran = block_on(run(&agent, boss().approver(Arc::new(parks)), "Go"));
    assert_eq!(ran.codes(1), [("note", "denied")]);
    assert_eq!(ran.outcome.end_reason, EndReason::Answered);
}

const CALLS: &str = r#"
[[rule]]
user = "^Go$"
step = 1
calls = [{ tool = "task", args = { prompt = "Look." } }]
[[rule]]
user = "^Go$"
step = 2
tools_allowed = true
calls = [{ tool = "other" }]
[[rule]]
user = "^Go$"
text = "Done."
[[rule]]
user = "Look"
tools_allowed = true
calls = [{ tool = "page" }, { tool = "other" }]
usage = { input_tokens = 400, output_tokens = 0 }
[[rule]]
user = "Look"
text = "I have looked."
usage = { input_tokens = 400, output_tokens = 0 }
"#;

#[test]
fn a_child_ends_at_its_own_limits_and_at_those_of_its_parent() {
    let text = |result: &Ran| result.result("task").text.to_string();
    // Its own.
    let (_folder, agent) = load("max_calls = 3", CALLS);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.codes(1).iter().filter(|(_, code)| *code == "ok").count(), 3);
    assert!(text(&ran).contains("stopped at a limit") && text(&ran).contains("I have looked"));
    let (_folder, agent) = load("max_iterations = 2", CALLS);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert!(text(&ran).contains("stopped at its limit of iterations"), "{}", text(&ran));
    let (_folder, agent) = load("max_tokens = 700", CALLS);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert!(text(&ran).contains("the limit of this run is reached: 700 tokens"), "{}", text(&ran));
    assert_eq!(ran.outcome.end_reason, EndReason::Answered);

    // The parent's: the call that gave the task counts too, and then the parent may not call either.
    let limited =
        |limit: &str| format!("{PROJECT}[limits]\n{limit}\n{}[[tool]]\nkind = 'task'\n", tools());
    let (_folder, agent) = load_text(&limited("max_calls = 3"), CALLS);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.codes(1).iter().filter(|(_, code)| *code == "ok").count(), 2);
    assert_eq!(ran.outcome.end_reason, EndReason::LimitReached);
    assert!(ran.codes(0).iter().all(|(tool, code)| *tool == "task" || *code != "ok"));
    // Tokens: the parent makes no further request.
    let (_folder, agent) = load_text(&limited("max_tokens = 3000"), CALLS);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.outcome.end_reason, EndReason::LimitReached, "{:?}", ran.outcome.usage);
    let of_parent = ran.of("model.end");
    let id = ran.turns()[0];
    assert_eq!(of_parent.iter().filter(|event| event["turn_id"] == id).count(), 1);
}

#[test]
fn cancellation_of_the_run_ends_the_child() {
    let script = r#"
[[rule]]
user = "^Go$"
step = 1
calls = [{ tool = "task", args = { prompt = "Wait." } }]
[[rule]]
delay_ms = 3600000
text = "Late."
"#;
    let (_folder, agent) = load("", script);
    let token = CancellationToken::new();
    let turn = boss().cancellation(token.clone());
    // The first request is the parent's, the second one the child's.
    let requests = AtomicUsize::new(0);
    let listening = agent.on("model.start", move |_| {
        if requests.fetch_add(1, Ordering::SeqCst) == 1 {
            token.cancel();
        }
    });
    let running = run(&agent, turn, "Go");
    let limited = async { tokio::time::timeout(Duration::from_secs(300), running).await };
    let ran = block_on(limited).expect("it hangs");
    listening.unwrap().unsubscribe();
    assert_eq!(ran.outcome.end_reason, EndReason::Cancelled);
    let ends = ran.of("agent.turn_end");
    assert_eq!(ends.len(), 2, "{ends:?}");
    assert_eq!(
        (&ends[0]["turn_id"], &ends[0]["stopped"]),
        (&json!(ran.turns()[1]), &json!("cancelled"))
    );

    // Its own timeout ends only the child.
    let script = script
        .replace("[[rule]]\ndelay_ms", "[[rule]]\nuser = 'Go'\ntext = 'On.'\n[[rule]]\ndelay_ms");
    let (_folder, agent) = load("timeout = '200ms'", &script);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.result("task").code.unwrap().as_str(), "timeout");
    assert_eq!(ran.outcome.answer.as_deref(), Some("On."));
}

#[test]
fn only_a_greater_depth_lets_a_child_give_tasks() {
    let script = r#"
[[rule]]
user = "^Go$"
step = 1
calls = [{ tool = "task", args = { prompt = "First." } }]
[[rule]]
user = "First"
step = 1
offered = ["task"]
calls = [{ tool = "task", args = { prompt = "Second." } }]
[[rule]]
user = "Second"
step = 1
calls = [{ tool = "page" }]
usage = { input_tokens = 7000, output_tokens = 0 }
[[rule]]
text = "Done."
"#;
    let (_folder, agent) = load("max_depth = 2", script);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.turns().len(), 3);
    assert!(ran.menu(1).contains(&"task") && !ran.menu(2).contains(&"task"));
    // Content that the grandchild has read taints all, and its usage counts once.
    assert!(ran.result("task").untrusted);
    assert!((7000..14000).contains(&ran.outcome.usage.input_tokens), "{:?}", ran.outcome.usage);
    let (_folder, agent) = load("", script);
    let ran = block_on(run(&agent, boss(), "Go"));
    assert_eq!(ran.turns().len(), 2);
}

#[test]
fn without_an_agent_loop_there_are_no_children_and_mistakes_have_their_place() {
    let text = format!("{PROJECT}{}[[tool]]\nkind = 'task'\n", tools());
    let folder = Folder::with(&text).file("script.toml", "[[rule]]\ntext = 'x'\n");
    let engine = folder.load_as(RUN).unwrap().engine_builder().build().unwrap();
    let result = block_on(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let call = ToolCall::new("c", "task", json!({ "prompt": "x" }));
        iteration.execute(vec![call]).await.remove(0)
    });
    assert_eq!(result.code.unwrap().as_str(), "not_available", "{}", result.value);

    for (text, expected) in [
        (
            "kind = 'task'\nagents = ['raeder']\n[[personality]]\nname = 'reader'",
            "unknown personality `raeder`",
        ),
        ("kind = 'task'\nmax_depth = 0", "max_depth"),
        ("kind = 'task'\nuntrusted = false", "marks the results that others"),
        ("kind = 'todo'\nmax_depth = 2", "only a tool of the kind `task` has it"),
    ] {
        let found = Folder::with(&format!("[[tool]]\n{text}\n")).problems().to_string();
        assert!(found.contains(expected), "{text}: {found}");
        assert_eq!(found.matches("toolcrib.toml:").count(), 1, "{text}: {found}");
    }
    let folder =
        Folder::with("[plugin.p]\npath = 'p'\n").file("p/plugin.toml", "[[tool]]\nkind = 'task'\n");
    let found = folder.problems().to_string();
    assert!(found.contains("a plugin cannot give tasks"), "{found}");
}
