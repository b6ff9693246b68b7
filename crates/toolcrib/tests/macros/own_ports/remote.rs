//! Ports to other parties and to the host: definitions of remote tools, kinds of artifacts, consent.

#![allow(clippy::disallowed_methods, reason = "tests")]

use std::{fs, path::PathBuf, sync::Arc};

use serde_json::{Value, json};
use toolcrib::{
    Identity,
    artifacts::{
        Answer, ArtifactKind, ArtifactLimits, Artifacts, ContentHead, MemoryStore, Query,
        QueryRequest,
    },
    prelude::*,
    project::{Consent, LoadOptions, Project, Review, Verdict},
    provider::MissingReason,
    tool::ArtifactPolicy,
    untrusted::{
        DefinitionCheck, DefinitionPins, ListOrder, PinKind, PinRefusal, PinnedDefinition,
        RemoteDefinition, RemoteListing,
    },
};

use super::Log;

#[derive(Debug, Clone, PartialEq)]
struct Remote(&'static str, &'static str);

impl RemoteDefinition for Remote {
    fn name(&self) -> Option<&str> {
        Some(self.0)
    }

    fn definition(&self) -> Value {
        json!({ "name": self.0, "description": self.1 })
    }
}

/// Knows one definition of each name.
struct Known;

impl DefinitionPins for Known {
    fn check(
        &self,
        source: &str,
        kind: PinKind,
        definitions: &mut dyn Iterator<Item = PinnedDefinition>,
    ) -> Result<Vec<Option<PinRefusal>>, Arc<str>> {
        if source != "remote" {
            return Err("unknown source".into());
        }
        let changed = |definition: PinnedDefinition| {
            let is_known = definition.definition["description"] == "Adds.";
            (!is_known).then(|| {
                let text = format!("a {} that is not known", kind.as_str());
                (MissingReason::Changed, text.into())
            })
        };
        Ok(definitions.map(changed).collect())
    }
}

#[test]
fn own_pins_withhold_an_own_definition() {
    let check = DefinitionCheck::new(|_| None).with_pins(Arc::new(Known));
    let list = |origin: &str| {
        let descriptions = vec![Remote("add", "Adds."), Remote("sum", "Reads mail.")];
        RemoteListing::new(
            descriptions,
            ListOrder::AsGiven,
            None,
            &origin.into(),
            Some(&check),
            |Remote(name, description)| {
                let tool = Tool::builder(*name).description(*description);
                let tool = tool.handler(|_: Value, _: ToolContext| async { "" }).unwrap();
                Some((tool, None))
            },
        )
    };
    let listing = list("remote").unwrap();
    let offered: Vec<_> = listing.offered().map(|(remote, _)| remote.0).collect();
    assert_eq!(offered, ["add"]);
    assert_eq!(list("other").unwrap_err(), "unknown source".into());
}

/// Content that begins with `LOG`.
struct Lines;

impl ArtifactKind for Lines {
    fn name(&self) -> &str {
        "lines"
    }

    fn detect(&self, start: &ContentHead<'_>) -> bool {
        start.text().starts_with("LOG")
    }

    fn queries(&self) -> Vec<Query> {
        vec![Query::new("count", "The number of lines.")]
    }

    fn query(&self, request: &QueryRequest<'_>) -> Result<Answer, ToolError> {
        Ok(Answer::text(format!("{} lines", request.content.lines())))
    }
}

#[tokio::test]
async fn an_own_kind_of_artifact_answers_queries() {
    let store = Arc::new(MemoryStore::new());
    let kinds: Vec<Arc<dyn ArtifactKind>> = vec![Arc::new(Lines)];
    let artifacts = Artifacts::with(store.clone(), kinds, ArtifactLimits::default());
    let export = Tool::builder("export")
        .description("Exports.")
        .artifact_policy(ArtifactPolicy::Always)
        .handler(|_: Value, _: ToolContext| async { "LOG\none\ntwo" })
        .unwrap();
    let engine = Engine::builder().tool(export).artifacts(artifacts).build().unwrap();
    let mut turn = engine.turn(TurnOptions::default().principal("ann")).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    iteration.execute(vec![ToolCall::new("call_1", "export", json!({}))]).await;
    let owner = Identity::clone(turn.identity());
    let id = toolcrib::artifacts::ArtifactStore::entries(&*store, &owner).unwrap().remove(0).id;
    let mut iteration = turn.iteration().await.unwrap();
    let args = json!({ "id": &*id, "query": "count" });
    let answer = iteration.execute(vec![ToolCall::new("call_2", "artifact_query", args)]).await;
    assert!(answer[0].text.contains("3 lines"), "{}", answer[0].text);
}

/// A user who trusts nothing.
#[derive(Debug)]
struct Careful(Log);

impl Consent for Careful {
    fn review(&self, review: &Review) -> Verdict {
        review.powers.iter().for_each(|power| self.0.add(power.to_string()));
        Verdict::LookOnly("it is not trusted yet".into())
    }

    fn replace(&self, _: &[PathBuf]) -> bool {
        false
    }
}

#[test]
fn an_own_consent_reviews_a_project() {
    let folder = tempfile::tempdir().unwrap();
    let project = "
        [[tool]]
        kind = 'command'
        name = 'now'
        description = 'The time.'
        program = 'date'
    ";
    fs::write(folder.path().join("toolcrib.toml"), project).unwrap();
    let log = Log::default();
    let consent: Arc<dyn Consent> = Arc::new(Careful(log.clone()));
    let options = LoadOptions { consent: Some(consent), ..LoadOptions::default() };
    Project::load(folder.path(), &options).unwrap();
    assert!(log.lines().iter().any(|power| power.contains("date")), "{:?}", log.lines());
}
