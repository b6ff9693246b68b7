//! Skills: how they become active, and their effect on the menu.

mod changing;
mod deactivation;
mod files;
mod modes;
mod steps;

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    ErrorCode, ToolCall, ToolName, ToolProvider, gated_tools, skill_scoped_tools, static_tools,
};
use toolcrib_engine::{
    BuildError, Engine, OnSkip, Skill, SkillStep, Skills, ToolsMode, Turn, TurnError, TurnOptions,
};

use self::files::shelf;
use crate::support::{Log, builder, call, engine, menu, offered, says, skill_id, skills, tool};

fn desk(skills: Skills) -> Engine {
    engine()
        .tools([tool("refund"), tool("track"), tool("note")])
        .tool(says(builder("help").always_include(), ""))
        .skills(skills)
        .build()
        .unwrap()
}

fn two() -> Skills {
    skills([("billing", &["refund"]), ("shipping", &["track"])])
}

async fn read(turn: &mut Turn, id: &str) -> toolcrib_core::ToolResult {
    let mut iteration = turn.iteration().await.unwrap();
    let call = call("read_skill", json!({ "id": id }));
    iteration.execute(vec![call]).await.remove(0)
}

fn active(turn: &Turn) -> Vec<String> {
    turn.active_skills().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn read_skill_is_offered_by_itself_last_with_the_ids_as_an_enum() {
    let engine = desk(two());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["refund", "track", "note", "help", "read_skill"]);
    let read_skill = iteration.menu().get("read_skill").unwrap();
    assert_eq!(
        read_skill.input_schema()["properties"]["id"]["enum"],
        json!(["billing", "shipping"])
    );
    assert!(read_skill.description().contains("- billing: About billing."));
    let without = desk(Skills::default());
    let offered = offered(&without, TurnOptions::default()).await;
    assert!(!offered.contains(&"read_skill".to_owned()));
}

#[tokio::test]
async fn reading_a_skill_returns_its_body_unfenced_and_counts_from_the_next_iteration() {
    let engine = desk(two());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    {
        let mut iteration = turn.iteration().await.unwrap();
        let read = call("read_skill", json!({"id": "billing"}));
        // In the same batch, what was offered is still there.
        let results = iteration.execute(vec![read, call("track", json!({}))]).await;
        assert!(results[0].value.contains("How to do billing."));
        assert_eq!(results[0].value, results[0].text);
        assert!(!results[0].untrusted && results[1].is_ok());
        assert!(iteration.menu().get("track").is_some());
        assert!(iteration.active_skills().is_empty());
        assert!(iteration.execute(vec![call("track", json!({}))]).await[0].is_ok());
    }
    assert_eq!(active(&turn), ["billing"]);
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["refund", "help", "read_skill"]);
    let activated = log.of_name("skill.activated");
    assert_eq!(activated.len(), 1);
    assert_eq!(activated[0]["skill"], "billing");
    assert_eq!(activated[0]["by"], "read_skill");
    assert_eq!(activated[0]["iteration"], 1);
}

#[tokio::test]
async fn reading_an_active_skill_again_makes_it_the_last_and_reading_the_last_changes_nothing() {
    let engine = desk(two());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    for (id, order) in [
        ("billing", &["billing"][..]),
        ("shipping", &["billing", "shipping"]),
        ("billing", &["shipping", "billing"]),
        ("billing", &["shipping", "billing"]),
    ] {
        assert!(read(&mut turn, id).await.is_ok());
        assert_eq!(active(&turn), order);
    }
    let ids: Vec<_> =
        log.of_name("skill.activated").iter().map(|event| event["skill"].clone()).collect();
    assert_eq!(ids, [json!("billing"), json!("shipping"), json!("billing")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_skills_read_in_one_batch_the_later_call_is_the_last_whichever_ran_first() {
    let engine = desk(two());
    for _ in 0..300 {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let log = Log::of(turn.events().run());
        let calls =
            ["billing", "shipping"].map(|id| ToolCall::new(id, "read_skill", json!({ "id": id })));
        turn.iteration().await.unwrap().execute(calls.into()).await;
        assert_eq!(active(&turn), ["billing", "shipping"]);
        assert_eq!(log.of_name("skill.activated")[1]["skill"], "shipping");
    }
}

#[tokio::test]
async fn an_unknown_skill_is_refused_with_the_ones_there_are() {
    let engine = desk(two());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for wrong in [json!({"id": "Billing"}), json!({"id": ""}), json!({})] {
        let mut iteration = turn.iteration().await.unwrap();
        let result = iteration.execute(vec![call("read_skill", wrong)]).await.remove(0);
        assert_eq!(result.code, Some(ErrorCode::InputInvalid));
    }
    assert!(turn.active_skills().is_empty());

    let options = TurnOptions::default().skill(skill_id("biling"));
    let error = engine.turn(options).unwrap_err();
    assert!(matches!(error, TurnError::UnknownSkill { .. }));
    assert_eq!(error.to_string(), "unknown skill `biling`; there are: `billing`, `shipping`");
}

#[tokio::test]
async fn skills_set_by_the_caller_are_active_from_the_first_iteration() {
    let engine = desk(two());
    let options = TurnOptions::default().skill(skill_id("shipping")).skill(skill_id("billing"));
    let mut turn = engine.turn(options).unwrap();
    assert_eq!(active(&turn), ["shipping", "billing"]);
    let log = Log::of(turn.events().run());
    let iteration = turn.iteration().await.unwrap();
    assert_eq!(menu(&iteration), ["refund", "track", "help", "read_skill"]);
    let by: Vec<_> = log
        .of_name("skill.activated")
        .iter()
        .map(|event| (event["skill"].clone(), event["by"].clone()))
        .collect();
    assert_eq!(by, [(json!("shipping"), json!("caller")), (json!("billing"), json!("caller"))]);
}

#[tokio::test]
async fn without_focus_tools_of_no_skill_stay() {
    let engine = desk(two().focus(false));
    let options = TurnOptions::default().skill(skill_id("billing"));
    assert_eq!(offered(&engine, options).await, ["refund", "note", "help", "read_skill"]);
}

#[tokio::test]
async fn a_skill_without_tools_narrows_nothing() {
    let engine = desk(skills([("manners", &[]), ("billing", &["refund"])]));
    let manners = || TurnOptions::default().skill(skill_id("manners"));
    // The tool of another skill is hidden as before.
    assert_eq!(offered(&engine, manners()).await, ["track", "note", "help", "read_skill"]);
    let both = manners().skill(skill_id("billing"));
    assert_eq!(offered(&engine, both).await, ["refund", "help", "read_skill"]);
    let both = TurnOptions::default().skill(skill_id("billing")).skill(skill_id("manners"));
    assert_eq!(offered(&engine, both).await, ["refund", "help", "read_skill"]);
}

/// The composition of the first design, as it was written for other engines: two gates over one list.
fn by_gates() -> Arc<dyn ToolProvider> {
    let all = ["read_billing", "write_billing", "read_health"].map(tool);
    let of = |skill: &str| match skill {
        "billing" => ["read_billing", "write_billing"].as_slice(),
        "health" => &["read_health"],
        _ => &[],
    };
    let read_only =
        gated_tools("readonly", static_tools(all), |tool, _| tool.name().starts_with("read_"));
    gated_tools("skill", read_only, move |tool, cx| {
        cx.active_skill().is_none_or(|skill| of(skill).contains(&tool.name().as_str()))
    })
}

#[tokio::test]
async fn gates_and_scoped_tools_offer_their_tools_for_skills_without_a_list() {
    let scoped = skill_scoped_tools("billing", [tool("refund")]).unwrap();
    let engine = engine()
        .provider(by_gates())
        .provider(scoped)
        .skills(skills([("billing", &[]), ("health", &[]), ("listed", &["ghost"])]))
        .build()
        .unwrap();
    let with = |skills: &[&str]| {
        skills.iter().fold(TurnOptions::default(), |options, skill| options.skill(skill_id(skill)))
    };
    for (active, expected) in [
        (&[][..], ["read_billing", "read_health"].as_slice()),
        (&["billing"], &["read_billing", "refund"]),
        (&["health"], &["read_health"]),
        (&["health", "billing"], &["read_billing", "refund"]),
        // A list narrows, but not the tools that are the skill's own.
        (&["listed", "billing"], &["refund"]),
    ] {
        let mut expected = expected.to_vec();
        expected.push("read_skill");
        assert_eq!(offered(&engine, with(active)).await, expected, "{active:?}");
    }
    // The change that `why` names was tried with the gates.
    let mut turn = engine.turn(with(&["health"])).unwrap();
    let why = turn.iteration().await.unwrap().why("read_billing").unwrap();
    assert_eq!(why.change.text, "to offer it: activate skill `billing`");
    let mut turn = engine.turn(with(&["listed", "billing"])).unwrap();
    let why = turn.iteration().await.unwrap().why("read_billing").unwrap();
    assert_eq!(why.change.text, "to offer it: skill `listed` not active");
    let mut turn = engine.turn(with(&["billing"])).unwrap();
    let why = turn.iteration().await.unwrap().why("write_billing").unwrap();
    assert!(why.change.facts.is_empty(), "{why:?}");
}

#[tokio::test]
async fn activations_do_not_affect_other_turns() {
    let engine = desk(two());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut other = engine.turn(TurnOptions::default()).unwrap();
    read(&mut turn, "billing").await;
    assert!(other.active_skills().is_empty());
    assert_eq!(menu(&other.iteration().await.unwrap()).len(), 5);
}

#[tokio::test]
async fn a_tool_sees_the_skills_that_its_iterations_menu_was_made_under() {
    let seen = builder("seen")
        .always_include()
        .handler(|_: Value, cx: toolcrib_core::ToolContext| async move {
            let skills: Vec<_> = cx.active_skills().iter().map(ToString::to_string).collect();
            format!("{} {}", cx.iteration(), skills.join(","))
        })
        .unwrap();
    let engine = engine().tool(seen).skills(two()).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut said = vec![];
    for _ in 0..2 {
        let mut iteration = turn.iteration().await.unwrap();
        let read = call("read_skill", json!({"id": "billing"}));
        let results = iteration.execute(vec![read, call("seen", json!({}))]).await;
        said.push(Arc::clone(&results[1].value));
    }
    assert_eq!([&*said[0], &*said[1]], ["1 ", "2 billing"]);
}

#[test]
fn skills_of_one_id_and_a_tool_that_is_called_read_skill_are_refused() {
    let twice = two().iter().chain(two().iter()).cloned().collect();
    assert_eq!(
        Skills::new(twice).unwrap_err().to_string(),
        "two skills are called `billing`; rename one of them"
    );
    let built = engine()
        .tool(says(builder("read_skill").origin("toolcrib.toml:7"), ""))
        .skills(two())
        .build();
    let Err(error @ BuildError::ReservedName { .. }) = built else {
        panic!("built");
    };
    assert!(error.to_string().contains("toolcrib.toml:7"));
    let alone = engine().tool(tool("read_skill")).build();
    assert!(alone.is_ok(), "without skills it is a name like any other");
}

#[test]
fn skills_with_equal_contents_are_the_same() {
    let step = |tool: &str| SkillStep::new(ToolName::new(tool).unwrap());
    let files = shelf().unwrap();
    let skill = || {
        Skill::new(skill_id("s"), "About it.", "How to do it.")
            .tools([ToolName::new("t").unwrap()])
            .tools_mode(ToolsMode::Always)
            .files(Arc::clone(&files))
            .steps([step("one"), step("two")], OnSkip::Advance)
    };
    assert_eq!(skill(), skill());
    assert_eq!((skill().all_steps().len(), skill().on_skip()), (2, Some(OnSkip::Advance)));
    assert_eq!(skill().steps([step("one")], OnSkip::Hold).on_skip(), Some(OnSkip::Hold));
    assert_eq!(two().get("billing").unwrap().on_skip(), None);
    let mut without_files = skill();
    without_files.files = None;
    assert_eq!(without_files, without_files.clone());
    let other = |change: fn(&mut Skill)| {
        let mut other = skill();
        change(&mut other);
        other
    };
    for other in [
        without_files,
        skill().files(shelf().unwrap()),
        skill().steps([step("one")], OnSkip::Advance),
        skill().steps([step("one"), step("two")], OnSkip::Hold),
        other(|skill| skill.id = skill_id("other")),
        other(|skill| skill.description = "Else.".into()),
        other(|skill| skill.body = "Else.".into()),
        other(|skill| skill.tools.clear()),
        other(|skill| skill.tools_mode = None),
        other(|skill| skill.plugin = Some("crm".into())),
    ] {
        assert_ne!(skill(), other);
    }
}

#[tokio::test]
async fn what_holds_for_all_skills_holds_also_without_any() {
    let open = two().focus(false).without_any();
    assert!(open.is_empty());
    let skill = Arc::new(Skill::new(skill_id("s"), "About it.", "How to do it."));
    let with = open.with_shared([Arc::clone(&skill)]).unwrap();
    assert!(Arc::ptr_eq(with.iter_shared().next().unwrap(), &skill));
    let options = TurnOptions::default().skill(skill_id("s"));
    let all = ["refund", "track", "note", "help", "read_skill"];
    assert_eq!(offered(&desk(with), options).await, all);
}
