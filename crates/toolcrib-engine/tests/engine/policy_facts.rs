//! The facts for rules, and a policy as a gate.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    __internal::of_plugin, CancellationToken, Identity, ListContext, Policy, PolicyDefault, Rule,
    RuleConditions, SkillId, Tool, ToolProvider, gated_tools, static_tools,
};
use toolcrib_engine::{Engine, Personality, TurnError, TurnOptions};

use crate::support::{
    builder, engine, listed, menu, offered, reading, says, skill_id, skills, tool,
};

fn write_denied(when: RuleConditions) -> Rule {
    Rule::deny("rule 1").tools(["write"]).when(when)
}

fn desk(policy: Policy) -> Engine {
    engine()
        .tools([reading("read"), tool("write")])
        .personality(Personality::new("auditor"))
        .policy(policy)
        .build()
        .unwrap()
}

async fn writes(engine: &Engine, options: TurnOptions) -> bool {
    offered(engine, options).await.contains(&"write".to_owned())
}

#[tokio::test]
async fn a_rule_knows_principal_personality_and_iteration() {
    let options = TurnOptions::default;
    let engine =
        desk(Policy::of([write_denied(RuleConditions::default().principals(["bob", "eve"]))]));
    assert!(!writes(&engine, options().principal("eve")).await);
    assert!(writes(&engine, options().principal("Eve")).await);
    assert!(writes(&engine, options()).await);

    let engine =
        desk(Policy::of([write_denied(RuleConditions::default().personalities(["auditor"]))]));
    assert!(!writes(&engine, options().personality("auditor")).await);
    assert!(writes(&engine, options()).await);
    let engine =
        desk(Policy::of([write_denied(RuleConditions::default().personalities(["default"]))]));
    assert!(!writes(&engine, options()).await);

    let ranged = RuleConditions::default().from_iteration(2).to_iteration(3);
    let engine = desk(Policy::of([write_denied(ranged)]));
    let mut turn = engine.turn(options()).unwrap();
    let mut there = Vec::new();
    for _ in 0..5 {
        there.push(menu(&turn.iteration().await.unwrap()).len());
    }
    assert_eq!(there, [2, 1, 1, 2, 2]);
}

#[tokio::test]
async fn a_menu_is_composed_anew_only_where_a_rule_tells_iterations_apart() {
    let withheld = |when: RuleConditions| async {
        let engine = desk(Policy::of([write_denied(when)]));
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut menus = Vec::new();
        for _ in 0..4 {
            menus.push(Arc::clone(turn.iteration().await.unwrap().withheld()));
        }
        menus.windows(2).map(|two| Arc::ptr_eq(&two[0], &two[1])).collect::<Vec<_>>()
    };
    assert_eq!(withheld(RuleConditions::default()).await, [true, true, true]);
    assert_eq!(withheld(RuleConditions::default().from_iteration(3)).await, [true, false, true]);
    assert_eq!(withheld(RuleConditions::default().to_iteration(1)).await, [false, true, true]);
}

#[tokio::test]
async fn a_rule_knows_where_a_tool_comes_from() {
    let engine = |rule: Rule| {
        let remote = says(builder("mcp__git__log").origin("mcp:git").mcp_server("git"), "");
        let brought = of_plugin("calendar", static_tools([tool("meet")]));
        engine()
            .tools([tool("own"), remote])
            .provider(brought)
            .policy(Policy::of([rule]))
            .build()
            .unwrap()
    };
    let left = |rule: Rule| async move { offered(&engine(rule), TurnOptions::default()).await };
    assert_eq!(left(Rule::deny("1").origins(["mcp:*"])).await, ["own", "meet"]);
    assert_eq!(left(Rule::deny("1").origins(["mcp"])).await, ["own", "mcp__git__log", "meet"]);
    assert_eq!(left(Rule::deny("1").mcp_servers(["g*"])).await, ["own", "meet"]);
    assert_eq!(left(Rule::deny("1").mcp_servers(["svn"])).await.len(), 3);
    assert_eq!(left(Rule::deny("1").plugins(["calendar"])).await, ["own", "mcp__git__log"]);
    assert_eq!(left(Rule::deny("1").plugins(["*"])).await, ["own", "mcp__git__log"]);
}

#[tokio::test]
async fn roles_come_from_principals_tenants_and_claims_and_stay_for_the_turn() {
    let mut policy = Policy::of([write_denied(RuleConditions::default().roles(["trainee"]))]);
    policy.roles.grant("intern", "trainee");
    policy.roles.grant_to_tenant("school", "trainee");
    policy.roles.grant_to_claim("groups", ["trainees"], "trainee");
    let engine = desk(policy);
    let options = TurnOptions::default;
    assert!(writes(&engine, options()).await);
    assert!(!writes(&engine, options().principal("intern")).await);
    assert!(!writes(&engine, options().tenant("school")).await);
    assert!(!writes(&engine, options().claim("groups", json!(["a", "trainees"]))).await);
    assert!(!writes(&engine, options().claim("groups", "trainees")).await);
    assert!(writes(&engine, options().claim("groups", "trainees,admins")).await);
    assert!(writes(&engine, options().claim("other", json!(7))).await);
    for odd in [json!(7), json!(null), json!({"trainees": true}), json!([["trainees"]])] {
        // Left out, the role would not deny.
        match engine.turn(options().claim("groups", odd)).unwrap_err() {
            TurnError::InvalidClaim(claim) => assert_eq!(&*claim.claim, "groups"),
            other => panic!("{other}"),
        }
    }
}

fn cx(principal: Option<&str>, skill: Option<&str>, iteration: u32) -> ListContext {
    let mut identity = Identity::conversation("c");
    identity.principal = principal.map(Into::into);
    let skills: Vec<SkillId> = skill.map(skill_id).into_iter().collect();
    ListContext::new(Arc::new(identity), CancellationToken::new())
        .with_iteration(iteration)
        .with_active_skills(skills.into())
}

/// Case 39.
#[tokio::test]
async fn case_39_one_role_map_drives_gate_and_calls_and_a_role_is_left_to_no_chance() {
    let mut policy = Policy::of([Rule::allow("writers")
        .tools(["write"])
        .when(RuleConditions::default().roles(["writer"]))]);
    policy.default = PolicyDefault::Deny;
    policy.roles.grant("ann", "writer");
    let gate = || policy.as_gate().unwrap();
    let tools = || static_tools([tool("read"), tool("write")]);
    let gated: Arc<dyn ToolProvider> = gated_tools("policy", tools(), gate());
    let nothing: [&str; 0] = [];
    assert_eq!(listed(&gated, &cx(Some("ann"), None, 1)).await, ["write"]);
    assert_eq!(listed(&gated, &cx(Some("bob"), None, 1)).await, nothing);
    assert_eq!(listed(&gated, &cx(None, None, 1)).await, nothing);
    // The same as the engine's own policy says; an unknown tool is denied by both.
    let engine = engine().provider(tools()).policy(policy.clone()).build().unwrap();
    assert_eq!(offered(&engine, TurnOptions::default().principal("ann")).await, ["write"]);
    assert_eq!(offered(&engine, TurnOptions::default()).await, nothing);
    // A policy derived from another does not change that one.
    let mut wider = policy.clone();
    wider.roles.grant("bob", "writer");
    assert_eq!(listed(&gated, &cx(Some("bob"), None, 1)).await, nothing);
    let wider = gated_tools("wider", tools(), wider.as_gate().unwrap());
    assert_eq!(listed(&wider, &cx(Some("bob"), None, 1)).await, ["write"]);
}

#[tokio::test]
async fn a_gate_knows_tool_skills_tenant_and_iteration_and_treats_arguments_as_a_menu_does() {
    let any = || [toolcrib_core::ArgumentMatch::at("/x").unwrap()];
    let policy = Policy::of([
        Rule::deny("args").tools(["a"]).arguments(any()),
        Rule::deny("late").tools(["b"]).when(RuleConditions::default().from_iteration(2)),
        Rule::deny("focus")
            .tools(["c"])
            .when(RuleConditions::default().skills([skill_id("s")]))
            .reason("why"),
    ]);
    let tools = static_tools(["a", "b", "c"].map(tool));
    let gated = gated_tools("policy", tools, policy.as_gate().unwrap());
    assert_eq!(listed(&gated, &cx(None, None, 1)).await, ["a", "b", "c"]);
    assert_eq!(listed(&gated, &cx(None, Some("s"), 2)).await, ["a"]);
    let engine =
        engine().provider(gated).skills(skills([("s", &["a", "b", "c"])])).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("s"))).unwrap();
    let iteration = turn.iteration().await.unwrap();
    let why = iteration.withheld().tool("c").unwrap();
    assert_eq!(why.reason, "gate `policy`: focus denies it: why");
}

#[test]
fn a_policy_that_looks_at_what_a_provider_is_not_told_is_no_gate() {
    let mut policy =
        Policy::of([Rule::deny("rule 7").when(RuleConditions::default().roles(["x"]))]);
    assert!(policy.as_gate().is_ok());
    policy.roles.grant_to_claim("groups", ["x"], "x");
    let said = |policy: &Policy| policy.as_gate().err().unwrap().to_string();
    assert_eq!(
        said(&policy),
        "rule 7 cannot be part of a gate: providers do not receive the claims that give a role; \
         give it to the engine's policy"
    );
    let on = |when: RuleConditions| Policy::of([Rule::deny("r").when(when)]);
    assert!(said(&on(RuleConditions::default().personalities(["p"]))).contains("the personality"));
    assert!(
        said(&on(RuleConditions::default().listed_by_active_skill(true)))
            .contains("the tools that skills list")
    );
}

mod random {
    use futures_util::FutureExt as _;
    use proptest::prelude::*;
    use toolcrib_core::GateDecision;

    use super::*;

    /// A gate that lets some of a few tools pass, in some iterations.
    fn gate(
        passes: Vec<usize>,
        from: u32,
    ) -> impl Fn(&Tool, &ListContext) -> GateDecision + Send + Sync + 'static {
        move |tool: &Tool, cx: &ListContext| {
            let is_one = passes.iter().any(|n| tool.name().as_str() == format!("tool_{n}"));
            if is_one || cx.iteration() < from {
                GateDecision::Offer
            } else {
                GateDecision::Withhold("closed".into())
            }
        }
    }

    /// The forms of a name that look like it.
    fn forms(name: &str) -> Vec<String> {
        vec![
            name.to_uppercase(),
            format!("{name} "),
            format!(" {name}"),
            format!("{name}\0"),
            format!("{name}\u{200b}"),
            format!("\u{feff}{name}"),
            name.replace('o', "\u{43e}"),
            name.replace('_', "\u{ff3f}"),
            name.replace('_', "-"),
            name[..name.len() - 1].to_owned(),
            format!("functions.{name}"),
            format!("mcp__x__{name}"),
            "tool_*".to_owned(),
            String::new(),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn gates_commute(
            one in prop::collection::vec(0..5_usize, 0..5), from_one in 1..4_u32,
            two in prop::collection::vec(0..5_usize, 0..5), from_two in 1..4_u32,
            iteration in 1..4_u32,
        ) {
            let tools = || static_tools((0..5).map(|n| tool(&format!("tool_{n}"))));
            let list = |provider: Arc<dyn ToolProvider>| {
                let cx = cx(None, None, iteration);
                let listing = provider.list(&cx).wait().now_or_never().unwrap();
                let catalog = listing.unwrap();
                (crate::support::catalog_names(&catalog), catalog.withheld_by_provider().len())
            };
            let inner = gated_tools("one", tools(), gate(one.clone(), from_one));
            let one_first = gated_tools("two", inner, gate(two.clone(), from_two));
            let inner = gated_tools("two", tools(), gate(two, from_two));
            let two_first = gated_tools("one", inner, gate(one, from_one));
            prop_assert_eq!(list(one_first), list(two_first));
        }

        #[test]
        fn nothing_that_is_withheld_is_ever_executed_under_any_name(
            passes in prop::collection::vec(0..5_usize, 0..5),
            denied in prop::collection::vec(0..5_usize, 0..3),
            halted in prop::option::of(0..5_usize),
            reached in prop::collection::vec(0..5_usize, 0..5),
            skill in prop::option::of(prop::collection::vec(0..5_usize, 0..4)),
            closed in any::<bool>(),
        ) {
            let runs: Vec<Arc<std::sync::Mutex<u32>>> = (0..5).map(|_| Arc::default()).collect();
            let counted = runs.iter().enumerate().map(|(n, runs)| {
                let runs = Arc::clone(runs);
                builder(&format!("tool_{n}"))
                    .handler(move |_: Value, _: toolcrib_core::ToolContext| {
                        *runs.lock().unwrap() += 1;
                        async { "ran" }
                    })
                    .unwrap()
            });
            let names = |ns: &[usize]| ns.iter().map(|n| format!("tool_{n}")).collect::<Vec<_>>();
            let mut rules: Vec<_> =
                names(&denied).into_iter().map(|name| Rule::deny("deny").tools([name])).collect();
            rules.extend(halted.map(|n| Rule::halt("halt").tools([format!("tool_{n}")])));
            rules.push(Rule::allow("most").tools(["tool_0", "tool_1", "tool_2"]));
            let default = if closed { PolicyDefault::Deny } else { PolicyDefault::Allow };
            let mut personality = Personality::new("p");
            personality.toolset = Some(names(&reached).into_iter().map(Into::into).collect());
            let skills = skill.iter().map(|ns| {
                toolcrib_engine::Skill::new(skill_id("s"), "About.", "How.").tools(
                    names(ns).into_iter().map(|name| toolcrib_core::ToolName::new(name).unwrap()),
                )
            });
            let engine = engine()
                .provider(gated_tools("gate", static_tools(counted), gate(passes, 1)))
                .skills(toolcrib_engine::Skills::new(skills.collect()).unwrap())
                .personality(personality)
                .policy(Policy { default, ..Policy::of(rules) })
                .build()
                .unwrap();
            let turn = || {
                let mut options = TurnOptions::default().personality("p");
                options.skills = skill.iter().map(|_| skill_id("s")).collect();
                engine.turn(options).unwrap()
            };
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
            let offered = runtime.block_on(async {
                let offered = menu(&turn().iteration().await.unwrap());
                for n in 0..5 {
                    let name = format!("tool_{n}");
                    for form in forms(&name).into_iter().chain([name]) {
                        // A halt ends the calls of its turn, so each call has a separate turn.
                        let mut turn = turn();
                        let mut iteration = turn.iteration().await.unwrap();
                        let calls = vec![crate::support::call(&form, json!({}))];
                        let result = iteration.execute(calls).await.remove(0);
                        assert_eq!(result.is_ok(), offered.contains(&form)
                            && halted.is_none_or(|n| form != format!("tool_{n}")), "{form:?}");
                    }
                }
                offered
            });
            for (n, runs) in runs.iter().enumerate() {
                let name = format!("tool_{n}");
                let may = offered.contains(&name) && halted != Some(n);
                prop_assert_eq!(*runs.lock().unwrap(), u32::from(may), "{}", name);
            }
        }
    }
}
