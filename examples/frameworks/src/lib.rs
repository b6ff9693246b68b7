//! The tools of the examples, and a rule that denies one of them.

use std::error::Error;

use toolcrib::prelude::*;

/// The weather in a city, now.
#[tool(read_only)]
pub async fn weather(city: String) -> String {
    format!("{city}: 18 degrees, light rain")
}

/// Turns the heating of a house off.
#[tool(destructive)]
pub async fn heating_off() -> &'static str {
    "the heating is off"
}

/// The rule: guests change nothing.
pub fn policy() -> Policy {
    Policy::of([Rule::deny("guests look").tools(["heating_*"]).reason("the owner is away")])
}

/// The engine with both tools and the rule.
///
/// # Errors
/// If a tool is invalid.
pub fn engine() -> Result<Engine, Box<dyn Error>> {
    Ok(Engine::builder().tool(weather_tool()).tool(heating_off_tool()).policy(policy()).build()?)
}
