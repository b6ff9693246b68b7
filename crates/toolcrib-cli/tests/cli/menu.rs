//! The model's menu, and the reasons for the rest.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::{Project, listing};

fn offered(menu: &Value) -> BTreeSet<String> {
    let tools = menu["offered"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn on_a_refund_turn_the_model_sees_three_tools_and_read_skill() {
    let desk = Project::desk();
    let (code, menu) = desk.json(&["menu", "--skill", "billing"]);
    assert_eq!(code, Some(0));
    let names = ["list_charges", "list_refunds", "read_skill", "refund_duplicate_charge"];
    assert_eq!(offered(&menu), names.map(str::to_owned).into());
    let withheld = menu["withheld"].as_array().unwrap();
    assert_eq!(withheld.len(), 22);
    for tool in withheld {
        assert!(!tool["reason"].as_str().unwrap().is_empty(), "{tool}");
        assert!(["skill", "policy"].contains(&tool["by"].as_str().unwrap()), "{tool}");
    }
    assert_eq!(menu["fingerprint"].as_str().unwrap().len(), 64);
    assert!(menu["chars"].as_u64().unwrap() > 500);
}

#[test]
fn verbose_shows_descriptions_in_full() {
    let desk = Project::desk();
    let (_, menu) = desk.json(&["menu"]);
    let descriptions: Vec<_> = menu["offered"].as_array().unwrap().iter().collect();
    let descriptions = descriptions.iter().map(|tool| tool["description"].as_str().unwrap());
    let lines: Vec<String> =
        descriptions.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert!(lines.iter().any(|line| line.chars().count() > 72), "{lines:?}");
    let (short, full) = (desk.toolcrib(&["menu"]).stdout, desk.toolcrib(&["menu", "-v"]).stdout);
    assert!(short.contains('…'), "{short}");
    for line in lines {
        assert!(full.contains(&line), "{line}:\n{full}");
    }
}

#[test]
fn the_same_menu_has_the_same_bytes() {
    let desk = Project::desk();
    let (_, first) = desk.json(&["menu", "--skill", "billing"]);
    let (_, second) = desk.json(&["menu", "--skill", "billing", "--session", "other"]);
    assert_eq!(first, second);
}

#[test]
fn menu_and_check_write_nothing() {
    let desk = Project::desk();
    let before = listing(desk.path());
    desk.json(&["menu"]);
    desk.json(&["check"]);
    assert_eq!(listing(desk.path()), before);
    desk.toolcrib(&["call", "list_charges", "order_id=1042"]);
    let before = listing(desk.path());
    desk.json(&["menu"]);
    desk.json(&["check"]);
    assert_eq!(listing(desk.path()), before);
}

#[test]
fn an_unknown_skill_is_a_usage_error_that_names_the_known_ones() {
    let desk = Project::desk();
    for command in [&["menu"][..], &["run", "hello"], &["call", "list_charges"]] {
        let args: Vec<_> = command.iter().copied().chain(["--skill", "biling"]).collect();
        let outcome = desk.toolcrib(&args);
        assert_eq!(outcome.code, Some(2));
        assert!(outcome.stderr.contains("`billing`"), "{}", outcome.stderr);
    }
}
