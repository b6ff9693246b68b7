//! Skills that change during an engine's lifetime.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use toolcrib_engine::{
    Engine, LoadedSkills, Plugin, PluginRegistrar, Skill, SkillSource, Skills, TurnOptions,
};

use crate::support::{Log, engine, menu, skill_id, skills, tool};

/// A source whose skills are set from outside.
#[derive(Clone, Default)]
struct Board {
    now: Arc<Mutex<LoadedSkills>>,
    asked: Arc<AtomicUsize>,
}

impl Board {
    fn set(&self, skills: Skills, problems: &[&str]) {
        let problems = problems.iter().map(|problem| Arc::from(*problem)).collect();
        *self.now.lock().unwrap() = LoadedSkills { skills: Arc::new(skills), problems };
    }
}

impl SkillSource for Board {
    fn skills(&self) -> LoadedSkills {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.now.lock().unwrap().clone()
    }
}

fn desk(board: &Board) -> Engine {
    engine()
        .tools([tool("refund"), tool("track"), tool("note")])
        .skill_source(board.clone())
        .build()
        .unwrap()
}

async fn offered(engine: &Engine, skill: &str) -> Vec<String> {
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id(skill))).unwrap();
    menu(&turn.iteration().await.unwrap())
}

#[tokio::test]
async fn the_next_turn_has_skills_as_they_are_then_and_one_under_way_keeps_its_own() {
    let board = Board::default();
    board.set(skills([("billing", &["refund"])]), &[]);
    let engine = desk(&board);
    let mut under_way = engine.turn(TurnOptions::default().skill(skill_id("billing"))).unwrap();
    assert_eq!(menu(&under_way.iteration().await.unwrap()), ["refund", "read_skill"]);
    board.set(skills([("billing", &["note"]), ("shipping", &["track"])]), &[]);
    assert_eq!(offered(&engine, "billing").await, ["note", "read_skill"]);
    assert_eq!(offered(&engine, "shipping").await, ["track", "read_skill"]);
    assert_eq!(menu(&under_way.iteration().await.unwrap()), ["refund", "read_skill"]);
    assert!(under_way.activate_skill(skill_id("shipping")).is_err());
    assert_eq!(engine.skills().iter().len(), 2);
    board.set(skills([("shipping", &["track"])]), &[]);
    assert!(engine.turn(TurnOptions::default().skill(skill_id("billing"))).is_err());
    board.set(Skills::default(), &[]);
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    assert_eq!(menu(&turn.iteration().await.unwrap()), ["refund", "track", "note"]);
}

#[tokio::test]
async fn unchanged_skills_are_the_very_same_turn_after_turn() {
    let board = Board::default();
    board.set(skills([("billing", &["refund"])]), &[]);
    let engine = desk(&board);
    let one = engine.turn(TurnOptions::default()).unwrap();
    let asked = board.asked.load(Ordering::SeqCst);
    let other = engine.turn(TurnOptions::default()).unwrap();
    assert!(Arc::ptr_eq(one.skills(), other.skills()));
    assert_eq!(board.asked.load(Ordering::SeqCst), asked + 1);
}

#[tokio::test]
async fn each_turn_reports_a_broken_skill_until_it_is_repaired() {
    let board = Board::default();
    board.set(skills([("billing", &["refund"])]), &[]);
    let engine = desk(&board);
    let log = Log::of(engine.events());
    board.set(skills([("billing", &["refund"])]), &["skills/billing/SKILL.md:2:1: no"]);
    for _ in 0..2 {
        offered(&engine, "billing").await;
    }
    let told = log.of_name("skill.reload_failed");
    assert_eq!(told.len(), 2);
    assert_eq!(told[0]["problem"], "skills/billing/SKILL.md:2:1: no");
    board.set(skills([("billing", &["refund"])]), &[]);
    offered(&engine, "billing").await;
    assert_eq!(log.of_name("skill.reload_failed").len(), 2);
}

struct Shop;

impl Plugin for Shop {
    fn id(&self) -> &str {
        "shop"
    }

    fn register(
        &self,
        registrar: &mut PluginRegistrar,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        registrar.skill(Skill::new(skill_id("selling"), "Sells.", "Sell."));
        Ok(())
    }
}

#[tokio::test]
async fn skills_of_plugins_stay_and_give_way_to_one_of_their_name_alone() {
    let board = Board::default();
    board.set(skills([("billing", &["refund"])]), &[]);
    let engine = desk(&board).with_plugin(&Shop).unwrap();
    let log = Log::of(engine.events());
    let ids = |engine: &Engine| -> Vec<String> {
        engine.skills().iter().map(|skill| skill.id.to_string()).collect()
    };
    assert_eq!(ids(&engine), ["billing", "selling"]);
    board.set(skills([("shipping", &["track"])]), &[]);
    assert_eq!(ids(&engine), ["shipping", "selling"]);
    board.set(skills([("selling", &[])]), &[]);
    assert_eq!(ids(&engine), ["selling"]);
    assert_eq!(engine.skills().get("selling").unwrap().plugin, None, "the earlier one stays");
    // All else goes on changing.
    board.set(skills([("selling", &[]), ("packing", &["note"])]), &[]);
    assert_eq!(offered(&engine, "packing").await, ["note", "read_skill"]);
    let told = log.of_name("skill.reload_failed");
    insta::assert_snapshot!(told[0]["problem"].as_str().unwrap(), @"two skills are called `selling`: the host and plugin `shop`; the latter is omitted until one of them is renamed");
    assert_eq!(ids(&engine.without_plugin("shop").unwrap()), ["selling", "packing"]);
    board.set(skills([("shipping", &["track"])]), &[]);
    assert_eq!(ids(&engine), ["shipping", "selling"]);
}

/// A plugin whose skills change.
struct Market(Board);

impl Plugin for Market {
    fn id(&self) -> &str {
        "market"
    }

    fn register(
        &self,
        registrar: &mut PluginRegistrar,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        registrar.skill_source(self.0.clone());
        Ok(())
    }
}

#[tokio::test]
async fn skills_of_plugins_change_too_carry_the_id_and_leave_with_it() {
    let (own, market) = (Board::default(), Board::default());
    own.set(skills([("billing", &["refund"])]), &[]);
    market.set(skills([("buying", &["note"])]).focus(false), &[]);
    let engine = desk(&own).with_plugin(&Market(market.clone())).unwrap();
    let log = Log::of(engine.events());
    let ids = |engine: &Engine| -> Vec<String> {
        let plugin = |skill: &Skill| skill.plugin.as_deref().unwrap_or("host").to_owned();
        engine.skills().iter().map(|skill| format!("{} {}", skill.id, plugin(skill))).collect()
    };
    assert_eq!(ids(&engine), ["billing host", "buying market"]);
    // The host makes the settings for all skills.
    assert_eq!(offered(&engine, "buying").await, ["note", "read_skill"]);
    let same = engine.skills();
    assert!(Arc::ptr_eq(&same, &engine.skills()), "while nothing changes, the very same");
    market.set(skills([("selling", &["track"])]), &["skills/buying: gone"]);
    assert_eq!(ids(&engine), ["billing host", "selling market"]);
    assert_eq!(offered(&engine, "selling").await, ["track", "read_skill"]);
    assert_eq!(log.of_name("skill.reload_failed")[0]["problem"], "skills/buying: gone");
    market.set(skills([("billing", &["track"]), ("buying", &["track"])]), &[]);
    assert_eq!(ids(&engine), ["billing host", "buying market"], "a taken name is left out");
    assert_eq!(ids(&engine.without_plugin("market").unwrap()), ["billing host"]);
}
