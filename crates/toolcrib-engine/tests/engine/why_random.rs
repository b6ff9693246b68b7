//! The smallest change: all of its facts reverse the outcome, and no proper subset does.

use std::cell::LazyCell;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::json;
use toolcrib_core::{
    ArgumentMatch, Effect, Glob, Policy, PolicyDefault, Rule, RuleConditions, SkillId, Tool,
    ToolName, gated_tools, static_tools,
};
use toolcrib_engine::{
    Engine, Explanation, FactChange, OnSkip, Personality, PluginRegistrar, READ_SKILL, Skill,
    SkillStep, Skills, ToolsMode, TurnError, TurnOptions,
};

use crate::{
    plugins::Brings,
    support::{builder, engine, menu, rule, says, skill_id},
};

const TOOLS: [&str; 3] = ["tool_0", "tool_1", "tool_2"];
const SKILLS: [&str; 2] = ["s0", "s1"];
const PLUGINS: [&str; 2] = ["east", "west"];
const PERSONALITIES: [&str; 2] = ["default", "narrow"];
const TENANTS: [&str; 2] = ["t0", "t1"];
/// Roles by principal, by tenant, and in each way.
const ROLES: [&str; 3] = ["by-name", "by-tenant", "any-way"];
/// Principals and their roles.
const PRINCIPALS: [(&str, &[&str]); 4] = [
    ("nobody", &[]),
    ("ann", &["by-name"]),
    ("bob", &["any-way"]),
    ("eve", &["by-name", "any-way"]),
];

/// The facts that can be changed from outside.
#[derive(Debug, Clone, PartialEq)]
struct Situation {
    skills: Vec<String>,
    principal: Option<String>,
    claim: bool,
    tenant: Option<String>,
    personality: String,
    iteration: u32,
}

impl Situation {
    fn options(&self) -> TurnOptions {
        let mut options = TurnOptions::default().personality(self.personality.as_str());
        options.skills = self.skills.iter().map(|skill| skill_id(skill)).collect();
        options.tenant = self.tenant.as_deref().map(Into::into);
        options.principal = self.principal.as_deref().map(Into::into);
        if self.claim {
            options = options.claim("groups", json!(["others", "any-way"]));
        }
        options
    }

    /// Why each tool is offered or not.
    fn explanations(&self, engine: &Engine) -> Vec<Explanation> {
        let mut turn = engine.turn(self.options()).unwrap();
        for _ in 1..self.iteration {
            turn.iteration().now_or_never().unwrap().unwrap();
        }
        let iteration = turn.iteration().now_or_never().unwrap().unwrap();
        let explanations = TOOLS.map(|name| iteration.why(name).unwrap());
        explanations.into()
    }

    /// The offered tools; `None` if no turn can have these facts, because the personality does not
    /// reach a skill, or the caller may not activate it.
    fn offers(&self, engine: &Engine) -> Option<Vec<bool>> {
        let mut turn = match engine.turn(self.options()) {
            Err(TurnError::SkillOutOfReach { .. } | TurnError::SkillRefused { .. }) => return None,
            turn => turn.unwrap(),
        };
        for _ in 1..self.iteration {
            turn.iteration().now_or_never().unwrap().unwrap();
        }
        let offered = menu(&turn.iteration().now_or_never().unwrap().unwrap());
        Some(TOOLS.iter().map(|name| offered.iter().any(|offered| offered == name)).collect())
    }

    /// All there are, in this small world.
    fn all() -> Vec<Self> {
        let names = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect();
        let mut tenants: Vec<_> = names(&TENANTS);
        tenants.push(None);
        let mut principals: Vec<_> = names(&PRINCIPALS.map(|(name, _)| name));
        principals.push(None);
        let mut all = Vec::new();
        for skills in [&[][..], &["s0"], &["s1"], &["s0", "s1"], &["s1", "s0"]] {
            for principal in &principals {
                for tenant in &tenants {
                    for (claim, personality, iteration) in
                        [false, true].into_iter().flat_map(|claim| {
                            PERSONALITIES.into_iter().flat_map(move |personality| {
                                (1..=2).map(move |iteration| (claim, personality, iteration))
                            })
                        })
                    {
                        all.push(Self {
                            skills: skills.iter().map(|skill| (*skill).to_owned()).collect(),
                            principal: principal.clone(),
                            claim,
                            tenant: tenant.clone(),
                            personality: personality.to_owned(),
                            iteration,
                        });
                    }
                }
            }
        }
        all
    }

    fn roles_by_name(&self) -> Vec<&'static str> {
        let known = PRINCIPALS.iter().find(|(name, _)| Some(*name) == self.principal.as_deref());
        known.map(|(_, roles)| roles.to_vec()).unwrap_or_default()
    }

    fn become_who_has(&mut self, roles: &[&str]) {
        let (name, _) = PRINCIPALS
            .iter()
            .find(|(_, has)| has.len() == roles.len() && has.iter().all(|r| roles.contains(r)))
            .unwrap();
        self.principal = Some((*name).to_owned());
    }

    /// One fact changed; more than one outcome where it leaves a choice. Where rules name
    /// principals, a role comes and goes without the principal.
    fn with(&self, change: &FactChange, names_principals: bool) -> Vec<Self> {
        let mut after = self.clone();
        match change {
            // One that is active already becomes the one that was activated last.
            FactChange::ActivateSkill(skill) => {
                after.skills.retain(|active| *active != skill.as_str());
                after.skills.push(skill.to_string());
            }
            FactChange::DeactivateSkill(skill) => {
                after.skills.retain(|active| *active != skill.as_str());
            }
            FactChange::GainRole(role) if &**role == "any-way" => after.claim = true,
            FactChange::GainRole(role) => {
                assert_eq!(&**role, "by-name");
                assert!(!names_principals);
                let mut roles = self.roles_by_name();
                roles.push("by-name");
                after.become_who_has(&roles);
            }
            FactChange::LoseRole(role) => {
                if &**role == "any-way" {
                    after.claim = false;
                }
                if !names_principals {
                    let mut roles = self.roles_by_name();
                    roles.retain(|held| *held != &**role);
                    after.become_who_has(&roles);
                }
            }
            FactChange::Tenant(tenant) => after.tenant = Some(tenant.to_string()),
            FactChange::Principal(principal) => after.principal = Some(principal.to_string()),
            FactChange::Personality(id) => after.personality = id.to_string(),
            FactChange::Iteration(iteration) => after.iteration = *iteration,
            FactChange::OtherTenant => {
                let elsewhere = Self { tenant: Some("elsewhere".to_owned()), ..after.clone() };
                after.tenant = None;
                return vec![after, elsewhere];
            }
            FactChange::OtherPrincipal => {
                let stranger = Self { principal: Some("stranger".to_owned()), ..after.clone() };
                after.principal = None;
                return vec![after, stranger];
            }
            other => panic!("no way to change {other:?}"),
        }
        vec![after]
    }

    fn with_all<'a>(
        &self,
        changes: impl IntoIterator<Item = &'a FactChange>,
        names_principals: bool,
    ) -> Vec<Self> {
        changes.into_iter().fold(vec![self.clone()], |situations, change| {
            situations.iter().flat_map(|s| s.with(change, names_principals)).collect()
        })
    }
}

#[derive(Debug)]
struct World {
    rules: Vec<Rule>,
    default: PolicyDefault,
    listed: [Vec<&'static str>; 2],
    modes: [ToolsMode; 2],
    /// Whether what a skill lists are its steps, and whether the other way round.
    steps: [Option<bool>; 2],
    focus: bool,
    reaches: Vec<&'static str>,
    /// Whose `tool_1` is: the host's, or a plugin's.
    tool_of: Owner,
    /// Whose the skills are.
    skills_of: [Owner; 2],
    /// The plugins that each personality lists.
    plugins: [Option<Vec<&'static str>>; 2],
    /// Whether `tool_0` passes a gate: without an active skill, and while `s0` or `s1` is the last one. It has no
    /// gate if absent.
    gate: Option<[bool; 3]>,
}

type Owner = Option<&'static str>;

impl World {
    fn tools() -> [Tool; 3] {
        [
            says(builder("tool_0").toolset("a").read_only(), ""),
            says(builder("tool_1").toolset("a"), ""),
            says(builder("tool_2").always_include(), ""),
        ]
    }

    fn engine(&self) -> Engine {
        let mut policy =
            Policy { rules: self.rules.clone(), default: self.default, ..Policy::default() };
        for (principal, roles) in PRINCIPALS {
            roles.iter().for_each(|role| policy.roles.grant(principal, *role));
        }
        policy.roles.grant_to_tenant("t1", "by-tenant");
        policy.roles.grant_to_tenant("t1", "any-way");
        policy.roles.grant_to_claim("groups", ["any-way"], "any-way");
        let mut builder = engine().policy(policy);
        for (id, plugins) in PERSONALITIES.into_iter().zip(&self.plugins) {
            let mut personality = Personality::new(id);
            if id == "narrow" {
                personality = personality.toolset(self.reaches.iter().copied());
            }
            if let Some(plugins) = plugins {
                personality = personality.plugins(plugins.iter().copied());
            }
            builder = builder.personality(personality);
        }
        let skills = Skills::new(self.skills_of(None)).unwrap().focus(self.focus);
        let (gated, free): (Vec<_>, Vec<_>) = self
            .tools_of(None)
            .into_iter()
            .partition(|tool| self.gate.is_some() && *tool.name() == *TOOLS[0]);
        builder = builder.tools(free).skills(skills);
        if let Some(gate) = self.gate {
            builder = builder.provider(gated_tools("skill", static_tools(gated), move |_, cx| {
                let last = cx.active_skill().map(SkillId::as_str);
                gate[SKILLS.iter().position(|skill| last == Some(skill)).map_or(0, |at| at + 1)]
            }));
        }
        for plugin in PLUGINS {
            let (tools, skills) = (self.tools_of(Some(plugin)), self.skills_of(Some(plugin)));
            builder = builder.plugin(Brings(plugin, move |registrar: &mut PluginRegistrar| {
                tools.iter().cloned().for_each(|tool| _ = registrar.tool(tool));
                skills.iter().cloned().for_each(|skill| _ = registrar.skill(skill));
                Ok(())
            }));
        }
        builder.build().unwrap()
    }

    fn tools_of(&self, owner: Owner) -> Vec<Tool> {
        let [first, second, third] = Self::tools();
        let (hosts, owned) = ([first, third].into_iter(), [second].into_iter());
        let hosts = hosts.filter(|_| owner.is_none());
        hosts.chain(owned.filter(|_| owner == self.tool_of)).collect()
    }

    fn skills_of(&self, owner: Owner) -> Vec<Skill> {
        let all = SKILLS.iter().zip(&self.listed).zip(self.modes).zip(self.steps);
        let all = all.zip(self.skills_of).filter(|(_, of)| *of == owner);
        let owned = all.map(|((((id, listed), mode), steps), _)| {
            let listed = listed.iter().map(|name| ToolName::new(*name).unwrap());
            let skill = Skill::new(skill_id(id), "About it.", "How to do it.").tools_mode(mode);
            let step = SkillStep::new;
            match steps {
                None => skill.tools(listed),
                Some(false) => skill.steps(listed.map(step), OnSkip::Hold),
                Some(true) => skill.steps(listed.rev().map(step), OnSkip::Hold),
            }
        });
        owned.collect()
    }

    fn names_principals(&self, tool: &str) -> bool {
        let read_skill = says(builder(READ_SKILL).read_only().idempotent().framework(), "");
        let tools = Self::tools();
        let tool = tools.iter().find(|known| **known.name() == *tool).unwrap();
        let about = |rule: &Rule| rule.tools.matches(tool) || rule.tools.matches(&read_skill);
        self.rules.iter().any(|rule| about(rule) && !rule.when.principals.is_empty())
    }
}

fn names(from: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(from, 0..=from.len())
}

fn a_rule() -> impl Strategy<Value = Rule> {
    let which = (
        prop::sample::select(vec![
            "", "*", "tool_0", "tool_1", "tool_?", "*_2", READ_SKILL, READ_SKILL,
        ]),
        prop::option::weighted(0.2, Just("a")),
        prop::option::weighted(0.2, any::<bool>()),
        any::<bool>(),
    );
    let when = (
        // A skill that a rule names need not exist, nor need a role.
        prop::option::weighted(0.3, names(&["s0", "s1", "ghost"])),
        prop::option::weighted(0.2, any::<bool>()),
        prop::option::weighted(0.5, names(&ROLES)),
        prop::option::weighted(0.3, names(&TENANTS)),
        prop::option::weighted(0.2, names(&["nobody", "ann", "bob", "eve"])),
        prop::option::weighted(0.2, names(&["default", "narrow", "ghost"])),
        (prop::option::weighted(0.2, 1..3_u32), prop::option::weighted(0.1, 0..2_u32)),
    );
    let effect =
        prop::sample::select(vec![Effect::Allow, Effect::Deny, Effect::Deny, Effect::Halt]);
    (effect, which, when).prop_map(|(effect, (glob, toolset, read_only, arguments), when)| {
        let (skills, listed, roles, tenants, principals, personalities, (from, to)) = when;
        let mut this = rule("a rule", effect);
        if !glob.is_empty() {
            this.tools.names = vec![Glob::new(glob)];
        }
        this.tools.toolsets = toolset.map(Glob::new).into_iter().collect();
        this.tools.annotations.read_only = read_only;
        let skills = skills.unwrap_or_default().into_iter().map(skill_id).collect::<Vec<SkillId>>();
        let mut when = RuleConditions::default()
            .skills(skills)
            .roles(roles.unwrap_or_default())
            .tenants(tenants.unwrap_or_default())
            .principals(principals.unwrap_or_default())
            .personalities(personalities.unwrap_or_default());
        when.listed_by_active_skill = listed;
        if let Some(from) = from {
            when = when.from_iteration(from);
        }
        if let Some(to) = to {
            when = when.to_iteration(to);
        }
        if arguments {
            // Some of `read_skill` are about one skill.
            let at = if glob == READ_SKILL { "/id" } else { "/x" };
            let mut of_call = ArgumentMatch::at(at).unwrap();
            if glob == READ_SKILL {
                of_call = of_call.equals("s0");
            }
            when.arguments = vec![of_call];
        }
        this.when(when)
    })
}

fn a_world() -> impl Strategy<Value = World> {
    let mode = || prop::sample::select(ToolsMode::ALL.to_vec());
    let owner = || prop::option::of(prop::sample::select(&PLUGINS[..]));
    let plugins = || prop::option::weighted(0.7, names(&PLUGINS));
    let steps = || prop::option::weighted(0.3, any::<bool>());
    (
        prop::collection::vec(a_rule(), 0..6),
        any::<bool>(),
        [names(&TOOLS), names(&TOOLS)],
        ([mode(), mode()], [steps(), steps()]),
        any::<bool>(),
        names(&["a", "tool_1", "tool_2"]),
        (owner(), [owner(), owner()], [plugins(), plugins()], prop::option::of(any::<[bool; 3]>())),
    )
        .prop_map(|(rules, closed, listed, (modes, steps), focus, reaches, plugins)| {
            let (tool_of, skills_of, plugins, gate) = plugins;
            let default = if closed { PolicyDefault::Deny } else { PolicyDefault::Allow };
            World {
                rules,
                default,
                listed,
                modes,
                steps,
                focus,
                reaches,
                tool_of,
                skills_of,
                plugins,
                gate,
            }
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_smallest_change_reverses_the_decision_and_nothing_less_does(
        world in a_world(),
        mut situation in prop::sample::select(Situation::all()),
    ) {
        let engine = world.engine();
        let reached = engine.skills_of(Some(&situation.personality));
        situation.skills.retain(|skill| reached.get(skill).is_some());
        while situation.offers(&engine).is_none() {
            situation.skills.pop();
        }
        let everywhere = LazyCell::new(|| {
            Situation::all().iter().filter_map(|other| other.offers(&engine)).collect::<Vec<_>>()
        });
        for (at, why) in situation.explanations(&engine).iter().enumerate() {
            let named = world.names_principals(&why.tool);
            let facts = &why.change.facts;
            let turns = |situation: &Situation| {
                situation.offers(&engine).is_some_and(|offers| offers[at] != why.offered)
            };
            if facts.is_empty() {
                if why.change.text.starts_with("no skill, personality") {
                    let turned = everywhere.iter().any(|offers| offers[at] != why.offered);
                    prop_assert!(!turned, "{why:?}");
                } else {
                    let gives_up = ["only a change of more than 4", "no change of facts would offer it"];
                    let is_one = gives_up.iter().any(|text| why.change.text.starts_with(text));
                    prop_assert!(is_one, "{why:?}");
                }
                continue;
            }
            for after in situation.with_all(facts, named) {
                prop_assert!(turns(&after), "{why:?} in {after:?}");
            }
            for left_out in 0..facts.len() {
                let fewer = facts.iter().enumerate().filter(|(at, _)| *at != left_out);
                for after in situation.with_all(fewer.map(|(_, fact)| fact), named) {
                    prop_assert!(!turns(&after), "{why:?} without {left_out} in {after:?}");
                }
            }
            let passed = why.chain.iter().filter(|cause| cause.passed).count();
            let links = passed + usize::from(!why.offered);
            prop_assert_eq!(why.chain.len(), links);
            prop_assert_eq!(why.offered, links == 5 && passed == 5);
        }
    }
}

#[test]
fn nothing_would_offer_a_tool_whose_skill_has_to_follow_another_one() {
    let named = |id: &str| RuleConditions::default().skills([skill_id(id)]);
    let mut no_more = rule("no second skill", Effect::Deny);
    no_more.tools.names = vec![Glob::new(READ_SKILL)];
    let world = World {
        rules: vec![rule("with s0", Effect::Halt).when(named("s0")), no_more.when(named("s1"))],
        default: PolicyDefault::Deny,
        listed: [vec![], vec!["tool_1"]],
        modes: [ToolsMode::WhileActive; 2],
        steps: [None; 2],
        focus: true,
        reaches: vec![],
        tool_of: None,
        skills_of: [None; 2],
        plugins: [None, None],
        gate: None,
    };
    let engine = world.engine();
    let start = |situation: &&Situation| situation.skills == ["s1"];
    let start = Situation::all().iter().find(start).cloned().unwrap();
    let why = start.explanations(&engine).remove(1);
    let again = ["s0", "s1"].map(|id| FactChange::ActivateSkill(skill_id(id)));
    assert_eq!(why.change.facts, again, "{why:?}");
    let after = start.with_all(&why.change.facts, false);
    assert!(after.iter().all(|after| after.offers(&engine).unwrap()[1]), "{after:?}");
}
