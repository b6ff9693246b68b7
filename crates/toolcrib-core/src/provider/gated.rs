use std::{
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{DiscoveryError, DiscoveryErrorClass, Listing, ToolProvider};
use crate::{
    catalog::{Catalog, LastCatalog, Reason},
    context_list::ListContext,
    panic_text::panic_text,
    tool::Tool,
};

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
    Arc::new(GatedProvider { name: name.into(), inner, gate, last: LastCatalog::default() })
}

struct GatedProvider<G> {
    name: Arc<str>,
    inner: Arc<dyn ToolProvider>,
    gate: G,
    last: LastCatalog,
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
        let mut filtered = self.last.builder();
        filtered.withhold_all(catalog.withheld_by_provider());
        // The tools after the last withheld one.
        let mut rest = 0;
        for (at, tool) in catalog.offered().iter().enumerate() {
            let verdict = catch_unwind(AssertUnwindSafe(|| (self.gate)(tool, cx).into_decision()))
                .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))));
            match verdict {
                Ok(GateDecision::Offer) => {}
                Ok(GateDecision::Withhold(reason)) => {
                    filtered.offer(catalog.offered().get(rest..at).unwrap_or_default());
                    filtered.withhold(tool, &self.name, &reason);
                    rest = at + 1;
                }
                Err(problem) => {
                    let message =
                        format!("gate `{}` failed on tool `{}`: {problem}", self.name, tool.name());
                    return Err(
                        DiscoveryError::new(DiscoveryErrorClass::Gate, message).in_provider(self)
                    );
                }
            }
        }
        if rest == 0 {
            return Ok(catalog);
        }
        filtered.offer(catalog.offered().get(rest..).unwrap_or_default());
        Ok(self.last.keep(filtered.build()).with_listing_info(catalog.listing_info().clone()))
    }
}
