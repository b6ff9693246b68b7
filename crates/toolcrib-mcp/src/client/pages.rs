//! Requests all pages of a server's tools.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use crate::connection::{
    Connection,
    types::{RemoteTool, RequestError},
};

/// The limit of pages.
const MOST_PAGES: usize = 1_000;
/// The limit of tools of one server.
const MOST_TOOLS: usize = 10_000;
/// The size limit of their descriptions and schemas, in bytes: 64 MiB. They are kept in memory.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// All listed tools of a server, unchanged.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) tools: Vec<RemoteTool>,
    /// The size of their descriptions and schemas.
    pub(super) bytes: usize,
    /// Their TTL: the shortest of those that pages state, if any.
    pub(super) ttl: Option<Duration>,
    /// Why the list was taken to end although its last page names another, for the operator.
    pub(super) warning: Option<&'static str>,
}

/// Why a list ends at a cursor, if the protocol does not permit that cursor. Servers before 2026-07-28
/// write an empty or a repeated one on the last page.
pub(super) fn ends_at(cursor: &str, is_new: bool, is_legacy: bool) -> Option<&'static str> {
    match (is_legacy, cursor.is_empty(), is_new) {
        (false, ..) | (true, false, true) => None,
        (true, true, _) => Some("a page ends with an empty cursor, which is read as the last page"),
        (true, false, false) => Some("a page repeats a cursor, which is read as the last page"),
    }
}

/// Removes the entries of the last page, which begins at `first`, that were listed before: a server that
/// ignores the cursor gives the same page again.
pub(super) fn remove_known<T: PartialEq>(
    all: &mut Vec<T>,
    first: usize,
    name: impl Fn(&T) -> Option<String>,
) {
    let page = all.split_off(first.min(all.len()));
    let known: HashMap<_, _> =
        all.iter().enumerate().map(|(index, entry)| (name(entry), index)).collect();
    let is_new = |entry: &T| {
        let index = known.get(&name(entry));
        index.and_then(|index| all.get(*index)).is_none_or(|known| known != entry)
    };
    let page: Vec<_> = page.into_iter().filter(is_new).collect();
    all.extend(page);
}

/// An incomplete list.
#[derive(Debug, thiserror::Error)]
pub(super) enum PagesError {
    /// A page failed.
    #[error("page {page} of its tools: {error}")]
    Request {
        /// The page, from 1.
        page: usize,
        /// The cause.
        error: RequestError,
    },
    /// A page leads back to an earlier one.
    #[error("page {page} of its tools repeats an earlier cursor")]
    Loop {
        /// The page, from 1.
        page: usize,
    },
    /// Too many pages.
    #[error("its tools have more than {MOST_PAGES} pages")]
    TooManyPages,
    /// Too many tools.
    #[error("it lists more than {MOST_TOOLS} tools")]
    TooManyTools,
    /// Too large definitions.
    #[error("its tools are described in more than {MOST_BYTES} bytes")]
    TooLarge,
}

pub(super) async fn all_pages(connection: &Connection) -> Result<Pages, PagesError> {
    let mut all = Pages { tools: Vec::new(), bytes: 0, ttl: None, warning: None };
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    for page in 1..=MOST_PAGES {
        let answer = connection.list_tools(cursor.take()).await;
        let answer = answer.map_err(|error| PagesError::Request { page, error })?;
        all.bytes += answer.bytes;
        if all.bytes > MOST_BYTES {
            return Err(PagesError::TooLarge);
        }
        let first = all.tools.len();
        all.tools.extend(answer.tools);
        if all.tools.len() > MOST_TOOLS {
            return Err(PagesError::TooManyTools);
        }
        all.ttl = all.ttl.into_iter().chain(answer.ttl).min();
        let Some(next) = answer.next else {
            return Ok(all);
        };
        let is_new = seen.insert(next.clone());
        if let Some(warning) = ends_at(&next, is_new, connection.is_legacy()) {
            all.warning = Some(warning);
            remove_known(&mut all.tools, first, |tool| tool.name.clone());
            return Ok(all);
        }
        if !is_new {
            return Err(PagesError::Loop { page });
        }
        cursor = Some(next);
    }
    Err(PagesError::TooManyPages)
}
