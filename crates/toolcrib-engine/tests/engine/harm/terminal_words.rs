//! The change that would offer a tool was shown to callers who cannot make it.

use futures_util::FutureExt as _;
use toolcrib_core::{ArgumentMatch, Effect, Policy, Rule, RuleConditions};
use toolcrib_engine::{
    FactChange, Personality, READ_SKILL, Skill, Skills, SmallestChange, ToolsMode, TurnOptions,
};

use crate::support::{engine, skill_id, tool};

fn skills() -> Skills {
    let vault = Skill::new(skill_id("vault"), "The vault.", "How to open it.")
        .tools([tool("open_vault").name().clone()])
        .tools_mode(ToolsMode::HiddenUntilActive);
    Skills::new(vec![vault, Skill::new(skill_id("key"), "The key.", "Nothing.")]).unwrap()
}

/// The change that would offer `open_vault` to bob, a trainee.
fn change(rules: impl IntoIterator<Item = Rule>) -> SmallestChange {
    let mut policy = Policy::of(rules);
    policy.roles.grant("bob", "trainee");
    let engine = engine()
        .tools([tool("open_vault")])
        .skills(skills())
        .policy(policy)
        .personality(Personality::new("clerk").exclude([READ_SKILL]))
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default().principal("bob")).unwrap();
    let iteration = turn.iteration().now_or_never().unwrap().unwrap();
    iteration.why("open_vault").unwrap().change
}

fn deny() -> Rule {
    let of_vault = ArgumentMatch::at("/id").unwrap().equals("vault");
    Rule::new("rule 1", Effect::Deny).tools([READ_SKILL]).arguments([of_vault])
}

#[test]
fn a_skill_was_advised_that_its_caller_may_not_activate() {
    let vault = || FactChange::ActivateSkill(skill_id("vault"));
    assert_eq!(change([]).facts, [vault()]);

    // Another caller could.
    let trainees =
        deny().reason("not for trainees").when(RuleConditions::default().roles(["trainee"]));
    let change_of_caller = change([trainees]);
    assert_eq!(change_of_caller.facts, [vault(), FactChange::LoseRole("trainee".into())]);
    let told = "rule 1 keeps this caller from activating skill `vault`: not for trainees";
    assert!(change_of_caller.text.contains(told), "{}", change_of_caller.text);

    // So could this one after another skill, in this order.
    let key = Rule::new("rule 0", Effect::Allow)
        .tools([READ_SKILL])
        .when(RuleConditions::default().skills([skill_id("key")]));
    let after_key = change([key, deny()]).facts;
    assert_eq!(after_key, [FactChange::ActivateSkill(skill_id("key")), vault()]);

    // No caller can, or only with an approval, which is not given here.
    for effect in [Effect::Deny, Effect::Ask, Effect::Halt] {
        let never = change([Rule { effect, ..deny() }]);
        assert_eq!(never.facts, [], "{effect:?}");
        assert!(never.text.starts_with("no skill, personality, principal"), "{}", never.text);
    }
}
