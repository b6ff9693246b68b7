//! Shared helpers: small tools, contexts, an observed source.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serde_json::Value;
use toolcrib_core::{
    BoxFuture, CancellationToken, Catalog, DiscoveryError, Identity, ListContext, Listing,
    ListingInfo, SkillId, Tool, ToolBuilder, ToolContext, ToolProvider,
};

pub(crate) fn tool(name: &str) -> Tool {
    let says = format!("{name} ran");
    tool_builder(name)
        .handler(move |_: Value, _: ToolContext| {
            let says = says.clone();
            async move { says }
        })
        .unwrap()
}

/// A tool with everything but a body.
pub(crate) fn tool_builder(name: &str) -> ToolBuilder {
    Tool::builder(name).description("A tool of the tests.")
}

/// Finishes a tool that does nothing.
pub(crate) fn ending(builder: ToolBuilder) -> Tool {
    builder.handler(|_: Value, _: ToolContext| async { "" }).unwrap()
}

pub(crate) fn named(tools: &[Tool]) -> Vec<String> {
    tools.iter().map(|tool| tool.name().to_string()).collect()
}

pub(crate) fn cx() -> ListContext {
    ListContext::new(Arc::new(Identity::conversation("c")), CancellationToken::new())
}

pub(crate) fn of_tenant(tenant: &str) -> ListContext {
    let identity = Identity { tenant: Some(tenant.into()), ..Identity::conversation("c") };
    ListContext::new(Arc::new(identity), CancellationToken::new())
}

pub(crate) fn skill(id: &str) -> SkillId {
    SkillId::new(id).unwrap()
}

pub(crate) fn names(catalog: &Catalog) -> Vec<String> {
    catalog.offered().iter().map(|tool| tool.name().to_string()).collect()
}

/// Lists, waits, and returns the names with the record.
pub(crate) async fn ask<L: Listable + Clone>(
    provider: &L,
    cx: &ListContext,
) -> Result<(Vec<String>, ListingInfo), DiscoveryError> {
    match in_time(provider.clone().listing(cx).wait()).await {
        Ok(catalog) => Ok((names(&catalog), catalog.listing_info().clone())),
        Err(error) => Err(error),
    }
}

/// A provider, with a static or dynamic type.
pub(crate) trait Listable {
    fn listing(self, cx: &ListContext) -> Listing;
}

impl Listable for Arc<dyn ToolProvider> {
    fn listing(self, cx: &ListContext) -> Listing {
        self.list(cx)
    }
}

impl<P: ToolProvider> Listable for Arc<P> {
    fn listing(self, cx: &ListContext) -> Listing {
        self.list(cx)
    }
}

pub(crate) async fn listed<L: Listable>(provider: L, cx: &ListContext) -> Vec<String> {
    names(&in_time(provider.listing(cx).wait()).await.unwrap())
}

pub(crate) async fn fails<L: Listable>(provider: L, cx: &ListContext) -> DiscoveryError {
    in_time(provider.listing(cx).wait()).await.unwrap_err()
}

/// Fails a test that hangs; the time has no other effect.
pub(crate) async fn in_time<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30_000_000), future).await.expect("the test hangs")
}

type Answer = dyn Fn(usize, ListContext) -> BoxFuture<'static, Result<Vec<Tool>, DiscoveryError>>
    + Send
    + Sync;

/// An asynchronous source that counts listings and listings dropped before their end, and records
/// its contexts.
pub(crate) struct Source {
    answer: Box<Answer>,
    pub(crate) asked: AtomicUsize,
    pub(crate) dropped: Arc<AtomicUsize>,
    pub(crate) shown: Mutex<Vec<ListContext>>,
}

impl Source {
    /// Answers with the function, which receives the number of earlier listings.
    pub(crate) fn new<F, Fut>(answer: F) -> Arc<Self>
    where
        F: Fn(usize, ListContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Vec<Tool>, DiscoveryError>> + Send + 'static,
    {
        Arc::new(Self {
            answer: Box::new(move |n, cx| Box::pin(answer(n, cx))),
            asked: AtomicUsize::new(0),
            dropped: Arc::default(),
            shown: Mutex::default(),
        })
    }

    /// Offers `t0`, `t1`, `t2` … one after the other.
    pub(crate) fn counting() -> Arc<Self> {
        Self::new(|n, _| async move { Ok(vec![tool(&format!("t{n}"))]) })
    }

    /// Answers once it is released.
    pub(crate) fn waiting(released: &CancellationToken) -> Arc<Self> {
        let released = released.clone();
        Self::new(move |n, _| {
            let released = released.clone();
            async move {
                released.cancelled().await;
                Ok(vec![tool(&format!("t{n}"))])
            }
        })
    }

    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    pub(crate) fn dropped(&self) -> usize {
        self.dropped.load(Ordering::SeqCst)
    }

    pub(crate) fn shown(&self) -> Vec<ListContext> {
        self.shown.lock().unwrap().clone()
    }
}

/// Counts itself if it is dropped before it is done.
struct Unanswered {
    dropped: Arc<AtomicUsize>,
    done: bool,
}

impl Unanswered {
    fn is_answered(&mut self) {
        self.done = true;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if !self.done {
            self.dropped.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl ToolProvider for Source {
    fn id(&self) -> &str {
        "source"
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        let n = self.asked.fetch_add(1, Ordering::SeqCst);
        self.shown.lock().unwrap().push(cx.clone());
        let answer = (self.answer)(n, cx.clone());
        let mut unanswered = Unanswered { dropped: Arc::clone(&self.dropped), done: false };
        Listing::later(async move {
            let answer = answer.await;
            unanswered.is_answered();
            answer.map(Catalog::from)
        })
    }
}
