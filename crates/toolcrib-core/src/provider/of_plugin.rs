use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use super::{Handed, Listing, ToolProvider};
use crate::{
    catalog::Catalog,
    context_list::ListContext,
    tool::{Known, Tool},
};

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
    marked: Mutex<Marked>,
}

/// Tools as they came, by their address, and as they were handed on: a tool that is listed again is
/// handed on as the same tool again, whoever lists what in between, so that an unchanged listing
/// stays one.
#[derive(Default)]
struct Marked {
    tools: HashMap<usize, (Known, Tool)>,
    /// How many there may be before those are forgotten that nobody can list again.
    full: usize,
}

impl Marked {
    const FEWEST: usize = 64;

    fn of(&mut self, tool: &Tool, plugin: &Arc<str>) -> Tool {
        if let Some((_, marked)) = self.tools.get(&tool.address()) {
            return marked.clone();
        }
        if self.tools.len() >= self.full.max(Self::FEWEST) {
            self.tools.retain(|_, (raw, _)| raw.is_held());
            self.full = self.tools.len() * 2;
        }
        let marked = tool.with_plugin(plugin);
        self.tools.insert(tool.address(), (tool.known(), marked.clone()));
        marked
    }
}

impl ToolProvider for OfPlugin {
    fn id(&self) -> &str {
        self.inner.id()
    }

    fn path(&self) -> String {
        format!("plugin({}) > {}", self.plugin, self.inner.path())
    }

    fn covers(&self) -> Option<&str> {
        self.inner.covers()
    }

    fn list(self: Arc<Self>, cx: &ListContext, into: Catalog) -> Listing {
        let handed = Handed::note(&into);
        Arc::clone(&self.inner).list(cx, into).and_then(move |catalog| {
            let mut catalog = handed.came_back(catalog).map_err(|mut failed| {
                failed.error = failed.error.in_provider(|| self.path());
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
        catalog
            .map_from(handed.offered(), handed.held_back(), |tool| marked.of(tool, &self.plugin));
    }
}
