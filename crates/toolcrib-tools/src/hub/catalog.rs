//! The catalog's request: whom it is for, and how its answers are read.

use std::{
    collections::HashSet,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::json;
use toolcrib_capabilities::http::{
    HttpError, HttpErrorKind, HttpRequest, HttpResponse, StatusCode, header, retry_after,
};
use toolcrib_core::{
    CancellationToken, DiscoveryError, DiscoveryErrorClass, Identity, Lanes, Secrets, ToolContext,
    ToolContextParts, ToolError,
};

use super::{
    HubLimits, HubPointers,
    pages::{Page, host, next_page},
};
use crate::http::run::Body;

/// How the catalog is asked for.
pub(super) struct HubCatalog {
    pub(super) body: Arc<Body>,
    pub(super) needs_tenant: bool,
    pub(super) needs_principal: bool,
    pub(super) takes_cursor: bool,
    /// The hub, whose pages share a lane.
    pub(super) origin: Arc<str>,
    pub(super) pointers: Arc<HubPointers>,
    pub(super) limits: HubLimits,
    pub(super) timeout: Duration,
}

/// The tenant and the principal that a catalog is requested for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct CatalogKey {
    tenant: Option<Arc<str>>,
    principal: Option<Arc<str>>,
}

impl HubCatalog {
    /// Whom the request is made for.
    pub(super) fn whom(&self, identity: &Identity) -> Result<CatalogKey, DiscoveryError> {
        let named = |needed: bool, named: &Option<Arc<str>>, what: &str| match named {
            _ if !needed => Ok(None),
            Some(name) => Ok(Some(Arc::clone(name))),
            None => Err(source(format!(
                "its request needs a {what}, and the run names none; with a cache, the key has \
                 to declare it"
            ))
            .with_code("identity_missing")),
        };
        Ok(CatalogKey {
            tenant: named(self.needs_tenant, &identity.tenant, "tenant")?,
            principal: named(self.needs_principal, &identity.principal, "principal")?,
        })
    }

    /// All pages. One that did not change is the very one that it was `before`.
    pub(super) async fn pages(
        &self,
        whom: &CatalogKey,
        before: &[Arc<Page>],
        secrets: Option<Arc<dyn Secrets>>,
        cancellation: &CancellationToken,
    ) -> Result<Vec<Arc<Page>>, DiscoveryError> {
        let parts = ToolContextParts {
            secrets,
            cancellation: cancellation.clone(),
            ..ToolContextParts::detached()
        };
        let cx = ToolContext::from(parts);
        let HubLimits { pages: most_pages, tools: most_tools, bytes: most_bytes } = self.limits;
        let (mut pages, mut tools, mut bytes) = (Vec::new(), 0, 0_usize);
        let mut seen = HashSet::new();
        let mut next: Option<String> = None;
        let mut first_url: Option<String> = None;
        loop {
            if pages.len() >= most_pages {
                return Err(source(format!("its catalog has more than {most_pages} pages")));
            }
            let mut request = self.request(whom, next.as_deref(), &cx).await?;
            if let (Some(url), false) = (&next, self.takes_cursor) {
                request.url.clone_from(url);
            }
            let first = first_url.get_or_insert_with(|| request.url.clone());
            request.max_body_bytes = most_bytes.saturating_sub(bytes).max(1);
            let page = self.page(request, before, cancellation).await?;
            tools += page.tools.len();
            bytes = bytes.saturating_add(page.bytes);
            if tools > most_tools {
                return Err(source(format!("its catalog lists more than {most_tools} tools")));
            }
            if bytes > most_bytes {
                return Err(too_large(most_bytes));
            }
            next = match &page.next {
                None => None,
                Some(next) if self.takes_cursor => Some(next.clone()),
                Some(next) => Some(next_page(first, &page.final_url, next).map_err(source)?),
            };
            pages.push(page);
            let Some(next) = &next else { return Ok(pages) };
            if !seen.insert(next.clone()) {
                let page = pages.len();
                return Err(source(format!(
                    "page {page} of its catalog names a next page that was there before"
                ))
                .with_code("page_loop"));
            }
        }
    }

    async fn request(
        &self,
        whom: &CatalogKey,
        next: Option<&str>,
        cx: &ToolContext,
    ) -> Result<HttpRequest, DiscoveryError> {
        let cursor = next.filter(|_| self.takes_cursor);
        let places =
            json!({ "tenant": whom.tenant, "principal": whom.principal, "cursor": cursor });
        let mut request =
            self.body.request(&places, cx).await.map_err(|error| unsendable(&error))?;
        request.timeout = Some(self.timeout);
        Ok(request)
    }

    async fn page(
        &self,
        mut request: HttpRequest,
        before: &[Arc<Page>],
        cancellation: &CancellationToken,
    ) -> Result<Arc<Page>, DiscoveryError> {
        let url = request.url.clone();
        let known = before.iter().find(|page| page.url == url && page.etag.is_some());
        if let Some(etag) = known.and_then(|page| page.etag.clone()) {
            request.headers.insert(header::IF_NONE_MATCH, etag);
        }
        let response = self.body.exchange.client.send(request, cancellation).await;
        let response = response.map_err(|error| unanswered(error, self.limits.bytes))?;
        match (response.status, known) {
            (StatusCode::NOT_MODIFIED, Some(known)) => Ok(Arc::clone(known)),
            (status, _) if status.is_success() => {
                let (bytes, pointers) = (response.body.len(), Arc::clone(&self.pointers));
                let before = before.to_vec();
                let read = move || {
                    let page = Page::read(url, &response, &pointers)?;
                    // What reads the same is the same, also without an `ETag`.
                    let same = before.into_iter().find(|before| before.same(&page));
                    Ok(same.unwrap_or_else(|| Arc::new(page)))
                };
                let read = Lanes::of_process().run_large(bytes, &self.origin, read).await;
                read.and_then(|page| page).map_err(source)
            }
            _ => Err(refused(&response)),
        }
    }
}

pub(super) fn source(message: String) -> DiscoveryError {
    DiscoveryError::new(DiscoveryErrorClass::Source, message)
}

fn too_large(most_bytes: usize) -> DiscoveryError {
    source(format!("its catalog has more than {most_bytes} bytes")).with_code("too_large")
}

/// A request that could not be put together; a secret is named, its value never.
fn unsendable(error: &ToolError) -> DiscoveryError {
    let cause = error.cause_chain();
    source(match cause {
        Some(cause) => format!("its catalog cannot be asked for: {cause}"),
        None => format!("its catalog cannot be asked for: {}", error.message),
    })
    .with_code("not_set_up")
}

fn unanswered(error: HttpError, most_bytes: usize) -> DiscoveryError {
    let code = match error.kind() {
        HttpErrorKind::Cancelled => return DiscoveryError::cancelled(),
        HttpErrorKind::TimedOut => {
            return DiscoveryError::new(DiscoveryErrorClass::Timeout, error.to_string());
        }
        _ if matches!(error, HttpError::BodyTooLarge { .. }) => return too_large(most_bytes),
        HttpErrorKind::Refused => "refused",
        HttpErrorKind::Unreachable => "unreachable",
        HttpErrorKind::Broken => "broken",
        HttpErrorKind::Redirect => "redirect",
        _ => "unfit",
    };
    DiscoveryError::source_failed(error).with_code(code)
}

fn refused(response: &HttpResponse) -> DiscoveryError {
    let status = response.status;
    let said = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let help = match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "; check the secret in its headers",
        StatusCode::NOT_FOUND => "; check its URL",
        _ => "",
    };
    let message = format!("`{}` answered {}{said}{help}", host(response), status.as_u16());
    let error = source(message).with_status(status.as_u16());
    match retry_after(&response.headers, SystemTime::now()) {
        Some(wait) => error.with_retry_after(wait),
        None => error,
    }
}
