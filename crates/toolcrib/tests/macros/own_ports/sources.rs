//! Ports that tools and skills come from.

use std::{error::Error, sync::Arc};

use serde_json::json;
use toolcrib::{
    BoxFuture,
    engine::{Plugin, PluginRegistrar},
    prelude::*,
    provider::{Catalog, CatalogRequest, DiscoveryError, DiscoveryErrorClass, Listing, ToolHub},
    skills::{LoadedSkills, SkillFileError, SkillFiles, SkillSource},
};

use super::call;

fn named(name: &str) -> Tool {
    let tool = Tool::builder(name).description("Says its name.");
    let text = name.to_owned();
    tool.handler(move |_: serde_json::Value, _: ToolContext| {
        let text = text.clone();
        async move { text }
    })
    .unwrap()
}

/// A tool for each tenant.
struct Tenants;

impl ToolProvider for Tenants {
    fn id(&self) -> &str {
        "tenants"
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        match &cx.identity().tenant {
            Some(tenant) => Listing::now(vec![named(&format!("of_{tenant}"))]),
            None => Listing::failed(DiscoveryError::new(DiscoveryErrorClass::Source, "no tenant")),
        }
    }
}

struct Hub;

impl ToolHub for Hub {
    fn fetch_catalog<'a>(
        &'a self,
        request: &'a CatalogRequest,
    ) -> BoxFuture<'a, Result<Catalog, DiscoveryError>> {
        let name = format!("hub_{}", request.iteration());
        Box::pin(async move { Ok(vec![named(&name)].into()) })
    }
}

#[derive(Debug)]
struct Guide;

impl SkillFiles for Guide {
    fn list(&self) -> Result<Vec<String>, SkillFileError> {
        Ok(vec!["guide.md".to_owned()])
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SkillFileError> {
        if path == "guide.md" { Ok(b"Be kind.".to_vec()) } else { Err(SkillFileError::NotThere) }
    }
}

struct Manual(Arc<Skills>);

impl SkillSource for Manual {
    fn skills(&self) -> LoadedSkills {
        LoadedSkills { skills: Arc::clone(&self.0), ..LoadedSkills::default() }
    }
}

/// A plugin with the other sources.
struct Bundle;

impl Plugin for Bundle {
    fn id(&self) -> &str {
        "bundle"
    }

    fn register(
        &self,
        registrar: &mut PluginRegistrar,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let support = Skill::new("support", "Support.", "Read the guide.").files(Arc::new(Guide));
        let skills = Skills::new(vec![support])?;
        registrar.provider(Arc::new(Tenants)).provider(discovery(Hub).id("hub").build());
        registrar.skill_source(Manual(Arc::new(skills)));
        Ok(())
    }
}

#[tokio::test]
async fn tools_and_skills_come_from_own_sources() {
    let engine = Engine::builder().plugin(Bundle).build().unwrap();
    let options = || TurnOptions::default().tenant("north");
    let mut turn = engine.turn(options()).unwrap();
    let menu: Vec<_> = {
        let iteration = turn.iteration().await.unwrap();
        iteration.menu().tools().iter().map(|tool| tool.name().to_string()).collect()
    };
    assert_eq!(menu, ["of_north", "hub_1", "read_skill"]);
    assert_eq!(&*call(&engine, options(), "of_north", json!({})).await.text, "of_north");
    let mut guide = None;
    for args in [json!({ "id": "support" }), json!({ "id": "support", "path": "guide.md" })] {
        let mut iteration = turn.iteration().await.unwrap();
        guide = iteration.execute(vec![ToolCall::new("call_1", "read_skill", args)]).await.pop();
    }
    let guide = guide.unwrap();
    assert!(guide.text.contains("Be kind."), "{}", guide.text);
    assert!(engine.turn(TurnOptions::default()).unwrap().iteration().await.is_err());
}
