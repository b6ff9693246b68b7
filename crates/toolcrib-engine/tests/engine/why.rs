//! Reasons: what they say must change, changed, shows the tool, and nothing less does.

use std::{cell::LazyCell, collections::BTreeSet};

use futures_util::FutureExt as _;
use proptest::prelude::*;
use toolcrib_core::{
    Effect, Glob, ListContext, Policy, PolicyDefault, Rule, SkillId, Tool, gated_tools,
    static_tools,
};
use toolcrib_engine::{Engine, TurnOptions, WithheldBy, WithheldTool};

use crate::support::{
    Log, builder, engine, policy, rule, rule_on, says, skill_id, skills, tool, why,
};

const SKILLS: [&str; 3] = ["s0", "s1", "s2"];
const ROLES: [&str; 3] = ["r0", "r1", "r2"];
const TENANTS: [&str; 3] = ["t0", "t1", "t2"];

/// The facts that can be changed from outside.
#[derive(Debug, Clone, PartialEq)]
struct Situation {
    skills: Vec<String>,
    roles: BTreeSet<String>,
    tenant: Option<String>,
}

impl Situation {
    fn options(&self) -> TurnOptions {
        let mut options = TurnOptions::default().principal(principal(&self.roles));
        options.skills = self.skills.iter().map(|skill| skill_id(skill)).collect();
        options.tenant = self.tenant.as_deref().map(Into::into);
        options
    }

    /// All there are, in this small world.
    fn all() -> Vec<Self> {
        let tenants = || std::iter::once(None).chain(TENANTS.map(|t| Some(t.to_owned())));
        subsets(&SKILLS)
            .flat_map(|skills| {
                subsets(&ROLES).flat_map(move |roles| {
                    let skills = skills.clone();
                    tenants().map(move |tenant| Self {
                        skills: skills.clone(),
                        roles: roles.iter().cloned().collect(),
                        tenant,
                    })
                })
            })
            .collect()
    }

    /// How many facts differ.
    fn distance(&self, other: &Self) -> usize {
        let skills = |s: &Self| s.skills.iter().cloned().collect::<BTreeSet<_>>();
        skills(self).symmetric_difference(&skills(other)).count()
            + self.roles.symmetric_difference(&other.roles).count()
            + usize::from(self.tenant != other.tenant)
    }
}

fn subsets(names: &'static [&'static str]) -> impl Iterator<Item = Vec<String>> {
    (0..1_usize << names.len()).map(|mask| {
        let chosen = names.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
        chosen.map(|(_, name)| (*name).to_owned()).collect()
    })
}

/// Somebody who has exactly these roles.
fn principal(roles: &BTreeSet<String>) -> String {
    format!("p-{}", Vec::from_iter(roles.iter().cloned()).join("-"))
}

#[derive(Debug)]
struct World {
    rules: Vec<Rule>,
    default: PolicyDefault,
    listed: [Vec<&'static str>; 3],
    focus: bool,
}

impl World {
    fn engine(&self) -> Engine {
        let mut policy =
            Policy { rules: self.rules.clone(), default: self.default, ..Policy::default() };
        for roles in subsets(&ROLES) {
            let roles = BTreeSet::from_iter(roles);
            for role in &roles {
                policy.roles.grant(principal(&roles), role.as_str());
            }
        }
        let [s0, s1, s2] = &self.listed;
        engine()
            .tools([
                says(builder("tool_0").toolset("a").read_only(), ""),
                says(builder("tool_1").toolset("a"), ""),
                says(builder("tool_2").always_include(), ""),
            ])
            .skills(skills([("s0", s0), ("s1", s1), ("s2", s2)]).focus(self.focus))
            .policy(policy)
            .build()
            .unwrap()
    }
}

/// What is offered, and what is not with its reason.
fn look(engine: &Engine, options: TurnOptions) -> (Vec<String>, Vec<WithheldTool>) {
    let mut turn = engine.turn(options).unwrap();
    let iteration = turn.iteration().now_or_never().unwrap().unwrap();
    let offered = crate::support::menu(&iteration);
    (offered, iteration.withheld().explain().collect())
}

fn offers(engine: &Engine, situation: &Situation, tool: &str) -> bool {
    let (offered, _) = look(engine, situation.options());
    offered.contains(&tool.to_owned())
}

/// The words of one change, applied; more than one outcome where the words leave a choice.
fn apply(change: &str, situation: &Situation) -> Vec<Situation> {
    let quoted = change.split('`').nth(1).unwrap_or_default().to_owned();
    let mut after = situation.clone();
    if change.starts_with("activate skill `") {
        after.skills.push(quoted);
    } else if change.starts_with("skill `") && change.ends_with("` not active") {
        after.skills.retain(|skill| *skill != quoted);
    } else if change.starts_with("a principal with role `") {
        assert!(after.roles.insert(quoted), "{change}: it has the role");
    } else if change.starts_with("a principal without role `") {
        assert!(after.roles.remove(&quoted), "{change}: it has not");
    } else if change.starts_with("tenant `") {
        after.tenant = Some(quoted);
    } else {
        assert_eq!(change, "no tenant, or one that no rule names");
        let mut elsewhere = after.clone();
        elsewhere.tenant = Some("elsewhere".to_owned());
        after.tenant = None;
        return vec![after, elsewhere];
    }
    assert_ne!(after, *situation, "{change} changes nothing");
    vec![after]
}

fn apply_all(changes: &[&str], situation: &Situation) -> Vec<Situation> {
    changes.iter().fold(vec![situation.clone()], |situations, change| {
        situations.iter().flat_map(|s| apply(change, s)).collect()
    })
}

fn names(from: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(from, 0..=from.len())
}

fn a_rule() -> impl Strategy<Value = Rule> {
    let which = (
        prop::sample::select(vec!["", "*", "tool_0", "tool_1", "tool_?", "*_2"]),
        prop::option::weighted(0.2, Just("a")),
        prop::option::weighted(0.2, any::<bool>()),
    );
    let when = (
        // A skill that a rule names need not exist.
        prop::option::weighted(0.4, names(&["s0", "s1", "ghost"])),
        prop::option::weighted(0.3, any::<bool>()),
        prop::option::weighted(0.5, names(&ROLES)),
        prop::option::weighted(0.4, names(&TENANTS)),
    );
    let effect = prop::sample::select(vec![Effect::Allow, Effect::Deny, Effect::Deny, Effect::Ask]);
    (effect, which, when).prop_map(|(effect, (glob, toolset, read_only), when)| {
        let mut this = rule("a rule", effect);
        if !glob.is_empty() {
            this.tools.names = vec![Glob::new(glob)];
        }
        this.tools.toolsets = toolset.map(Glob::new).into_iter().collect();
        this.tools.annotations.read_only = read_only;
        let (skills, listed, roles, tenants) = when;
        this.when.skills =
            skills.unwrap_or_default().into_iter().map(skill_id).collect::<Vec<SkillId>>();
        this.when.listed_by_active_skill = listed;
        this.when.roles = roles.unwrap_or_default().into_iter().map(Into::into).collect();
        this.when.tenants = tenants.unwrap_or_default().into_iter().map(Into::into).collect();
        this
    })
}

fn a_world() -> impl Strategy<Value = World> {
    let tools = || names(&["tool_0", "tool_1", "tool_2"]);
    (
        prop::collection::vec(a_rule(), 0..6),
        any::<bool>(),
        [tools(), tools(), tools()],
        any::<bool>(),
    )
        .prop_map(|(rules, closed, listed, focus)| World {
            rules,
            default: if closed { PolicyDefault::Deny } else { PolicyDefault::Allow },
            listed,
            focus,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn exactly_the_changes_that_a_reason_names_offer_the_tool(
        world in a_world(),
        situation in prop::sample::select(Situation::all()),
    ) {
        let engine = world.engine();
        let (_, withheld) = look(&engine, situation.options());
        let everywhere = LazyCell::new(|| {
            let offers = |s: Situation| (look(&engine, s.options()).0, s);
            Situation::all().into_iter().map(offers).collect::<Vec<_>>()
        });
        for tool in withheld {
            let name = &*tool.name;
            let Some((_, changes)) = tool.reason.split_once("to offer it: ") else {
                let nearest = everywhere
                    .iter()
                    .filter(|(offered, _)| offered.iter().any(|offered| offered == name))
                    .map(|(_, other)| other.distance(&situation))
                    .min();
                if tool.reason.ends_with("; no other skill, role or tenant offers it") {
                    prop_assert_eq!(nearest, None, "{}", tool.reason);
                } else {
                    let far = "; only a change of more than 4 skills, roles and tenants could offer it";
                    prop_assert!(tool.reason.ends_with(far), "{}", tool.reason);
                    prop_assert!(nearest.is_none_or(|nearest| nearest > 4), "{}", tool.reason);
                }
                continue;
            };
            let changes: Vec<_> = changes.split(", and ").collect();
            for after in apply_all(&changes, &situation) {
                prop_assert!(offers(&engine, &after, name), "{}", tool.reason);
            }
            for left_out in 0..changes.len() {
                let mut fewer = changes.clone();
                fewer.remove(left_out);
                for after in apply_all(&fewer, &situation) {
                    prop_assert!(!offers(&engine, &after, name), "{} without {left_out}", tool.reason);
                }
            }
        }
    }
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
        "gate `office_hours`: the gate says no; rule 1 denies it; \
         no other skill, role or tenant offers it"
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
        "a denies it; only a change of more than 4 skills, roles and tenants could offer it"
    );
}

/// Found by a review: 150 roles took minutes, and then said what was not so.
#[tokio::test]
async fn hundreds_of_rules_are_explained_as_fast_as_a_few() {
    let roles: Vec<String> = (0..150).map(|n| format!("r{n}")).collect();
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
        iteration.withheld().why("t").unwrap().reason
    };
    let denying = roles.iter().map(|role| ruled(Effect::Deny, role, None)).collect();
    assert!(reason(denying).await.ends_with("no other skill, role or tenant offers it"));
    let mut allowing: Vec<_> =
        roles.iter().map(|role| ruled(Effect::Allow, role, Some("acme"))).collect();
    // The first of them is out of reach: whoever is in the tenant is denied before.
    allowing.insert(0, {
        let mut rule = rule_on("rule 0", Effect::Deny, "t");
        rule.when.tenants = vec!["acme".into()];
        rule
    });
    assert!(reason(allowing.clone()).await.contains("was not found: too many"));
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
        iteration.withheld().why("t").unwrap().reason,
        "rule 1 denies it; rule 2 denies it; to offer it: activate skill `work`, and a principal \
         without role `trainee`"
    );
    assert!(iteration.withheld().why("no_such_tool").is_none());
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
    "late" "gate" "gate `slow`: the gate says no"
    "write" "policy" "rule 1 denies it"
    "#);
    assert_eq!(offered[0]["withheld"], 2);
    assert_eq!(offered[1].get("withheld_tools"), None);
}
