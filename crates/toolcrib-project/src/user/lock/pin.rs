//! A pinned definition and its place.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};
use toolcrib_core::{Digest, PinKind};

/// A larger definition is pinned without its text, so a change of it cannot be shown word by word.
const LONGEST_TEXT: usize = 64 * 1024;

/// The place of a pin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct PinName {
    /// The source, such as `mcp:git`.
    pub source: Arc<str>,
    /// The kind.
    pub kind: PinKind,
    /// The source's own name of the definition; empty for its instructions.
    pub name: Arc<str>,
}

/// A pinned definition.
#[derive(Debug, Clone)]
pub(crate) struct Pin {
    pub(crate) digest: Digest,
    /// As text: its value takes twenty times as much memory.
    pub(crate) definition: Option<Arc<RawValue>>,
}

pub(crate) type Pins = BTreeMap<PinName, Pin>;

/// A pin in which references replace secrets.
pub(crate) struct RenewedPin {
    pub(crate) before: PinName,
    pub(crate) place: PinName,
    pub(crate) pin: Pin,
}

impl Pin {
    pub(crate) fn of(definition: &Value, digest: Digest) -> Self {
        let text = to_raw_value(definition).ok();
        let text = text.filter(|text| text.get().len() <= LONGEST_TEXT);
        Self { digest, definition: text.map(Arc::from) }
    }

    /// The definition, if the pin contains it.
    pub(crate) fn value(&self) -> Option<Value> {
        serde_json::from_str(self.definition.as_ref()?.get()).ok()
    }
}
