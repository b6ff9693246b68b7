//! A provider that fails on purpose.

use std::{collections::VecDeque, future::pending, sync::Arc, time::Duration};

use parking_lot::Mutex;

use tokio::time::sleep;
use toolcrib_core::{DiscoveryError, ListContext, Listing, Tool, ToolProvider};

use crate::{count::Count, fail::fail};

/// The fault of one listing. Faults ignore cancellation: an engine must not wait for a source that
/// ignores it, and that is part of the test.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Fault {
    /// No fault: the inner provider responds.
    None,
    /// The source fails with this message.
    Error(String),
    /// The provider panics with this message.
    Panic(String),
    /// The listing never completes.
    Never,
    /// These tools are offered instead of those of the inner provider.
    Tools(Vec<Tool>),
    /// The listing or another fault is delayed.
    After(Duration, Box<Self>),
}

impl Fault {
    /// Delays the fault by a time. Even without a delay the listing is then asynchronous.
    #[must_use]
    pub fn after(self, delay: Duration) -> Self {
        Self::After(delay, Box::new(self))
    }
}

/// Injects faults into a provider: one per listing, in order; after the last it works normally.
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

/// A provider with injected faults that counts its listings. Clones share it.
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
    pending: Count,
}

impl FaultyProvider {
    /// Adds the fault of the next listing.
    #[must_use]
    pub fn then(self, fault: Fault) -> Self {
        self.state.script.lock().push_back(fault);
        self
    }

    /// Sets the fault of all later listings, instead of none.
    #[must_use]
    pub fn always(self, fault: Fault) -> Self {
        *self.state.afterwards.lock() = Some(fault);
        self
    }

    /// The provider, for an engine or an agent.
    pub fn provider(&self) -> Arc<dyn ToolProvider> {
        Arc::new(self.clone())
    }

    /// The number of listings.
    pub fn listings(&self) -> usize {
        self.state.asked.lock().len()
    }

    /// The contexts of the listings, in order.
    pub fn asked(&self) -> Vec<ListContext> {
        self.state.asked.lock().clone()
    }

    /// The number of pending listings: neither finished nor dropped.
    pub fn pending(&self) -> usize {
        self.state.pending.now()
    }

    fn next(&self) -> Fault {
        let scripted = self.state.script.lock().pop_front();
        scripted.or_else(|| self.state.afterwards.lock().clone()).unwrap_or(Fault::None)
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

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        self.state.asked.lock().push(cx.clone());
        match perform(self.next(), Arc::clone(&self.inner), cx) {
            now @ Listing::Now(_) => now,
            Listing::Later(future) => {
                let pending = self.state.pending.begin();
                Listing::later(async move {
                    let _pending = pending;
                    future.await
                })
            }
        }
    }
}

toolcrib_core::__internal::debug_fields!(
    FaultyProvider,
    provider,
    inner = provider.inner.path(),
    listings = provider.listings(),
    ..
);

fn perform(fault: Fault, inner: Arc<dyn ToolProvider>, cx: &ListContext) -> Listing {
    match fault {
        Fault::None => inner.list(cx),
        Fault::Error(message) => Listing::failed(DiscoveryError::source_failed(message)),
        Fault::Panic(message) => fail(message),
        Fault::Never => Listing::later(pending()),
        Fault::Tools(tools) => Listing::now(tools),
        Fault::After(delay, fault) => {
            let cx = cx.clone();
            Listing::later(async move {
                sleep(delay).await;
                perform(*fault, inner, &cx).wait().await
            })
        }
    }
}
