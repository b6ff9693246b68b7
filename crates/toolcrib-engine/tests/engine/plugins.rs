//! Plugins: their parts carry their id and are removed with them.

use std::{
    error::Error,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use futures_util::FutureExt as _;
use serde_json::{Value, json};
use toolcrib_core::{
    CallDecision, Catalog, DiscoveryError, ErrorCode, InvalidToolError, Lifetime, ListContext,
    Listing, Reducer, ReducerContext, Tool, ToolContext, ToolName, ToolOutput, call_middleware,
    static_tools,
};
use toolcrib_engine::{
    BuildError, Engine, EngineBuilder, Personality, Plugin, PluginError, PluginRegistrar,
    READ_SKILL, Skill, Skills, ToolsMode, Turn, TurnError, TurnOptions,
};

use crate::support::{
    Log, builder, call, engine, menu, offered, once, provider, says, skill_id, skills, tool,
};

/// A plugin from a function.
pub(crate) struct Brings<F>(pub(crate) &'static str, pub(crate) F);

impl<F> Plugin for Brings<F>
where
    F: Fn(&mut PluginRegistrar) -> Result<(), Box<dyn Error + Send + Sync>> + Send + Sync,
{
    fn id(&self) -> &str {
        self.0
    }

    fn register(
        &self,
        registrar: &mut PluginRegistrar,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        (self.1)(registrar)
    }
}

struct Shout;

impl Reducer for Shout {
    fn tool_name(&self) -> &str {
        "host_tool"
    }

    fn reduce(&self, output: ToolOutput, _: ReducerContext<'_>) -> ToolOutput {
        ToolOutput::text(output.value.to_uppercase())
    }
}

/// One of everything.
fn billing() -> impl Plugin {
    Brings("billing", |registrar: &mut PluginRegistrar| {
        registrar
            .tool(says(builder("refund"), "refunded"))
            .provider(static_tools([tool("list_charges")]))
            .reducer(Shout)
            .skill(
                Skill::new(skill_id("refunds"), "Refunds.", "How to refund.")
                    .tools([ToolName::new("refund")?]),
            )
            .middleware(call_middleware("no-thirteen", |call| {
                Ok(if call.args["n"] == 13 {
                    CallDecision::Deny("not that one".into())
                } else {
                    CallDecision::Proceed
                })
            }));
        Ok(())
    })
}

fn host() -> Engine {
    let open = builder("host_tool").input_schema(json!({ "type": "object" }));
    engine().tool(says(open, "quiet")).plugin(billing()).build().unwrap()
}

#[tokio::test]
async fn the_hosts_skills_and_what_holds_for_them_stay_when_a_plugin_leaves() {
    let engine = engine()
        .tools([tool("own"), tool("listed")])
        .skills(skills([("mine", &["listed"])]).focus(false))
        .plugin(billing())
        .build()
        .unwrap();
    let without = engine.without_plugin("billing").unwrap();
    let active = TurnOptions::default().skill(skill_id("mine"));
    assert_eq!(offered(&without, active).await, ["own", "listed", READ_SKILL]);
}

/// A plugin's skill that lists a tool of the host and one of the plugin.
fn meddling(mode: ToolsMode) -> impl Plugin {
    Brings("meddler", move |registrar: &mut PluginRegistrar| {
        let tools = ["refund", "export", "free"].map(|name| ToolName::new(name).unwrap());
        let skill = Skill::new(skill_id("meddle"), "Meddles.", "Meddle.");
        registrar.tool(tool("export")).skill(skill.tools(tools).tools_mode(mode));
        Ok(())
    })
}

#[tokio::test]
async fn a_plugins_skill_gives_no_mode_to_tools_of_others() {
    let tools = ["refund"].map(|name| ToolName::new(name).unwrap());
    let refunds = Skill::new(skill_id("refunds"), "Refunds.", "Refund.").tools(tools);
    let refunds = refunds.tools_mode(ToolsMode::HiddenUntilActive);
    let mut table = String::new();
    for mode in ToolsMode::ALL {
        let engine = engine()
            .tools([tool("refund"), tool("free")])
            .skills(Skills::new(vec![refunds.clone()]).unwrap())
            .plugin(meddling(mode))
            .build()
            .unwrap();
        for active in [&[][..], &["refunds"], &["meddle"], &["refunds", "meddle"]] {
            let mut options = TurnOptions::default();
            options.skills = active.iter().map(|id| skill_id(id)).collect();
            let mut names = offered(&engine, options).await;
            names.retain(|name| name != READ_SKILL);
            let active = format!("[{}]", active.join(" "));
            table.push_str(&format!("{mode:<19} {active:<16} {}\n", names.join(" ")));
        }
    }
    insta::assert_snapshot!(table, @"
    while_active        []               free export
    while_active        [refunds]        refund
    while_active        [meddle]         free export
    while_active        [refunds meddle] refund free export
    always              []               free export
    always              [refunds]        refund export
    always              [meddle]         free export
    always              [refunds meddle] refund free export
    latest_only         []               free export
    latest_only         [refunds]        refund
    latest_only         [meddle]         free export
    latest_only         [refunds meddle] refund free export
    hidden_until_active []               free
    hidden_until_active [refunds]        refund
    hidden_until_active [meddle]         free export
    hidden_until_active [refunds meddle] refund free export
    ");
}

#[tokio::test]
async fn why_a_plugins_skill_does_not_bring_a_tool_out_is_said() {
    let tools = ["refund"].map(|name| ToolName::new(name).unwrap());
    let refunds = Skill::new(skill_id("refunds"), "Refunds.", "Refund.").tools(tools);
    let engine = engine()
        .tools([tool("refund"), tool("free")])
        .skills(Skills::new(vec![refunds]).unwrap())
        .plugin(meddling(ToolsMode::Always))
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("meddle"))).unwrap();
    let iteration = turn.iteration().await.unwrap();
    let reason = iteration.withheld().tool("refund").unwrap().reason.to_string();
    insta::assert_snapshot!(reason, @"skill `refunds` lists it and is not active; skill `meddle` of a plugin does not decide on it (active: `meddle`); to offer it: activate skill `refunds`");
}

#[tokio::test]
async fn a_personality_that_does_not_list_a_plugin_has_no_skill_of_it() {
    let engine = engine()
        .tools([tool("host_tool"), tool("listed")])
        .skills(skills([("mine", &["listed"])]).offer_list_skills(true))
        .plugin(billing())
        .personality(Personality::new("bare").plugins::<&str>([]))
        .personality(Personality::new("clerk").plugins(["billing"]))
        .build()
        .unwrap();
    let ids = |personality: &str| -> Vec<String> {
        let options = TurnOptions::default().personality(personality);
        let turn = engine.turn(options).unwrap();
        let ids: Vec<_> = turn.skills().iter().map(|skill| skill.id.to_string()).collect();
        let told = engine.skills_of(Some(personality));
        assert!(told.iter().map(|skill| skill.id.as_str()).eq(ids.iter().map(String::as_str)));
        ids
    };
    assert_eq!(ids("bare"), ["mine"]);
    assert_eq!(ids("clerk"), ["mine", "refunds"]);
    assert_eq!(ids("default"), ["mine", "refunds"]);
    let bare = || TurnOptions::default().personality("bare");
    let Err(error) = engine.turn(bare().skill(skill_id("refunds"))) else {
        panic!("a skill that is out of reach is active")
    };
    assert!(matches!(error, TurnError::SkillOutOfReach { .. }), "{error:?}");
    let mut turn = engine.turn(bare()).unwrap();
    let error = turn.activate_skill(skill_id("refunds")).unwrap_err();
    insta::assert_snapshot!(error, @"personality `bare` has no skill `refunds`: it belongs to plugin `billing`, which is not in its `plugins`");
    let mut iteration = turn.iteration().await.unwrap();
    let read_skill = iteration.menu().get(READ_SKILL).unwrap();
    assert!(!read_skill.description().contains("refunds"), "{}", read_skill.description());
    let calls = vec![call(READ_SKILL, json!({ "id": "refunds" })), call("list_skills", json!({}))];
    let results = iteration.execute(calls).await;
    assert!(!results[0].is_ok(), "{results:?}");
    assert!(!results[1].value.contains("refunds"), "{results:?}");
}

#[tokio::test]
async fn turns_of_a_personality_without_a_plugin_share_what_they_compose() {
    let engine = engine()
        .tool(tool("host_tool"))
        .plugin(billing())
        .personality(Personality::new("bare").plugins::<&str>([]))
        .build()
        .unwrap();
    let menu_of = async |personality: &str| {
        let options = TurnOptions::default().personality(personality).without_read_skill();
        let mut turn = engine.turn(options).unwrap();
        Arc::clone(turn.iteration().await.unwrap().menu())
    };
    let (all, bare) = (menu_of("default").await, menu_of("bare").await);
    assert_ne!(all.fingerprint(), bare.fingerprint());
    assert!(Arc::ptr_eq(&all, &menu_of("default").await));
    assert!(Arc::ptr_eq(&bare, &menu_of("bare").await));
}

#[tokio::test]
async fn all_that_a_plugin_brings_works_carries_its_id_and_leaves_with_it() {
    let engine = host();
    let log = Log::of(engine.events());
    assert_eq!(engine.plugins().collect::<Vec<_>>(), ["billing"]);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["host_tool", "refund", "list_charges", READ_SKILL]);
    let plugin_of = |name: &str| iteration.menu().get(name).unwrap().plugin().map(str::to_owned);
    assert_eq!(plugin_of("host_tool"), None);
    assert_eq!(plugin_of("refund").as_deref(), Some("billing"));
    assert_eq!(plugin_of("list_charges").as_deref(), Some("billing"));
    assert_eq!(engine.skills().get("refunds").unwrap().plugin.as_deref(), Some("billing"));
    let providers: Vec<_> = log
        .of_name("tools.discovery_completed")
        .iter()
        .map(|event| event["provider"].clone())
        .collect();
    assert_eq!(providers, ["registry", "plugin(billing) > static", "skills"]);
    assert_eq!(&*once(&engine, "host_tool", json!({})).await.value, "QUIET");
    let denied = once(&engine, "host_tool", json!({ "n": 13 })).await;
    assert_eq!(denied.code, Some(ErrorCode::Denied));
    assert_eq!(
        denied.cause.as_deref(),
        Some("denied by middleware `no-thirteen` of plugin `billing`")
    );

    let without = engine.without_plugin("billing").unwrap();
    assert_eq!(offered(&without, TurnOptions::default()).await, ["host_tool"]);
    assert_eq!(&*once(&without, "host_tool", json!({ "n": 13 })).await.value, "quiet");
    assert_eq!(once(&without, "refund", json!({})).await.code, Some(ErrorCode::NotAvailable));
    assert!(without.skills().is_empty());
    assert!(without.without_plugin("billing").is_none());
    // A turn that has begun is unchanged, and so is the engine that it began on.
    assert!(menu(&turn.iteration().await.unwrap()).contains(&"refund".to_owned()));

    let again = without.with_plugin(&billing()).unwrap();
    assert_eq!(
        offered(&again, TurnOptions::default()).await,
        offered(&engine, TurnOptions::default()).await
    );
}

#[tokio::test]
async fn a_plugins_provider_is_marked_now_and_later_and_stays_the_same_tools() {
    let later = provider("later", |_: &ListContext| {
        let tool = tool("remote");
        let mut catalog = Catalog::from([tool.clone()]);
        catalog.withhold(tool, "gate".into(), "not today");
        Listing::later(async move { Ok(catalog) })
    });
    let fixed = static_tools([tool("fixed")]);
    let plugin = Brings("p", move |registrar: &mut PluginRegistrar| {
        registrar.provider(Arc::clone(&later)).provider(Arc::clone(&fixed));
        Ok(())
    });
    let engine = engine().plugin(plugin).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let first = Arc::clone(turn.iteration().await.unwrap().menu());
    let second = Arc::clone(turn.iteration().await.unwrap().menu());
    assert_eq!(first.get("remote").unwrap().plugin(), Some("p"));
    assert!(first.get("fixed").unwrap().same(second.get("fixed").unwrap()));
    assert_eq!(first.fingerprint(), second.fingerprint());
}

/// Offers one tool to one principal, and another to all others.
fn by_principal() -> (impl Plugin, [Tool; 2]) {
    let tools = [tool("for_ada"), tool("for_others")];
    let [ada, others] = tools.clone().map(|tool| Catalog::from([tool]));
    let plugin = Brings("p", move |registrar: &mut PluginRegistrar| {
        let (ada, others) = (ada.clone(), others.clone());
        registrar.provider(provider("by principal", move |cx| {
            let is_ada = cx.identity().principal.as_deref() == Some("ada");
            Listing::now(if is_ada { ada.clone() } else { others.clone() })
        }));
        Ok(())
    });
    (plugin, tools)
}

#[test]
fn turns_whose_lists_differ_do_not_take_a_plugins_tools_from_each_other() {
    let (plugin, _) = by_principal();
    let engine = engine().plugin(plugin).build().unwrap();
    let mut ada = engine.turn(TurnOptions::default().principal("ada")).unwrap();
    let mut bob = engine.turn(TurnOptions::default().principal("bob")).unwrap();
    let step = |turn: &mut Turn| {
        let mut menu = None;
        let allocations = allocation_counter::measure(|| {
            let iteration = turn.iteration().now_or_never().expect("no future is waited for");
            menu = Some(Arc::clone(iteration.unwrap().menu()));
        });
        (menu.unwrap(), allocations.count_total)
    };
    let ((first_ada, _), (first_bob, _)) = (step(&mut ada), step(&mut bob));
    assert_eq!(first_ada.names().collect::<Vec<_>>(), ["for_ada"]);
    for _ in 2..6 {
        for (turn, first) in [(&mut ada, &first_ada), (&mut bob, &first_bob)] {
            let (menu, allocations) = step(turn);
            assert!(Arc::ptr_eq(&menu, first));
            // The plugin's list of marked tools, which was last made for the other turn.
            assert_eq!(allocations, 2);
        }
    }
}

#[tokio::test]
async fn tools_that_no_plugin_can_list_again_are_forgotten() {
    let alive = Arc::new(());
    let fresh = Arc::clone(&alive);
    let plugin = Brings("p", move |registrar: &mut PluginRegistrar| {
        let fresh = Arc::clone(&fresh);
        // A new tool each time it is asked.
        registrar.provider(provider("fresh", move |_| {
            let held = Arc::clone(&fresh);
            let body = builder("t").handler(move |_: Value, _: ToolContext| {
                let held = Arc::clone(&held);
                async move { Arc::strong_count(&held).to_string() }
            });
            Listing::now([body.unwrap()])
        }));
        Ok(())
    });
    let engine = engine().plugin(plugin).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for _ in 0..1_000 {
        assert_eq!(turn.iteration().await.unwrap().menu().len(), 1);
    }
    assert!(Arc::strong_count(&alive) < 200, "{} tools are kept", Arc::strong_count(&alive));
}

#[test]
fn builders_and_plugins_are_send_and_sync() {
    fn sent<T: Send + Sync>() {}
    sent::<EngineBuilder>();
    sent::<PluginRegistrar>();
    sent::<Box<dyn Plugin>>();
}

fn build_error(plugin: impl Plugin + 'static) -> BuildError {
    engine()
        .tool(tool("taken"))
        .skills(skills([("known", &[])]))
        .plugin(plugin)
        .build()
        .unwrap_err()
}

#[test]
fn a_plugin_that_does_not_fit_fails_the_build_and_says_why() {
    type Register = fn(&mut PluginRegistrar) -> Result<(), Box<dyn Error + Send + Sync>>;
    let plugins: [Brings<Register>; 7] = [
        Brings("not an id", |_| Ok(())),
        Brings("p", |_| Err("no license".into())),
        Brings("p", |_| panic!("oops")),
        Brings("p", |registrar| {
            registrar.tool(tool("taken"));
            Ok(())
        }),
        Brings("p", |registrar| {
            registrar.tool(Tool::builder("mute").handler(|_: Value, _: ToolContext| async { "x" }));
            Ok(())
        }),
        Brings("p", |registrar| {
            registrar.skill(Skill::new(skill_id("known"), "d", "b"));
            Ok(())
        }),
        Brings("p", |registrar| {
            registrar.tool(tool(READ_SKILL));
            Ok(())
        }),
    ];
    let texts: Vec<_> = plugins.map(|plugin| build_error(plugin).to_string()).into();
    insta::assert_snapshot!(texts.join("\n"));
    let twice =
        engine().plugin(Brings("p", |_: &mut _| Ok(()))).plugin(Brings("p", |_: &mut _| Ok(())));
    let error = twice.build().unwrap_err();
    assert!(matches!(error, BuildError::Plugin(PluginError::Twice(id)) if &*id == "p"));
}

#[test]
fn a_plugin_that_is_refused_leaves_the_engine_as_it_was() {
    let engine = host();
    let clash = Brings("other", |registrar: &mut PluginRegistrar| {
        registrar.tool(tool("brand_new")).tool(tool("refund"));
        Ok(())
    });
    assert!(matches!(engine.with_plugin(&clash), Err(BuildError::AlreadyRegistered(_))));
    assert_eq!(engine.plugins().len(), 1);
}

#[test]
fn a_tool_that_could_not_be_made_comes_out_where_the_engine_is_built() {
    let nameless =
        Tool::builder("no description").handler(|_: Value, _: ToolContext| async { "x" });
    let error = engine().tool(nameless).build().unwrap_err();
    assert!(matches!(error, BuildError::InvalidTool(InvalidToolError::Name(_))));
}

#[tokio::test]
async fn an_ephemeral_tool_goes_with_its_iteration_or_its_turn() {
    let engine = engine().tool(tool("always")).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let brief = || says(builder("brief").ephemeral(Lifetime::Iteration), "ran");
    turn.registry().register(brief()).unwrap();
    turn.registry().register(says(builder("turn").ephemeral(Lifetime::Turn), "ran")).unwrap();
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", "brief", "turn"]);
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", "turn"]);
    // One that is registered for the iteration to come is in it.
    turn.registry().register(brief()).unwrap();
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", "turn", "brief"]);
    turn.registry().overwrite(brief());
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", "turn", "brief"]);
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", "turn"]);
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["always"]);
}

#[tokio::test]
async fn an_ephemeral_tool_waits_for_the_iteration_that_first_offers_it() {
    // A discovery that fails offers nothing.
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let flaky = provider("flaky", move |_| {
        if failing.load(Ordering::Relaxed) {
            return Listing::failed(DiscoveryError::source_failed("down"));
        }
        Listing::now(Catalog::new())
    });
    let brief = || says(builder("brief").ephemeral(Lifetime::Iteration), "ran");
    let engine_ = engine().tool(tool("always")).provider(flaky).build().unwrap();
    let mut turn = engine_.turn(TurnOptions::default()).unwrap();
    turn.registry().register(brief()).unwrap();
    assert!(turn.iteration().await.is_err());
    fails.store(false, Ordering::Relaxed);
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", "brief"]);
    // It has been offered, so it goes even if the next iteration does not begin.
    fails.store(true, Ordering::Relaxed);
    assert!(turn.iteration().await.is_err());
    fails.store(false, Ordering::Relaxed);
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always"]);

    // Nor does a skill that withholds it.
    let engine = engine()
        .tool(tool("always"))
        .skills(skills([("narrow", &["always"]), ("wide", &["brief"])]))
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("narrow"))).unwrap();
    turn.registry().register(brief()).unwrap();
    for _ in 0..2 {
        assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", READ_SKILL]);
    }
    let wide = call(READ_SKILL, json!({ "id": "wide" }));
    assert!(turn.iteration().await.unwrap().execute(vec![wide]).await[0].is_ok());
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", "brief", READ_SKILL]);
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["always", READ_SKILL]);
}

#[tokio::test]
async fn an_ephemeral_tool_counts_in_registries_only_and_gives_nothing_back() {
    let brief = || says(builder("brief").ephemeral(Lifetime::Iteration), "ran");
    let engine_ = engine().provider(static_tools([brief()])).build().unwrap();
    let mut turn = engine_.turn(TurnOptions::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(menu(&turn.iteration().await.unwrap()), ["brief"]);
    }
    let engine = engine().tool(tool("brief")).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    assert!(turn.registry().overwrite(brief()).is_some());
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["brief"]);
    assert!(menu(&turn.iteration().await.unwrap()).is_empty());
}
