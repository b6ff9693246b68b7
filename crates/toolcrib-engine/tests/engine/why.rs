//! Reasons: their changes, applied, offer the tool, and no smaller change does.

use futures_util::FutureExt as _;
use toolcrib_core::{
    ArgumentMatch, Effect, ListContext, OnCollision, Policy, Rule, RuleConditions, Tool,
    WithheldBy, WithheldTool, gated_tools, skill_scoped_tools, static_tools,
};
use toolcrib_engine::{
    CauseStage, Engine, Explanation, FactChange, Iteration, Personality, ToolsMode, TurnOptions,
};

use crate::support::{Log, builder, engine, policy, rule_on, says, skill_id, skills, tool, why};

/// The offered tools, and the withheld ones with reasons.
fn look(engine: &Engine, options: TurnOptions) -> (Vec<String>, Vec<WithheldTool>) {
    let mut turn = engine.turn(options).unwrap();
    let iteration = turn.iteration().now_or_never().unwrap().unwrap();
    let offered = crate::support::menu(&iteration);
    (offered, iteration.withheld().tools().collect())
}

fn one_reason(engine: &Engine, options: TurnOptions, tool: &str) -> (WithheldBy, String) {
    let (_, withheld) = look(engine, options);
    let found = withheld.into_iter().find(|w| *w.name == *tool).unwrap();
    (found.by, found.reason)
}

#[test]
fn a_reason_names_rule_words_and_who_has_the_role() {
    let mut managers = rule_on("rule 1 (toolcrib.toml:9)", Effect::Allow, "refund");
    managers.when.roles = vec!["manager".into()];
    let mut others = rule_on("rule 2 (toolcrib.toml:14)", Effect::Deny, "refund");
    others.reason = Some("Only managers pay back.".into());
    let mut policy = policy([managers, others]);
    policy.roles.grant("zoe", "manager");
    policy.roles.grant("ann", "manager");
    let engine = engine().tool(tool("refund")).policy(policy).build().unwrap();
    assert_eq!(
        one_reason(&engine, TurnOptions::default(), "refund"),
        (
            WithheldBy::Policy,
            "rule 2 (toolcrib.toml:14) denies it: Only managers pay back.; \
             to offer it: a principal with role `manager` (ann, zoe)"
                .to_owned()
        )
    );
}

#[test]
fn a_reason_of_a_skill_names_the_active_ones_and_the_one_to_activate() {
    let engine = engine()
        .tools([tool("refund"), tool("track"), tool("stray")])
        .skills(skills([("billing", &["refund"]), ("shipping", &["track"])]))
        .build()
        .unwrap();
    let options = || TurnOptions::default().skill(skill_id("billing"));
    assert_eq!(
        one_reason(&engine, options(), "track"),
        (
            WithheldBy::Skill,
            "no active skill lists it (active: `billing`); to offer it: activate skill `shipping`"
                .to_owned()
        )
    );
    assert_eq!(
        one_reason(&engine, options(), "stray").1,
        "no active skill lists it (active: `billing`); to offer it: skill `billing` not active"
    );
}

#[test]
fn a_tool_behind_a_gate_and_a_rule_names_both() {
    let gated =
        gated_tools("office_hours", static_tools([tool("pay")]), |_: &Tool, _: &ListContext| false);
    let engine = engine()
        .provider(gated)
        .policy(policy([rule_on("rule 1", Effect::Deny, "pay")]))
        .build()
        .unwrap();
    let (by, reason) = one_reason(&engine, TurnOptions::default(), "pay");
    assert_eq!(by, WithheldBy::Gate);
    assert_eq!(
        reason,
        "gate `office_hours`: the gate rejected the tool; rule 1 denies it; \
         no skill, personality, principal, role, tenant or iteration would offer it"
    );
}

#[test]
fn a_change_of_many_facts_is_not_called_impossible() {
    let mut policy = policy([]);
    let roles = ["a", "b", "c", "d", "e"];
    for role in roles {
        let mut rule = rule_on(role, Effect::Deny, "t");
        rule.when.roles = vec![role.into()];
        policy.rules.push(rule);
        policy.roles.grant("me", role);
    }
    let engine = engine().tool(tool("t")).policy(policy).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default().principal("me")).unwrap();
    let iteration = turn.iteration().now_or_never().unwrap().unwrap();
    assert_eq!(
        why(iteration.withheld(), "t"),
        "a denies it; only a change of more than 4 facts could offer it"
    );
}

/// Found by a review: 150 roles took minutes, and then said what was not so.
#[tokio::test]
async fn a_hundred_rules_are_explained_as_fast_as_a_few() {
    let roles: Vec<String> = (0..100).map(|n| format!("r{n}")).collect();
    let ruled = |effect, role: &String, tenant: Option<&str>| {
        let mut rule = rule_on(&format!("rule of {role}"), effect, "t");
        rule.when.roles = vec![role.as_str().into()];
        rule.when.tenants = tenant.map(Into::into).into_iter().collect();
        rule
    };
    let reason = async |rules: Vec<toolcrib_core::Rule>| {
        let policy = toolcrib_core::Policy {
            rules,
            default: toolcrib_core::PolicyDefault::Deny,
            ..Default::default()
        };
        let engine = engine().tool(tool("t")).policy(policy).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let iteration = turn.iteration().await.unwrap();
        iteration.withheld().tool("t").unwrap().reason
    };
    let denying = roles.iter().map(|role| ruled(Effect::Deny, role, None)).collect();
    assert!(
        reason(denying).await.ends_with(
            "no skill, personality, principal, role, tenant or iteration would offer it"
        )
    );
    let mut allowing: Vec<_> =
        roles.iter().map(|role| ruled(Effect::Allow, role, Some("acme"))).collect();
    // The first of them is unreachable: callers of the tenant are denied earlier.
    allowing.insert(0, {
        let mut rule = rule_on("rule 0", Effect::Deny, "t");
        rule.when.tenants = vec!["acme".into()];
        rule
    });
    assert!(reason(allowing.clone()).await.contains("it was found: too many facts could matter"));
    allowing.remove(0);
    let reason = reason(allowing).await;
    let needed = "to offer it: a principal with role `r0`, and tenant `acme`";
    assert!(reason.ends_with(needed), "{reason}");
}

#[tokio::test]
async fn a_reason_names_the_rule_that_would_deny_next() {
    let mut first = rule_on("rule 1", Effect::Deny, "t");
    first.when.roles = vec!["trainee".into()];
    let mut second = rule_on("rule 2", Effect::Deny, "t");
    second.when.listed_by_active_skill = Some(false);
    let mut policy = policy([first, second]);
    policy.roles.grant("intern", "trainee");
    let engine =
        engine().tool(tool("t")).skills(skills([("work", &["t"])])).policy(policy).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default().principal("intern")).unwrap();
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(
        iteration.withheld().tool("t").unwrap().reason,
        "rule 1 denies it; rule 2 denies it; to offer it: activate skill `work`, and a principal \
         without role `trainee`"
    );
    assert!(iteration.withheld().tool("no_such_tool").is_none());
}

#[tokio::test]
async fn events_say_what_withholds_a_tool_once() {
    let engine = engine()
        .provider(gated_tools("slow", static_tools([tool("late")]), |_: &Tool, _: &ListContext| {
            false
        }))
        .tool(tool("write"))
        .tool(tool("read"))
        .policy(policy([rule_on("rule 1", Effect::Deny, "write")]))
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    turn.iteration().await.unwrap();
    turn.iteration().await.unwrap();
    let offered = log.of_name("tools.offered");
    let told: Vec<_> = offered[0]["withheld_tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {} {}", one["name"], one["by"], one["reason"]))
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "late" "gate" "gate `slow`: the gate rejected the tool"
    "write" "policy" "rule 1 denies it"
    "#);
    assert_eq!(offered[0]["withheld"], 2);
    assert_eq!(offered[1].get("withheld_tools"), None);
}

/// The chain, a link per line, and the change.
fn told(why: &Explanation) -> String {
    let mut lines = vec![format!("{} offered: {}", why.tool, why.offered)];
    for cause in &why.chain {
        let mark = if cause.passed { "+" } else { "-" };
        lines.push(format!("{mark} {:<11} {}", cause.stage, cause.text));
    }
    lines.push(why.change.text.clone());
    lines.join("\n")
}

fn iteration(engine: &Engine, options: TurnOptions) -> Iteration {
    let mut turn = engine.turn(options).unwrap();
    turn.iteration().now_or_never().unwrap().unwrap()
}

/// A small shop: tools of each kind of fate.
fn shop() -> Engine {
    let mut clerk = Personality::new("clerk");
    clerk.toolset = Some(vec!["look".into(), "refund".into(), "track".into(), "stray".into()]);
    let late = RuleConditions::default().from_iteration(3);
    let rules = [
        Rule::allow("rule 1").tools(["refund"]).when(RuleConditions::default().roles(["manager"])),
        Rule::deny("rule 2").tools(["refund"]).reason("Only managers."),
        Rule::deny("rule 3").tools(["track"]).when(late),
        Rule::ask("rule 4")
            .tools(["look"])
            .arguments([ArgumentMatch::at("/path").unwrap().starts_with("/etc")]),
    ];
    let mut policy = Policy::of(rules);
    policy.roles.grant("ann", "manager");
    policy.roles.grant_to_claim("groups", ["bosses", "owners"], "manager");
    engine()
        .tools(["look", "refund", "track", "stray", "admin"].map(tool))
        .tool(says(builder("clock").always_include().toolset("look"), ""))
        .provider(gated_tools("hours", static_tools([tool("pay")]), |_: &Tool, _: &ListContext| {
            false
        }))
        .provider(skill_scoped_tools("audit", [tool("ledger")]).unwrap())
        .provider(static_tools([says(
            builder("look").origin("elsewhere").on_collision(OnCollision::Keep),
            "",
        )]))
        .skills(
            skills([("desk", &["look", "refund"]), ("audit", &["track", "ledger"])])
                .tools_mode(ToolsMode::WhileActive),
        )
        .personality(clerk)
        .policy(policy)
        .build()
        .unwrap()
}

#[test]
fn each_known_tool_has_one_chain_that_ends_where_it_is_withheld() {
    let shop = shop();
    let iteration = iteration(&shop, TurnOptions::default().personality("clerk").principal("bob"));
    let chains: Vec<_> = iteration.explanations().map(|why| told(&why)).collect();
    insta::assert_snapshot!(chains.join("\n\n"), @r#"
    look offered: true
    + source      comes from code
    + personality personality `clerk` reaches it
    + policy      rule 4 may match its arguments, and then has the effect `ask`
    + skill       no skill is active
    + collision   it takes precedence over the tool of the same name from elsewhere
    to withhold it: activate skill `audit`

    track offered: true
    + source      comes from code
    + personality personality `clerk` reaches it
    + policy      no rule denies it, and policy_default is "allow"
    + skill       no skill is active
    + collision   no other tool of its name is offered
    to withhold it: activate skill `desk`

    stray offered: true
    + source      comes from code
    + personality personality `clerk` reaches it
    + policy      no rule denies it, and policy_default is "allow"
    + skill       no skill is active
    + collision   no other tool of its name is offered
    to withhold it: activate skill `desk`

    clock offered: true
    + source      comes from code
    + personality personality `clerk` reaches it
    + policy      no rule denies it, and policy_default is "allow"
    + skill       no skill is active
    + collision   no other tool of its name is offered
    no skill, personality, principal, role, tenant or iteration would withhold it

    read_skill offered: true
    + source      comes from skills
    + personality personality `clerk` reaches it
    + policy      no rule names it
    + skill       no skill is active
    + collision   no other tool of its name is offered
    no skill, personality, principal, role, tenant or iteration would withhold it

    pay offered: false
    - source      gate `hours`: the gate rejected the tool
    no change of facts would offer it: the gate decides; even then, personality `clerk` does not list it in `toolset`

    ledger offered: false
    - source      gate `skill-scoped:audit`: needs skill `audit` as the active one
    to offer it: activate skill `audit`, and personality `default`

    refund offered: false
    + source      comes from code
    + personality personality `clerk` reaches it
    - policy      rule 2 denies it: Only managers.
    to offer it: a principal with role `manager` (ann; or claim `groups` of bosses or owners)

    admin offered: false
    + source      comes from code
    - personality personality `clerk` does not list it in `toolset`
    to offer it: personality `default`

    look offered: false
    + source      comes from elsewhere
    + personality personality `clerk` reaches it
    + policy      rule 4 may match its arguments, and then has the effect `ask`
    + skill       no skill is active
    - collision   the tool of this name from code is offered in its place
    no skill, personality, principal, role, tenant or iteration would offer it
    "#);
    let known = iteration.menu().len() + iteration.withheld().len();
    assert_eq!(chains.len(), known);
    assert!(!iteration.withheld().is_empty());
    let from_elsewhere = iteration.withheld().tools_from(|origin| origin == "elsewhere");
    assert_eq!(from_elsewhere.map(|told| told.by).collect::<Vec<_>>(), [WithheldBy::Collision]);
    assert_eq!(iteration.why("look").unwrap().withheld_by(), None);
    let refund = iteration.why("refund").unwrap();
    assert_eq!(refund.withheld_by().unwrap().stage, CauseStage::Policy);
    assert_eq!(refund.change.facts, [FactChange::GainRole("manager".into())]);
    assert_eq!(iteration.why("Refund"), None);
    let json = serde_json::to_value(&refund).unwrap();
    assert_eq!(
        json["change"]["facts"][0],
        serde_json::json!({"fact": "gain_role", "value": "manager"})
    );
    assert_eq!(json["chain"][2]["stage"], "policy");
}

#[test]
fn skills_and_steps_of_the_turn_have_their_say_in_the_chain() {
    let shop = shop();
    let iteration = iteration(&shop, TurnOptions::default().skill(skill_id("desk")));
    let chains: Vec<_> = ["look", "track", "stray", "clock", "ledger", "read_skill"]
        .map(|name| told(&iteration.why(name).unwrap()))
        .into();
    insta::assert_snapshot!(chains.join("\n\n"), @r#"
    look offered: true
    + source      comes from code
    + personality personality `default` reaches it
    + policy      rule 4 may match its arguments, and then has the effect `ask`
    + skill       active skill `desk` lists it
    + collision   it takes precedence over the tool of the same name from elsewhere
    to withhold it: activate skill `audit`, and skill `desk` not active

    track offered: false
    + source      comes from code
    + personality personality `default` reaches it
    + policy      no rule denies it, and policy_default is "allow"
    - skill       no active skill lists it (active: `desk`)
    to offer it: activate skill `audit`

    stray offered: false
    + source      comes from code
    + personality personality `default` reaches it
    + policy      no rule denies it, and policy_default is "allow"
    - skill       no active skill lists it (active: `desk`)
    to offer it: skill `desk` not active

    clock offered: true
    + source      comes from code
    + personality personality `default` reaches it
    + policy      no rule denies it, and policy_default is "allow"
    + skill       it is always included
    + collision   no other tool of its name is offered
    no skill, personality, principal, role, tenant or iteration would withhold it

    ledger offered: false
    - source      gate `skill-scoped:audit`: needs skill `audit` as the active one
    to offer it: activate skill `audit`

    read_skill offered: true
    + source      comes from skills
    + personality personality `default` reaches it
    + policy      no rule names it
    + skill       it is always included
    + collision   no other tool of its name is offered
    no skill, personality, principal, role, tenant or iteration would withhold it
    "#);
}

#[test]
fn a_tool_that_gave_way_is_offered_by_what_withholds_the_other() {
    let other = || says(builder("look").origin("elsewhere").on_collision(OnCollision::Keep), "");
    let rules =
        [Rule::deny("rule 1").origins(["code"]).when(RuleConditions::default().tenants(["acme"]))];
    let engine = engine()
        .tool(tool("look"))
        .provider(static_tools([other()]))
        .policy(Policy::of(rules))
        .build()
        .unwrap();
    let one = iteration(&engine, TurnOptions::default());
    let hidden = one.withheld().explanations().next().unwrap();
    assert_eq!(hidden.change.facts, [FactChange::Tenant("acme".into())]);
    assert_eq!(hidden.chain.len(), 5);
    let turned = iteration(&engine, TurnOptions::default().tenant("acme"));
    assert_eq!(turned.menu().get("look").unwrap().origin(), "elsewhere");
}

#[test]
fn a_rule_says_what_it_does_with_an_offered_tool() {
    let on_path = || ArgumentMatch::at("/path").unwrap();
    let rules = [
        Rule::ask("rule 1").tools(["ask"]),
        Rule::halt("rule 2").tools(["halt"]).reason("Never."),
        Rule::allow("rule 3").tools(["allow"]),
        Rule::halt("rule 4").tools(["halt_on_path"]).arguments([on_path()]),
        Rule::deny("rule 5").tools(["deny_on_path"]).arguments([on_path()]),
    ];
    let engine = engine()
        .tools(["ask", "halt", "allow", "halt_on_path", "deny_on_path"].map(tool))
        .policy(Policy::of(rules))
        .build()
        .unwrap();
    let iteration = iteration(&engine, TurnOptions::default());
    let by_policy = |why: Explanation| {
        let cause = why.chain.into_iter().find(|cause| cause.stage == CauseStage::Policy);
        format!("{}: {}", why.tool, cause.unwrap().text)
    };
    let said: Vec<_> = iteration.explanations().map(by_policy).collect();
    insta::assert_snapshot!(said.join("\n"), @r#"
    ask: rule 1 offers it and requires approval of each call
    halt: rule 2 offers it and ends the run at a call: Never.
    allow: rule 3 allows it
    halt_on_path: rule 4 may match its arguments, and then has the effect `halt`
    deny_on_path: no rule denies it, and policy_default is "allow"
    "#);
}

#[test]
fn all_rules_are_named_that_would_deny_if_one_fact_were_left_as_it_is() {
    let rules =
        ["a", "b", "c"].map(|role| Rule::deny(role).when(RuleConditions::default().roles([role])));
    let mut policy = Policy::of(rules);
    ["a", "b", "c"].into_iter().for_each(|role| policy.roles.grant("me", role));
    let engine = engine().tool(tool("t")).policy(policy).build().unwrap();
    let iteration = iteration(&engine, TurnOptions::default().principal("me"));
    assert_eq!(
        why(iteration.withheld(), "t"),
        "a denies it; b denies it; c denies it; to offer it: a principal without role `a`, and a \
         principal without role `b`, and a principal without role `c`"
    );
}
