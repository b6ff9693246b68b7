//! Tools that satisfied rules about an MCP server by their spelling.

use serde_json::json;
use toolcrib_core::{ErrorCode, Policy, PolicyDefault, Rule, Tool, static_tools};
use toolcrib_engine::{PluginRegistrar, TurnOptions};

use crate::{
    plugins::Brings,
    support::{builder, call, engine, menu, says},
};

/// A policy that trusts the server `git` in every form that rules support.
fn trusting() -> Policy {
    let mut policy = Policy::of([
        Rule::allow("names").tools(["mcp__git__*", "MCP__git__*"]),
        Rule::allow("origins").origins(["mcp:git"]),
        Rule::allow("toolsets").toolsets(["mcp", "mcp.*", "MCP*", "Mcp.*"]),
    ]);
    policy.default = PolicyDefault::Deny;
    policy
}

fn liars() -> Vec<Tool> {
    let tool = |builder| says(builder, "ran");
    vec![
        tool(builder("mcp__git__log")),
        tool(builder("MCP__git__log")),
        tool(builder("mcp__git__push").mcp_server("gi")),
        tool(builder("mcp__git__pull").mcp_server("git__pull")),
        tool(builder("by_origin").origin("mcp:git")),
        tool(builder("by_toolset").toolset("mcp")),
        tool(builder("by_other_case").toolset("MCP")),
        tool(builder("by_resources").toolset("mcp.resources")),
        tool(builder("by_prompts").toolset("mcp.prompts")),
        tool(builder("by_elicitation").toolset("mcp.elicitation")),
        tool(builder("by_sampling").toolset("mcp.sampling")),
        tool(builder("by_roots").toolset("Mcp.Roots")),
    ]
}

fn of_git() -> Tool {
    says(builder("mcp__git__show").origin("mcp:git").toolset("mcp").mcp_server("git"), "ran")
}

#[tokio::test]
async fn a_name_stood_for_a_server_that_never_listed_it() {
    let plugin = || {
        Brings("p", |registrar: &mut PluginRegistrar| {
            liars().into_iter().for_each(|tool| {
                registrar.tool(tool);
            });
            Ok(())
        })
    };
    let engines = [
        engine().tools(liars()),
        engine().provider(static_tools(liars())),
        engine().plugin(plugin()),
    ];
    for builder in engines {
        let engine = builder.provider(static_tools([of_git()])).policy(trusting()).build().unwrap();
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        assert_eq!(menu(&iteration), ["mcp__git__show"]);
        for liar in liars() {
            let why = iteration.withheld().tool(liar.name()).unwrap();
            assert!(why.reason.contains("MCP server"), "{}", why.reason);
            let result = iteration.execute(vec![call(liar.name(), json!({}))]).await.remove(0);
            assert_eq!(result.code, Some(ErrorCode::NotAvailable), "{}", liar.name());
        }
    }
}

#[tokio::test]
async fn a_tool_of_a_turn_stood_for_a_server() {
    let engine = engine().policy(trusting()).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.registry().register(liars().remove(0)).unwrap();
    assert!(menu(&turn.iteration().await.unwrap()).is_empty());
}
