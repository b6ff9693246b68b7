//! An edit of rules that needs no consent makes no call less strictly decided, by the real policy.

use std::fmt::Write as _;

use proptest::{prelude::*, sample::select};
use serde_json::{Value, json};
use toolcrib_core::{Effect, PolicyFacts, RuleMatch, SkillId, Tool, ToolContext, ToolDefinition};
use toolcrib_project::{LoadOptions, Project, Review};

use crate::folder::{Folder, SKILL};

const TOOLS: &str = r#"
[[role]]
name = "one"
principals = ["x"]
[[role]]
name = "two"
principals = ["y"]
[[personality]]
name = "calm"
system = "Be calm."
[[personality]]
name = "quick"
system = "Be quick."
[team.desk]
members = ["calm"]
"#;

/// The conditions of a rule, as TOML; each may be absent.
fn conditions() -> impl Strategy<Value = Vec<&'static str>> {
    const ALL: [&[&str]; 9] = [
        &[
            "tool = \"a\"",
            "tool = [\"a\", \"b\"]",
            "tool = \"*\"",
            "tool = \"a*\"",
            "tool = \"read_skill\"",
            "tool = \"b\"",
        ],
        &["role = \"one\"", "role = [\"one\", \"two\"]"],
        &["principal = \"x\"", "principal = [\"x\", \"y\"]", "principal = \"y\""],
        &["tainted = true", "tainted = false"],
        &["annotation = { read_only = true }", "annotation = { read_only = false }"],
        &[
            "args = { \"/n\" = { equals = 1 } }",
            "args = { \"/n\" = { less_than = 3 } }",
            "args = { \"/n\" = { matches = \"^a\" }, \"/m\" = { equals = 1 } }",
            "args = { \"/m\" = { equals = 1 }, \"/n\" = { matches = \"^a\" } }",
        ],
        &["iteration = { at_least = 2 }", "iteration = { at_most = 2 }"],
        &["personality = \"calm\"", "personality = \"quick\"", "team = \"desk\""],
        &["skill = \"billing\"", "listed_by_active_skill = true", "listed_by_active_skill = false"],
    ];
    let one = |choices: &'static [&'static str]| prop::option::weighted(0.25, select(choices));
    ALL.map(one).to_vec().prop_map(|chosen| chosen.into_iter().flatten().collect())
}

/// A rule: its effect and its conditions.
type RuleText = (&'static str, Vec<&'static str>);

fn rule() -> impl Strategy<Value = RuleText> {
    (select(&["allow", "ask", "deny", "halt"]), conditions())
}

#[derive(Debug, Clone)]
enum Edit {
    Insert(usize, RuleText),
    Remove(usize),
    Swap(usize, usize),
    Effect(usize, &'static str),
    Conditions(usize, Vec<&'static str>),
    Narrow(usize, &'static str),
}

fn edit() -> impl Strategy<Value = Edit> {
    let at = || 0_usize..5;
    prop_oneof![
        (at(), rule()).prop_map(|(at, rule)| Edit::Insert(at, rule)),
        at().prop_map(Edit::Remove),
        (at(), at()).prop_map(|(one, other)| Edit::Swap(one, other)),
        (at(), select(&["allow", "ask", "deny", "halt"]))
            .prop_map(|(at, effect)| Edit::Effect(at, effect)),
        (at(), conditions()).prop_map(|(at, conditions)| Edit::Conditions(at, conditions)),
        (at(), select(&["tenant = \"t\"", "plugin = \"p*\""]))
            .prop_map(|(at, condition)| Edit::Narrow(at, condition)),
    ]
}

fn edited(rules: &[RuleText], edit: Edit) -> Vec<RuleText> {
    let mut rules = rules.to_vec();
    let many = rules.len().max(1);
    match edit {
        Edit::Insert(at, rule) => rules.insert(at % (many + 1).min(rules.len() + 1), rule),
        Edit::Remove(at) if !rules.is_empty() => drop(rules.remove(at % many)),
        Edit::Swap(one, other) if !rules.is_empty() => rules.swap(one % many, other % many),
        Edit::Effect(at, effect) => {
            rules.iter_mut().skip(at % many).take(1).for_each(|rule| rule.0 = effect);
        }
        Edit::Conditions(at, conditions) => {
            let changed = rules.iter_mut().skip(at % many).take(1);
            changed.for_each(|rule| rule.1.clone_from(&conditions));
        }
        Edit::Narrow(at, condition) => {
            let key = |condition: &str| condition.split(' ').next().map(str::to_owned);
            let rule = rules.get_mut(at % many);
            let lacks_key =
                |rule: &&mut RuleText| rule.1.iter().all(|other| key(other) != key(condition));
            rule.filter(lacks_key).into_iter().for_each(|rule| rule.1.push(condition));
        }
        Edit::Remove(_) | Edit::Swap(..) => {}
    }
    rules
}

fn project(default: &str, rules: &[RuleText]) -> (Folder, Review, Project) {
    let mut text = format!("policy_default = \"{default}\"\n{TOOLS}");
    for tool in ["a", "b", "ab"] {
        write!(
            text,
            "[[tool]]\nkind = \"command\"\nname = \"{tool}\"\ndescription = \"Runs.\"\n\
             program = \"true\"\nstdin = \"json\"\n[tool.params]\nn = {{}}\nm = {{}}\n"
        )
        .unwrap();
    }
    for (effect, conditions) in rules {
        write!(text, "[[policy]]\neffect = \"{effect}\"\n{}\n", conditions.join("\n")).unwrap();
    }
    let folder = Folder::with(&text).skill("billing", SKILL);
    let options = LoadOptions::default();
    let review = Project::review(folder.path(), &options).unwrap_or_else(|error| panic!("{error}"));
    let project = Project::load(folder.path(), &options).unwrap();
    (folder, review, project)
}

#[derive(Debug, Clone)]
struct Situation {
    skills: Vec<SkillId>,
    listed: bool,
    roles: Vec<&'static str>,
    tenant: Option<&'static str>,
    principal: Option<&'static str>,
    personality: &'static str,
    iteration: u32,
    tainted: bool,
}

impl PolicyFacts for Situation {
    fn active_skills(&self) -> &[SkillId] {
        &self.skills
    }
    fn is_listed(&self, _: &ToolDefinition) -> bool {
        self.listed
    }
    fn has_role(&self, role: &str) -> bool {
        self.roles.contains(&role)
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

fn situation() -> impl Strategy<Value = Situation> {
    let skills = any::<bool>().prop_map(|active| {
        active.then(|| SkillId::new("billing").unwrap()).into_iter().collect::<Vec<_>>()
    });
    (
        skills,
        any::<bool>(),
        prop::sample::subsequence(vec!["one", "two"], 0..=2),
        prop::option::of(Just("t")),
        prop::option::of(select(&["x", "y"])),
        select(&["calm", "quick", "default"]),
        1_u32..4,
        any::<bool>(),
    )
        .prop_map(
            |(skills, listed, roles, tenant, principal, personality, iteration, tainted)| {
                Situation {
                    skills,
                    listed,
                    roles,
                    tenant,
                    principal,
                    personality,
                    iteration,
                    tainted,
                }
            },
        )
}

/// Lists, on whose items a rule that allows and one that refuses depend differently, and a text that
/// is too long to be searched, which makes a condition fail.
fn arguments() -> impl Strategy<Value = Value> {
    let value = || {
        prop_oneof![
            Just(json!(1)),
            Just(json!(2)),
            Just(json!([1, 2])),
            Just(json!([])),
            Just(json!("abc")),
            Just(json!("a".repeat(2 * 1024 * 1024))),
            Just(Value::Null),
        ]
    };
    (value(), value()).prop_map(|(n, m)| json!({ "n": n, "m": m }))
}

fn tools() -> Vec<Tool> {
    let tool = |name: &str, read_only: bool| {
        let tool = Tool::builder(name).description("A tool.");
        let tool = if read_only { tool.read_only() } else { tool };
        match name {
            "read_skill" => tool.framework(),
            _ => tool,
        }
        .handler(|_: Value, _: ToolContext| async { "" })
        .unwrap()
    };
    vec![tool("a", true), tool("b", false), tool("ab", false), tool("read_skill", true)]
}

/// A denial leaves the run going, and a halt shows the tool: neither is stricter.
fn is_at_least(new: Effect, old: Effect) -> bool {
    new == old
        || match old {
            Effect::Allow => true,
            Effect::Ask => matches!(new, Effect::Deny | Effect::Halt),
            _ => false,
        }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn rules_that_need_no_consent_decide_no_call_less_strictly(
        default in select(&["allow", "deny"]),
        rules in prop::collection::vec(rule(), 0..5),
        edits in prop::collection::vec(edit(), 1..3),
        calls in prop::collection::vec((0_usize..4, situation(), arguments()), 40),
    ) {
        let after = edits.into_iter().fold(rules.clone(), |rules, edit| edited(&rules, edit));
        let (_old_folder, old_review, old) = project(default, &rules);
        let (_new_folder, new_review, new) = project(default, &after);
        prop_assume!(new_review.changes_since(&old_review).is_empty());
        let tools = tools();
        for (tool, situation, arguments) in calls {
            let tool = tools[tool].definition();
            let judged = |project: &Project| -> Effect {
                let judged: RuleMatch<'_> =
                    project.policy().judge(tool, &situation, Some(&arguments));
                judged.effect()
            };
            let (old, new) = (judged(&old), judged(&new));
            prop_assert!(
                is_at_least(new, old),
                "{} in {situation:?} by {rules:?}: {old:?}; by {after:?}: {new:?}",
                tool.name()
            );
        }
    }
}

#[test]
fn stricter_rules_need_no_consent_and_others_do() {
    let deny_a: RuleText = ("deny", vec!["tool = \"a\""]);
    let deny_b: RuleText = ("deny", vec!["tool = \"b\""]);
    let ask_a: RuleText = ("ask", vec!["tool = \"a\""]);
    let ask_all: RuleText = ("ask", vec!["annotation = { read_only = false }"]);
    let allow_all: RuleText = ("allow", vec!["tool = \"*\""]);
    let allow_both: RuleText = ("allow", vec!["tool = [\"a\", \"b\"]"]);
    let halt_a: RuleText = ("halt", vec!["tool = \"a\""]);
    let asks = |default: &str, before: &[&RuleText], after: &[&RuleText]| {
        let rules =
            |rules: &[&RuleText]| rules.iter().map(|rule| (*rule).clone()).collect::<Vec<_>>();
        let (_old, old, _) = project(default, &rules(before));
        let (_new, new, _) = project(default, &rules(after));
        !new.changes_since(&old).is_empty()
    };
    for (default, before, after) in [
        ("allow", vec![&ask_all], vec![&deny_a, &ask_all]),
        ("allow", vec![&deny_a], vec![&deny_a, &ask_all]),
        ("allow", vec![&deny_a], vec![&deny_a, &ask_a]),
        ("allow", vec![&deny_b], vec![&ask_a, &deny_b]),
        ("allow", vec![&deny_a, &deny_b], vec![&deny_b, &deny_a]),
        ("allow", vec![&ask_a], vec![&deny_a]),
        ("allow", vec![&deny_a], vec![&deny_a, &deny_a]),
        ("deny", vec![&ask_all, &allow_all], vec![&ask_all]),
        ("deny", vec![&allow_both], vec![&ask_a, &allow_both]),
    ] {
        assert!(!asks(default, &before, &after), "{default} {before:?} {after:?}");
    }
    for (default, before, after) in [
        ("allow", vec![&deny_a], vec![&ask_all, &deny_a]),
        ("allow", vec![&deny_a], vec![&ask_a, &deny_a]),
        ("allow", vec![&deny_a, &deny_b], vec![&deny_a]),
        ("allow", vec![&ask_a], vec![]),
        ("allow", vec![&deny_a, &allow_all], vec![&allow_all, &deny_a]),
        ("allow", vec![&halt_a], vec![&deny_a]),
        ("allow", vec![&deny_a], vec![&halt_a]),
        ("deny", vec![], vec![&ask_a]),
    ] {
        assert!(asks(default, &before, &after), "{default} {before:?} {after:?}");
    }
    let (_old, old, _) = project("allow", std::slice::from_ref(&deny_a));
    let (_new, new, _) = project("deny", &[deny_a]);
    assert!(!new.changes_since(&old).is_empty(), "policy_default");
}
