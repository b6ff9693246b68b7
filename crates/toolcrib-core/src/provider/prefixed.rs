use std::sync::Arc;

use super::{Listing, ToolProvider, context_list::ListContext, rewritten::ToolMap};
use crate::{
    names::name::{InvalidToolNameError, ToolName},
    tool::Tool,
};

/// Adds a prefix to the name of every tool of a provider, offered or withheld, so that two sources
/// with the same names can be used together. No separator is added: write `"crm_"`. Calls reach the
/// inner tool.
///
/// A name that would exceed the limit of model APIs is shortened and ends in eight digits of a
/// digest, see [`ToolName::fitted`]. Policies and skills see the prefixed names. Immediate listings
/// stay immediate, asynchronous ones stay asynchronous.
///
/// ```
/// # use toolcrib_core::{prefixed, static_tools};
/// let provider = prefixed("crm_", static_tools([]))?;
/// assert_eq!(provider.path(), "prefixed(crm_) > static");
/// assert_eq!(provider.covers(), Some("crm_*"));
/// # Ok::<(), toolcrib_core::InvalidToolNameError>(())
/// ```
///
/// # Errors
/// [`InvalidToolNameError`] if the prefix is empty, contains a character that names may not
/// contain, or has more than 40 characters.
pub fn prefixed(
    prefix: &str,
    inner: Arc<dyn ToolProvider>,
) -> Result<Arc<dyn ToolProvider>, InvalidToolNameError> {
    if prefix.is_empty() {
        // Validated like a name.
        ToolName::new(prefix)?;
    }
    ToolName::fitted(prefix, prefix, "x")?;
    Ok(Arc::new(PrefixedProvider {
        prefix: prefix.into(),
        covers: format!("{prefix}*").into(),
        inner,
        renamed: ToolMap::default(),
    }))
}

struct PrefixedProvider {
    prefix: Box<str>,
    covers: Box<str>,
    inner: Arc<dyn ToolProvider>,
    renamed: ToolMap,
}

impl ToolProvider for PrefixedProvider {
    fn id(&self) -> &str {
        "prefixed"
    }

    fn path(&self) -> String {
        format!("prefixed({}) > {}", self.prefix, self.inner.path())
    }

    forward!(leaf, is_gated);

    fn covers(&self) -> Option<&str> {
        Some(&self.covers)
    }

    fn list(self: Arc<Self>, cx: &ListContext) -> Listing {
        Arc::clone(&self.inner)
            .list(cx)
            .and_then(move |catalog| Ok(self.renamed.apply(&catalog, |tool| self.rename(tool))))
    }
}

impl PrefixedProvider {
    fn rename(&self, tool: &Tool) -> Tool {
        // Neither can fail: the prefix was validated, and only the name changes.
        ToolName::fitted(&self.prefix, &self.prefix, tool.name())
            .ok()
            .and_then(|name| tool.shown_as(&name, tool.description(), tool.input_schema()).ok())
            .unwrap_or_else(|| tool.clone())
    }
}
