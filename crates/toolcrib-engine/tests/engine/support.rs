//! Shared parts of the tests: small tools, rules, skills, a log of events.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_core::{
    CancellationToken, Catalog, Effect, Event, EventKind, Events, Glob, Identity, ListContext,
    Listing, Policy, Rule, SkillId, Tool, ToolBuilder, ToolCall, ToolContext, ToolName,
    ToolProvider, ToolResult,
};
use toolcrib_engine::{
    Engine, EngineBuilder, Iteration, Redactor, Skill, Skills, TurnOptions, Withheld,
};

/// A tool with everything but a body.
pub(crate) fn builder(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool of the tests.")
}

/// A tool that says that it ran.
pub(crate) fn tool(name: &str) -> Tool {
    says(builder(name), "ran")
}

/// A read-only tool that says that it ran.
pub(crate) fn reading(name: &str) -> Tool {
    says(builder(name).read_only(), "ran")
}

/// Ends a tool that always says the same.
pub(crate) fn says(builder: ToolBuilder, text: &str) -> Tool {
    let text = text.to_owned();
    builder
        .handler(move |_: Value, _: ToolContext| {
            let text = text.clone();
            async move { text }
        })
        .unwrap()
}

/// An engine that knows no secrets of the machine it is tested on.
pub(crate) fn engine() -> EngineBuilder {
    Engine::builder().redactor(Redactor::default())
}

pub(crate) fn call(name: &str, args: Value) -> ToolCall {
    ToolCall::new(format!("id-{name}"), name, args)
}

/// One call of a fresh turn.
pub(crate) async fn once(engine: &Engine, name: &str, args: Value) -> ToolResult {
    batch(engine, vec![call(name, args)]).await.remove(0)
}

/// One batch of a fresh turn.
pub(crate) async fn batch(engine: &Engine, calls: Vec<ToolCall>) -> Vec<ToolResult> {
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    turn.iteration().await.unwrap().execute(calls).await
}

/// The menu's names in the first iteration of a turn with these options.
pub(crate) async fn offered(engine: &Engine, options: TurnOptions) -> Vec<String> {
    let mut turn = engine.turn(options).unwrap();
    menu(&turn.iteration().await.unwrap())
}

pub(crate) fn menu(iteration: &Iteration) -> Vec<String> {
    iteration.menu().names().map(ToString::to_string).collect()
}

/// The names of a listing, offered ones only.
pub(crate) async fn listed(provider: &Arc<dyn ToolProvider>, cx: &ListContext) -> Vec<String> {
    let catalog = Arc::clone(provider).list(cx).wait().await.unwrap();
    catalog_names(&catalog)
}

pub(crate) fn catalog_names(catalog: &Catalog) -> Vec<String> {
    let names = catalog.offered().iter().map(|tool| tool.name().to_string());
    names.collect()
}

pub(crate) fn cx() -> ListContext {
    ListContext::new(Arc::new(Identity::conversation("c")), CancellationToken::new())
}

pub(crate) fn skill_id(id: &str) -> SkillId {
    SkillId::new(id).unwrap()
}

pub(crate) fn cx_with_skill(id: &str) -> ListContext {
    cx().with_active_skills(Arc::from([skill_id(id)]))
}

/// Skills by id and the names of their tools; each has a body that names it.
pub(crate) fn skills<const N: usize>(skills: [(&str, &[&str]); N]) -> Skills {
    let skills = skills.map(|(id, tools)| {
        Skill::new(skill_id(id), format!("About {id}."), format!("How to do {id}."))
            .tools(tools.iter().map(|name| ToolName::new(*name).unwrap()))
    });
    Skills::new(skills.into()).unwrap()
}

/// A rule that matches everything, to be narrowed.
pub(crate) fn rule(label: &str, effect: Effect) -> Rule {
    Rule::new(label, effect)
}

/// A rule on tools whose names match.
pub(crate) fn rule_on(label: &str, effect: Effect, glob: &str) -> Rule {
    let mut rule = rule(label, effect);
    rule.tools.names = vec![Glob::new(glob)];
    rule
}

pub(crate) fn policy<const N: usize>(rules: [Rule; N]) -> Policy {
    Policy { rules: rules.into(), ..Policy::default() }
}

/// Why a tool is withheld, in words.
pub(crate) fn why(withheld: &Withheld, name: &str) -> String {
    withheld.tool(name).unwrap_or_else(|| panic!("{name} is not withheld")).reason
}

/// A provider from a function.
pub(crate) struct Listed<F>(pub(crate) &'static str, pub(crate) F);

impl<F> ToolProvider for Listed<F>
where
    F: Fn(&ListContext) -> Listing + Send + Sync + 'static,
{
    fn id(&self) -> &str {
        self.0
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        (self.1)(cx)
    }
}

pub(crate) fn provider<F>(id: &'static str, list: F) -> Arc<dyn ToolProvider>
where
    F: Fn(&ListContext) -> Listing + Send + Sync + 'static,
{
    Arc::new(Listed(id, list))
}

/// All events of a hub, as they came.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<Event>>>);

impl Log {
    pub(crate) fn of(events: &Events) -> Self {
        let log = Self::default();
        let seen = Arc::clone(&log.0);
        events.on("*", move |event| seen.lock().unwrap().push(event.clone())).unwrap();
        log
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn kinds(&self) -> Vec<EventKind> {
        self.events().into_iter().map(|event| event.kind).collect()
    }

    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.kinds().iter().map(EventKind::name).collect()
    }

    /// The events of a name, as JSON.
    pub(crate) fn of_name(&self, name: &str) -> Vec<Value> {
        let events = self.events().into_iter();
        events.filter(|event| event.kind.name() == name).map(|event| json!(event)).collect()
    }
}

/// Fails a test that hangs; the time decides nothing else.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(300), future).await.expect("the test hangs")
}
