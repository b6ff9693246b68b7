use std::sync::{Arc, Mutex, PoisonError};

use super::{Handed, Listing, ToolProvider, rewritten::Rewritten};
use crate::{
    catalog::Catalog,
    context_list::ListContext,
    name::{InvalidToolName, ToolName},
    tool::Tool,
};

/// Puts a prefix before the name of every tool of a provider, offered or held back, so that two
/// sources that use the same names can stand side by side. Nothing is put in between: write
/// `"crm_"`. A call reaches the tool inside.
///
/// A name that would be longer than a model API takes is shortened and ends in eight digits of a
/// digest, as [`ToolName::fitted`] says. Policies and skills see the names as prefixed. Mirrors its
/// inner provider: now stays now, later stays later.
///
/// ```
/// # use toolcrib_core::{prefixed, static_tools};
/// let provider = prefixed("crm_", static_tools([]))?;
/// assert_eq!(provider.path(), "prefixed(crm_) > static");
/// assert_eq!(provider.covers(), Some("crm_*"));
/// # Ok::<(), toolcrib_core::InvalidToolName>(())
/// ```
///
/// # Errors
/// [`InvalidToolName`] when the prefix is empty, holds what no name may, or has more than 40
/// characters.
pub fn prefixed(
    prefix: &str,
    inner: Arc<dyn ToolProvider>,
) -> Result<Arc<dyn ToolProvider>, InvalidToolName> {
    if prefix.is_empty() {
        // Refused as a name would be.
        ToolName::new(prefix)?;
    }
    ToolName::fitted(prefix, prefix, "x")?;
    Ok(Arc::new(Prefixed {
        prefix: prefix.into(),
        covers: format!("{prefix}*").into(),
        inner,
        renamed: Mutex::default(),
    }))
}

struct Prefixed {
    prefix: Box<str>,
    covers: Box<str>,
    inner: Arc<dyn ToolProvider>,
    renamed: Mutex<Rewritten<Tool>>,
}

impl ToolProvider for Prefixed {
    fn id(&self) -> &str {
        "prefixed"
    }

    fn path(&self) -> String {
        format!("prefixed({}) > {}", self.prefix, self.inner.path())
    }

    fn leaf(&self) -> &str {
        self.inner.leaf()
    }

    fn covers(&self) -> Option<&str> {
        Some(&self.covers)
    }

    fn is_gated(&self) -> bool {
        self.inner.is_gated()
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let handed = Handed::note(&into);
        Arc::clone(&self.inner).list(cx, into).and_then(move |catalog| {
            let mut catalog = handed.came_back(catalog).map_err(|mut failed| {
                failed.error = failed.error.in_provider(&*self.inner);
                failed
            })?;
            let mut renamed = self.renamed.lock().unwrap_or_else(PoisonError::into_inner);
            catalog.map_from(handed.offered(), handed.held_back(), |tool| {
                renamed.of(tool, || self.rename(tool))
            });
            Ok(catalog)
        })
    }
}

impl Prefixed {
    fn rename(&self, tool: &Tool) -> Tool {
        // Neither can fail: the prefix was tried, and only the name changes.
        ToolName::fitted(&self.prefix, &self.prefix, tool.name())
            .ok()
            .and_then(|name| tool.shown_as(&name, tool.description(), tool.input_schema()).ok())
            .unwrap_or_else(|| tool.clone())
    }
}
