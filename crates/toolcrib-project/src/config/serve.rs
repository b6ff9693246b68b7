//! `[[serve.token]]`: the identities that may use a gateway over HTTP.

use std::{ops::RangeInclusive, sync::Arc};

use toolcrib_config::{Located, Spot, Table};
use toolcrib_engine::Reveal;

use super::{read_unfenced, secret_reference};

/// `[serve]`.
#[derive(Debug, Default)]
pub(crate) struct ServeSection {
    pub(crate) tokens: Vec<TokenSection>,
}

/// The permitted lengths of tool names: room for a digest, and the limit of model APIs.
const NAME_CHARS: RangeInclusive<usize> = 20..=64;

/// `[[serve.token]]`.
#[derive(Debug)]
pub(crate) struct TokenSection {
    pub(crate) at: Spot,
    /// The secret that contains the token; `None` if invalid, which is recorded.
    pub(crate) secret: Option<Located<Arc<str>>>,
    pub(crate) principal: Option<Arc<str>>,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) personality: Option<Located<Arc<str>>>,
    pub(crate) reveal: Option<Reveal>,
    pub(crate) unfenced: bool,
    pub(crate) max_name_chars: Option<usize>,
}

impl ServeSection {
    pub(super) fn read(table: &Table<'_>) -> Self {
        let tokens = table.value("token").map(|tokens| {
            tokens.tables("`[[serve.token]]`", |table| TokenSection {
                at: table.at().clone(),
                secret: table
                    .required("secret", "\"secret:NAME\"")
                    .and_then(|value| secret_reference(&value, "secret")),
                principal: table.text("principal").map(|text| text.value),
                tenant: table.text("tenant").map(|text| text.value),
                personality: table.text("personality"),
                reveal: super::tool_search::reveal(table),
                unfenced: read_unfenced(table),
                max_name_chars: table.integer("max_name_chars", NAME_CHARS),
            })
        });
        Self { tokens: tokens.unwrap_or_default() }
    }
}
