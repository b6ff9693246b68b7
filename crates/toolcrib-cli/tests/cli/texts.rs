//! The texts for people, as on a terminal without colors.

use crate::support::{Outcome, Project};

/// Both streams, without what differs from run to run.
fn shown(project: &Project, args: &[&str]) -> String {
    let Outcome { code, stdout, stderr } = project.toolcrib(args);
    let text = format!(
        "$ toolcrib {}\n--- standard error\n{stderr}--- standard output\n{stdout}--- exit {}\n",
        args.join(" "),
        code.unwrap_or(-1)
    );
    steady(&text.replace(project.path().to_str().unwrap(), "PROJECT"))
}

/// A text without what differs from run to run.
pub(crate) fn steady(text: &str) -> String {
    let filters = [
        (r"\b[0-9.]+ (?:ms|s)\b", "TIME"),
        (r"\b[0-9a-f]{64}\b", "FINGERPRINT"),
        (r"\b20[0-9]{2}-[0-9]{2}-[0-9]{2}\b", "DAY"),
        (r"[0-9]+ tokens in, [0-9]+ out", "TOKENS"),
    ];
    filters.iter().fold(in_order(text), |text, (pattern, name)| {
        regex::Regex::new(pattern).unwrap().replace_all(&text, *name).into_owned()
    })
}

/// Calls of one iteration start and end in any order: they are sorted here.
fn in_order(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        match lines.last_mut() {
            // A call's result belongs to its line.
            Some(call) if line.starts_with("    ") => *call += &format!("\n{line}"),
            _ => lines.push(line.to_owned()),
        }
    }
    let is_call = |line: &str| line.starts_with("  →") || line.starts_with("  ✓");
    for calls in lines.chunk_by_mut(|a, b| is_call(a) && is_call(b)) {
        if calls.len() > 1 {
            calls.sort();
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn a_refund_and_its_repetition_are_shown() {
    let desk = Project::desk();
    let ask = "I was charged twice for order 1042, please refund one charge";
    insta::assert_snapshot!("refund", shown(&desk, &["run", ask]));
    insta::assert_snapshot!("refund_again", shown(&desk, &["run", ask]));
    insta::assert_snapshot!("refund_as_intern", shown(&desk, &["run", "--as", "intern", ask]));
}

#[test]
fn a_hostile_ticket_is_shown_in_full() {
    let desk = Project::desk();
    insta::assert_snapshot!("ticket", shown(&desk, &["run", "--verbose", "show ticket 6"]));
}

#[test]
fn a_menu_is_shown_with_and_without_reasons() {
    let desk = Project::desk();
    insta::assert_snapshot!("menu", shown(&desk, &["menu", "--skill", "billing"]));
    let why = ["menu", "--skill", "shipping", "--as", "intern", "--why"];
    insta::assert_snapshot!("menu_why", shown(&desk, &why));
}

#[test]
fn refused_calls_are_explained() {
    let desk = Project::desk();
    insta::assert_snapshot!(
        "call_invalid",
        shown(&desk, &["call", "list_charges", "order_id=x", "more=1"])
    );
    insta::assert_snapshot!("call_unknown", shown(&desk, &["call", "list_chages", "order_id=1"]));
    insta::assert_snapshot!(
        "call_withheld",
        shown(&desk, &["call", "close_account", "customer_id=1", "-v"])
    );
}

#[test]
fn mistakes_on_the_command_line_are_explained() {
    let desk = Project::desk();
    let slips: [&[&str]; 5] = [
        &["call", "list_charges", "order_id", "--fresh"],
        &["call", "list_charges", "order 1042"],
        &["call", "list_charges", "order_id=1", "@more.json"],
        &["run", "--model", "gpt-5", "hello"],
        &["run", "--model", "script:scrip.toml", "hello"],
    ];
    insta::assert_snapshot!("slips", slips.map(|args| shown(&desk, args)).join("\n"));
    assert!(!desk.state().exists(), "what cannot be read makes nothing");
}

#[test]
fn a_valid_and_a_broken_project_are_checked() {
    let desk = Project::desk();
    insta::assert_snapshot!("check", shown(&desk, &["check"]));
    let broken = Project::of(&[("toolcrib.toml", super::check::BROKEN), ("seed.sql", "")]);
    insta::assert_snapshot!("check_broken", shown(&broken, &["check"]));
}
