//! The files of a skill, by way of `read_skill`.

use std::{io, sync::Arc};

use serde_json::json;
use toolcrib_core::ErrorCode;
use toolcrib_engine::{
    Engine, Limits, Skill, SkillFileError, SkillFiles, Skills, Turn, TurnOptions,
};

use super::read;
use crate::support::{call, engine, skill_id, skills};

#[derive(Debug)]
struct Shelf(Vec<(&'static str, String)>);

impl SkillFiles for Shelf {
    fn list(&self) -> Result<Vec<String>, SkillFileError> {
        Ok(self.0.iter().map(|(path, _)| (*path).to_owned()).collect())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SkillFileError> {
        match self.0.iter().find(|(there, _)| *there == path) {
            Some((_, text)) if text == "binary" => Ok(vec![0xff, 0xfe]),
            Some((_, text)) => Ok(text.clone().into_bytes()),
            None => Err(SkillFileError::NotThere),
        }
    }
}

#[derive(Debug)]
struct Broken;

impl SkillFiles for Broken {
    fn list(&self) -> Result<Vec<String>, SkillFileError> {
        Err(SkillFileError::Unreadable(io::Error::other("/srv/disk is gone")))
    }

    fn read(&self, _: &str) -> Result<Vec<u8>, SkillFileError> {
        Err(SkillFileError::Unreadable(io::Error::other("/srv/disk is gone")))
    }
}

fn desk(files: Option<Arc<dyn SkillFiles>>) -> Engine {
    let mut billing = Skill::new(skill_id("billing"), "Bills.", "How to bill.");
    billing.files = files;
    let others = skills([("shipping", &[])]);
    let all = [billing].into_iter().chain(others.iter().cloned()).collect();
    engine()
        .skills(Skills::new(all).unwrap())
        .limits(Limits { batch_result_chars: 2000, ..Limits::default() })
        .build()
        .unwrap()
}

pub(super) fn shelf() -> Option<Arc<dyn SkillFiles>> {
    Some(Arc::new(Shelf(vec![
        ("references/tax.md", "Tax is <b>19</b> percent.".into()),
        ("logo.png", "binary".into()),
        ("references/long.md", "x".repeat(5000)),
    ])))
}

async fn open(turn: &mut Turn, id: &str, path: &str) -> toolcrib_core::ToolResult {
    let call = call("read_skill", json!({ "id": id, "path": path }));
    turn.iteration().await.unwrap().execute(vec![call]).await.remove(0)
}

#[tokio::test]
async fn files_of_an_active_skill_are_read_as_they_are_and_reading_activates_nothing() {
    let engine = desk(shelf());
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let refused = open(&mut turn, "billing", "references/tax.md").await;
    assert_eq!(refused.code, Some(ErrorCode::InputInvalid));
    assert_eq!(&*refused.value, "skill `billing` is not active: activate it first, without `path`");
    assert!(turn.active_skills().is_empty());
    let activated = read(&mut turn, "billing").await;
    insta::assert_snapshot!(activated.value, @"
    Skill `billing` is active. Its tools are offered from your next step on.

    How to bill.

    This skill has files: `read_skill` with its id and a `path` reads one. Its files: `references/tax.md`, `logo.png`, `references/long.md`.
    ");
    read(&mut turn, "shipping").await;
    let file = open(&mut turn, "billing", "references/tax.md").await;
    assert_eq!((&*file.text, file.untrusted), ("Tax is <b>19</b> percent.", false));
    assert_eq!(turn.active_skills().last(), Some(&skill_id("shipping")));
}

#[tokio::test]
async fn what_cannot_be_read_is_said_with_the_files_there_are() {
    let engine = desk(shelf());
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("billing"))).unwrap();
    let mut said = Vec::new();
    for path in ["refs/tax.md", "../../etc/passwd", "logo.png", "a\u{202e}\nb"] {
        let result = open(&mut turn, "billing", path).await;
        assert_eq!(result.code, Some(ErrorCode::InputInvalid));
        said.push(result.value.to_string());
    }
    turn.activate_skill(skill_id("shipping")).unwrap();
    said.push(open(&mut turn, "shipping", "x").await.value.to_string());
    insta::assert_snapshot!(said.join("\n"), @r"
    `refs/tax.md` is not a file of this skill. Its files: `references/tax.md`, `logo.png`, `references/long.md`.
    `../../etc/passwd` is not a file of this skill. Its files: `references/tax.md`, `logo.png`, `references/long.md`.
    `logo.png` is not text, and cannot be read. Its files: `references/tax.md`, `logo.png`, `references/long.md`.
    `a\u{202e}\nb` is not a file of this skill. Its files: `references/tax.md`, `logo.png`, `references/long.md`.
    skill `shipping` has no files
    ");
    let long = open(&mut turn, "billing", "references/long.md").await;
    assert!(long.text.chars().count() <= 2000 && long.text.contains("[truncated"));
}

#[tokio::test]
async fn a_disk_that_fails_is_the_operators_business() {
    let engine = desk(Some(Arc::new(Broken)));
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    assert!(read(&mut turn, "billing").await.is_ok());
    let result = open(&mut turn, "billing", "x").await;
    assert!(!result.value.contains("/srv"), "{}", result.value);
    assert!(result.cause.unwrap().contains("/srv/disk is gone"));
}

#[tokio::test]
async fn without_files_there_is_no_path() {
    let engine = desk(None);
    let mut turn = engine.turn(TurnOptions::default().skill(skill_id("billing"))).unwrap();
    let iteration = turn.iteration().await.unwrap();
    let schema = iteration.menu().get("read_skill").unwrap().input_schema().clone();
    assert_eq!(schema["properties"].as_object().unwrap().len(), 1);
    drop(iteration);
    let refused = open(&mut turn, "billing", "x").await;
    assert_eq!(refused.code, Some(ErrorCode::InputInvalid));
}
