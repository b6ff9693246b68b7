use std::{
    fmt::Display,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use super::{DiscoveryError, DiscoveryErrorClass, FailedListing, Handed, Listing, ToolProvider};
use crate::{
    catalog::{Catalog, Reason},
    context_list::ListContext,
    panic_text::panic_text,
    tool::Tool,
};

/// A gate's decision on one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// The tool passes.
    Offer,
    /// The tool is held back, and why.
    Withhold(Reason),
}

/// What a gate may return: a `bool`, a [`Verdict`], or a `Result` of either.
///
/// A future is none of these, so an async gate, which would let everything pass, does not compile:
///
/// ```compile_fail
/// # use toolcrib_core::{gated_tools, static_tools};
/// gated_tools("async", static_tools([]), |_tool, _cx| async { false });
/// ```
pub trait IntoVerdict {
    /// The decision.
    ///
    /// # Errors
    /// The gate's own failure, as text; it ends the iteration.
    fn into_verdict(self) -> Result<Verdict, String>;
}

impl IntoVerdict for Verdict {
    fn into_verdict(self) -> Result<Verdict, String> {
        Ok(self)
    }
}

impl IntoVerdict for bool {
    // Called for each tool of each listing.
    #[inline]
    fn into_verdict(self) -> Result<Verdict, String> {
        Ok(if self { Verdict::Offer } else { Verdict::Withhold("the gate says no".into()) })
    }
}

impl<T: IntoVerdict, E: Display> IntoVerdict for Result<T, E> {
    fn into_verdict(self) -> Result<Verdict, String> {
        self.map_err(|error| error.to_string())?.into_verdict()
    }
}

/// A decision per tool: a plain function of the tool and the context, without side effects.
pub trait Gate: Send + Sync + 'static {
    /// Decides on one tool.
    ///
    /// # Errors
    /// The gate's own failure, as text; it ends the iteration.
    fn judge(&self, tool: &Tool, cx: &ListContext) -> Result<Verdict, String>;
}

impl<F, V> Gate for F
where
    F: Fn(&Tool, &ListContext) -> V + Send + Sync + 'static,
    V: IntoVerdict,
{
    fn judge(&self, tool: &Tool, cx: &ListContext) -> Result<Verdict, String> {
        self(tool, cx).into_verdict()
    }
}

/// Puts every tool of a provider through a gate; gates stack, each one concern.
///
/// The name says in events and reasons which gate it was. A gate that fails or panics ends the
/// iteration: a bug in a permission check must not let tools through. Mirrors its inner provider:
/// now stays now, later stays later.
///
/// ```
/// # use toolcrib_core::{gated_tools, static_tools, Tool, ListContext};
/// let provider = gated_tools("read_only", static_tools([]), |tool: &Tool, _cx: &ListContext| {
///     tool.name().starts_with("read_")
/// });
/// assert_eq!(provider.path(), "gated(read_only) > static");
/// ```
pub fn gated_tools(
    name: impl Into<Arc<str>>,
    inner: Arc<dyn ToolProvider>,
    gate: impl Gate,
) -> Arc<dyn ToolProvider> {
    Arc::new(Gated { name: name.into(), inner, gate })
}

struct Gated<G> {
    name: Arc<str>,
    inner: Arc<dyn ToolProvider>,
    gate: G,
}

impl<G: Gate> ToolProvider for Gated<G> {
    fn id(&self) -> &str {
        "gated"
    }

    fn path(&self) -> String {
        format!("gated({}) > {}", self.name, self.inner.path())
    }

    fn leaf(&self) -> &str {
        self.inner.leaf()
    }

    fn covers(&self) -> Option<&str> {
        self.inner.covers()
    }

    fn is_gated(&self) -> bool {
        true
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let handed = Handed::note(&into);
        match Arc::clone(&self.inner).list(cx, into) {
            Listing::Now(answer) => {
                Listing::Now(answer.and_then(|catalog| self.filter(&handed, cx, catalog)))
            }
            later @ Listing::Later(_) => {
                let cx = cx.clone();
                later.and_then(move |catalog| self.filter(&handed, &cx, catalog))
            }
        }
    }
}

impl<G: Gate> Gated<G> {
    fn filter(
        &self,
        handed: &Handed,
        cx: &ListContext,
        catalog: Catalog,
    ) -> Result<Catalog, FailedListing> {
        let mut catalog = handed.came_back(catalog).map_err(|mut failed| {
            failed.error = failed.error.in_provider(self);
            failed
        })?;
        let judged = catalog.gate_from(handed.offered(), &self.name, |tool| {
            let verdict = catch_unwind(AssertUnwindSafe(|| self.gate.judge(tool, cx)))
                .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))));
            match verdict {
                Ok(Verdict::Offer) => Ok(None),
                Ok(Verdict::Withhold(reason)) => Ok(Some(reason)),
                Err(problem) => Err(DiscoveryError::new(
                    DiscoveryErrorClass::Gate,
                    format!("gate `{}` failed on tool `{}`: {problem}", self.name, tool.name()),
                )
                .in_provider(self)),
            }
        });
        match judged {
            Ok(()) => Ok(catalog),
            Err(error) => Err(FailedListing { error, catalog }),
        }
    }
}
