//! An executor offers a registry for its own iteration, and calls use it through the pipe.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use toolcrib_core::{
    ErrorCode, Lifetime, OnCollision, Rule, SkillId, Tool, ToolName, ToolRegistry, static_tools,
};
use toolcrib_engine::{
    Engine, ExecutorResult, IterationContext, OnSkip, Personality, Skill, SkillStep, Skills,
    TurnEnd, TurnOptions, TurnRunner,
};

use crate::support::{
    Log, builder, call, engine, menu, policy, reading, rule_on, says, skill_id, tool, why,
};

fn forged(tools: impl IntoIterator<Item = Tool>) -> ToolRegistry {
    ToolRegistry::try_from(Vec::from_iter(tools)).unwrap()
}

/// Runs a turn with this executor, which contains the assertions.
async fn run<F>(
    engine: Engine,
    options: TurnOptions,
    executor: impl FnMut(IterationContext) -> F + Send,
) where
    F: Future<Output = ExecutorResult> + Send,
{
    let outcome = TurnRunner::new(engine).run(options, executor).await.unwrap();
    assert!(matches!(outcome.end, TurnEnd::Acked), "{:?}", outcome.end);
}

#[tokio::test]
async fn a_tool_that_an_executor_merged_and_showed_could_not_be_called() {
    let engine = engine().tool(tool("main")).build().unwrap();
    let log = Log::of(engine.events());
    run(engine, TurnOptions::default(), |mut cx| async move {
        let forged =
            forged([says(builder("forged").ephemeral(Lifetime::Iteration), "made just now")]);
        let merged = ToolRegistry::merge([cx.registry(), &forged])?;
        merged.bind_context(&cx);
        cx.offer(&merged)?;
        assert_eq!(menu(&cx), ["main", "forged"]);
        let calls = vec![call("forged", json!({})), call("main", json!({}))];
        let results = cx.execute(calls).await;
        assert_eq!([&*results[0].text, &*results[1].text], ["made just now", "ran"]);
        cx.ack()?;
        assert_eq!(merged.all().len(), 1);
        let late = cx.execute(vec![call("forged", json!({}))]).await.remove(0);
        assert_eq!(late.code, Some(ErrorCode::NotAvailable), "it lived for the iteration");
        Ok(())
    })
    .await;
    let offered = log.of_name("tools.offered");
    assert_eq!(offered[1]["tools"], json!(["main", "forged"]));
    assert_eq!((&offered[1]["changed"], &offered[1]["iteration"]), (&json!(true), &json!(1)));
    assert_eq!(log.of_name("tool.end").len(), 3);
}

#[tokio::test]
async fn what_is_offered_passes_policy_personality_schema_and_availability() {
    let engine = engine()
        .policy(policy([rule_on("no writing", toolcrib_core::Effect::Deny, "write")]))
        .personality(Personality::new("reader").toolset([
            "write",
            "mail",
            "broken",
            "away",
            "refund",
            "read",
            "read_skill",
        ]))
        .build()
        .unwrap();
    let broken =
        builder("broken").input_schema(json!({ "type": "object", "$ref": "https://x.example" }));
    let offered = forged([
        tool("write"),
        tool("unlisted"),
        says(broken, "ran"),
        says(builder("away").available_if(|| Err::<(), _>("the disk is gone")), "ran"),
        reading("read"),
    ]);
    offered.register(tool("mail")).unwrap();
    offered.hide("mail");
    run(engine, TurnOptions::default().personality("reader"), |mut cx| {
        let offered = offered.clone();
        async move {
            cx.offer(&offered)?;
            assert_eq!(menu(&cx), ["read"]);
            for (name, reason) in [
                ("write", "no writing"),
                ("unlisted", "personality"),
                ("broken", "schema"),
                ("away", "the disk is gone"),
                ("mail", "hidden in the registry"),
            ] {
                let why = why(cx.withheld(), name);
                assert!(why.contains(reason), "{name}: {why}");
                let result = cx.execute(vec![call(name, json!({}))]).await.remove(0);
                assert_eq!(result.code, Some(ErrorCode::NotAvailable), "{name}");
            }
            cx.ack()?;
            Ok(())
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_to_an_offered_tool_goes_through_the_pipe() {
    let asked = Rule::ask("asks").tools(["forged"]);
    let engine = engine().policy(policy([asked])).build().unwrap();
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    run(engine, TurnOptions::default(), |mut cx| {
        let schema = schema.clone();
        async move {
            cx.offer(&forged([says(builder("forged").input_schema(schema), "ran")]))?;
            let calls =
                vec![call("forged", json!({ "n": "x" })), call("forged", json!({ "n": 1 }))];
            let codes = cx.execute(calls).await.into_iter().map(|result| result.code);
            let expected = [Some(ErrorCode::InputInvalid), Some(ErrorCode::Denied)];
            assert_eq!(Vec::from_iter(codes), expected, "no approver");
            cx.ack()?;
            Ok(())
        }
    })
    .await;
}

#[tokio::test]
async fn it_takes_the_place_of_the_turns_registry_and_of_no_other_source() {
    let engine = engine()
        .tools([tool("a"), tool("b")])
        .provider(static_tools([tool("listed")]))
        .build()
        .unwrap();
    let menus = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&menus);
    run(engine, TurnOptions::default(), move |mut cx| {
        let seen = Arc::clone(&seen);
        async move {
            let note = |cx: &IterationContext| seen.lock().unwrap().push(menu(cx).join(" "));
            note(&cx);
            // Edits of the turn's registry count from the next iteration: what was listed is
            // replaced.
            let edited = cx.registry();
            if edited.has("b") {
                edited.unregister("b");
                edited.overwrite(says(builder("a"), "another one"));
                let edited = edited.clone();
                cx.offer(&edited)?;
                note(&cx);
                assert_eq!(&*cx.execute(vec![call("a", json!({}))]).await[0].text, "another one");
                cx.offer(&forged([tool("only")]))?;
                note(&cx);
                cx.offer(&ToolRegistry::new())?;
                note(&cx);
                return Ok(());
            }
            cx.ack()?;
            Ok(())
        }
    })
    .await;
    let expected = ["a b listed", "a listed", "only listed", "listed", "a listed"];
    assert_eq!(*menus.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_name_of_another_source_is_settled_as_in_any_menu() {
    let engine = engine().provider(static_tools([tool("taken")])).build().unwrap();
    run(engine, TurnOptions::default(), |mut cx| async move {
        let error = cx.offer(&forged([says(builder("taken"), "mine")])).unwrap_err();
        assert_eq!(error.name.as_str(), "taken");
        assert_eq!(&*cx.execute(vec![call("taken", json!({}))]).await[0].text, "ran");
        cx.ack()?;
        Ok(())
    })
    .await;
    let yields = says(builder("taken").on_collision(OnCollision::Keep), "listed");
    let engine = self::engine().provider(static_tools([yields])).build().unwrap();
    let log = Log::of(engine.events());
    run(engine, TurnOptions::default(), |mut cx| async move {
        cx.offer(&forged([says(builder("taken"), "mine")]))?;
        assert_eq!(&*cx.execute(vec![call("taken", json!({}))]).await[0].text, "mine");
        cx.ack()?;
        Ok(())
    })
    .await;
    assert_eq!(log.of_name("tools.collision").len(), 1);
}

#[tokio::test]
async fn steps_of_a_skill_hold_for_what_is_offered() {
    let step = |name: &str| SkillStep::new(ToolName::new(name).unwrap());
    let skill = Skill::new(SkillId::new("close").unwrap(), "Closes.", "Close it.")
        .steps([step("first"), step("second")], OnSkip::Hold);
    let engine = engine().skills(Skills::new(vec![skill]).unwrap()).build().unwrap();
    let options = TurnOptions::default().skill(skill_id("close"));
    run(engine, options, |mut cx| async move {
        cx.offer(&forged([tool("first"), tool("second")]))?;
        let names = menu(&cx);
        assert!(names.contains(&"first".to_owned()) && !names.contains(&"second".to_owned()));
        let refused = cx.execute(vec![call("second", json!({}))]).await.remove(0);
        assert_eq!(refused.code, Some(ErrorCode::NotAvailable));
        cx.ack()?;
        Ok(())
    })
    .await;
}

/// Your own loop has no executor, and can offer too.
#[tokio::test]
async fn an_iteration_without_an_executor_offers_too() {
    let engine = engine().build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let shown: Value = {
        let menu = iteration.offer(&forged([tool("forged")])).unwrap();
        serde_json::from_str(menu.rendering()).unwrap()
    };
    assert_eq!(shown.as_array().map(Vec::len), Some(1));
    assert!(iteration.execute(vec![call("forged", json!({}))]).await[0].is_ok());
    drop(iteration);
    assert!(menu(&turn.iteration().await.unwrap()).is_empty());
}
