//! The smallest change, one kind of fact at a time: facts that make rules true, and false.

use futures_util::FutureExt as _;
use toolcrib_core::{
    ArgumentMatch, Policy, PolicyDefault, Rule, RuleConditions, ToolName, skill_scoped_tools,
};
use toolcrib_engine::{
    Engine, EngineBuilder, FactChange, Personality, PluginRegistrar, READ_SKILL, Skill, Skills,
    ToolsMode, TurnOptions,
};

use crate::{
    plugins::Brings,
    support::{builder, engine, says, skill_id, skills, tool},
};

fn skill(id: &str) -> FactChange {
    FactChange::ActivateSkill(skill_id(id))
}

fn not_skill(id: &str) -> FactChange {
    FactChange::DeactivateSkill(skill_id(id))
}

fn tenant(name: &str) -> FactChange {
    FactChange::Tenant(name.into())
}

fn principal(name: &str) -> FactChange {
    FactChange::Principal(name.into())
}

fn personality(id: &str) -> FactChange {
    FactChange::Personality(id.into())
}

fn gain(role: &str) -> FactChange {
    FactChange::GainRole(role.into())
}

fn lose(role: &str) -> FactChange {
    FactChange::LoseRole(role.into())
}

fn here() -> TurnOptions {
    TurnOptions::default()
}

fn when() -> RuleConditions {
    RuleConditions::default()
}

fn on_skill(id: &str) -> RuleConditions {
    when().skills([skill_id(id)])
}

/// A world of one tool, `t`, which skill `one` lists, with what rules decide on it.
fn world(default: PolicyDefault, rules: impl IntoIterator<Item = Rule>) -> Engine {
    in_world(default, rules, ["other", "third"].map(Personality::new))
}

/// The same under other personalities, beside a tool `own` that is not always included.
fn in_world(
    default: PolicyDefault,
    rules: impl IntoIterator<Item = Rule>,
    personalities: impl IntoIterator<Item = Personality>,
) -> Engine {
    let mut policy = Policy { default, ..Policy::of(rules) };
    policy.roles.grant("ann", "by-name");
    policy.roles.grant_to_tenant("acme", "by-tenant");
    policy.roles.grant_to_claim("groups", ["ops"], "by-claim");
    policy.roles.grant("ann", "by-name-or-tenant");
    policy.roles.grant_to_tenant("acme", "by-name-or-tenant");
    policy.roles.grant_to_tenant("acme", "by-tenant-or-claim");
    policy.roles.grant_to_claim("groups", ["ops"], "by-tenant-or-claim");
    policy.roles.grant_to_tenant("umbrella", "of-umbrella");
    let skills = skills([("one", &["t"]), ("two", &[]), ("three", &[])]).focus(false);
    let builder =
        engine().tool(says(builder("t").always_include(), "")).tool(tool("own")).skills(skills);
    let builder = personalities.into_iter().fold(builder, EngineBuilder::personality);
    builder.policy(policy).build().unwrap()
}

/// The smallest change for a tool that is offered or not, as expected.
fn change(engine: &Engine, options: TurnOptions, tool: &str, offered: bool) -> Vec<FactChange> {
    let iteration = engine.turn(options).unwrap().iteration().now_or_never().unwrap().unwrap();
    let why = iteration.why(tool).unwrap();
    assert_eq!(why.offered, offered, "{why:?}");
    why.change.facts
}

/// A condition, the situation, and the expected change.
type Case = (RuleConditions, fn() -> TurnOptions, Vec<FactChange>);

/// Changes that make a false rule true.
fn to_make_hold() -> Vec<Case> {
    vec![
        (on_skill("two"), here, vec![skill("two")]),
        (when().skills(["gone", "two"].map(skill_id)), here, vec![skill("two")]),
        (when().listed_by_active_skill(true), here, vec![skill("one")]),
        (
            when().listed_by_active_skill(false),
            || here().skill(skill_id("one")),
            vec![not_skill("one")],
        ),
        (when().tenants(["acme"]), here, vec![tenant("acme")]),
        (when().tenants(["acme"]), || here().tenant("other"), vec![tenant("acme")]),
        (when().principals(["ann"]), here, vec![principal("ann")]),
        (when().principals(["ann"]), || here().principal("bob"), vec![principal("ann")]),
        (when().personalities(["third"]), here, vec![personality("third")]),
        (when().from_iteration(2), here, vec![FactChange::Iteration(2)]),
        (when().roles(["by-name"]), here, vec![gain("by-name")]),
        (when().roles(["by-claim"]), here, vec![gain("by-claim")]),
        (when().roles(["by-tenant"]), here, vec![tenant("acme")]),
        (when().roles(["undeclared"]), here, vec![gain("undeclared")]),
        (on_skill("two").tenants(["acme"]), here, vec![skill("two"), tenant("acme")]),
        // A principal with a role who is also named is one fact, not two.
        (when().roles(["by-name"]).principals(["bob", "ann"]), here, vec![principal("ann")]),
        (
            when().roles(["by-claim"]).principals(["bob"]),
            here,
            vec![gain("by-claim"), principal("bob")],
        ),
    ]
}

/// Changes that make a true rule false.
fn to_end() -> Vec<Case> {
    vec![
        (on_skill("two"), || here().skill(skill_id("two")), vec![not_skill("two")]),
        (
            when().skills(["two", "three"].map(skill_id)),
            || here().skill(skill_id("two")).skill(skill_id("three")),
            vec![not_skill("three"), not_skill("two")],
        ),
        (when().listed_by_active_skill(false), here, vec![skill("one")]),
        (
            when().listed_by_active_skill(true),
            || here().skill(skill_id("one")),
            vec![not_skill("one")],
        ),
        (when().tenants(["acme"]), || here().tenant("acme"), vec![FactChange::OtherTenant]),
        (when().principals(["ann"]), || here().principal("ann"), vec![FactChange::OtherPrincipal]),
        (when().personalities(["default", "other"]), here, vec![personality("third")]),
        (when().to_iteration(3), here, vec![FactChange::Iteration(4)]),
        (when().roles(["by-name"]), || here().principal("ann"), vec![lose("by-name")]),
        (when().roles(["by-claim"]), || here().claim("groups", "ops"), vec![lose("by-claim")]),
        (when().roles(["by-tenant"]), || here().tenant("acme"), vec![FactChange::OtherTenant]),
        (
            when().roles(["by-name-or-tenant"]),
            || here().principal("ann").tenant("acme"),
            vec![lose("by-name-or-tenant"), FactChange::OtherTenant],
        ),
        (
            when().roles(["by-tenant-or-claim"]),
            || here().claim("groups", "ops").tenant("acme"),
            vec![lose("by-tenant-or-claim"), FactChange::OtherTenant],
        ),
        // A principal with a role who is also named is one fact, not two.
        (
            when().roles(["by-name"]).principals(["ann"]),
            || here().principal("ann"),
            vec![FactChange::OtherPrincipal],
        ),
        (
            when().roles(["by-claim"]).principals(["ann"]),
            || here().principal("ann").claim("groups", "ops"),
            vec![lose("by-claim")],
        ),
    ]
}

#[test]
fn the_change_that_makes_a_rule_match_offers_or_withholds_a_tool() {
    for (when, here, expected) in to_make_hold() {
        let some = || [Rule::allow("some").when(when.clone()), Rule::deny("all")];
        let offering = world(PolicyDefault::Allow, some());
        assert_eq!(change(&offering, here(), "t", false), expected, "{when:?}");
        let offering = world(PolicyDefault::Deny, some().into_iter().take(1));
        assert_eq!(change(&offering, here(), "t", false), expected, "{when:?}");
        let withholding = world(PolicyDefault::Allow, [Rule::deny("some").when(when.clone())]);
        assert_eq!(change(&withholding, here(), "t", true), expected, "{when:?}");
    }
}

#[test]
fn what_ends_a_rule_offers_a_tool_or_withholds_it() {
    for (when, here, expected) in to_end() {
        let offering = world(PolicyDefault::Allow, [Rule::deny("some").when(when.clone())]);
        assert_eq!(change(&offering, here(), "t", false), expected, "{when:?}");
        let withholding = world(PolicyDefault::Deny, [Rule::allow("some").when(when.clone())]);
        assert_eq!(change(&withholding, here(), "t", true), expected, "{when:?}");
    }
}

/// One fact can end a rule that denies and make one true that allows: two would be too many.
#[test]
fn what_ends_a_rule_is_what_a_later_one_asks_for() {
    type Pair = (RuleConditions, RuleConditions, fn() -> TurnOptions, FactChange);
    let cases: Vec<Pair> = vec![
        (
            when().tenants(["acme"]),
            when().tenants(["other"]),
            || here().tenant("acme"),
            tenant("other"),
        ),
        (
            when().tenants(["acme"]),
            when().roles(["of-umbrella"]),
            || here().tenant("acme"),
            tenant("umbrella"),
        ),
        (
            when().roles(["by-tenant"]),
            when().tenants(["other"]),
            || here().tenant("acme"),
            tenant("other"),
        ),
        (
            when().principals(["ann"]),
            when().principals(["bob"]),
            || here().principal("ann"),
            principal("bob"),
        ),
        (
            when().principals(["bob"]),
            when().roles(["by-name"]),
            || here().principal("bob"),
            principal("ann"),
        ),
        (
            when().roles(["by-name"]),
            when().principals(["bob"]),
            || here().principal("ann"),
            principal("bob"),
        ),
        (
            when().personalities(["default"]),
            when().personalities(["third"]),
            here,
            personality("third"),
        ),
        (when().to_iteration(3), when().from_iteration(6), here, FactChange::Iteration(6)),
    ];
    for (denied, allowed, here, expected) in cases {
        let rules =
            [Rule::deny("one").when(denied.clone()), Rule::allow("two").when(allowed.clone())];
        let engine = world(PolicyDefault::Deny, rules);
        let found = change(&engine, here(), "t", false);
        assert_eq!(found, [expected], "{denied:?} {allowed:?}");
    }
}

/// A role from a tenant can also be had without it, if other claims give it.
#[test]
fn a_role_of_a_tenant_can_also_come_from_a_name_or_a_claim() {
    for role in ["by-name-or-tenant", "by-tenant-or-claim"] {
        let rules = [
            Rule::deny("tenant").when(when().tenants(["acme"])),
            Rule::allow("role").when(when().roles([role])),
        ];
        let engine = world(PolicyDefault::Deny, rules);
        assert_eq!(change(&engine, here(), "t", false), [gain(role)]);
    }
}

#[test]
fn there_is_no_iteration_before_the_first() {
    let rules = [
        Rule::deny("ever").when(when().from_iteration(1)),
        Rule::allow("since ever").when(when().from_iteration(0)),
    ];
    assert_eq!(change(&world(PolicyDefault::Allow, rules), here(), "t", false), []);
}

/// A gate asks for skill `audit` as the last one, and `desk` was activated after it.
#[test]
fn a_skill_is_the_last_again_once_those_behind_it_are_not_active() {
    let world = |rules: Vec<Rule>| {
        engine()
            .provider(skill_scoped_tools("audit", [tool("t")]).unwrap())
            .skills(skills([("audit", &["t"]), ("desk", &["t"])]))
            .policy(Policy::of(rules))
            .build()
            .unwrap()
    };
    let both = || here().skill(skill_id("audit")).skill(skill_id("desk"));
    assert_eq!(change(&world(Vec::new()), both(), "t", false), [skill("audit")]);
    let busy = Rule::deny("busy").when(on_skill("desk"));
    assert_eq!(change(&world(vec![busy]), both(), "t", false), [not_skill("desk")]);
}

#[test]
fn a_skill_that_is_not_there_cannot_be_activated() {
    let engine =
        engine().provider(skill_scoped_tools("gone", [tool("t")]).unwrap()).build().unwrap();
    assert_eq!(change(&engine, here(), "t", false), []);
}

#[test]
fn skills_withhold_a_tool_by_one_that_does_not_list_it() {
    let world = |skills: Skills, rules: Vec<Rule>| {
        engine().tool(tool("t")).skills(skills).policy(Policy::of(rules)).build().unwrap()
    };
    let three = || skills([("one", &["t"]), ("two", &["ghost"]), ("three", &[])]);
    assert_eq!(change(&world(three(), Vec::new()), here(), "t", true), [skill("two")]);
    let active = || here().skill(skill_id("one"));
    assert_eq!(
        change(&world(three(), Vec::new()), active(), "t", true),
        [skill("two"), not_skill("one")]
    );
    let listing = || skills([("one", &["t"])]);
    assert_eq!(change(&world(listing(), Vec::new()), here(), "t", true), []);
}

/// An engine with the host's tool `own`, which the default personality excludes, and a plugin whose
/// tool `refund` its skill `refunds` hides until it is active. Personality `bare` reaches no
/// plugin.
fn with_a_plugin(rules: impl IntoIterator<Item = Rule>) -> EngineBuilder {
    let billing = Brings("billing", |registrar: &mut PluginRegistrar| {
        let refunds = Skill::new(skill_id("refunds"), "Refunds.", "Refund.");
        let refunds = refunds.tools([ToolName::new("refund").unwrap()]);
        let refunds = refunds.tools_mode(ToolsMode::HiddenUntilActive);
        registrar.tool(tool("refund")).skill(refunds);
        Ok(())
    });
    engine()
        .tools([tool("own"), tool("both")])
        .plugin(billing)
        .personality(Personality::new("default").exclude(["own"]))
        .personality(Personality::new("bare").plugins::<&str>([]))
        .policy(Policy::of(rules))
}

/// A personality that lists a plugin has the skills that hide its tools; another one has none of
/// them.
#[test]
fn a_skill_of_a_plugin_comes_and_goes_with_a_personality_that_lists_it() {
    let bare = || here().personality("bare");
    let busy = || here().skill(skill_id("refunds"));
    let come = [skill("refunds"), personality("default")];
    let go = [not_skill("refunds"), personality("bare")];
    let plain = with_a_plugin([]).build().unwrap();
    assert_eq!(change(&plain, bare(), "refund", false), come);
    assert_eq!(change(&plain, bare(), "both", true), come);
    assert_eq!(change(&plain, busy(), "own", false), go);

    let allowed = [Rule::allow("busy").when(on_skill("refunds")), Rule::deny("all")];
    let ruled = with_a_plugin(allowed.clone().map(|rule| rule.tools(["both"])));
    let ruled = ruled.skills(Skills::default().focus(false)).build().unwrap();
    assert_eq!(change(&ruled, bare(), "both", false), come);

    let scoped = skill_scoped_tools("refunds", [tool("scoped")]).unwrap();
    let scoped = with_a_plugin([]).provider(scoped).skills(Skills::default().focus(false));
    assert_eq!(change(&scoped.build().unwrap(), bare(), "scoped", false), come);
}

/// One that would need another personality besides is not the smallest change.
#[test]
fn a_skill_within_reach_withholds_a_tool_rather_than_one_beyond() {
    let of_plugin = |id: &'static str| {
        Brings(id, move |registrar: &mut PluginRegistrar| {
            let another = Skill::new(skill_id(id), "Another.", "Do it.");
            registrar.skill(another.tools([ToolName::new("ghost").unwrap()]));
            Ok(())
        })
    };
    let engine = engine()
        .tool(tool("own"))
        .plugin(of_plugin("east"))
        .plugin(of_plugin("west"))
        .personality(Personality::new("western").plugins(["west"]))
        .build()
        .unwrap();
    assert_eq!(change(&engine, here().personality("western"), "own", true), [skill("west")]);
}

/// The search tries one skill of all that would withhold the tool. It was one that the caller may
/// not activate, and the explanation said that nothing would withhold it.
#[test]
fn a_skill_that_the_caller_may_not_activate_hid_the_one_that_withholds() {
    let of_one = ArgumentMatch::at("/id").unwrap().equals("one");
    let deny = Rule::deny("not one").tools([READ_SKILL]).arguments([of_one]);
    let engine = engine()
        .tool(tool("own"))
        .skills(skills([("one", &["ghost"]), ("two", &["ghost"])]))
        .policy(Policy::of([deny]))
        .build()
        .unwrap();
    assert_eq!(change(&engine, here(), "own", true), [skill("two")]);
}

/// A rule for an impossible situation is not a reason.
#[test]
fn no_rule_is_told_of_a_skill_that_the_personality_does_not_reach() {
    let never = when().skills([skill_id("refunds")]).personalities(["bare"]);
    let engine = with_a_plugin([Rule::deny("never").when(never)]).build().unwrap();
    let options = here().skill(skill_id("refunds"));
    let iteration = engine.turn(options).unwrap().iteration().now_or_never().unwrap().unwrap();
    insta::assert_snapshot!(
        iteration.why("own").unwrap().change.text,
        @"to offer it: skill `refunds` not active, and personality `bare`"
    );
}

/// A change that needs two values of one fact is reported as impossible, not as too large.
#[test]
fn no_fact_has_two_values_at_once() {
    let far = Personality::new("far").toolset::<&str>([]);
    for (rules, tool) in [
        (vec![Rule::allow("one").when(when().tenants(["acme"]).roles(["of-umbrella"]))], "t"),
        (vec![Rule::allow("one").when(when().principals(["bob"]).roles(["by-name"]))], "t"),
        (vec![Rule::allow("one").when(when().personalities(["far"]))], "own"),
        (
            vec![
                Rule::deny("late").when(when().from_iteration(2)),
                Rule::allow("later").when(when().from_iteration(2)),
            ],
            "t",
        ),
        (
            vec![
                Rule::deny("two").when(on_skill("two")),
                Rule::allow("busy").when(on_skill("two")),
            ],
            "t",
        ),
        (
            vec![
                Rule::deny("claim").when(when().roles(["by-claim"])),
                Rule::allow("claimed").when(when().roles(["by-claim"])),
            ],
            "t",
        ),
    ] {
        let engine = in_world(PolicyDefault::Deny, rules.clone(), [far.clone()]);
        let iteration = engine.turn(here()).unwrap().iteration().now_or_never().unwrap().unwrap();
        assert_eq!(
            iteration.why(tool).unwrap().change.text,
            "no skill, personality, principal, role, tenant or iteration would offer it",
            "{rules:?}"
        );
    }
}
