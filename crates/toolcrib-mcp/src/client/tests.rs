//! The client in front of a server that breaks the rules which real ones, and the mock, keep.

use std::{
    collections::VecDeque,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};
use toolcrib_core::{ErrorCode, Tool, ToolContextParts, ToolOutput};

use super::{McpClient, McpClientBuilder, builder::Reach};
use crate::connection::{
    CallAnswer, CallRequest, Connect, ConnectError, Connection, Hints, Page, RemoteTool,
    RequestError, ServerInfo, Signals,
};

type Lists = dyn Fn(Option<String>) -> Result<Page, RequestError> + Send + Sync;

/// What a server does.
struct Fake {
    connects: AtomicUsize,
    /// How many connections are being opened now.
    opening: AtomicUsize,
    calls: AtomicUsize,
    /// How many connections there are, and how many there were at most.
    open: AtomicUsize,
    most_open: AtomicUsize,
    /// Ends a connection, which takes a second.
    crash: Notify,
    connect: Box<dyn Fn(usize) -> BoxFuture<'static, ()> + Send + Sync>,
    lists: Box<Lists>,
    /// What becomes of calls, one after the other; then they succeed.
    fates: Mutex<VecDeque<RequestError>>,
}

impl Fake {
    fn listing(
        lists: impl Fn(Option<String>) -> Result<Page, RequestError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            connects: AtomicUsize::new(0),
            opening: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
            most_open: AtomicUsize::new(0),
            crash: Notify::new(),
            connect: Box::new(|_| Box::pin(async {})),
            lists: Box::new(lists),
            fates: Mutex::default(),
        }
    }

    fn of(tools: Vec<RemoteTool>) -> Self {
        Self::listing(move |_| Ok(page(tools.clone(), None)))
    }

    fn client(self) -> (McpClient, Arc<Self>) {
        self.set_up(|client| client)
    }

    fn set_up(
        self,
        change: impl FnOnce(McpClientBuilder) -> McpClientBuilder,
    ) -> (McpClient, Arc<Self>) {
        let fake = Arc::new(self);
        let reach = Reach::Connect(Arc::new(Dial(Arc::clone(&fake))));
        (change(McpClientBuilder::new("fake".into(), reach)).build().unwrap(), fake)
    }
}

struct Dial(Arc<Fake>);

/// Counts one that is being opened for as long as it is.
struct Opening(Arc<Fake>);

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.opening.fetch_sub(1, Relaxed);
    }
}

impl Connect for Dial {
    fn connect(
        &self,
        _signals: Arc<dyn Signals>,
    ) -> BoxFuture<'static, Result<Arc<dyn Connection>, ConnectError>> {
        let fake = Arc::clone(&self.0);
        fake.opening.fetch_add(1, Relaxed);
        let opening = Opening(Arc::clone(&fake));
        let opened = (fake.connect)(fake.connects.fetch_add(1, Relaxed));
        Box::pin(async move {
            opened.await;
            drop(opening);
            fake.most_open.fetch_max(fake.open.fetch_add(1, Relaxed) + 1, Relaxed);
            let info = ServerInfo {
                name: "fake".into(),
                version: "1".into(),
                protocol: "2025-11-25".into(),
                announces_changes: false,
            };
            Ok(Arc::new(Open { fake, info }) as Arc<dyn Connection>)
        })
    }

    fn target(&self) -> &str {
        "fake"
    }
}

struct Open {
    fake: Arc<Fake>,
    info: ServerInfo,
}

impl Connection for Open {
    fn server(&self) -> &ServerInfo {
        &self.info
    }

    fn list_tools(&self, cursor: Option<String>) -> BoxFuture<'static, Result<Page, RequestError>> {
        let page = (self.fake.lists)(cursor);
        Box::pin(async move { page })
    }

    fn call_tool(
        &self,
        _request: CallRequest,
    ) -> BoxFuture<'static, Result<CallAnswer, RequestError>> {
        self.fake.calls.fetch_add(1, Relaxed);
        let fate = self.fake.fates.lock().unwrap().pop_front();
        Box::pin(async move {
            match fate {
                Some(error) => Err(error),
                None => Ok(CallAnswer { output: ToolOutput::text("ran"), is_error: false }),
            }
        })
    }

    fn closed(&self) -> BoxFuture<'static, Arc<str>> {
        let fake = Arc::clone(&self.fake);
        Box::pin(async move {
            fake.crash.notified().await;
            "it closed its output".into()
        })
    }

    fn close(&self) -> BoxFuture<'static, ()> {
        let fake = Arc::clone(&self.fake);
        Box::pin(async move {
            sleep(Duration::from_secs(1)).await;
            fake.open.fetch_sub(1, Relaxed);
        })
    }
}

fn remote(name: &str) -> RemoteTool {
    RemoteTool {
        name: Some(name.into()),
        title: None,
        description: Some("A tool.".into()),
        input_schema: json!({ "type": "object" }),
        output_schema: None,
        hints: Hints::default(),
    }
}

fn page(tools: Vec<RemoteTool>, next: Option<&str>) -> Page {
    Page { tools, bytes: 0, next: next.map(str::to_owned), ttl: None }
}

async fn call(tool: &Tool) -> Result<ToolOutput, ErrorCode> {
    let cx = ToolContextParts::detached().into();
    tool.call(json!({}), cx).await.map_err(|error| error.code)
}

/// One that never gets ready.
fn hanging() -> Fake {
    let mut hanging = Fake::of(vec![remote("t")]);
    hanging.connect = Box::new(|_| Box::pin(pending()));
    hanging
}

async fn why_not_listed(fake: Fake) -> String {
    fake.client().0.tools().await.unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_given_up_and_names_the_server() {
    let error = why_not_listed(Fake::listing(|cursor| match cursor.as_deref() {
        None => Ok(page(vec![remote("a")], Some("1"))),
        Some("1") => Ok(page(vec![remote("b")], Some("2"))),
        Some(_) => Ok(page(vec![remote("c")], Some("1"))),
    }))
    .await;
    let start = "MCP server `fake` does not list its tools: ";
    assert!(
        error.starts_with(&format!(
            "{start}page 3 of its tools names a next page that was there before"
        )),
        "{error}"
    );

    let pages = AtomicUsize::new(0);
    let endless = Fake::listing(move |_| {
        Ok(page(Vec::new(), Some(&pages.fetch_add(1, Relaxed).to_string())))
    });
    let error = why_not_listed(endless).await;
    assert!(error.starts_with(&format!("{start}its tools have more than 1000 pages")), "{error}");

    let many = Fake::listing(|_| Ok(page(vec![remote("a"); 10_001], None)));
    let error = why_not_listed(many).await;
    assert!(error.starts_with(&format!("{start}it lists more than 10000 tools")), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_was_not_sent_is_sent_once_more() {
    let (client, fake) = Fake::of(vec![remote("t")]).client();
    let tool = client.tools().await.unwrap().remove(0);
    let not_sent = || RequestError::NotSent("the pipe is broken".into());
    fake.fates.lock().unwrap().push_back(not_sent());
    assert_eq!(call(&tool).await.unwrap().value, "ran");
    assert_eq!(fake.calls.load(Relaxed), 2);

    fake.fates.lock().unwrap().extend([not_sent(), not_sent()]);
    assert_eq!(call(&tool).await.unwrap_err(), ErrorCode::NotAvailable);
    assert_eq!(fake.calls.load(Relaxed), 4);

    for fate in [RequestError::Lost("it died".into()), RequestError::Malformed("no JSON".into())] {
        fake.fates.lock().unwrap().push_back(fate);
        call(&tool).await.unwrap_err();
    }
    assert_eq!(fake.calls.load(Relaxed), 6, "what may have been carried out is not repeated");
}

#[tokio::test(start_paused = true)]
async fn a_start_that_hangs_ends_in_time_and_leaves_nothing() {
    let (client, fake) = hanging().set_up(|client| client.start_timeout(Duration::from_secs(3)));
    let began = Instant::now();
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("it was not there within 3s"), "{error}");
    assert_eq!(began.elapsed(), Duration::from_secs(3));
    assert_eq!(fake.opening.load(Relaxed), 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_outlives_whoever_waits_for_it() {
    let mut slow = Fake::of(vec![remote("t")]);
    slow.connect = Box::new(|_| Box::pin(sleep(Duration::from_secs(8))));
    let (client, fake) = slow.client();
    let waits = || {
        let client = client.clone();
        tokio::spawn(async move { client.tools().await.map(|tools| tools.len()) })
    };
    let (first, second) = (waits(), waits());
    sleep(Duration::from_secs(1)).await;
    first.abort();
    sleep(Duration::from_secs(1)).await;
    second.abort();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(fake.opening.load(Relaxed), 1, "who is slower than all patience would never start");
    assert_eq!(client.tools().await.unwrap().len(), 1);
    assert_eq!(fake.connects.load(Relaxed), 1);

    let (client, fake) = hanging().client();
    let waiting = tokio::spawn({
        let client = client.clone();
        async move { client.tools().await.map(|tools| tools.len()) }
    });
    sleep(Duration::from_secs(1)).await;
    client.close().await;
    assert_eq!(fake.opening.load(Relaxed), 0, "with the client it ends");
    waiting.await.unwrap().unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn the_next_connection_waits_for_the_end_of_the_one_before() {
    let (client, fake) = Fake::of(vec![remote("t")]).client();
    client.tools().await.unwrap();
    sleep(Duration::from_secs(60)).await;
    fake.crash.notify_one();
    while client.status().epoch < 2 {
        sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(fake.connects.load(Relaxed), 2);
    assert_eq!(fake.most_open.load(Relaxed), 1);
}

#[test]
fn a_connection_whose_runtime_ended_is_not_used_by_the_next() {
    let (client, fake) = Fake::of(vec![remote("t")]).client();
    for connections in 1..=2 {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let tool = runtime.block_on(client.refresh()).unwrap().remove(0);
        assert_eq!(runtime.block_on(call(&tool)).unwrap().value, "ran");
        assert_eq!(fake.connects.load(Relaxed), connections);
    }
}

#[tokio::test(start_paused = true)]
async fn a_start_that_panics_is_a_failure_like_others() {
    let mut panics = Fake::of(vec![remote("t")]);
    panics.connect = Box::new(|_| panic!("a bug"));
    let error = panics.client().0.tools().await.unwrap_err().to_string();
    assert!(error.contains("what connects to it panicked: a bug"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_list_is_asked_for_again_when_its_time_is_over() {
    let lists = Arc::new(AtomicUsize::new(0));
    let asked = Arc::clone(&lists);
    let (client, _fake) = Fake::listing(move |_| {
        asked.fetch_add(1, Relaxed);
        Ok(Page { ttl: Some(Duration::from_secs(5)), ..page(vec![remote("t")], None) })
    })
    .client();
    for (after, expected) in [(0, 1), (4, 1), (2, 2), (4, 2)] {
        sleep(Duration::from_secs(after)).await;
        client.tools().await.unwrap();
        assert_eq!(lists.load(Relaxed), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_offered_is_held_back_and_spoils_nothing() {
    let deep = (0..200).fold(json!({}), |inner, _| json!({ "not": inner }));
    let schema = |name: &str, input_schema: Value| RemoteTool { input_schema, ..remote(name) };
    let large = json!({ "type": "object", "description": "x".repeat(70_000) });
    let (client, _fake) = Fake::of(vec![
        schema("a_array", json!({ "type": "array" })),
        schema("b_deep", deep),
        schema("c_large", large),
        remote("d_twice"),
        schema("d_twice", json!({ "type": "object", "title": "another" })),
        remote("e_good"),
        RemoteTool { name: None, ..remote("") },
    ])
    .client();
    let catalog = client.catalog().await.unwrap();
    let offered: Vec<_> = catalog.offered().iter().map(|tool| tool.name().as_str()).collect();
    assert_eq!(offered, ["mcp__fake__d_twice", "mcp__fake__e_good"]);
    let mut reasons: Vec<_> =
        catalog.held_back().iter().map(|held| held.reason.to_string()).collect();
    assert_eq!(reasons.remove(0), "the server gives it no name");
    assert!(reasons[0].contains("must be of `type: \"object\"`"), "{}", reasons[0]);
    assert!(reasons[1].contains("nests deeper than 128 levels"), "{}", reasons[1]);
    assert!(reasons[2].ends_with(" bytes; 65536 are the most"), "{}", reasons[2]);
    assert_eq!(reasons[3], "another tool of the same name is listed");
    assert!(catalog.held_back().iter().all(|held| &*held.gate == "mcp:fake"));
}

#[tokio::test(start_paused = true)]
async fn the_order_of_a_servers_list_decides_nothing() {
    let twice = RemoteTool { title: Some("Other".into()), ..remote("b") };
    let tools = [remote("c"), remote("b"), twice, remote("a")];
    let mut seen = Vec::new();
    for turn in 0..tools.len() {
        let mut tools = tools.to_vec();
        tools.rotate_left(turn);
        let catalog = Fake::of(tools).client().0.catalog().await.unwrap();
        let offered = catalog.offered().iter();
        seen.push(
            offered
                .map(|t| (t.name().to_string(), t.title().map(str::to_owned)))
                .collect::<Vec<_>>(),
        );
    }
    seen.dedup();
    assert_eq!(seen.len(), 1, "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn one_without_a_description_is_described_by_its_title_or_its_name() {
    let undescribed = |name: &str, title: Option<&str>| RemoteTool {
        description: Some("  ".into()),
        title: title.map(str::to_owned),
        ..remote(name)
    };
    let (client, _fake) =
        Fake::of(vec![undescribed("a", Some("The A")), undescribed("b", None)]).client();
    let tools = client.tools().await.unwrap();
    assert_eq!((tools[0].description(), tools[1].description()), ("The A", "b"));
}

#[tokio::test(start_paused = true)]
async fn a_trusted_server_that_says_nothing_is_taken_by_the_protocols_word() {
    let hinted = |name: &str, read_only, destructive| RemoteTool {
        hints: Hints { read_only, destructive, idempotent: None },
        ..remote(name)
    };
    let tools = vec![
        hinted("a", None, None),
        hinted("b", None, Some(false)),
        hinted("c", Some(true), None),
    ];
    let (client, _fake) = Fake::of(tools.clone()).set_up(McpClientBuilder::trusted);
    let said: Vec<_> = client.tools().await.unwrap().iter().map(|t| t.annotations()).collect();
    let effects: Vec<_> = said.iter().map(|a| (a.read_only, a.destructive)).collect();
    assert_eq!(effects, [(false, true), (false, false), (true, false)]);

    let (client, _fake) = Fake::of(tools).client();
    for tool in client.tools().await.unwrap() {
        let said = tool.annotations();
        assert_eq!((said.read_only, said.destructive, said.idempotent), (false, true, false));
    }
}
