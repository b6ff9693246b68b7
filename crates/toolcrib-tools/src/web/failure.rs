//! Errors of a request that brought no result.

use toolcrib_capabilities::http::{HttpResponse, StatusCode};
use toolcrib_core::ToolError;

use crate::http::cause;

/// The error for a status that is not a success.
pub(super) fn status(response: &HttpResponse, asked: &str) -> ToolError {
    let status = response.status;
    let host = response.final_url.host_str().unwrap_or_default();
    let reason = status.canonical_reason().map(|reason| format!(" {reason}")).unwrap_or_default();
    let next = match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => "; check the URL, or search for the page",
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::PAYMENT_REQUIRED => {
            "; the server does not show this to programs without a login, so use another source"
        }
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
            "; try again later, or use another source"
        }
        _ => "",
    };
    let text = format!("`{host}` answered {}{reason}{next}", status.as_u16());
    ToolError::failed(text).caused_by(cause::answered(asked, response))
}
