use std::sync::Arc;

use hyper::header::HeaderValue;
use parking_lot::Mutex;

use super::{connect::Connector, error::HttpError, pool::Pool, target::Target};

/// State that a client shares with those that were narrowed from it.
pub(super) struct Shared {
    pub(super) connector: Connector,
    pub(super) user_agent: HeaderValue,
    pub(super) pool: Pool,
    /// The target of the last request: most clients use one URL repeatedly.
    last: Mutex<Option<(String, Arc<Target>)>>,
}

impl Shared {
    pub(super) fn new(connector: Connector, user_agent: HeaderValue) -> Self {
        Self { connector, user_agent, pool: Pool::default(), last: Mutex::default() }
    }

    pub(super) fn target(&self, url: &str) -> Result<Arc<Target>, HttpError> {
        let mut last = self.last.lock();
        if let Some((_, target)) = last.as_ref().filter(|(known, _)| known == url) {
            return Ok(Arc::clone(target));
        }
        let target = Arc::new(Target::parse(url)?);
        *last = Some((url.to_owned(), Arc::clone(&target)));
        Ok(target)
    }
}
