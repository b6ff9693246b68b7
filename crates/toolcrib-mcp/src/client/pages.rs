//! Asks a server for all pages of its tools.

use std::{collections::HashSet, time::Duration};

use crate::connection::{Connection, RemoteTool, RequestError};

/// The most pages that are followed.
const MOST_PAGES: usize = 1_000;
/// The most tools that are taken of one server.
const MOST_TOOLS: usize = 10_000;
/// The most that their descriptions and schemas hold, in bytes: 64 MiB. They are held in memory.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// All tools that a server lists, as they came.
#[derive(Debug)]
pub(super) struct Pages {
    pub(super) tools: Vec<RemoteTool>,
    /// How long they hold: the shortest that a page says, where one says it.
    pub(super) ttl: Option<Duration>,
}

/// A list that did not come to its end.
#[derive(Debug, thiserror::Error)]
pub(super) enum PagesError {
    /// A page could not be had.
    #[error("page {page} of its tools: {error}")]
    Request {
        /// Which page, from 1.
        page: usize,
        /// Why.
        error: RequestError,
    },
    /// A page leads back to one that was seen.
    #[error("page {page} of its tools names a next page that was there before")]
    Loop {
        /// Which page, from 1.
        page: usize,
    },
    /// It has no end in sight.
    #[error("its tools have more than {MOST_PAGES} pages")]
    TooManyPages,
    /// They are more than anybody can use.
    #[error("it lists more than {MOST_TOOLS} tools")]
    TooManyTools,
    /// The same.
    #[error("its tools are described in more than {MOST_BYTES} bytes")]
    TooLarge,
}

pub(super) async fn all_pages(connection: &dyn Connection) -> Result<Pages, PagesError> {
    let mut all = Pages { tools: Vec::new(), ttl: None };
    let mut seen = HashSet::new();
    let mut cursor: Option<String> = None;
    let mut bytes = 0;
    for page in 1..=MOST_PAGES {
        let answer = connection.list_tools(cursor.take()).await;
        let answer = answer.map_err(|error| PagesError::Request { page, error })?;
        bytes += answer.bytes;
        if bytes > MOST_BYTES {
            return Err(PagesError::TooLarge);
        }
        all.tools.extend(answer.tools);
        if all.tools.len() > MOST_TOOLS {
            return Err(PagesError::TooManyTools);
        }
        all.ttl = all.ttl.into_iter().chain(answer.ttl).min();
        let Some(next) = answer.next else {
            return Ok(all);
        };
        if !seen.insert(next.clone()) {
            return Err(PagesError::Loop { page });
        }
        cursor = Some(next);
    }
    Err(PagesError::TooManyPages)
}
