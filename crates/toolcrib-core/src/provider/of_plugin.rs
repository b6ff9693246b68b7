use std::sync::Arc;

use super::{Listing, ToolProvider, context_list::ListContext, rewritten::ToolMap};

/// Marks a provider's tools with a plugin's id. Engines wrap the providers that a plugin registers.
/// Immediate listings stay immediate, asynchronous ones stay asynchronous.
pub fn of_plugin(
    plugin: impl Into<Arc<str>>,
    inner: Arc<dyn ToolProvider>,
) -> Arc<dyn ToolProvider> {
    Arc::new(PluginProvider { plugin: plugin.into(), inner, marked: ToolMap::default() })
}

struct PluginProvider {
    plugin: Arc<str>,
    inner: Arc<dyn ToolProvider>,
    marked: ToolMap,
}

impl ToolProvider for PluginProvider {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn path(&self) -> String {
        format!("plugin({}) > {}", self.plugin, self.inner.path())
    }

    forward!(leaf, covers, is_gated);

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        Arc::clone(&self.inner).list(cx).and_then(move |catalog| {
            Ok(self.marked.apply(&catalog, |tool| tool.with_plugin(&self.plugin)))
        })
    }
}
