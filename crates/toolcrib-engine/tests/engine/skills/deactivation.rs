//! Deactivating skills, and listing them.

use serde_json::json;
use toolcrib_core::{ArgumentMatch, ErrorCode, IterationRange, Rule, RuleConditions, ToolCall};
use toolcrib_engine::{BuildError, SKILL_TOOLS, Skills, Turn, TurnError, TurnOptions};

use super::{active, desk, read, two};
use crate::support::{Log, call, engine, menu, offered, policy, skill_id, tool};

fn with_both() -> Skills {
    two().offer_list_skills(true).offer_deactivate_skill(true)
}

async fn put_away(turn: &mut Turn, id: &str) -> toolcrib_core::ToolResult {
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![call("deactivate_skill", json!({ "id": id }))]).await.remove(0)
}

#[tokio::test]
async fn a_model_deactivates_a_skill_and_the_menu_follows_the_other_skills() {
    let engine = desk(with_both());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    read(&mut turn, "billing").await;
    read(&mut turn, "shipping").await;
    let result = put_away(&mut turn, "shipping").await;
    assert_eq!(&*result.value, "Skill `shipping` is inactive from your next step on.");
    assert_eq!(active(&turn), ["billing"]);
    let own = ["read_skill", "list_skills", "deactivate_skill"];
    let menu_now = menu(&turn.iteration().await.unwrap());
    assert_eq!(menu_now, [&["refund", "help"][..], &own].concat());
    let events = log.of_name("skill.deactivated");
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["skill"], "shipping");
    assert_eq!(events[0]["by"], "deactivate_skill");
    assert_eq!(events[0]["iteration"], 3);

    let again = put_away(&mut turn, "shipping").await;
    assert_eq!(again.code, Some(ErrorCode::InputInvalid));
    assert_eq!(&*again.value, "skill `shipping` is not active");
    put_away(&mut turn, "billing").await;
    assert_eq!(menu(&turn.iteration().await.unwrap()).len(), 4 + own.len());
}

#[tokio::test]
async fn the_tools_for_skills_are_the_same_bytes_whichever_skills_are_active() {
    let engine = desk(with_both());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut seen = Vec::new();
    for id in ["billing", "shipping"] {
        let iteration = turn.iteration().await.unwrap();
        let own = ["read_skill", "list_skills", "deactivate_skill"];
        seen.push(own.map(|name| iteration.menu().get(name).unwrap().clone()));
        drop(iteration);
        read(&mut turn, id).await;
    }
    assert!(seen[0].iter().zip(&seen[1]).all(|(one, other)| one.same(other)));
}

#[tokio::test]
async fn a_host_activates_and_deactivates_skills_between_iterations() {
    let engine = desk(two());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    turn.activate_skill(skill_id("billing")).unwrap();
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["refund", "help", "read_skill"]);
    assert!(turn.deactivate_skill(&skill_id("billing")));
    assert!(!turn.deactivate_skill(&skill_id("billing")));
    assert_eq!(menu(&turn.iteration().await.unwrap()).len(), 5);
    let error = turn.activate_skill(skill_id("bill")).unwrap_err();
    assert!(matches!(error, TurnError::UnknownSkill { .. }));
    let by = |name: &str| log.of_name(name).iter().map(|e| e["by"].clone()).collect::<Vec<_>>();
    assert_eq!(by("skill.activated"), [json!("caller")]);
    assert_eq!(by("skill.deactivated"), [json!("caller")]);
    assert_eq!(log.of_name("skill.activated")[0].get("iteration"), None);
    assert_eq!(log.of_name("skill.deactivated")[0]["iteration"], 1);
}

#[tokio::test]
async fn of_a_batch_the_later_call_decides_whether_a_skill_is_active() {
    let engine = desk(with_both());
    for (names, expected) in [
        (["read_skill", "deactivate_skill"], &[][..]),
        (["deactivate_skill", "read_skill"], &["billing"]),
    ] {
        let options = TurnOptions::default().skill(skill_id("billing"));
        let mut turn = engine.turn(options).unwrap();
        let calls = names.map(|name| ToolCall::new(name, name, json!({ "id": "billing" })));
        turn.iteration().await.unwrap().execute(calls.into()).await;
        assert_eq!(active(&turn), expected);
    }
}

#[tokio::test]
async fn list_skills_names_the_skills_and_says_which_are_active() {
    let engine = desk(with_both());
    let options = TurnOptions::default().skill(skill_id("shipping")).skill(skill_id("billing"));
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let result = iteration.execute(vec![call("list_skills", json!({}))]).await.remove(0);
    insta::assert_snapshot!(result.value, @"
    - billing (active, the last): About billing.
    - shipping (active): About shipping.
    ");
}

#[tokio::test]
async fn list_and_deactivate_skill_are_not_offered_by_default_nor_without_read_skill() {
    let plain = offered(&desk(two()), TurnOptions::default()).await;
    assert_eq!(plain, ["refund", "track", "note", "help", "read_skill"]);
    let single = offered(&desk(with_both()), TurnOptions::default().without_read_skill()).await;
    assert_eq!(single, ["refund", "track", "note", "help"]);
    let none = desk(Skills::default().offer_list_skills(true));
    let none = offered(&none, TurnOptions::default()).await;
    assert_eq!(none, ["refund", "track", "note", "help"]);
}

#[test]
fn the_names_of_skill_tools_are_reserved() {
    for name in SKILL_TOOLS {
        let built = engine().tool(tool(name)).skills(two()).build();
        let Err(error @ BuildError::ReservedName { .. }) = built else { panic!("{name}: built") };
        assert!(error.to_string().contains(&format!("`{name}`")), "{error}");
    }
}

#[tokio::test]
async fn a_skill_that_rules_let_nobody_read_is_neither_named_nor_described() {
    let of = |id: &str| ArgumentMatch::at("/id").unwrap().equals(id);
    let secret = Rule::deny("secret")
        .tools(["read_skill"])
        .when(RuleConditions::default().tenants(["guest"]))
        .arguments([of("shipping")]);
    let every = Rule::deny("every")
        .tools(["read_skill"])
        .when(RuleConditions::default().tenants(["nobody"]));
    let engine = engine()
        .tools([tool("refund"), tool("track")])
        .skills(with_both())
        .policy(policy([secret, every]))
        .build()
        .unwrap();
    for (tenant, names, listed) in [
        (
            "guest",
            &["read_skill", "list_skills", "deactivate_skill"][..],
            "- billing: About billing.",
        ),
        ("nobody", &["list_skills"], "There is no skill that you may activate."),
        (
            "staff",
            &["read_skill", "list_skills", "deactivate_skill"],
            "- billing: About billing.\n- shipping: About shipping.",
        ),
    ] {
        let mut turn = engine.turn(TurnOptions::default().tenant(tenant)).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        assert_eq!(menu(&iteration), [&["refund", "track"], names].concat(), "{tenant}");
        let shown = iteration.menu().rendering().to_string();
        assert_eq!(shown.contains("About shipping"), tenant == "staff", "{shown}");
        let result = iteration.execute(vec![call("list_skills", json!({}))]).await.remove(0);
        assert_eq!(&*result.value, listed);
        drop(iteration);
        let code = read(&mut turn, "shipping").await.code;
        assert_eq!(code.is_none(), tenant == "staff");
    }
}

/// Rules for reading a certain skill and for reading at all are separate: no skill is named in the
/// iteration in which the second changes and the first does not.
#[tokio::test]
async fn a_skill_that_may_not_be_read_is_not_named_when_reading_as_such_comes_to_be_allowed() {
    let of = |id: &str| ArgumentMatch::at("/id").unwrap().equals(id);
    let first = IterationRange { at_least: None, at_most: Some(1) };
    let early = RuleConditions { iteration: Some(first), ..RuleConditions::default() };
    let engine = engine()
        .skills(two())
        .policy(policy([
            Rule::deny("not yet").tools(["read_skill"]).when(early),
            Rule::deny("billing").tools(["read_skill"]).arguments([of("billing")]),
            Rule::deny("shipping").tools(["read_skill"]).arguments([of("shipping")]),
        ]))
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for _ in 0..3 {
        let iteration = turn.iteration().await.unwrap();
        let shown = iteration.menu().rendering().to_string();
        assert!(!shown.contains("About"), "{shown}");
    }
}
