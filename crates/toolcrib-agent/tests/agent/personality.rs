//! A run's personality: its system text, its model, its events.

use std::sync::Arc;

use toolcrib_agent::{AgentError, EndReason, RunOptions};
use toolcrib_core::Model;
use toolcrib_engine::{Personality, TurnOptions};
use toolcrib_testing::{EventRecorder, model};

use crate::support::{agent, says, skill_id, skills, tool};

fn acting_as(personality: &str) -> RunOptions {
    TurnOptions::default().personality(personality).into()
}

#[tokio::test]
async fn a_personality_has_its_own_system_text_model_and_menu() {
    let everyday = model().then(says("everyday"));
    let special = model().then(says("special"));
    let poet =
        Personality::new("poet").system("You write verse.").model("special").toolset(["write"]);
    let agent = agent(&everyday)
        .system("You help.")
        .tools([tool("write"), tool("read")])
        .engine(|engine| engine.personality(poet).skills(skills([("s", &[])])))
        .personality_model("poet", Arc::new(special.clone()) as Arc<dyn Model>)
        .build()
        .unwrap();
    let seen = EventRecorder::attach(agent.engine().events());

    let outcome = agent.run("Hello", RunOptions::default()).await;
    assert_eq!(outcome.answer.as_deref(), Some("everyday"));
    let mut options = acting_as("poet");
    options.turn.skills = vec![skill_id("s")];
    let outcome = agent.run("Hello", options).await;
    assert_eq!(outcome.answer.as_deref(), Some("special"));

    let asked = &everyday.requests()[0];
    assert!(asked.system.starts_with("You help."), "{}", asked.system);
    let offered: Vec<_> = asked.menu.names().map(ToString::to_string).collect();
    assert_eq!(offered, ["write", "read", "read_skill"]);
    let asked = &special.requests()[0];
    assert!(asked.system.starts_with("You write verse."), "{}", asked.system);
    assert!(asked.system.contains("How to do s."), "{}", asked.system);
    assert!(asked.menu.get("read").is_none());

    let starts = seen.json_of("agent.turn_start");
    let told: Vec<_> = starts.iter().map(|start| start["personality"].clone()).collect();
    assert_eq!(told, ["default", "poet"]);
    let models: Vec<_> = starts.iter().map(|start| start["model"].clone()).collect();
    assert_eq!(models, [everyday.name(), special.name()]);
}

#[tokio::test]
async fn an_unknown_personality_fails_the_run_before_anything_is_asked() {
    let test_model = model().then(says("never"));
    let agent = agent(&test_model).build().unwrap();
    let outcome = agent.run("Hello", acting_as("nobody")).await;
    assert_eq!(outcome.end_reason, EndReason::Failed);
    let error = outcome.error.unwrap();
    assert_eq!(error.code, "unknown_personality");
    let said = "unknown personality `nobody`; there are: `default`";
    assert_eq!(error.message, said);
    assert!(test_model.requests().is_empty());
}

#[tokio::test]
async fn a_personality_whose_model_is_missing_builds_no_agent_and_fails_a_run() {
    let test_model = model().then(says("never"));
    let poet = || Personality::new("poet").model("special");
    let refused =
        agent(&test_model).engine(|engine| engine.personality(poet())).build().unwrap_err();
    assert!(matches!(refused, AgentError::PersonalityModel(_)));
    let said = "personality `poet` has the model `special`, which this agent does not have; set it \
                with `AgentBuilder::personality_model`";
    assert_eq!(refused.to_string(), said);

    let engine = toolcrib_engine::Engine::builder().personality(poet()).build().unwrap();
    let agent = agent(&test_model).build().unwrap().with_engine(engine);
    let outcome = agent.run("Hello", acting_as("poet")).await;
    assert_eq!(outcome.error.unwrap().code, "no_model");
    assert!(test_model.requests().is_empty());
}

#[tokio::test]
async fn a_model_for_a_personality_that_does_not_ask_for_it_fails_the_build() {
    for personality in [Personality::new("legal"), Personality::new("other").model("private")] {
        let (everyday, private) = (model(), model());
        let built = agent(&everyday)
            .engine(|engine| engine.personality(personality))
            .personality_model("other", Arc::new(private.clone()) as Arc<dyn Model>)
            .personality_model("legal", Arc::new(private) as Arc<dyn Model>)
            .build();
        let error = built.unwrap_err().to_string();
        assert!(error.contains("a model was given for the personality `legal`"), "{error}");
    }
}
