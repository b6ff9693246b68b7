//! Invalid configurations of an agent.

use toolcrib_agent::{Agent, AgentError};
use toolcrib_core::{ListContext, Tool, gated_tools, static_tools};
use toolcrib_testing::model;

use crate::support::{agent, tool};

#[test]
fn a_second_provider_is_an_error_that_names_both() {
    let model = model().always("hi");
    let gated = gated_tools("office", static_tools([]), |_: &Tool, _: &ListContext| true);
    let error =
        agent(&model).tool_provider(static_tools([])).tool_provider(gated).build().unwrap_err();
    assert!(matches!(error, AgentError::TwoProviders { .. }));
    assert_eq!(
        error.to_string(),
        "`tool_provider` was called twice, with `static` and `gated(office) > static`; \
         put them together with `concat([..])`"
    );
}

#[test]
fn an_agent_needs_a_model_and_an_iteration_and_tools_of_different_names() {
    assert!(matches!(Agent::builder().build(), Err(AgentError::NoModel)));
    let none = agent(&model().always("hi")).max_iterations(0).build();
    assert!(matches!(none, Err(AgentError::NoIterations)));
    let twice = agent(&model().always("hi")).tools([tool("a"), tool("a")]).build();
    assert!(matches!(twice, Err(AgentError::Engine(_))));
}
