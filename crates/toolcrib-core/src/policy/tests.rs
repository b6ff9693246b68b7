//! Each condition, each effect and each default by itself.

use std::sync::Arc;

use serde_json::{Value, json};

use super::*;
use crate::{
    CancellationToken, GateDecision, Identity, ListContext, SkillId, Tool, ToolContext,
    ToolDefinition,
};

fn built(builder: crate::ToolBuilder) -> Tool {
    builder.description("A tool.").handler(|_: Value, _: ToolContext| async { "" }).unwrap()
}

fn tool(name: &str) -> Tool {
    built(Tool::builder(name))
}

/// A situation, to be changed.
#[derive(Clone, Default)]
struct TestFacts {
    skills: Vec<SkillId>,
    listed: bool,
    role: Option<&'static str>,
    tenant: Option<&'static str>,
    principal: Option<&'static str>,
    personality: &'static str,
    iteration: u32,
    tainted: bool,
}

impl PolicyFacts for TestFacts {
    fn active_skills(&self) -> &[SkillId] {
        &self.skills
    }
    fn is_listed(&self, _: &ToolDefinition) -> bool {
        self.listed
    }
    fn has_role(&self, role: &str) -> bool {
        self.role == Some(role)
    }
    fn tenant(&self) -> Option<&str> {
        self.tenant
    }
    fn principal(&self) -> Option<&str> {
        self.principal
    }
    fn personality(&self) -> &str {
        self.personality
    }
    fn iteration(&self) -> u32 {
        self.iteration
    }
    fn is_tainted(&self) -> bool {
        self.tainted
    }
}

#[test]
fn conditions_of_a_rule_add_up_in_any_order() {
    let path = || [ArgumentMatch::at("/path").unwrap().starts_with("/etc")];
    let late = || RuleConditions::default().from_iteration(3);
    let first = Rule::allow("r").when(late()).roles(["a"]).tenants(["t"]).arguments(path());
    let last = Rule::allow("r").arguments(path()).tenants(["t"]).roles(["a"]).when(late());
    assert_eq!(format!("{first:?}"), format!("{last:?}"));
    for fact in [Fact::Roles, Fact::Tenant, Fact::Arguments, Fact::Iteration] {
        assert!(last.when.reads(fact), "{fact:?}");
    }
    assert!(Rule::allow("r").principals(["ann"]).when.reads(Fact::Principal));
}

#[test]
fn each_condition_on_the_situation_holds_for_what_it_names_alone() {
    let skill = |id: &str| SkillId::new(id).unwrap();
    let here = TestFacts::default;
    let when = RuleConditions::default;
    let listed = when().listed_by_active_skill(true);
    for (when, fact, fits, does_not) in [
        (
            when().skills([skill("s")]),
            Fact::Skills,
            TestFacts { skills: vec![skill("s")], ..here() },
            here(),
        ),
        (
            when().roles(["r"]),
            Fact::Roles,
            TestFacts { role: Some("r"), ..here() },
            TestFacts { role: Some("q"), ..here() },
        ),
        (when().tenants(["t"]), Fact::Tenant, TestFacts { tenant: Some("t"), ..here() }, here()),
        (
            when().principals(["p"]),
            Fact::Principal,
            TestFacts { principal: Some("p"), ..here() },
            here(),
        ),
        (
            when().personalities(["a"]),
            Fact::Personality,
            TestFacts { personality: "a", ..here() },
            here(),
        ),
        (
            when().from_iteration(2),
            Fact::Iteration,
            TestFacts { iteration: 2, ..here() },
            TestFacts { iteration: 1, ..here() },
        ),
        (
            when().to_iteration(2),
            Fact::Iteration,
            TestFacts { iteration: 2, ..here() },
            TestFacts { iteration: 3, ..here() },
        ),
        (when().tainted(true), Fact::Tainted, TestFacts { tainted: true, ..here() }, here()),
        (when().tainted(false), Fact::Tainted, here(), TestFacts { tainted: true, ..here() }),
        (listed, Fact::ListedByActiveSkill, TestFacts { listed: true, ..here() }, here()),
    ] {
        let policy = Policy::of([Rule::deny("rule").when(when.clone())]);
        assert!(!policy.judge(&tool("t"), &fits, None).offers(), "{when:?}");
        assert!(policy.judge(&tool("t"), &does_not, None).offers(), "{when:?}");
        assert!(!policy.bind_facts(&fits).judge(&tool("t")).offers(), "{when:?}");
        assert!(policy.bind_facts(&does_not).judge(&tool("t")).offers(), "{when:?}");
        for other in [
            Fact::Skills,
            Fact::ListedByActiveSkill,
            Fact::Roles,
            Fact::Tenant,
            Fact::Principal,
            Fact::Personality,
            Fact::Iteration,
            Fact::Tainted,
            Fact::Arguments,
        ] {
            assert_eq!(policy.reads(other), other == fact, "{other:?} of {when:?}");
        }
    }
    let any = ArgumentMatch::at("").unwrap();
    assert!(Policy::of([Rule::deny("rule").arguments([any])]).reads(Fact::Arguments));
}

#[test]
fn each_condition_on_the_tool_holds_for_what_it_names_alone() {
    let one = built(
        Tool::builder("one")
            .toolset("set")
            .origin("mcp:git")
            .mcp_server("git")
            .read_only()
            .idempotent(),
    )
    .with_plugin(&"plug".into());
    let other = tool("other");
    assert_eq!(one.origin_label(), "mcp:git (plugin `plug`)");
    assert_eq!(tool("own").with_plugin(&"plug".into()).origin_label(), "plugin `plug`");
    for rule in [
        Rule::deny("r").tools(["one"]),
        Rule::deny("r").toolsets(["s?t"]),
        Rule::deny("r").origins(["mcp:*"]),
        Rule::deny("r").origins(["mcp:git"]),
        Rule::deny("r").mcp_servers(["git"]),
        Rule::deny("r").plugins(["plug"]),
        Rule::deny("r").read_only(true),
        Rule::deny("r").idempotent(true),
    ] {
        assert!(rule.tools.matches(&one), "{rule:?}");
        assert!(!rule.tools.matches(&other), "{rule:?}");
    }
    for rule in [
        Rule::deny("r").read_only(false),
        Rule::deny("r").destructive(true),
        Rule::deny("r").idempotent(false),
    ] {
        assert!(!rule.tools.matches(&one), "{rule:?}");
    }
    assert!(Rule::deny("r").destructive(false).tools.matches(&one));
    assert!(Rule::deny("r").tools.matches(&other));
    let framework = built(Tool::builder("read_skill").framework());
    assert!(!Rule::deny("r").tools.matches(&framework));
    assert!(!Rule::deny("r").tools(["read_*"]).tools.matches(&framework));
    assert!(Rule::deny("r").tools(["read_skill"]).tools.matches(&framework));
    let closed = Policy { default: PolicyDefault::Deny, ..Policy::default() };
    assert!(closed.judge(&framework, &TestFacts::default(), None).offers());
    assert!(!closed.judge(&one, &TestFacts::default(), None).offers());
    assert!(Policy::default().judge(&one, &TestFacts::default(), None).offers());
}

#[test]
fn a_ruling_says_who_decided_and_why() {
    let fails = ArgumentMatch::by("clock", |_| Err("stopped".to_owned()));
    let rules = [
        Rule::allow("odd").reason("b").arguments([ArgumentMatch::at("/x").unwrap().equals(1)]),
        Rule::ask("failing").arguments([fails]),
        Rule::halt("last").reason("c"),
    ];
    let policy = Policy::of(rules);
    let one = tool("t");
    let judged = |args: Value| {
        let ruling = policy.judge(&one, &TestFacts::default(), Some(&args));
        let reason = ruling.reason().map(|reason| reason.to_string()).unwrap_or_default();
        format!("{} {} {reason}", ruling.label(), ruling.effect().as_str())
    };
    assert_eq!(judged(json!({"x": 1})), "odd allow b");
    assert_eq!(judged(json!({})), "failing deny the rule could not be evaluated: `clock`: stopped");
    // Before arguments are known the first rule that does not deny ends the walk.
    assert_eq!(&*policy.judge(&one, &TestFacts::default(), None).label(), "odd");
    let denying = Policy::of([
        Rule::deny("args").arguments([ArgumentMatch::at("/x").unwrap()]),
        Rule::halt("last"),
    ]);
    assert_eq!(&*denying.judge(&one, &TestFacts::default(), None).label(), "last");
    assert_eq!(denying.judge(&one, &TestFacts::default(), Some(&json!({}))).effect(), Effect::Halt);
    assert_eq!(
        denying.judge(&one, &TestFacts::default(), Some(&json!({"x": 1}))).effect(),
        Effect::Deny
    );
    let default = Policy::default();
    let ruling = default.judge(&one, &TestFacts::default(), None);
    assert_eq!(
        (&*ruling.label(), ruling.reason(), ruling.rule().is_none()),
        ("policy_default", None, true)
    );
    assert_eq!(
        [Effect::Allow, Effect::Deny, Effect::Ask].map(Effect::as_str),
        ["allow", "deny", "ask"]
    );
}

#[test]
fn iterations_are_the_same_to_a_policy_whose_ranges_do_not_part_them() {
    let range = |at_least, at_most| IterationRange { at_least, at_most };
    let contains =
        |range: IterationRange| (1..6).filter(|n| range.contains(*n)).collect::<Vec<_>>();
    assert_eq!(contains(range(None, None)), [1, 2, 3, 4, 5]);
    assert_eq!(contains(range(Some(2), None)), [2, 3, 4, 5]);
    assert_eq!(contains(range(None, Some(2))), [1, 2]);
    assert_eq!(contains(range(Some(2), Some(3))), [2, 3]);
    let policy = Policy::of([
        Rule::deny("r").when(RuleConditions::default().from_iteration(3)),
        Rule::allow("s"),
    ]);
    let same: Vec<_> = (1..5).map(|n| policy.same_iteration(n, n + 1)).collect();
    assert_eq!(same, [true, false, true, true]);
    assert!(Policy::default().same_iteration(1, 9));
}

#[test]
fn a_gate_offers_and_withholds_as_the_policy_says_of_what_it_is_told() {
    let mut policy = Policy::of([
        Rule::deny("clerks").reason("b").when(RuleConditions::default().roles(["clerk"])),
        Rule::deny("eve").when(RuleConditions::default().principals(["eve"])),
        Rule::deny("zeta").when(RuleConditions::default().tenants(["zeta"])),
        Rule::deny("busy").when(RuleConditions::default().skills([SkillId::new("s").unwrap()])),
        Rule::deny("late").when(RuleConditions::default().from_iteration(2)),
    ]);
    policy.roles.grant("ann", "clerk");
    policy.roles.grant_to_tenant("acme", "clerk");
    let gate = policy.as_gate().unwrap();
    let judged = |principal: Option<&str>, tenant: Option<&str>, skill: Option<&str>, iteration| {
        let mut identity = Identity::conversation("c");
        identity.principal = principal.map(Into::into);
        identity.tenant = tenant.map(Into::into);
        let cx = ListContext::new(Arc::new(identity), CancellationToken::new())
            .with_active_skills(skill.map(|id| SkillId::new(id).unwrap()).into_iter().collect())
            .with_iteration(iteration);
        match gate(&tool("t"), &cx) {
            GateDecision::Offer => String::new(),
            GateDecision::Withhold(reason) => reason.to_string(),
        }
    };
    assert_eq!(judged(None, None, None, 1), "");
    assert_eq!(judged(Some("ann"), None, None, 1), "clerks denies it: b");
    assert_eq!(judged(None, Some("acme"), None, 1), "clerks denies it: b");
    assert_eq!(judged(Some("eve"), None, None, 1), "eve denies it");
    assert_eq!(judged(None, Some("zeta"), None, 1), "zeta denies it");
    assert_eq!(judged(Some("zeta"), Some("eve"), Some("other"), 1), "");
    assert_eq!(judged(None, None, Some("s"), 1), "busy denies it");
    assert_eq!(judged(Some("acme"), Some("ann"), None, 2), "late denies it");
}
