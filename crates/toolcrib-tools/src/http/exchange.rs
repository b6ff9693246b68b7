//! Sends a request, and makes a result or an error of its outcome.

use std::borrow::Cow;

use toolcrib_capabilities::http::{HttpClient, HttpError, HttpRequest, HttpResponse, StatusCode};
use toolcrib_core::{ErrorCode, ToolContext, ToolError, ToolOutput};

use super::{
    answer,
    cause::{self, FailedRequest},
};

/// The part of a call that does not depend on how its request is made.
pub(crate) struct Exchange {
    pub(crate) client: HttpClient,
    /// The part of a JSON response that counts.
    pub(crate) pointer: Option<String>,
    pub(crate) max_body_bytes: usize,
    pub(crate) max_redirects: usize,
    pub(crate) read_only: bool,
}

impl Exchange {
    /// Sets the limits of a request.
    pub(crate) fn limit(&self, request: &mut HttpRequest) {
        request.may_repeat = self.read_only;
        request.max_redirects = self.max_redirects;
        request.max_body_bytes = self.max_body_bytes;
        // The call's own deadline fires its cancellation.
        request.timeout = None;
    }

    /// The client, as far as the turn's personality lets it go. Before anything else, so that a
    /// refused call asks for no secret.
    pub(crate) fn client(&self, cx: &ToolContext) -> Result<Cow<'_, HttpClient>, ToolError> {
        let rules = cx.network_rules();
        if rules.is_open() {
            return Ok(Cow::Borrowed(&self.client));
        }
        let narrowed = self.client.within(rules);
        narrowed.map(Cow::Owned).map_err(|error| {
            let text = "this tool may ask no host here; only its operator can change that";
            ToolError::new(ErrorCode::NotAvailable, text)
                .caused_by(format!("a rule of the personality: {error}"))
        })
    }

    /// Sends a request through a client.
    pub(crate) async fn send(
        &self,
        client: &HttpClient,
        request: HttpRequest,
        cx: &ToolContext,
    ) -> Result<ToolOutput, ToolError> {
        let (asked, response) = self.response(client, request, cx).await?;
        self.answered(&response, cx)
            .map_err(|error| error.caused_by(cause::answered(&asked, &response)))
    }

    /// Sends a request through a client. Returns the request as operators read it, and the response
    /// with any status.
    pub(crate) async fn response(
        &self,
        client: &HttpClient,
        request: HttpRequest,
        cx: &ToolContext,
    ) -> Result<(String, HttpResponse), ToolError> {
        let asked = cause::asked(&request, cx);
        match client.send(request, cx.cancellation()).await {
            Ok(response) => Ok((asked, response)),
            Err(error) => Err(self.failed(asked, error)),
        }
    }

    fn answered(&self, response: &HttpResponse, cx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if !response.status.is_success() {
            // A request that broke may have had part of its effect.
            let knows = match response.status {
                StatusCode::REQUEST_TIMEOUT => false,
                StatusCode::NOT_IMPLEMENTED | StatusCode::SERVICE_UNAVAILABLE => true,
                status => !status.is_server_error(),
            };
            let text = answer::failure(response, cx);
            return Err(if knows { ToolError::failed(text) } else { self.unsure(&text) });
        }
        answer::read(response, self.pointer.as_deref(), cx).map_err(|problem| self.unsure(&problem))
    }

    /// The error after a server may have executed the request.
    fn unsure(&self, text: &str) -> ToolError {
        if self.read_only {
            return ToolError::failed(text);
        }
        ToolError::new(
            ErrorCode::OutcomeUnknown,
            format!("{text}; the call may have had its effect, so check before trying again"),
        )
    }

    fn failed(&self, asked: String, error: HttpError) -> ToolError {
        let text = for_model(&error);
        let failure = match error {
            HttpError::Cancelled { sent: true, .. } if !self.read_only => self.unsure(&text),
            HttpError::Cancelled { .. } => ToolError::new(ErrorCode::Cancelled, text),
            _ if error.may_have_reached_server() => self.unsure(&text),
            // The declared one was checked, so this one is too long or otherwise the arguments'.
            HttpError::Url { .. } => {
                ToolError::input_invalid(format!("with these arguments {text}"))
            }
            HttpError::HostNotAllowed { .. }
            | HttpError::AddressRefused { .. }
            | HttpError::PortRefused { .. }
            | HttpError::Roots { .. } => ToolError::new(ErrorCode::NotAvailable, text),
            _ => ToolError::failed(text),
        };
        failure.caused_by(FailedRequest { asked, error })
    }
}

/// The operator reads [more](cause); the text for a model contains no inner addresses.
fn for_model(error: &HttpError) -> String {
    match error {
        HttpError::HostNotAllowed { host } => {
            format!("`{host}` is not among the hosts that this tool may ask")
        }
        HttpError::AddressRefused { host, why, .. } => format!(
            "`{host}` has an address that this tool may not reach: {why}; only its operator can \
             change that"
        ),
        HttpError::PortRefused { host, address } => format!(
            "this tool may not go to port {} of `{host}`; only its operator can change that",
            address.port()
        ),
        HttpError::Roots { .. } => {
            "no certificate authority is set up here; only the operator can change that".to_owned()
        }
        HttpError::Redirected { host, source } => {
            format!("`{host}` redirects, and then: {}", for_model(source))
        }
        other => other.to_string(),
    }
}
