//! The tool block of a menu, made once.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use toolcrib_core::{Digest, Menu};

/// How many menus are remembered: those of a few runs at the same time, each before and after a
/// skill.
const MAX_MENUS: usize = 16;

/// The tool blocks of the menus that were sent last. A menu is known by what a model reads of it, so
/// the same tools are the same bytes from request to request.
#[derive(Default)]
pub(super) struct MenuCache(Mutex<Vec<(Digest, Arc<RawValue>)>>);

impl MenuCache {
    /// The menu's tool block, made now if it is not there.
    pub(super) fn get(
        &self,
        menu: &Menu,
        make: impl FnOnce(&Menu) -> String,
    ) -> Result<Arc<RawValue>, serde_json::Error> {
        let fingerprint = menu.fingerprint();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(position) = known.iter().position(|(known, _)| *known == fingerprint) {
            // The last is the one used last.
            let found = known.remove(position);
            let block = Arc::clone(&found.1);
            known.push(found);
            return Ok(block);
        }
        let block: Arc<RawValue> = RawValue::from_string(make(menu))?.into();
        if known.len() >= MAX_MENUS {
            known.remove(0);
        }
        known.push((fingerprint, Arc::clone(&block)));
        Ok(block)
    }
}
