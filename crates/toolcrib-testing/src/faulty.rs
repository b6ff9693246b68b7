//! A provider that fails as told.

use std::{
    collections::VecDeque,
    fmt,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio::time::sleep;
use toolcrib_core::{Catalog, DiscoveryError, ListContext, Listing, Tool, ToolProvider};

use crate::fail::{fail, lock};

/// How one listing goes wrong. Nothing here looks at cancellation: that an engine does not wait
/// for a source that ignores it is part of what is tested.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// It does not: the provider inside answers.
    None,
    /// The source fails with this message.
    Error(String),
    /// The provider panics with this message.
    Panic(String),
    /// No answer ever comes.
    Never,
    /// These tools are offered instead of those of the provider inside.
    Tools(Vec<Tool>),
    /// The tools come in a list of their own: what the list held before is lost.
    OwnList,
    /// The answer, or what goes wrong, comes later.
    After(Duration, Box<Self>),
}

impl Fault {
    /// The same, later. Even with no delay the answer is then a future.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self::After(delay, Box::new(self))
    }
}

/// Puts faults around a provider: one per listing, in order; after the last it is sound again.
///
/// ```
/// use std::time::Duration;
/// use toolcrib_core::static_tools;
/// use toolcrib_testing::{Fault, faulty, tool};
///
/// let hub = faulty(static_tools([tool("search").tool()]))
///     .then(Fault::Error("connection refused".into()))
///     .then(Fault::None.after(Duration::from_secs(5)));
/// let provider = hub.provider(); // for an engine or an agent
/// assert_eq!(provider.path(), "faulty > static");
/// assert_eq!(hub.listings(), 0);
/// ```
pub fn faulty(inner: Arc<dyn ToolProvider>) -> FaultyProvider {
    FaultyProvider { inner, state: Arc::default() }
}

/// A provider whose listings go wrong as told, and are counted. Cloning shares it.
#[derive(Clone)]
pub struct FaultyProvider {
    inner: Arc<dyn ToolProvider>,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    script: Mutex<VecDeque<Fault>>,
    afterwards: Mutex<Option<Fault>>,
    asked: Mutex<Vec<ListContext>>,
    pending: AtomicUsize,
}

impl FaultyProvider {
    /// Adds what goes wrong at the next listing.
    #[must_use]
    pub fn then(self, fault: Fault) -> Self {
        lock(&self.state.script).push_back(fault);
        self
    }

    /// Says what goes wrong at every listing after those, instead of none.
    #[must_use]
    pub fn always(self, fault: Fault) -> Self {
        *lock(&self.state.afterwards) = Some(fault);
        self
    }

    /// The provider, to be given to an engine or an agent.
    pub fn provider(&self) -> Arc<dyn ToolProvider> {
        Arc::new(self.clone())
    }

    /// How often it was asked.
    pub fn listings(&self) -> usize {
        lock(&self.state.asked).len()
    }

    /// What it was asked with, in order.
    pub fn asked(&self) -> Vec<ListContext> {
        lock(&self.state.asked).clone()
    }

    /// How many answers are still awaited: neither given nor dropped.
    pub fn pending(&self) -> usize {
        self.state.pending.load(Ordering::SeqCst)
    }

    fn next(&self) -> Fault {
        let scripted = lock(&self.state.script).pop_front();
        scripted.or_else(|| lock(&self.state.afterwards).clone()).unwrap_or(Fault::None)
    }
}

impl ToolProvider for FaultyProvider {
    fn id(&self) -> &str {
        "faulty"
    }

    fn path(&self) -> String {
        format!("faulty > {}", self.inner.path())
    }

    fn covers(&self) -> Option<&str> {
        self.inner.covers()
    }

    fn is_gated(&self) -> bool {
        self.inner.is_gated()
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        lock(&self.state.asked).push(cx.clone());
        match perform(self.next(), Arc::clone(&self.inner), cx, into) {
            now @ Listing::Now(_) => now,
            Listing::Later(future) => {
                let pending = Pending::begin(&self.state);
                Listing::later(async move {
                    let _pending = pending;
                    future.await
                })
            }
        }
    }
}

impl fmt::Debug for FaultyProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FaultyProvider")
            .field("inner", &self.inner.path())
            .field("listings", &self.listings())
            .finish_non_exhaustive()
    }
}

fn perform(
    fault: Fault,
    inner: Arc<dyn ToolProvider>,
    cx: &ListContext,
    mut into: Catalog,
) -> Listing {
    match fault {
        Fault::None => inner.list(cx, into),
        Fault::Error(message) => Listing::failed(into, DiscoveryError::source_failed(message)),
        Fault::Panic(message) => fail(message),
        Fault::Never => Listing::later(async move {
            let _kept = into;
            pending().await
        }),
        Fault::Tools(tools) => {
            into.offer_all(&tools);
            Listing::now(into)
        }
        Fault::OwnList => inner.list(cx, Catalog::new()),
        Fault::After(delay, fault) => {
            let cx = cx.clone();
            Listing::later(async move {
                sleep(delay).await;
                perform(*fault, inner, &cx, into).wait().await
            })
        }
    }
}

struct Pending(Arc<State>);

impl Pending {
    fn begin(state: &Arc<State>) -> Self {
        state.pending.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(state))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.0.pending.fetch_sub(1, Ordering::SeqCst);
    }
}
