//! The body: one call, one request.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_capabilities::http::{
    HeaderMap, HeaderName, HeaderValue, HttpRequest, Method, header,
};
use toolcrib_core::{ToolContext, ToolError, ToolOutput};

use super::{
    body::BodyTemplate,
    exchange::Exchange,
    headers::{self, HeaderTemplate},
    url::UrlTemplate,
};

/// The handler of the tool.
pub(crate) struct Body {
    pub(crate) exchange: Exchange,
    pub(super) method: Method,
    pub(super) url: UrlTemplate,
    pub(crate) headers: Vec<HeaderTemplate>,
    pub(super) idempotency_header: Option<HeaderName>,
    pub(super) body: Option<BodyTemplate>,
}

impl Body {
    pub(crate) async fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let client = self.exchange.client(&cx)?;
        let request = self.request(&args, &cx).await?;
        self.exchange.send(&client, request, &cx).await
    }

    /// The request for these arguments.
    pub(crate) async fn request(
        &self,
        args: &Value,
        cx: &ToolContext,
    ) -> Result<HttpRequest, ToolError> {
        let mut request = HttpRequest::new(self.method.clone(), self.url.fill(args)?);
        let mut filled = Vec::with_capacity(self.headers.len());
        for header in &self.headers {
            filled.extend(header.fill(args)?);
        }
        let body = self.body.as_ref().and_then(|body| body.fill(args));
        // Asked for last, so that no call that cannot be made asks for one.
        request.headers = headers::with_secrets(&filled, cx).await?;
        if let Some(name) = &self.idempotency_header
            && let Ok(key) = HeaderValue::try_from(cx.idempotency_key())
        {
            request.headers.insert(name.clone(), key);
        }
        if let Some(body) = body {
            set_by_default(&mut request.headers, header::CONTENT_TYPE, "application/json");
            request.body = Some(body.to_string().into());
        }
        set_by_default(&mut request.headers, header::ACCEPT, "application/json, */*;q=0.5");
        self.exchange.limit(&mut request);
        Ok(request)
    }
}

/// Sets a header unless it is set.
pub(crate) fn set_by_default(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.entry(name).or_insert(value);
    }
}
