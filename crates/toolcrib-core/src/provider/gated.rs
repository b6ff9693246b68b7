use std::{
    fmt::Display,
    mem,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;

use super::{
    DiscoveryError, DiscoveryErrorClass, Listing, ToolProvider,
    catalog::{Catalog, CatalogBuilder, Reason, WithheldByProvider},
    context_list::ListContext,
    listing_info::ListingInfo,
};
use crate::{internal::panic_text::panic_text, tool::Tool};

/// A gate's decision on one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GateDecision {
    /// The tool passes.
    Offer,
    /// The tool is withheld, with a reason.
    Withhold(Reason),
}

/// Return types of a gate: a `bool`, a [`GateDecision`], or a `Result` of either.
///
/// A future is none of these. An async gate does not compile, because it would let every tool pass:
///
/// ```compile_fail
/// # use toolcrib_core::{gated_tools, static_tools};
/// gated_tools("async", static_tools([]), |_tool, _cx| async { false });
/// ```
pub trait IntoGateDecision {
    /// The decision.
    ///
    /// # Errors
    /// The gate's own failure, as text; it ends the iteration.
    fn into_decision(self) -> Result<GateDecision, String>;
}

impl IntoGateDecision for GateDecision {
    fn into_decision(self) -> Result<GateDecision, String> {
        Ok(self)
    }
}

impl IntoGateDecision for bool {
    // Called for each tool of each listing.
    #[inline]
    fn into_decision(self) -> Result<GateDecision, String> {
        Ok(if self {
            GateDecision::Offer
        } else {
            GateDecision::Withhold("the gate rejected the tool".into())
        })
    }
}

impl<T: IntoGateDecision, E: Display> IntoGateDecision for Result<T, E> {
    fn into_decision(self) -> Result<GateDecision, String> {
        self.map_err(|error| error.to_string())?.into_decision()
    }
}

/// Passes every tool of a provider through a gate. Gates can be stacked, one per concern. A gate is a
/// plain function of the tool and the context, without side effects.
///
/// The name identifies the gate in events and reasons. A gate that fails or panics ends the
/// iteration: a bug in a permission check must not let tools through. Immediate listings stay
/// immediate, asynchronous ones stay asynchronous.
///
/// ```
/// # use toolcrib_core::{gated_tools, static_tools};
/// let provider = gated_tools("read_only", static_tools([]), |tool, _cx| {
///     tool.name().starts_with("read_")
/// });
/// assert_eq!(provider.path(), "gated(read_only) > static");
/// ```
pub fn gated_tools<V: IntoGateDecision + 'static>(
    name: impl Into<Arc<str>>,
    inner: Arc<dyn ToolProvider>,
    gate: impl Fn(&Tool, &ListContext) -> V + Send + Sync + 'static,
) -> Arc<dyn ToolProvider> {
    Arc::new(GatedProvider { name: name.into(), inner, gate, last: Mutex::default() })
}

struct GatedProvider<G> {
    name: Arc<str>,
    inner: Arc<dyn ToolProvider>,
    gate: G,
    last: Mutex<LastFiltered>,
}

impl<G, V> ToolProvider for GatedProvider<G>
where
    G: Fn(&Tool, &ListContext) -> V + Send + Sync + 'static,
    V: IntoGateDecision + 'static,
{
    fn id(&self) -> &str {
        "gated"
    }

    fn path(&self) -> String {
        format!("gated({}) > {}", self.name, self.inner.path())
    }

    forward!(leaf, covers);

    fn is_gated(&self) -> bool {
        true
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        match Arc::clone(&self.inner).list(cx) {
            Listing::Now(answer) => {
                Listing::Now(answer.and_then(|catalog| self.filter(cx, catalog)))
            }
            later @ Listing::Later(_) => {
                let cx = cx.clone();
                later.and_then(move |catalog| self.filter(&cx, catalog))
            }
        }
    }
}

impl<G, V> GatedProvider<G>
where
    G: Fn(&Tool, &ListContext) -> V + Send + Sync + 'static,
    V: IntoGateDecision + 'static,
{
    fn filter(&self, cx: &ListContext, catalog: Catalog) -> Result<Catalog, DiscoveryError> {
        let last = self.last.lock().clone();
        // Its decisions may change at any time.
        let listing_info =
            ListingInfo { fresh_for: Duration::ZERO, ..catalog.listing_info().clone() };
        let mut filtered = Filtered::new(&self.name, &catalog, &last);
        for (at, tool) in catalog.offered().iter().enumerate() {
            filtered.decided(at, tool, self.decide(tool, cx)?);
        }
        let Some(built) = filtered.build() else {
            return Ok(last.output.with_listing_info(listing_info));
        };
        let output = built.with_listing_info(listing_info);
        let kept = LastFiltered { input: catalog, output: output.clone() };
        let replaced = mem::replace(&mut *self.last.lock(), kept);
        // Outside the lock: tools may do anything when they are dropped.
        drop(replaced);
        Ok(output)
    }

    fn decide(&self, tool: &Tool, cx: &ListContext) -> Result<GateDecision, DiscoveryError> {
        let decision = catch_unwind(AssertUnwindSafe(|| (self.gate)(tool, cx).into_decision()))
            .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))));
        decision.map_err(|problem| {
            let message =
                format!("gate `{}` failed on tool `{}`: {problem}", self.name, tool.name());
            DiscoveryError::new(DiscoveryErrorClass::Gate, message).in_provider(self)
        })
    }
}

/// The list that a gate filtered last, and its result.
#[derive(Clone, Default)]
struct LastFiltered {
    input: Catalog,
    output: Catalog,
}

/// The result of a gate. As long as its decisions on a list are those of the last time, nothing is
/// written.
struct Filtered<'a> {
    gate: &'a Arc<str>,
    input: &'a Catalog,
    last: &'a Catalog,
    /// The tools that were withheld the last time, of those without a decision yet; `None` once a
    /// decision or the list is another.
    before: Option<&'a [WithheldByProvider]>,
    changed: CatalogBuilder,
    /// The position after the last withheld tool of a changed result.
    rest: usize,
}

impl<'a> Filtered<'a> {
    fn new(gate: &'a Arc<str>, input: &'a Catalog, last: &'a LastFiltered) -> Self {
        let others = input.withheld_by_provider().len();
        let before = last.output.withheld_by_provider().get(others..);
        let before = before.filter(|_| last.input.shares(input));
        let last = &last.output;
        let changed = CatalogBuilder::like(last.clone());
        let mut this = Self { gate, input, last, before, changed, rest: 0 };
        if before.is_none() {
            this.changed.withhold_behind_gate(input.withheld_by_provider());
        }
        this
    }

    #[inline]
    fn decided(&mut self, at: usize, tool: &Tool, decision: GateDecision) {
        // Mostly a gate withholds nothing.
        if !matches!((&decision, self.before), (GateDecision::Offer, None | Some([]))) {
            self.decided_anew(at, tool, decision);
        }
    }

    fn decided_anew(&mut self, at: usize, tool: &Tool, decision: GateDecision) {
        if let Some(before) = self.before {
            let known = before.split_first().filter(|(known, _)| known.tool.same(tool));
            match (&decision, known) {
                (GateDecision::Offer, None) => return,
                (GateDecision::Withhold(reason), Some((known, rest)))
                    if known.reason.same(reason) =>
                {
                    self.before = Some(rest);
                    return;
                }
                _ => self.differs(at, before),
            }
        }
        if let GateDecision::Withhold(reason) = decision {
            self.withhold(at, tool, &reason);
        }
    }

    /// Writes the decisions before this position, which are those of the last time.
    #[cold]
    fn differs(&mut self, at: usize, left: &[WithheldByProvider]) {
        self.before = None;
        let others = self.input.withheld_by_provider();
        self.changed.withhold_behind_gate(others);
        let all = self.last.withheld_by_provider();
        let withheld = all.get(others.len()..all.len() - left.len()).unwrap_or_default();
        let mut withheld = withheld.iter().peekable();
        for (earlier, tool) in self.input.offered().iter().enumerate().take(at) {
            if let Some(known) = withheld.next_if(|known| known.tool.same(tool)) {
                self.withhold(earlier, tool, &known.reason);
            }
        }
    }

    fn withhold(&mut self, at: usize, tool: &Tool, reason: &Reason) {
        self.changed.offer(self.input.offered().get(self.rest..at).unwrap_or_default());
        self.changed.withhold(tool, self.gate, reason);
        self.rest = at + 1;
    }

    /// The list; `None` if it is the last one.
    fn build(mut self) -> Option<Catalog> {
        match self.before {
            Some([]) => return None,
            Some(left) => self.differs(self.input.offered().len(), left),
            None => {}
        }
        if self.rest == 0 && self.input.withheld_by_provider().is_empty() {
            return Some(self.input.clone());
        }
        self.changed.offer(self.input.offered().get(self.rest..).unwrap_or_default());
        Some(self.changed.build())
    }
}
