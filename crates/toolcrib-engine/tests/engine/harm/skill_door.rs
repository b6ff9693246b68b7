//! A turn could begin with a skill that its caller may not activate, and was offered the tools that
//! the skill hides.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{
    Approval, ArgumentMatch, CallDecision, Effect, Policy, Rule, RuleConditions, call_approver,
    call_middleware,
};
use toolcrib_engine::{
    Engine, EngineBuilder, Personality, READ_SKILL, Skill, Skills, ToolsMode, TurnError,
    TurnOptions,
};

use crate::support::{call, engine, offered, skill_id, tool};

/// The skill `vault` hides a tool; `open` hides nothing.
fn skills() -> Skills {
    let vault = Skill::new(skill_id("vault"), "The vault.", "How to open it.")
        .tools([tool("open_vault").name().clone()])
        .tools_mode(ToolsMode::HiddenUntilActive);
    Skills::new(vec![vault, Skill::new(skill_id("open"), "Open.", "Nothing.")]).unwrap()
}

fn under(rules: impl IntoIterator<Item = Rule>) -> EngineBuilder {
    let mut policy = Policy::of(rules);
    policy.roles.grant("bob", "trainee");
    engine().tools([tool("open_vault"), tool("note")]).skills(skills()).policy(policy)
}

fn rule(effect: Effect) -> Rule {
    Rule::new("the rule", effect).tools([READ_SKILL]).reason("not for trainees")
}

fn vault_only(effect: Effect) -> Rule {
    rule(effect).arguments([ArgumentMatch::at("/id").unwrap().equals("vault")])
}

fn trainees() -> RuleConditions {
    RuleConditions::default().roles(["trainee"])
}

fn bob() -> TurnOptions {
    TurnOptions::default().principal("bob")
}

fn refusal(engine: &Engine, options: TurnOptions) -> TurnError {
    engine.turn(options).expect_err("it may not begin")
}

/// Checks that neither a turn's options nor its host can activate the skill, and that it is
/// indistinguishable from one that does not exist.
async fn assert_closed(engine: &Engine, who: impl Fn() -> TurnOptions) {
    for asked in
        [who().skill(skill_id("vault")), who().skill(skill_id("vault")).without_read_skill()]
    {
        let check = engine.check_turn(&asked).unwrap_err();
        let refused = refusal(engine, asked);
        assert!(matches!(refused, TurnError::SkillRefused { .. }), "{refused:?}");
        assert_eq!(refused.to_string(), check.to_string());
        let unknown = refusal(engine, who().skill(skill_id("vaulx")));
        assert_eq!(unknown.caller_text().replace("vaulx", "vault"), refused.caller_text());
    }
    let mut turn = engine.turn(who()).unwrap();
    let refused = turn.activate_skill(skill_id("vault")).unwrap_err();
    assert!(matches!(refused, TurnError::SkillRefused { .. }), "{refused:?}");
    assert!(turn.active_skills().is_empty());
    let names = turn.iteration().await.unwrap();
    assert!(!names.menu().names().any(|name| **name == *"open_vault"));
}

#[tokio::test]
async fn a_skill_was_active_from_the_start_for_a_caller_whom_policy_denies_it() {
    for denied in [rule(Effect::Deny), vault_only(Effect::Deny)] {
        let engine = under([denied.when(trainees())]).build().unwrap();
        // As `read_skill` refuses the same caller.
        let read = vec![call(READ_SKILL, json!({ "id": "vault" }))];
        let mut turn = engine.turn(bob()).unwrap();
        assert!(turn.iteration().await.unwrap().execute(read).await[0].code.is_some());
        assert_closed(&engine, bob).await;
        let ana = TurnOptions::default().principal("ana").skill(skill_id("vault"));
        assert!(offered(&engine, ana).await.contains(&"open_vault".to_owned()));
    }
    let engine = under([vault_only(Effect::Deny)]).build().unwrap();
    assert!(engine.turn(bob().skill(skill_id("open"))).is_ok(), "another skill is not concerned");
    let both = bob().skill(skill_id("open")).skill(skill_id("vault"));
    assert!(engine.turn(both).is_err(), "nor does one that may be read open another");
}

#[tokio::test]
async fn a_rule_that_asks_or_halts_let_a_skill_be_active_from_the_start() {
    for effect in [Effect::Ask, Effect::Halt] {
        for rule in [rule(effect), vault_only(effect)] {
            let approves = call_approver(|_| async { Approval::Approved });
            let engine = under([rule]).approver(approves).build().unwrap();
            assert_closed(&engine, bob).await;
            let mut turn = engine.turn(bob()).unwrap();
            let _ = turn.activate_skill(skill_id("vault"));
            assert!(turn.halted().is_none(), "nothing was called that could end the run");
        }
    }
}

#[tokio::test]
async fn a_personality_without_read_skill_could_begin_with_a_skill() {
    let engine = under([]).personality(Personality::new("clerk").exclude([READ_SKILL]));
    assert_closed(&engine.build().unwrap(), || bob().personality("clerk")).await;
}

#[tokio::test]
async fn a_rule_on_another_active_skill_was_not_looked_at() {
    let after_open = rule(Effect::Deny).when(RuleConditions::default().skills([skill_id("open")]));
    let engine = under([after_open]).build().unwrap();
    assert!(engine.turn(bob().skill(skill_id("vault"))).is_ok());
    let order = |ids: [&str; 2]| bob().skill(skill_id(ids[0])).skill(skill_id(ids[1]));
    assert!(engine.turn(order(["vault", "open"])).is_ok());
    assert!(engine.turn(order(["open", "vault"])).is_err());
    let mut turn = engine.turn(bob().skill(skill_id("open"))).unwrap();
    assert!(turn.activate_skill(skill_id("vault")).is_err());
}

#[tokio::test]
async fn a_middleware_that_denies_the_call_was_not_asked() {
    let answers = |verdict: fn() -> CallDecision| {
        let middleware = call_middleware("guard", move |call| {
            let is_vault = call.args["id"] == "vault" && *call.tool.name() == *READ_SKILL;
            Ok(if is_vault { verdict() } else { CallDecision::Proceed })
        });
        under([]).middleware(middleware).build().unwrap()
    };
    let verdicts: [fn() -> CallDecision; 2] =
        [|| CallDecision::Deny("no".into()), || CallDecision::Rewrite(json!({ "id": "open" }))];
    for verdict in verdicts {
        let engine = answers(verdict);
        let mut turn = engine.turn(bob().skill(skill_id("vault"))).unwrap();
        for _ in 0..2 {
            let refused = turn.iteration().await.unwrap_err();
            assert!(matches!(refused, TurnError::SkillRefused { .. }), "{refused:?}");
        }
        let mut turn = engine.turn(bob().skill(skill_id("open"))).unwrap();
        turn.iteration().await.unwrap();
        turn.activate_skill(skill_id("vault")).unwrap();
        assert!(turn.iteration().await.is_err());
    }
    assert!(
        offered(&answers(|| CallDecision::Proceed), bob().skill(skill_id("vault"))).await.len() > 1
    );
}

#[test]
fn the_operator_reads_which_rule_refuses_and_the_caller_does_not() {
    let engine = under([vault_only(Effect::Deny)]).build().unwrap();
    let refused = refusal(&engine, bob().skill(skill_id("vault")));
    let text = refused.to_string();
    assert!(text.contains("the rule denies") && text.contains("not for trainees"), "{text}");
    assert_eq!(refused.caller_text(), "unknown skill `vault`");
    let long: Arc<str> = "x".repeat(100_000).into();
    let unknown = refusal(&engine, bob().skill(toolcrib_core::SkillId::new(long).unwrap()));
    assert!(unknown.caller_text().len() < 200);
}
