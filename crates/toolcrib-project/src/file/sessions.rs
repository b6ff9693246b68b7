//! `[sessions]`: where runs are stored, and for how long.

use std::{ops::RangeFrom, sync::Arc, time::Duration};

use toolcrib_config::{Located, Table, Value};

use super::secrets::{SECRET, secret_reference};

/// The permitted total sizes, in bytes.
const BYTES: RangeFrom<u64> = 1..;

/// `[sessions]`.
#[derive(Debug, Default)]
pub(crate) struct SessionsSection {
    pub(crate) place: StorePlace,
    pub(crate) keep_for: Option<Duration>,
    pub(crate) max_bytes: Option<u64>,
    pub(crate) accept_loss: bool,
}

impl SessionsSection {
    pub(crate) fn read(table: &Table<'_>) -> Self {
        let place = table.value("store").and_then(|store| StorePlace::read(&store));
        Self {
            place: place.unwrap_or_default(),
            keep_for: table.age("keep_for"),
            max_bytes: table.size("max_bytes", BYTES),
            accept_loss: table.boolean("accept_loss").unwrap_or_default(),
        }
    }
}

impl SessionsSection {
    /// The secret with the URL of the database.
    pub(crate) fn secret(&self) -> Option<&Located<Arc<str>>> {
        match &self.place {
            StorePlace::Server(secret) => Some(secret),
            StorePlace::File | StorePlace::None => None,
        }
    }
}

/// Where runs are stored.
#[derive(Debug, Clone, Default)]
pub(crate) enum StorePlace {
    /// A file in the state folder.
    #[default]
    File,
    /// Nowhere, unless a run says otherwise.
    None,
    /// A PostgreSQL database, whose URL is a secret.
    Server(Located<Arc<str>>),
}

impl StorePlace {
    fn read(store: &Value<'_>) -> Option<Self> {
        let text = store.text()?;
        match &*text.value {
            "file" => Some(Self::File),
            "none" => Some(Self::None),
            text if text.starts_with(SECRET) => secret_reference(store, "store").map(Self::Server),
            text => {
                let message = format!("`store` cannot be `{}`", text.escape_debug());
                store.refuse(message, "write \"file\", \"none\" or \"secret:NAME\"");
                None
            }
        }
    }
}
