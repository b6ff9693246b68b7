//! The results of a model's search, for people.

use crate::support::Project;

const BILLING: &str = "refund_duplicate_charge";
const NEED: &str = "refund a duplicate charge";

#[test]
fn an_expected_tool_has_a_rank_with_its_words() {
    let desk = Project::desk();
    let (code, found) = desk.json(&[
        "find",
        "refund a duplicate charge by wire",
        "--skill",
        "billing",
        "--expect",
        BILLING,
    ]);
    assert_eq!(code, Some(0));
    assert_eq!(found["found"][0]["tool"], BILLING);
    assert_eq!(found["deferred"], false);
    assert_eq!(found["expected"]["is"], "ranked");
    assert_eq!(found["expected"]["rank"], 1);
    assert_eq!(found["expected"]["missing"][0], "wire");
    let outcome = desk.toolcrib(&["find", NEED, "--skill", "billing", "--expect", BILLING]);
    assert!(outcome.stdout.contains("rank 1"), "{}", outcome.stdout);
}

#[test]
fn an_expected_tool_that_a_rule_withholds_is_explained() {
    let desk = Project::desk();
    let with = ["find", NEED, "--skill", "billing", "--as", "intern", "--expect", BILLING];
    let (code, found) = desk.json(&with);
    assert_eq!(code, Some(1));
    assert_eq!(found["expected"]["is"], "withheld");
    assert_eq!(found["expected"]["why"]["tool"], BILLING);
    let ranked = found["found"].as_array().unwrap();
    assert!(!ranked.is_empty() && ranked.iter().all(|found| found["tool"] != BILLING), "{found}");
    let outcome = desk.toolcrib(&with);
    assert!(outcome.stdout.contains("is withheld by policy"), "{}", outcome.stdout);
}

#[test]
fn an_expected_tool_without_a_word_of_the_need_has_no_rank() {
    let desk = Project::desk();
    let (code, found) = desk.json(&["find", "zzqqxx", "--expect", "list_charges"]);
    assert_eq!(code, Some(1));
    assert_eq!(found["expected"]["rank"], serde_json::Value::Null);
    let outcome = desk.toolcrib(&["find", "zzqqxx", "--expect", "list_chargs"]);
    assert_eq!(outcome.code, Some(2));
    assert!(outcome.stderr.contains("list_charges"), "{}", outcome.stderr);
}
