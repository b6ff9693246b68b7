use std::sync::{Arc, Mutex, PoisonError};

use super::{Handed, Listing, ToolProvider, rewritten::Rewritten};
use crate::{catalog::Catalog, context_list::ListContext, tool::Tool};

/// A plugin's provider: what it offers carries the plugin's id. Engines put it around the providers
/// that a plugin registers. Mirrors its inner provider: now stays now, later stays later.
pub fn of_plugin(
    plugin: impl Into<Arc<str>>,
    inner: Arc<dyn ToolProvider>,
) -> Arc<dyn ToolProvider> {
    Arc::new(OfPlugin { plugin: plugin.into(), inner, marked: Mutex::default() })
}

struct OfPlugin {
    plugin: Arc<str>,
    inner: Arc<dyn ToolProvider>,
    marked: Mutex<Rewritten<Tool>>,
}

impl ToolProvider for OfPlugin {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn path(&self) -> String {
        format!("plugin({}) > {}", self.plugin, self.inner.path())
    }

    fn leaf(&self) -> &str {
        self.inner.leaf()
    }

    fn covers(&self) -> Option<&str> {
        self.inner.covers()
    }

    fn is_gated(&self) -> bool {
        self.inner.is_gated()
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let handed = Handed::note(&into);
        Arc::clone(&self.inner).list(cx, into).and_then(move |catalog| {
            let mut catalog = handed.came_back(catalog).map_err(|mut failed| {
                failed.error = failed.error.in_provider(&*self);
                failed
            })?;
            self.mark(&mut catalog, &handed);
            Ok(catalog)
        })
    }
}

impl OfPlugin {
    fn mark(&self, catalog: &mut Catalog, handed: &Handed) {
        let mut marked = self.marked.lock().unwrap_or_else(PoisonError::into_inner);
        catalog.map_from(handed.offered(), handed.held_back(), |tool| {
            marked.of(tool, || tool.with_plugin(&self.plugin))
        });
    }
}
