//! A pinned definition and its place.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;
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
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pin {
    pub(super) digest: Digest,
    pub(super) definition: Option<Value>,
}

pub(super) type Pins = BTreeMap<PinName, Pin>;

/// A pin in which references replace secrets.
pub(super) struct RenewedPin {
    pub(super) before: PinName,
    pub(super) place: PinName,
    pub(super) pin: Pin,
}

impl Pin {
    pub(super) fn of(definition: &Value, digest: Digest) -> Self {
        let is_small = definition.to_string().len() <= LONGEST_TEXT;
        Self { digest, definition: is_small.then(|| definition.clone()) }
    }
}
