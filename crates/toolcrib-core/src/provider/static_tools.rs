use std::sync::Arc;

use super::{
    Listing, ToolProvider, catalog::Catalog, context_list::ListContext, listing_info::ListingInfo,
};
use crate::tool::Tool;

struct StaticTools(Catalog);

/// A fixed list: the provider for most agents.
///
/// Neighbor: a [`ToolRegistry`](crate::ToolRegistry) can be edited within a turn.
pub fn static_tools(tools: impl IntoIterator<Item = Tool>) -> Arc<dyn ToolProvider> {
    let tools: Catalog = tools.into_iter().collect();
    Arc::new(StaticTools(tools.with_listing_info(ListingInfo::unchanging())))
}

impl ToolProvider for StaticTools {
    fn id(&self) -> &str {
        "static"
    }

    fn list(self: Arc<Self>, _cx: &ListContext) -> Listing {
        Listing::now(self.0.clone())
    }
}
