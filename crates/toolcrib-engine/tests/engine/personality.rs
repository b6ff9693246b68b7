//! Personalities: the maximum that a run reaches, at listing and at the call.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex},
};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{
    __internal::of_plugin, Effect, ErrorCode, Glob, NetworkRules, PolicyDefault, Tool, ToolBuilder,
    ToolContext, WithheldBy, static_tools,
};
use toolcrib_engine::{
    BuildError, DEFAULT_PERSONALITY, Engine, EngineBuilder, Personality, READ_SKILL, TurnError,
    TurnOptions,
};

use crate::{
    plugins::Brings,
    support::{
        Log, builder, call, engine, menu, offered, policy, rule_on, says, skills, tool, why,
    },
};

/// The names of the calls that ran, sorted.
type CalledTools = Arc<Mutex<BTreeSet<String>>>;

const ALL: [&str; 8] = [
    "note",
    "read_file",
    "write_file",
    "pinned",
    "mcp__git__log",
    "refund",
    "mcp__bank__pay",
    READ_SKILL,
];

fn counted(builder: ToolBuilder, ran: &CalledTools) -> Tool {
    let ran = Arc::clone(ran);
    builder
        .handler(move |args: Value, _: ToolContext| {
            ran.lock().unwrap().insert(args["me"].as_str().unwrap_or_default().to_owned());
            async { "ran" }
        })
        .unwrap()
}

/// Tools of every kind: own ones of a toolset and of none, one that is always included, one of an
/// MCP server, one of a plugin, one of a plugin's MCP server, and Toolcrib's own.
fn of_every_kind(ran: &CalledTools) -> EngineBuilder {
    with_note_if(true, ran)
}

/// The same, with `note` available or not.
fn with_note_if(available: bool, ran: &CalledTools) -> EngineBuilder {
    let open = |name: &str| builder(name).input_schema(json!({ "type": "object" }));
    let remote = static_tools([counted(open("mcp__git__log").mcp_server("git"), ran)]);
    let (refund, pay) =
        (counted(open("refund"), ran), counted(open("mcp__bank__pay").mcp_server("bank"), ran));
    let plugin = Brings("billing", move |registrar: &mut toolcrib_engine::PluginRegistrar| {
        registrar.tool(refund.clone()).provider(static_tools([pay.clone()]));
        Ok(())
    });
    engine()
        .tool(counted(open("note").available_if(move || available), ran))
        .tool(counted(open("read_file").toolset("files"), ran))
        .tool(counted(open("write_file").toolset("files"), ran))
        .tool(counted(open("pinned").toolset("pins").always_include(), ran))
        .provider(remote)
        .plugin(plugin)
        .skills(skills([("s", &[])]))
}

/// The tools offered to a turn of this personality; checks that its calls run for exactly those.
async fn reached(engine: &Engine, ran: &CalledTools, personality: &str) -> Vec<String> {
    ran.lock().unwrap().clear();
    let mut turn = engine.turn(TurnOptions::default().personality(personality)).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let offered: BTreeSet<_> = menu(&iteration).into_iter().collect();
    let calls = ALL.iter().filter(|name| **name != READ_SKILL);
    let calls: Vec<_> = calls.map(|name| call(name, json!({ "me": name }))).collect();
    for result in iteration.execute(calls).await {
        let is_offered = offered.contains(&*result.name);
        let expected = (!is_offered).then_some(ErrorCode::NotAvailable);
        assert_eq!(result.code, expected, "{personality}: {}", result.name);
    }
    let mut of_tools = offered.clone();
    of_tools.remove(READ_SKILL);
    assert_eq!(*ran.lock().unwrap(), of_tools, "{personality}");
    ALL.iter().filter(|name| offered.contains(**name)).map(ToString::to_string).collect()
}

/// A personality's objection to a tool, without the change that would remove it.
fn own_words(reason: &str) -> &str {
    reason.split("; to offer it").next().unwrap_or_default()
}

fn list(names: &[&str]) -> Option<Vec<Arc<str>>> {
    Some(names.iter().map(|name| Arc::from(*name)).collect())
}

fn exclude(patterns: &[&str]) -> Vec<Glob> {
    patterns.iter().copied().map(Glob::new).collect()
}

fn personality(id: &str, change: impl FnOnce(&mut Personality)) -> Personality {
    let mut personality = Personality::new(id);
    change(&mut personality);
    personality
}

#[tokio::test]
async fn every_list_admits_all_when_absent_none_when_empty_and_else_what_it_names() {
    type Case<'a> = (&'a str, Box<dyn Fn(&mut Personality)>, &'a [&'a str]);
    let cases: Vec<Case<'_>> = vec![
        ("open", Box::new(|_| {}), &ALL),
        (
            "no toolset",
            Box::new(|p| p.toolset = list(&[])),
            &["pinned", "mcp__git__log", "refund", "mcp__bank__pay", READ_SKILL],
        ),
        (
            "one toolset",
            Box::new(|p| p.toolset = list(&["files"])),
            &[
                "read_file",
                "write_file",
                "pinned",
                "mcp__git__log",
                "refund",
                "mcp__bank__pay",
                READ_SKILL,
            ],
        ),
        (
            "one tool",
            Box::new(|p| p.toolset = list(&["note"])),
            &["note", "pinned", "mcp__git__log", "refund", "mcp__bank__pay", READ_SKILL],
        ),
        (
            "a toolset lists no tool of a server or a plugin",
            Box::new(|p| {
                p.toolset = list(&["mcp__git__log", "refund"]);
                p.mcp_servers = list(&[]);
                p.plugins = list(&[]);
            }),
            &["pinned", READ_SKILL],
        ),
        (
            "no server",
            Box::new(|p| p.mcp_servers = list(&[])),
            &["note", "read_file", "write_file", "pinned", "refund", READ_SKILL],
        ),
        (
            "one server",
            Box::new(|p| p.mcp_servers = list(&["git"])),
            &["note", "read_file", "write_file", "pinned", "mcp__git__log", "refund", READ_SKILL],
        ),
        (
            "no plugin",
            Box::new(|p| p.plugins = list(&[])),
            &["note", "read_file", "write_file", "pinned", "mcp__git__log", READ_SKILL],
        ),
        (
            "a plugin and its server, and nothing else",
            Box::new(|p| {
                p.toolset = list(&[]);
                p.plugins = list(&["billing"]);
                p.mcp_servers = list(&["bank"]);
            }),
            &["pinned", "refund", "mcp__bank__pay", READ_SKILL],
        ),
        (
            "a plugin without its server",
            Box::new(|p| {
                p.plugins = list(&["billing"]);
                p.mcp_servers = list(&["git"]);
            }),
            &["note", "read_file", "write_file", "pinned", "mcp__git__log", "refund", READ_SKILL],
        ),
        (
            "a server without its plugin",
            Box::new(|p| {
                p.plugins = list(&[]);
                p.mcp_servers = list(&["bank"]);
            }),
            &["note", "read_file", "write_file", "pinned", READ_SKILL],
        ),
        (
            "all is excluded, but not what Toolcrib itself offers",
            Box::new(|p| p.exclude = exclude(&["*"])),
            &[READ_SKILL],
        ),
        ("that too, by its name", Box::new(|p| p.exclude = exclude(&["*", READ_SKILL])), &[]),
        (
            "nothing at all",
            Box::new(|p| {
                p.toolset = list(&[]);
                p.mcp_servers = list(&[]);
                p.plugins = list(&[]);
            }),
            &["pinned", READ_SKILL],
        ),
    ];
    let ran = CalledTools::default();
    let mut engine = of_every_kind(&ran);
    for (id, change, _) in &cases {
        engine = engine.personality(personality(id, change));
    }
    let engine = engine.build().unwrap();
    for (id, _, expected) in cases {
        assert_eq!(reached(&engine, &ran, id).await, expected, "{id}");
    }
    assert_eq!(reached(&engine, &ran, DEFAULT_PERSONALITY).await, ALL);
}

// The cases of the reference, by their numbers.

#[tokio::test]
async fn case_3_what_is_not_among_the_allowed_tools_is_refused_and_its_body_never_runs() {
    let ran = CalledTools::default();
    let narrow = personality("p", |p| p.toolset = list(&["note"]));
    let engine = of_every_kind(&ran).personality(narrow).build().unwrap();
    let options = TurnOptions::default().personality("p");
    let mut turn = engine.turn(options).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let result = iteration.execute(vec![call("read_file", json!({ "me": "read_file" }))]).await;
    assert_eq!(result[0].code, Some(ErrorCode::NotAvailable));
    assert!(ran.lock().unwrap().is_empty());
    let withheld = iteration.withheld().tool("read_file").unwrap();
    assert_eq!(withheld.by, WithheldBy::Personality);
    insta::assert_snapshot!(
        own_words(&withheld.reason),
        @"personality `p` lists neither it nor `files` in `toolset`"
    );
    // The model gets the same message for a nonexistent name that is as near to an offered one.
    let unknown = iteration.execute(vec![call("read_pile", json!({}))]).await;
    assert_eq!(unknown[0].text.replace("read_pile", "read_file"), &*result[0].text);
}

#[tokio::test]
async fn case_6_and_7_tools_of_plugins_and_servers_are_hidden_and_refused_while_own_ones_work() {
    let ran = CalledTools::default();
    let own = personality("own", |p| {
        p.plugins = list(&[]);
        p.mcp_servers = list(&[]);
        p.toolset = list(&["files", "mcp", "mcp__git__log", "refund"]);
    });
    let engine = of_every_kind(&ran).personality(own).build().unwrap();
    assert_eq!(
        reached(&engine, &ran, "own").await,
        ["read_file", "write_file", "pinned", READ_SKILL]
    );
    let mut turn = engine.turn(TurnOptions::default().personality("own")).unwrap();
    let iteration = turn.iteration().await.unwrap();
    let said = |name| own_words(&why(iteration.withheld(), name)).to_owned();
    insta::assert_snapshot!(said("mcp__git__log"), @"personality `own` does not list MCP server `git` in `mcp_servers`");
    insta::assert_snapshot!(said("refund"), @"personality `own` does not list plugin `billing` in `plugins`");
    insta::assert_snapshot!(said("note"), @"personality `own` does not list it in `toolset`");
}

#[tokio::test]
async fn case_9_what_is_excluded_is_refused_though_listed_always_included_or_of_an_admitted_plugin()
{
    let ran = CalledTools::default();
    let wary = personality("wary", |p| {
        p.toolset = list(&["note", "files"]);
        p.plugins = list(&["billing"]);
        p.exclude = exclude(&["note", "pin*", "refund", "mcp__git__*"]);
    });
    let engine = of_every_kind(&ran).personality(wary).build().unwrap();
    assert_eq!(
        reached(&engine, &ran, "wary").await,
        ["read_file", "write_file", "mcp__bank__pay", READ_SKILL]
    );
}

#[tokio::test]
async fn a_tool_is_of_its_server_whatever_it_is_called() {
    // The name of a server's tool may be anything after a rename; no other tool has a name like
    // one.
    let renamed = tool_of("log", Some("git"));
    let alike = tool_of("mcp__git__own", None);
    let narrow = personality("p", |p| p.mcp_servers = list(&[]));
    let engine =
        engine().provider(static_tools([renamed, alike])).personality(narrow).build().unwrap();
    let options = || TurnOptions::default().personality("p");
    assert!(offered(&engine, options()).await.is_empty());
}

fn tool_of(name: &str, server: Option<&str>) -> Tool {
    let builder = builder(name);
    says(
        match server {
            Some(server) => builder.mcp_server(server),
            None => builder,
        },
        "ran",
    )
}

#[tokio::test]
async fn a_plugin_cannot_be_had_by_its_provider_under_another_name() {
    let provider = of_plugin("billing", static_tools([tool("charge")]));
    let narrow = personality("p", |p| p.plugins = list(&["other"]));
    let engine = engine().provider(provider).personality(narrow).build().unwrap();
    assert!(offered(&engine, TurnOptions::default().personality("p")).await.is_empty());
    assert_eq!(offered(&engine, TurnOptions::default()).await, ["charge"]);
}

#[tokio::test]
async fn policy_narrows_further_and_never_widens() {
    let ran = CalledTools::default();
    let narrow = personality("p", |p| p.toolset = list(&["files"]));
    let deny_writes = policy([
        rule_on("allow", Effect::Allow, "note"),
        rule_on("no writes", Effect::Deny, "write_*"),
    ]);
    let engine = of_every_kind(&ran).personality(narrow).policy(deny_writes).build().unwrap();
    let reached = reached(&engine, &ran, "p").await;
    assert!(!reached.contains(&"note".to_owned()), "a rule's tool is out of reach of others");
    assert!(!reached.contains(&"write_file".to_owned()));
    assert!(reached.contains(&"read_file".to_owned()));
}

#[tokio::test]
async fn the_default_one_may_be_declared_and_two_of_one_name_may_not() {
    let declared = personality(DEFAULT_PERSONALITY, |p| p.toolset = list(&["files"]));
    let ran = CalledTools::default();
    let engine = of_every_kind(&ran).personality(declared).build().unwrap();
    assert_eq!(engine.personalities().len(), 1);
    let reached = offered(&engine, TurnOptions::default()).await;
    assert!(!reached.contains(&"note".to_owned()));

    let twice = super::support::engine()
        .personality(Personality::new("p"))
        .personality(Personality::new("p"))
        .build()
        .unwrap_err();
    assert!(matches!(twice, BuildError::DuplicatePersonality(_)));
    insta::assert_snapshot!(twice, @"two personalities are called `p`; rename one of them");
}

#[test]
fn a_turn_of_an_unknown_personality_does_not_begin() {
    let engine = engine().personality(Personality::new("support")).build().unwrap();
    let refused = engine.turn(TurnOptions::default().personality("Support")).unwrap_err();
    assert!(matches!(refused, TurnError::UnknownPersonality { .. }));
    insta::assert_snapshot!(
        refused,
        @"unknown personality `Support`; there are: `default`, `support`"
    );
}

#[tokio::test]
async fn a_body_knows_who_acts_and_how_far_its_network_goes() {
    let rules =
        NetworkRules { allow: list(&["*.example.com"]), deny: vec!["a.example.com".into()] };
    let who = builder("who")
        .handler(|_: Value, cx: ToolContext| async move {
            format!("{} {:?}", cx.personality(), cx.network_rules())
        })
        .unwrap();
    let bound = personality("bound", |p| p.network = Arc::new(rules));
    let engine = engine().tool(who).personality(bound).build().unwrap();
    let mut said = Vec::new();
    for options in [TurnOptions::default(), TurnOptions::default().personality("bound")] {
        let mut turn = engine.turn(options).unwrap();
        let results = turn.iteration().await.unwrap().execute(vec![call("who", json!({}))]).await;
        said.push(results[0].value.to_string());
    }
    insta::assert_snapshot!(said.join("\n"), @r#"
    default NetworkRules { allow: None, deny: [] }
    bound NetworkRules { allow: Some(["*.example.com"]), deny: ["a.example.com"] }
    "#);
}

#[tokio::test]
async fn an_unchanged_menu_is_composed_once() {
    let ran = CalledTools::default();
    let narrow = personality("p", |p| p.toolset = list(&["files"]));
    let engine = of_every_kind(&ran).personality(narrow).build().unwrap();
    let log = Log::of(engine.events());
    let mut turn = engine.turn(TurnOptions::default().personality("p")).unwrap();
    let first = turn.iteration().await.unwrap();
    let second = turn.iteration().await.unwrap();
    assert!(Arc::ptr_eq(first.menu(), second.menu()));
    let changed: Vec<_> =
        log.of_name("tools.offered").iter().map(|event| event["changed"].clone()).collect();
    assert_eq!(changed, [true, false]);
}

/// Possible lists of a random personality.
fn some_of(names: &'static [&'static str]) -> impl Strategy<Value = Option<Vec<Arc<str>>>> {
    proptest::option::of(proptest::sample::subsequence(names, 0..=names.len()))
        .prop_map(|listed| listed.map(|listed| listed.into_iter().map(Arc::from).collect()))
}

prop_compose! {
    fn any_personality()(
        toolset in some_of(&["note", "files", "write_file", "pins", "mcp", "refund"]),
        mcp_servers in some_of(&["git", "bank"]),
        plugins in some_of(&["billing", "other"]),
        excluded in proptest::sample::subsequence(
            &["note", "*_file", "pinned", "mcp__*", "refund", READ_SKILL][..], 0..=3,
        ),
    ) -> Personality {
        personality("p", |p| {
            p.toolset = toolset;
            p.mcp_servers = mcp_servers;
            p.plugins = plugins;
            p.exclude = exclude(&excluded);
        })
    }
}

proptest! {
    // Each case builds three engines.
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Case 5, with personalities: the callable tools equal the offered ones, which are the
    /// intersection of the personality's, the policy's and the existing tools.
    #[test]
    fn the_offered_and_callable_tools_are_the_intersection(
        personality in any_personality(),
        denied in proptest::sample::subsequence(&ALL[..], 0..=ALL.len()),
        available in proptest::bool::ANY,
    ) {
        let ran = CalledTools::default();
        let rules = || toolcrib_core::Policy {
            rules: denied.iter().map(|name| rule_on("deny", Effect::Deny, name)).collect(),
            default: PolicyDefault::Allow,
            ..toolcrib_core::Policy::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let build = |personality: Option<Personality>, rules| {
                let built = with_note_if(available, &ran).policy(rules);
                personality.into_iter().fold(built, EngineBuilder::personality).build().unwrap()
            };
            let both = build(Some(personality.clone()), rules());
            let by_personality = build(Some(personality.clone()), toolcrib_core::Policy::default());
            let by_policy = build(None, rules());
            let both = reached(&both, &ran, "p").await;
            let by_personality = reached(&by_personality, &ran, "p").await;
            let by_policy = reached(&by_policy, &ran, DEFAULT_PERSONALITY).await;
            let expected: Vec<_> =
                by_personality.into_iter().filter(|name| by_policy.contains(name)).collect();
            assert_eq!(both, expected);
            assert!(available || !both.contains(&"note".to_owned()));
        });
    }
}

#[test]
fn a_built_personality_has_its_fields() {
    let network = NetworkRules { allow: list(&["example.org"]), ..NetworkRules::default() };
    let clerk = Personality::new("clerk")
        .system("You sell.")
        .model("small")
        .exclude(["pay_*"])
        .exclude(["refund"])
        .toolset(["look", "desk"])
        .mcp_servers(["git"])
        .plugins(["crm"])
        .network(network.clone());
    assert_eq!((&*clerk.id, clerk.system.as_deref()), ("clerk", Some("You sell.")));
    assert_eq!(clerk.model.as_deref(), Some("small"));
    let excluded: Vec<_> = clerk.exclude.iter().map(Glob::as_str).collect();
    assert_eq!(excluded, ["pay_*", "refund"]);
    assert_eq!(clerk.toolset, list(&["look", "desk"]));
    assert_eq!((&clerk.mcp_servers, &clerk.plugins), (&list(&["git"]), &list(&["crm"])));
    assert_eq!(*clerk.network, network);
    let reached = |builder: ToolBuilder| clerk.reaches(&says(builder, ""));
    assert!(reached(builder("look")) && reached(builder("stamp").toolset("desk")));
    assert!(!reached(builder("other")) && !reached(builder("pay_all").toolset("desk")));
}
