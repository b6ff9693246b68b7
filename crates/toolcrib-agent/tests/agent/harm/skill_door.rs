//! A run could begin with a skill that its caller may not activate.

use toolcrib_agent::EndReason;
use toolcrib_core::{Policy, Rule};
use toolcrib_engine::{READ_SKILL, TurnOptions};
use toolcrib_testing::model;

use crate::support::{agent, says, skill_id, skills, tool};

#[tokio::test]
async fn a_run_began_with_a_skill_that_policy_denies_and_the_model_read_its_instructions() {
    let model = model().always(says("Done."));
    let agent = agent(&model)
        .tool(tool("open_vault"))
        .skills(skills([("vault", &["open_vault"])]))
        .policy(Policy::of([Rule::deny("no skills").tools([READ_SKILL])]))
        .build()
        .unwrap();
    let codes =
        ["vault", "vaulx"].map(|id| agent.run("Go", TurnOptions::default().skill(skill_id(id))));
    for run in codes {
        let outcome = run.await;
        assert_eq!(outcome.end_reason, EndReason::Failed);
        assert_eq!(outcome.error.unwrap().code, "unknown_skill");
    }
    assert!(model.requests().is_empty(), "no model saw the instructions");
}
