//! Stored runs: the list, the trace as text, JSON and page. The page in a browser is in `browser`.

mod browser;
mod examples;

use std::{fs, os::unix::fs::PermissionsExt as _};

use serde_json::Value;

use crate::support::{Outcome, Project};

/// A tool whose results try everything, and one that writes. 4 iterations with 25 calls each.
const FILE: &str = r#"
policy_default = "allow"
[agent]
model = "script:script.toml"
[[tool]]
kind = "command"
name = "fetch"
description = "Fetches."
program = "cat"
args = ["{file}"]
params = { file = { type = "string", description = "The file." } }
read_only = true
[[tool]]
kind = "command"
name = "secret_tool"
description = "Is withheld."
program = "true"
[[policy]]
effect = "deny"
tool = "secret_tool"
reason = "<script>document.title='owned by a rule'</script>"
"#;

fn run(project: &Project, message: &str) -> Value {
    let (code, run) = project.json(&["run", message]);
    assert_eq!(code, Some(0), "{run}");
    run
}

/// The text without times and ids.
fn stable(text: &str) -> String {
    let mut text = text.to_owned();
    for (pattern, with) in [
        (r"\d{4}-\d\d-\d\d \d\d:\d\d UTC", "[time]"),
        (r"\d+(\.\d)? m?s\b", "[ms]"),
        (r"[0-9a-f]{12}/", "[id]/"),
        (r" \(first piece after \[ms\]\)", ""),
        (r"2026-\d\d-\d\d", "[day]"),
    ] {
        text = regex::Regex::new(pattern).unwrap().replace_all(&text, with).into_owned();
    }
    text
}

fn shown(outcome: &Outcome) -> String {
    assert_eq!((outcome.code, &*outcome.stderr), (Some(0), ""), "{}", outcome.stdout);
    stable(&outcome.stdout)
}

#[test]
fn a_run_is_listed_and_its_trace_says_what_was_offered_called_and_changed() {
    let project = Project::desk();
    let none = project.toolcrib(&["trace"]);
    assert_eq!(none.code, Some(2));
    assert!(
        none.stderr.contains("no runs are stored for this principal and tenant"),
        "{}",
        none.stderr
    );
    let run = run(&project, "I was charged twice for order 1042, please refund one charge");
    insta::assert_snapshot!(shown(&project.toolcrib(&["runs"])), @r"
    [id]/1  I was charged twice for order 1042, please refund one charge
        [time], answered, script:script.toml, 4 calls, 4,032 tokens in, 62 out, $0
    ");
    insta::assert_snapshot!(shown(&project.toolcrib(&["trace"])), @r#"
    run [id]/1  answered  [time], [ms]
      script:script.toml, 4 iterations, 4 calls
      4,032 tokens in, 62 out, $0
      user      I was charged twice for order 1042, please refund one charge

    iteration 1  +[ms]
      discovery registry: 25 tools in [ms]; skills: 1 tool in [ms]
      menu      16 tools offered, 10 withheld (2ee10254)
      withheld  refund_duplicate_charge, change_delivery_address, hold_shipment and 7 more: policy rule 2 (toolcrib.toml:31) denies it: Data is changed only under a skill that says how. (policy)
      model     script:script.toml: 1 message and 16 tools sent, 5,940 B; 26 B back in [ms]; 1,489 tokens in, 7 out, $0
      call      read_skill {"id":"billing"}  ok in [ms] (reads)
      bytes     892 B produced
      result    Skill `billing` is active. Its tools are offered from your next step on. # Billing 1. Look up the order's charges and its refunds with `list_charges` and `list_refunds`. Both can be asked at the same time. 2. If the customer asks for money back, call `refund_duplicate_charge` once. It decides wheth…
      event     skill.activated +[ms]  by: read_skill; skill: billing

    iteration 2  +[ms]
      discovery registry: 25 tools in [ms]; skills: 1 tool in [ms]
      menu      4 tools offered, 22 withheld (be3d207b)
      withheld  track_shipment, list_shipment_events, list_open_shipments and 10 more: no active skill lists it (active: `billing`) (skill)
      withheld  change_delivery_address, hold_shipment, report_lost_shipment and 6 more: policy rule 2 (toolcrib.toml:31) denies it: Data is changed only under a skill that says how.; no active skill lists it (active: `billing`) (policy)
      event     model.prefix_changed +[ms]  tools removed: track_shipment, list_shipment_events, list_open_shipments and 10 more; tools added: refund_duplicate_charge
      model     script:script.toml: 3 messages and 4 tools sent, 2,994 B; 58 B back in [ms]; 749 tokens in, 15 out, $0
      call      list_charges {"order_id":1042}  ok in [ms] (reads)
      bytes     150 B produced, fence 245 B
      result    {"rows":[{"charge_id":74,"amount_cents":12900,"charged_on":"[day]"},{"charge_id":75,"amount_cents":12900,"charged_on":"[day]"}],"changed":0}
      call      list_refunds {"order_id":1042}  ok in [ms] (reads)
      bytes     69 B produced, fence 164 B
      result    {"rows":[],"changed":0,"note":"Nothing was refunded for this order."}

    iteration 3  +[ms]
      discovery registry: 25 tools in [ms]; skills: 1 tool in [ms]
      menu      4 tools offered, 22 withheld (be3d207b, as before)
      model     script:script.toml: 6 messages and 4 tools sent, 3,461 B; 40 B back in [ms]; 866 tokens in, 10 out, $0
      call      refund_duplicate_charge {"order_id":1042}  ok in [ms] (writes)
      bytes     103 B produced, fence 209 B
      result    {"rows":[{"refund_id":121,"charge_id":75,"amount_cents":12900,"refunded_on":"[day]"}],"changed":1}

    iteration 4  +[ms]
      discovery registry: 25 tools in [ms]; skills: 1 tool in [ms]
      menu      4 tools offered, 22 withheld (be3d207b, as before)
      model     script:script.toml: 8 messages and 4 tools sent, 3,710 B; 117 B back in [ms]; 928 tokens in, 30 out, $0

    answer  Order 1042 was charged 2 times: 129.00, 129.00 euro. I have refunded one charge, 129.00 euro (charge 75, refund 121).

      event     agent.turn_end +[ms]  stopped: answered; iterations: 4
    "#);
    let session = run["session"].as_str().unwrap();
    for name in [session.to_owned(), format!("{session}/1")] {
        let (_, trace) = project.json(&["trace", &name]);
        assert_eq!((&trace["turn"], &trace["stopped"]), (&1.into(), &"answered".into()));
        assert_eq!(trace["usage"], run["usage"]);
    }
    let missing = project.toolcrib(&["trace", &format!("{session}/2")]);
    assert_eq!(missing.code, Some(2));
    assert!(missing.stderr.contains("has no such turn; it has 1, from 1"), "{}", missing.stderr);
    // Another principal sees nothing of it.
    let other = project.toolcrib(&["trace", session, "--as", "ann"]);
    assert_eq!(other.code, Some(2));
    assert_eq!(project.toolcrib(&["runs", "-q", "--as", "ann"]).stdout, "");
}

#[test]
fn a_page_is_one_private_file_without_script_that_allows_only_its_own_style() {
    let project = Project::desk();
    run(&project, "I was charged twice for order 1042, please refund one charge");
    let path = project.path().join("run.html");
    let file = path.to_str().unwrap();
    let outcome = project.toolcrib(&["trace", "--html", file]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    let page = fs::read_to_string(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let policy = "content=\"default-src 'none'; style-src 'sha256-";
    assert!(page.contains(policy), "{page}");
    for absent in ["<script", "http://", "https://", " style=", " onclick", "<link", "<img"] {
        assert!(!page.contains(absent), "{absent}");
    }
    let again = project.toolcrib(&["trace", "--html", file]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("already exists"), "{}", again.stderr);
}

#[test]
fn a_replay_of_the_example_differs_in_nothing_and_changes_nothing() {
    let project = Project::desk();
    run(&project, "I was charged twice for order 1042, please refund one charge");
    let state = || -> i64 {
        let desk = rusqlite::Connection::open(project.path().join(".toolcrib/desk.db")).unwrap();
        desk.query_row("SELECT count(*) FROM refunds", [], |row| row.get(0)).unwrap()
    };
    let before = state();
    for sides in [&["replay"] as &[&str], &["replay", "--tools"]] {
        let outcome = project.toolcrib(sides);
        assert_eq!(outcome.code, Some(0), "{}{}", outcome.stdout, outcome.stderr);
        assert!(outcome.stdout.contains("no difference"), "{}", outcome.stdout);
    }
    // The refund of the run is in the database now, and a read shows it. It is not made again.
    let (code, replay) = project.json(&["replay", "--model"]);
    assert_eq!(code, Some(1), "{replay}");
    let difference = &replay["difference"];
    assert_eq!((&difference["iteration"], &difference["part"]), (&2.into(), &"result".into()));
    assert_eq!(difference["call"]["tool"], "list_refunds");
    assert!(difference["expected"].as_str().unwrap().contains("Nothing was refunded"));
    assert!(difference["actual"].as_str().unwrap().contains("refund_id"));
    assert_eq!(state(), before);
    assert_eq!(project.json(&["runs"]).1["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_replay_names_the_first_call_whose_answer_changed_and_a_changed_menu() {
    let project = Project::of(&[
        ("toolcrib.toml", FILE),
        (
            "script.toml",
            "[[rule]]\nstep = 1\ncalls = [{ tool = \"fetch\", args = { file = \"a.txt\" } }, \
             { tool = \"fetch\", args = { file = \"b.txt\" } }]\n\
             [[rule]]\ntext = \"Done.\"\n",
        ),
        ("a.txt", "alpha"),
        ("b.txt", "beta"),
    ]);
    run(&project, "Fetch both");
    assert_eq!(project.json(&["replay", "--model"]).0, Some(0));
    project.write("b.txt", "changed");
    let (code, replay) = project.json(&["replay", "--model"]);
    assert_eq!(code, Some(1), "{replay}");
    let difference = &replay["difference"];
    let place = (&difference["iteration"], &difference["call"]["number"], &difference["part"]);
    assert_eq!(place, (&1.into(), &2.into(), &"result".into()), "{replay}");
    assert!(difference["expected"].as_str().unwrap().contains("beta"), "{replay}");
    assert!(difference["actual"].as_str().unwrap().contains("changed"), "{replay}");
    project.write("toolcrib.toml", &FILE.replace("\"secret_tool\"\nreason", "\"fetch\"\nreason"));
    let (code, replay) = project.json(&["replay"]);
    assert_eq!(code, Some(1), "{replay}");
    let place = (&replay["difference"]["iteration"], &replay["difference"]["part"]);
    assert_eq!(place, (&1.into(), &"menu".into()), "{replay}");
    assert!(replay["difference"]["expected"].as_str().unwrap().contains("fetch"), "{replay}");
}
