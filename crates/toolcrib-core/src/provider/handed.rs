use super::{DiscoveryError, DiscoveryErrorClass, FailedListing};
use crate::{catalog::Catalog, tool::Tool};

/// Where a list stood when it was handed to a provider.
///
/// A provider adds to the list it is given. One that answers with a list of its own instead would
/// lose the tools of others, and a gate around it could not tell which tools to judge: whoever
/// hands a list on takes note before, and checks after.
#[derive(Debug)]
pub struct Handed {
    offered: usize,
    held_back: usize,
    last: Option<Tool>,
}

impl Handed {
    /// Takes note of a list that is about to be handed on.
    pub fn note(catalog: &Catalog) -> Self {
        Self {
            offered: catalog.offered().len(),
            held_back: catalog.held_back().len(),
            last: catalog.offered().last().cloned(),
        }
    }

    /// How many tools it offered.
    pub fn offered(&self) -> usize {
        self.offered
    }

    /// How many tools it held back.
    pub fn held_back(&self) -> usize {
        self.held_back
    }

    /// The list that came back, if it begins with what was handed on.
    ///
    /// # Errors
    /// A failure of the provider, not yet named, when it does not.
    pub fn came_back(&self, catalog: Catalog) -> Result<Catalog, FailedListing> {
        let before = self.offered.checked_sub(1);
        let kept = match (&self.last, before.and_then(|at| catalog.offered().get(at))) {
            (None, _) => true,
            (Some(last), Some(there)) => last.same(there),
            (Some(_), None) => false,
        };
        if kept && catalog.held_back().len() >= self.held_back {
            return Ok(catalog);
        }
        Err(FailedListing {
            error: DiscoveryError::new(
                DiscoveryErrorClass::Source,
                "it did not give back the list that it was handed; add to `into` and return it",
            ),
            catalog: Catalog::new(),
        })
    }
}
