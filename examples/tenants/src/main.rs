//! One engine for two tenants: tenant, role and personality decide which tools are seen and called.
//!
//! `cargo run -p example-tenants` prints it. A personality bounds what a run reaches; rules say who may
//! do what within it; neither lets in what the other keeps out.
#![allow(clippy::print_stdout, reason = "a program for people")]

use std::error::Error;

use toolcrib::{engine::Personality, policy::RuleConditions, prelude::*};

/// The state of an order.
#[tool(read_only, toolset = "orders")]
async fn find_order(order: u32, cx: ToolContext) -> String {
    let tenant = cx.identity().tenant.as_deref().unwrap_or("no tenant").to_owned();
    format!("order {order} of {tenant} is on its way")
}

/// Gives money back.
#[tool(destructive, toolset = "billing")]
async fn refund(order: u32, cx: ToolContext) -> String {
    format!("order {order} is refunded, by personality {}", cx.personality())
}

/// All orders of a month, as a table.
#[tool(read_only, toolset = "reports")]
async fn export_orders() -> &'static str {
    "month,orders\n2026-10,42"
}

/// Who asks: a person of a tenant, through one of the engine's personalities.
const CALLERS: [(&str, &str, &str); 5] = [
    ("acme", "ana", "support"),
    ("acme", "bo", "support"),
    ("acme", "ana", "reporting"),
    ("globex", "cleo", "reporting"),
    ("globex", "cleo", "default"),
];

fn policy() -> Policy {
    let mut policy = Policy::of([
        Rule::allow("the rule for managers")
            .tools(["refund"])
            .when(RuleConditions::default().roles(["manager"])),
        Rule::deny("the rule on refunds").tools(["refund"]).reason("only managers refund"),
        Rule::deny("the rule on reports")
            .tools(["export_orders"])
            .when(RuleConditions::default().tenants(["acme"]))
            .reason("acme has not paid for reports"),
    ]);
    policy.roles.grant("ana", "manager");
    policy.roles.grant("bo", "clerk");
    policy.roles.grant("cleo", "manager");
    policy
}

async fn show(engine: &Engine, caller: (&str, &str, &str)) -> Result<(), Box<dyn Error>> {
    let (tenant, principal, personality) = caller;
    let options =
        TurnOptions::default().tenant(tenant).principal(principal).personality(personality);
    let mut turn = engine.turn(options)?;
    let mut iteration = turn.iteration().await?;
    println!("{principal} of {tenant}, as {personality}");
    for name in iteration.menu().names() {
        println!("  sees {name}");
    }
    for withheld in iteration.withheld().tools() {
        println!("  does not see {}: {}", withheld.name, withheld.reason);
    }
    let calls = ["find_order", "refund", "export_orders"].map(|name| {
        let args = if name == "export_orders" { "{}" } else { r#"{ "order": 1042 }"# };
        ToolCall::unparsed(name, name, args)
    });
    for result in iteration.execute(calls.into()).await {
        let said = result.value.lines().collect::<Vec<_>>().join(" / ");
        match result.code {
            None => println!("  calls {}: {said}", result.name),
            Some(code) => println!("  cannot call {}: {code}", result.name),
        }
    }
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let engine = Engine::builder()
        .tools([find_order_tool(), refund_tool(), export_orders_tool()])
        .personality(Personality::new("support").toolset(["orders", "billing"]))
        .personality(Personality::new("reporting").toolset(["find_order", "reports"]))
        .policy(policy())
        .build()?;
    for caller in CALLERS {
        show(&engine, caller).await?;
    }
    Ok(())
}
