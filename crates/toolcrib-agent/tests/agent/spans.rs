//! The spans of runs, as a subscriber of the crate `tracing` sees them.

use std::{
    collections::BTreeMap,
    fmt::{self, Write as _},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib_agent::RunOptions;
use toolcrib_core::{
    DiscoveryError, ListContext, Listing, ToolContext, ToolOutput, ToolProvider, err, static_tools,
};
use toolcrib_engine::{Engine, OnFailure, TurnOptions};
use toolcrib_testing::{Fault, faulty, model};
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    layer::{Context, Layer, SubscriberExt as _},
    registry::LookupSpan,
};

use crate::support::{agent, builder, call, calls, says, tool};

/// A span, as it was when it closed.
#[derive(Debug, Default)]
struct Seen {
    name: String,
    depth: usize,
    fields: BTreeMap<&'static str, String>,
    is_closed: bool,
}

/// All spans of this thread, in the order in which they were opened.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<(u64, Seen)>>>);

struct Fields<'a>(&'a mut BTreeMap<&'static str, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl Spans {
    fn collect() -> (Self, DefaultGuard) {
        let spans = Self::default();
        let subscriber = tracing_subscriber::registry().with(spans.clone());
        (spans, tracing::subscriber::set_default(subscriber))
    }

    /// A line for each span with some of its fields, below the span that it is in.
    fn tree(&self, fields: &[&str]) -> String {
        let mut tree = String::new();
        for (_, seen) in &*self.0.lock() {
            let shown = fields.iter().filter_map(|name| Some((name, seen.fields.get(*name)?)));
            let shown: String = shown.map(|(name, value)| format!(" {name}={value}")).collect();
            let open = if seen.is_closed { "" } else { " (open)" };
            writeln!(tree, "{:width$}{}{shown}{open}", "", seen.name, width = 2 * seen.depth)
                .unwrap();
        }
        tree
    }

    fn text(&self) -> String {
        format!("{:?}", self.0.lock())
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, cx: Context<'_, S>) {
        let span = cx.span(id).unwrap();
        let (name, depth) = (span.name().to_owned(), span.scope().count() - 1);
        let mut seen = Seen { name, depth, ..Seen::default() };
        attributes.record(&mut Fields(&mut seen.fields));
        self.0.lock().push((id.into_u64(), seen));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _: Context<'_, S>) {
        let mut spans = self.0.lock();
        // Ids are used again: the last one is the open one.
        let (_, seen) = spans.iter_mut().rfind(|(known, _)| *known == id.into_u64()).unwrap();
        values.record(&mut Fields(&mut seen.fields));
    }

    fn on_close(&self, id: Id, _: Context<'_, S>) {
        let mut spans = self.0.lock();
        let (_, seen) = spans.iter_mut().rfind(|(known, _)| *known == id.into_u64()).unwrap();
        seen.is_closed = true;
    }
}

/// The spans of a run with two iterations, a source that fails once and a tool that fails.
const TREE: &str = "\
request
  turn toolcrib.principal=ann toolcrib.iterations=2 toolcrib.stopped=answered gen_ai.usage.input_tokens=20
    iteration toolcrib.iteration=1 toolcrib.tool_calls=2
      discovery toolcrib.provider=registry toolcrib.tool_count=2
      discovery toolcrib.provider=faulty > static error.type=source
      model_call toolcrib.tool_calls=2 gen_ai.usage.input_tokens=10
      tool_call gen_ai.tool.name=t
      tool_call gen_ai.tool.name=failing error.type=execution_failed
    iteration toolcrib.iteration=2 toolcrib.tool_calls=0
      discovery toolcrib.provider=registry toolcrib.tool_count=2
      discovery toolcrib.provider=faulty > static toolcrib.tool_count=1
      model_call toolcrib.tool_calls=0 gen_ai.usage.input_tokens=10
";

#[tokio::test]
async fn each_turn_iteration_discovery_model_call_and_tool_call_has_a_span() {
    let (spans, _guard) = Spans::collect();
    let failing = builder("failing")
        .handler(|_: Value, _: ToolContext| async { Err::<ToolOutput, _>(err("out of paper")) })
        .unwrap();
    let model = model()
        .then(calls([
            call("c1", "t", json!({ "secret": "hush" })),
            call("c2", "failing", json!({})),
        ]))
        .always(says("Done, hush."));
    let source =
        faulty(static_tools([tool("remote")])).then(Fault::Error("unreachable".to_owned()));
    let agent = agent(&model)
        .tool(tool("t"))
        .tool(failing)
        .engine(|engine| engine.provider_with(source.provider(), OnFailure::Omit));
    let agent = agent.build().unwrap();
    let subscription = agent.engine().events().write_spans();
    let options = RunOptions::from(TurnOptions::default().principal("ann"));
    let outside = tracing::info_span!("request").entered();
    agent.run("Print this, hush.", options).await.into_answer().unwrap();
    drop(outside);
    let shown = [
        "toolcrib.principal",
        "toolcrib.iterations",
        "toolcrib.stopped",
        "toolcrib.iteration",
        "toolcrib.tool_calls",
        "toolcrib.provider",
        "toolcrib.tool_count",
        "gen_ai.tool.name",
        "error.type",
        "gen_ai.usage.input_tokens",
    ];
    assert_eq!(spans.tree(&shown), TREE);
    assert!(!spans.text().contains("hush"), "no span has messages, arguments or results");
    assert!(spans.text().contains("otel.status_code"));

    // Without listeners nothing is written.
    subscription.unsubscribe();
    let before = spans.0.lock().len();
    agent.run("Again.", RunOptions::default()).await.into_answer().unwrap();
    assert_eq!(spans.0.lock().len(), before);
}

/// Fails with the path of a provider within it.
struct Outer;

impl ToolProvider for Outer {
    fn id(&self) -> &str {
        "outer"
    }

    fn list(self: Arc<Self>, _: &ListContext) -> Listing {
        Listing::failed(DiscoveryError::source_failed("gone"))
    }
}

#[tokio::test]
async fn turns_that_no_runner_drives_have_spans_of_their_calls_and_leave_none_open() {
    let (spans, _guard) = Spans::collect();
    let engine = Engine::builder().tool(tool("t")).provider_with(Arc::new(Outer), OnFailure::Omit);
    let engine = engine.build().unwrap();
    engine.events().write_spans();
    for number in 0..3 {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        iteration.execute(vec![call("c1", "t", json!({ "n": number }))]).await;
    }
    let once = "discovery toolcrib.provider=outer otel.status_description=gone\n\
                tool_call gen_ai.tool.name=t\n";
    assert_eq!(
        spans
            .tree(&["toolcrib.provider", "gen_ai.tool.name", "otel.status_description"])
            .replace("discovery toolcrib.provider=registry\n", ""),
        once.repeat(3)
    );
}

#[tokio::test]
async fn a_run_that_is_dropped_leaves_its_spans_to_the_cap() {
    let (spans, _guard) = Spans::collect();
    let endless = crate::support::endless(builder("endless"));
    let model = model().always(calls([call("c1", "endless", json!({}))]));
    let agent = agent(&model).tool(endless).build().unwrap();
    agent.engine().events().write_spans();
    let run = agent.run("Wait.", RunOptions::default());
    assert!(tokio::time::timeout(std::time::Duration::from_millis(50), run).await.is_err());
    drop(agent);
    // The hub is gone, and with it the listener that kept them open.
    assert!(!spans.tree(&[]).contains("(open)"), "{}", spans.tree(&[]));
}
