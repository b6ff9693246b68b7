//! Steps of a skill: one tool after the other.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{ErrorCode, ToolCall, ToolContext, ToolError, ToolName};
use toolcrib_engine::{Engine, OnSkip, Skill, SkillStep, Skills, ToolsMode, Turn, TurnOptions};

use super::read;
use crate::support::{Log, builder, call, engine, menu, skill_id, skills, tool, why};

fn step(name: &str) -> SkillStep {
    SkillStep::new(ToolName::new(name).unwrap())
}

fn refunding(on_skip: OnSkip) -> Skill {
    Skill::new(skill_id("refunding"), "Refunds.", "Refund what was charged twice.")
        .tools([ToolName::new("note").unwrap()])
        .steps(
            [
                step("charges").note("Look at amounts and dates."),
                step("refunds"),
                step("refund").note("Only if two charges are equal."),
            ],
            on_skip,
        )
}

fn desk(skill: Skill) -> Engine {
    let others = skills([("shipping", &["track", "refund"])]);
    let all = [skill].into_iter().chain(others.iter().cloned()).collect();
    let names = ["charges", "refunds", "refund", "note", "track"];
    engine().tools(names.map(tool)).skills(Skills::new(all).unwrap()).build().unwrap()
}

async fn make(turn: &mut Turn, name: &str, args: Value) -> toolcrib_core::ToolResult {
    turn.iteration().await.unwrap().execute(vec![call(name, args)]).await.remove(0)
}

async fn offered(turn: &mut Turn) -> Vec<String> {
    let mut names = menu(&turn.iteration().await.unwrap());
    names.retain(|name| name != "read_skill");
    names
}

#[tokio::test]
async fn an_iteration_says_whether_a_call_may_change_the_step() {
    let engine = desk(refunding(OnSkip::Advance));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    assert!(!turn.iteration().await.unwrap().has_skill_step());
    read(&mut turn, "refunding").await;
    for name in ["charges", "refunds", "refund"] {
        let mut iteration = turn.iteration().await.unwrap();
        assert!(iteration.has_skill_step());
        assert_eq!(iteration.active_skills(), [skill_id("refunding")]);
        iteration.execute(vec![call(name, json!({}))]).await;
    }
}

#[tokio::test]
async fn one_step_is_offered_at_a_time_and_a_clean_result_advances() {
    let engine = desk(refunding(OnSkip::Advance));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    assert_eq!(offered(&mut turn).await, ["charges", "refunds", "refund", "note", "track"]);
    let told = read(&mut turn, "refunding").await.value;
    assert_eq!(read(&mut turn, "refunding").await.value, told, "as long as nothing is done");
    insta::assert_snapshot!(told, @"
    Skill `refunding` is active. Its tools are offered from your next step on.

    Refund what was charged twice.

    Steps, in this order. Of their tools only that of the current step is offered, and its result completes the step:
    1. `charges`: Look at amounts and dates.
    2. `refunds`
    3. `refund`: Only if two charges are equal.
    To skip a step, call `skip_step` and say why.
    ");
    for name in ["charges", "refunds", "refund"] {
        assert_eq!(offered(&mut turn).await, [name, "note", "skip_step"]);
        assert!(make(&mut turn, name, json!({})).await.is_ok());
    }
    assert_eq!(offered(&mut turn).await, ["note"]);
    assert_eq!(turn.current_step(), None);
    let told: Vec<_> = log
        .of_name("skill.step_advanced")
        .iter()
        .map(|event| {
            format!("{} {} {} {}", event["skill"], event["step"], event["total"], event["tool"])
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r#"
    "refunding" 1 3 "charges"
    "refunding" 2 3 "refunds"
    "refunding" 3 3 "refund"
    "#);
    drop(turn);
    assert_eq!(log.of_name("skill.steps_unfinished").len(), 0);
}

#[tokio::test]
async fn what_is_not_the_current_step_cannot_be_called_and_the_reason_is_given() {
    let engine = desk(refunding(OnSkip::Advance));
    let options = TurnOptions::default().skill(skill_id("refunding"));
    let mut turn = engine.turn(options).unwrap();
    let refused = make(&mut turn, "refund", json!({})).await;
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
    let iteration = turn.iteration().await.unwrap();
    insta::assert_snapshot!(why(iteration.withheld(), "refund"), @"gate `steps of refunding`: step 1 of 3 is `charges`");
    assert_eq!(turn.current_step().unwrap().number, 1);
}

/// Completed steps withhold nothing once another skill is the one activated last; incomplete steps
/// still do.
#[tokio::test]
async fn only_steps_that_are_not_done_hold_tools_back_behind_another_skill() {
    for (done, expected) in [
        (3, &["charges", "refunds", "refund", "note", "track"][..]),
        (1, &["refunds", "note", "track"]),
    ] {
        let engine = desk(refunding(OnSkip::Advance));
        let options = TurnOptions::default().skill(skill_id("refunding"));
        let mut turn = engine.turn(options).unwrap();
        for name in ["charges", "refunds", "refund"].into_iter().take(done) {
            assert!(make(&mut turn, name, json!({})).await.is_ok());
        }
        read(&mut turn, "shipping").await;
        assert_eq!(offered(&mut turn).await, expected, "{done} done");
    }
}

#[tokio::test]
async fn a_failed_call_leaves_the_step_and_a_batch_completes_one() {
    let fails = Arc::new(AtomicBool::new(true));
    let flag = Arc::clone(&fails);
    let first = builder("first")
        .handler(move |_: Value, _: ToolContext| {
            let fails = flag.load(Ordering::SeqCst);
            async move { if fails { Err(ToolError::failed("not now")) } else { Ok("done") } }
        })
        .unwrap();
    // The second step takes the same tool again.
    let skill = Skill::new(skill_id("s"), "S.", "S.")
        .steps([step("first"), step("first"), step("last")], OnSkip::Advance);
    let engine = engine()
        .tools([first, tool("last")])
        .skills(Skills::new(vec![skill]).unwrap())
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("s"))).unwrap();
    make(&mut turn, "first", json!({})).await;
    assert_eq!(turn.current_step().unwrap().number, 1);
    fails.store(false, Ordering::SeqCst);
    let mut iteration = turn.iteration().await.unwrap();
    let twice = ["a", "b"].map(|id| ToolCall::new(id, "first", json!({})));
    iteration.execute(twice.into()).await;
    // A further call against the same menu was for the completed step.
    iteration.execute(vec![call("first", json!({}))]).await;
    assert_eq!(turn.current_step().unwrap().number, 2);
}

#[tokio::test]
async fn a_skipped_step_is_on_record_with_its_reason() {
    let engine = desk(refunding(OnSkip::Advance));
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("refunding"))).unwrap();
    let log = Log::of(turn.events().run());
    let skipped = make(&mut turn, "skip_step", json!({"reason": "They are in the ticket."})).await;
    assert_eq!(&*skipped.value, "The step is skipped. Step 2 of 3 is next: `refunds`");
    assert_eq!(offered(&mut turn).await, ["refunds", "note", "skip_step"]);
    let event = &log.of_name("skill.step_skipped")[0];
    assert_eq!(event["reason"], "They are in the ticket.");
    assert_eq!((&event["step"], &event["held"]), (&json!(1), &json!(false)));
    let blank = make(&mut turn, "skip_step", json!({"reason": ""})).await;
    assert_eq!(blank.code, Some(ErrorCode::InputInvalid));
    drop(turn);
    let unfinished = &log.of_name("skill.steps_unfinished")[0];
    assert_eq!(unfinished["remaining"], json!(["refunds", "refund"]));
}

#[tokio::test]
async fn a_skill_that_holds_lets_only_the_host_skip() {
    let engine = desk(refunding(OnSkip::Hold));
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("refunding"))).unwrap();
    let log = Log::of(turn.events().run());
    let held = make(&mut turn, "skip_step", json!({"reason": "No charges here."})).await;
    insta::assert_snapshot!(held.value, @"Your reason is recorded. This skill does not allow skipping steps. Step 1 of 3 is next: `charges`: Look at amounts and dates.");
    assert_eq!(offered(&mut turn).await, ["charges", "note", "skip_step"]);
    assert!(turn.skip_step("The clerk says so."));
    assert_eq!(offered(&mut turn).await, ["refunds", "note", "skip_step"]);
    let held = make(&mut turn, "skip_step", json!({"reason": "None."})).await;
    assert!(held.value.ends_with("Step 2 of 3 is next: `refunds`"), "{}", held.value);
    let told = log.of_name("skill.step_skipped");
    let told: Vec<_> = told.iter().map(|event| json!([event["step"], event["held"]])).collect();
    assert_eq!(told, [json!([1, true]), json!([1, false]), json!([2, true])]);
}

#[tokio::test]
async fn of_a_step_and_its_skip_in_one_batch_the_first_counts_and_no_further_step_is_lost() {
    let engine = desk(refunding(OnSkip::Advance));
    for (names, event) in [
        (["charges", "skip_step"], "skill.step_advanced"),
        (["skip_step", "charges"], "skill.step_skipped"),
    ] {
        let mut turn = engine.turn(TurnOptions::default().skill(skill_id("refunding"))).unwrap();
        let log = Log::of(turn.events().run());
        let calls = names.map(|name| {
            let args = if name == "skip_step" { json!({"reason": "R."}) } else { json!({}) };
            ToolCall::new(name, name, args)
        });
        turn.iteration().await.unwrap().execute(calls.into()).await;
        assert_eq!(turn.current_step().unwrap().number, 2);
        let all = ["skill.step_advanced", "skill.step_skipped"].map(|name| log.of_name(name).len());
        assert_eq!((log.of_name(event).len(), all.iter().sum::<usize>()), (1, 1));
    }
}

#[tokio::test]
async fn activating_another_skill_is_no_way_around_steps_that_hold() {
    let engine = desk(refunding(OnSkip::Hold));
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("refunding"))).unwrap();
    // It lists `refund` itself.
    read(&mut turn, "shipping").await;
    assert_eq!(offered(&mut turn).await, ["charges", "note", "track"]);
    let refused = make(&mut turn, "refund", json!({})).await;
    assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
    let iteration = turn.iteration().await.unwrap();
    insta::assert_snapshot!(why(iteration.withheld(), "refund"), @"gate `steps of refunding`: step 1 of 3 is `charges`");
    // Only the steps of the skill activated last advance.
    assert!(make(&mut turn, "charges", json!({})).await.is_ok());
    assert_eq!(offered(&mut turn).await, ["charges", "note", "track"]);
}

#[tokio::test]
async fn steps_rest_while_another_skill_is_the_latest_and_begin_anew_when_they_are_done() {
    let engine = desk(refunding(OnSkip::Advance));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let log = Log::of(turn.events().run());
    read(&mut turn, "refunding").await;
    make(&mut turn, "charges", json!({})).await;
    read(&mut turn, "shipping").await;
    assert_eq!(offered(&mut turn).await, ["refunds", "note", "track"]);
    make(&mut turn, "refunds", json!({})).await;
    let back = read(&mut turn, "refunding").await;
    assert!(back.value.ends_with("Step 2 of 3 is next: `refunds`"), "{}", back.value);
    assert_eq!(offered(&mut turn).await, ["refunds", "note", "track", "skip_step"]);
    for name in ["refunds", "refund"] {
        make(&mut turn, name, json!({})).await;
    }
    assert_eq!(offered(&mut turn).await, ["note", "track"]);
    read(&mut turn, "refunding").await;
    assert_eq!(offered(&mut turn).await, ["charges", "note", "track", "skip_step"]);
    assert!(turn.deactivate_skill(&skill_id("refunding")));
    assert_eq!(log.of_name("skill.steps_unfinished").len(), 1);
    read(&mut turn, "refunding").await;
    assert_eq!(turn.current_step().unwrap().number, 1);
}

#[tokio::test]
async fn an_ended_turn_says_once_what_is_unfinished() {
    let engine = desk(refunding(OnSkip::Advance));
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("refunding"))).unwrap();
    let log = Log::of(turn.events().run());
    turn.iteration().await.unwrap();
    turn.end();
    drop(turn);
    let told = log.of_name("skill.steps_unfinished");
    assert_eq!(told.len(), 1);
    assert_eq!(told[0]["remaining"], json!(["charges", "refunds", "refund"]));
}

#[derive(Debug, Clone)]
enum Move {
    Call(usize),
    Skip,
    Read(usize),
    PutAway(usize),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => (0..4_usize).prop_map(Move::Call),
        1 => Just(Move::Skip),
        1 => (0..2_usize).prop_map(Move::Read),
        1 => (0..2_usize).prop_map(Move::PutAway),
    ];
    prop::collection::vec(one, 0..24)
}

const TOOLS: [&str; 4] = ["t0", "t1", "t2", "free"];

proptest! {
    #[test]
    fn whatever_a_model_does_it_is_offered_one_step_and_every_step_is_done_skipped_or_left(
        order in prop::collection::vec(0..3_usize, 1..5),
        holds in any::<bool>(),
        moves in moves(),
    ) {
        let on_skip = if holds { OnSkip::Hold } else { OnSkip::Advance };
        let stepping = Skill::new(skill_id("s0"), "S.", "S.")
            .tools([ToolName::new("free").unwrap()])
            .steps(order.iter().map(|at| step(TOOLS[*at])), on_skip);
        let other = Skill::new(skill_id("s1"), "O.", "O.")
            .tools(TOOLS.map(|name| ToolName::new(name).unwrap()));
        let skills = Skills::new(vec![stepping, other]).unwrap().offer_deactivate_skill(true);
        let engine = engine().tools(TOOLS.map(tool)).skills(skills).build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut turn = engine.turn(TurnOptions::default()).unwrap();
            let log = Log::of(turn.events().run());
            // The model of the state machine: active skills, and the position of s0's steps.
            let (mut active, mut position) = (Vec::<usize>::new(), None::<usize>);
            let (mut completed, mut skipped, mut left) = (0, 0, 0);
            for step in moves {
                let mut iteration = turn.iteration().await.unwrap();
                let at = position.filter(|_| active.last() == Some(&0));
                let steps: Vec<_> = TOOLS[..3]
                    .iter()
                    .filter(|name| order.iter().any(|at| TOOLS[*at] == **name))
                    .filter(|name| iteration.menu().get(name).is_some())
                    .collect();
                if let Some(at) = at {
                    let current = order.get(at).map(|at| &TOOLS[*at]);
                    assert_eq!(steps, Vec::from_iter(current), "position {at}");
                    assert_eq!(iteration.menu().get("skip_step").is_some(), current.is_some());
                } else {
                    // Those of a skill that rests stay as they are.
                    if let Some(current) = position.and_then(|at| order.get(at)) {
                        assert_eq!(steps, [&TOOLS[*current]]);
                    }
                    assert!(iteration.menu().get("skip_step").is_none());
                }
                let made = match &step {
                    Move::Call(at) => call(TOOLS[*at], json!({})),
                    Move::Skip => call("skip_step", json!({"reason": "R."})),
                    Move::Read(at) => call("read_skill", json!({"id": format!("s{at}")})),
                    Move::PutAway(at) => call("deactivate_skill", json!({"id": format!("s{at}")})),
                };
                let ok = iteration.execute(vec![made]).await[0].is_ok();
                match step {
                    Move::Call(tool) => {
                        let completes = at.is_some_and(|at| order.get(at) == Some(&tool));
                        if completes {
                            assert!(ok);
                            position = position.map(|at| at + 1);
                            completed += 1;
                        }
                    }
                    Move::Skip => {
                        assert_eq!(ok, at.is_some_and(|at| at < order.len()));
                        if ok {
                            skipped += 1;
                            position = position.map(|at| at + usize::from(!holds));
                        }
                    }
                    Move::Read(skill) => {
                        active.retain(|id| *id != skill);
                        active.push(skill);
                        if skill == 0 && position.is_none_or(|at| at >= order.len()) {
                            position = Some(0);
                        }
                    }
                    Move::PutAway(skill) => {
                        assert_eq!(ok, active.contains(&skill));
                        active.retain(|id| *id != skill);
                        if skill == 0 && let Some(at) = position.take() {
                            left += usize::from(at < order.len());
                        }
                    }
                }
                assert_eq!(log.of_name("skill.step_advanced").len(), completed);
                assert_eq!(log.of_name("skill.step_skipped").len(), skipped);
                assert_eq!(log.of_name("skill.steps_unfinished").len(), left);
            }
            drop(turn);
            left += usize::from(position.is_some_and(|at| at < order.len()));
            assert_eq!(log.of_name("skill.steps_unfinished").len(), left);
        });
    }
}

#[tokio::test]
async fn the_smallest_change_names_the_way_to_the_tool_of_another_step() {
    let engine = desk(refunding(OnSkip::Hold));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.activate_skill(skill_id("shipping")).unwrap();
    let iteration = turn.iteration().await.unwrap();
    // Reading the skill is the beginning of the way, and offers no tool but the first one's.
    insta::assert_snapshot!(iteration.why("refunds").unwrap().change.text, @"to offer it: skill `shipping` not active");
    insta::assert_snapshot!(iteration.why("charges").unwrap().change.text, @"to offer it: activate skill `refunding`");

    read(&mut turn, "refunding").await;
    make(&mut turn, "charges", json!({})).await;
    let why = turn.iteration().await.unwrap().why("charges").unwrap();
    insta::assert_snapshot!(why.change.text, @"to offer it: skill `refunding` not active, and skill `shipping` not active");
    turn.deactivate_skill(&skill_id("refunding"));
    turn.deactivate_skill(&skill_id("shipping"));
    assert!(offered(&mut turn).await.contains(&"charges".to_owned()));

    read(&mut turn, "refunding").await;
    for name in ["charges", "refunds", "refund"] {
        make(&mut turn, name, json!({})).await;
    }
    let why = turn.iteration().await.unwrap().why("charges").unwrap();
    insta::assert_snapshot!(why.chain[0].text, @"gate `steps of refunding`: all 3 steps are done; reading the skill begins again");
    insta::assert_snapshot!(why.change.text, @"to offer it: activate skill `refunding`");
    read(&mut turn, "refunding").await;
    assert!(offered(&mut turn).await.contains(&"charges".to_owned()));
}

#[tokio::test]
async fn a_tool_that_no_fact_offers_is_told_of_with_its_step() {
    let skill = refunding(OnSkip::Hold).tools_mode(ToolsMode::HiddenUntilActive);
    let engine = engine()
        .tools(["charges", "refunds", "refund", "note"].map(tool))
        .skills(Skills::new(vec![skill]).unwrap())
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = turn.iteration().await.unwrap();
    insta::assert_snapshot!(iteration.why("refund").unwrap().change.text, @"no skill, personality, principal, role, tenant or iteration would offer it; in skill `refunding` it is the tool of step 3");
    insta::assert_snapshot!(iteration.why("charges").unwrap().change.text, @"to offer it: activate skill `refunding`");
    insta::assert_snapshot!(iteration.why("note").unwrap().change.text, @"to offer it: activate skill `refunding`");
}
