//! Tools from a document, in code.

use std::sync::Arc;

use toolcrib_capabilities::http::{DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS, HttpClient};
use toolcrib_config::{Located, Problems, Spot};
use toolcrib_core::Tool;

use super::{
    document::OpenApi,
    security::Auth,
    table::{DeclaredOpenApi, Shared},
};
use crate::{Declaration, FieldError, ToolErrors};

/// How the operations of a document become tools. Start from [`new`](Self::new), set fields, and
/// [`build`](Self::build) it.
///
/// ```
/// use toolcrib_capabilities::http::HttpClient;
/// use toolcrib_tools::openapi::{OpenApi, OpenApiSpec};
///
/// let document = OpenApi::parse(
///     r#"
/// openapi: 3.1.0
/// servers: [{ url: "https://api.example.com/v1" }]
/// paths:
///   /orders/{id}:
///     get: { operationId: getOrder, summary: One order. }
/// "#,
/// )?;
/// let client = HttpClient::builder().build();
/// let tools = OpenApiSpec::new().build(&document, &client)?;
/// assert_eq!(tools[0].name().as_str(), "getOrder");
/// assert!(tools[0].definition().annotations().read_only);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct OpenApiSpec {
    /// The part that all tools have. Name, description, schema and annotations are those of the
    /// operations.
    pub declaration: Declaration,
    /// The prefix of all names; none unless set.
    pub prefix: Option<String>,
    /// The operations that become tools: `tag:NAME`, `/v1/*`, `GET`, `GET /v1/*` or an
    /// `operationId`; all of them if empty.
    pub include: Vec<String>,
    /// The operations that do not.
    pub exclude: Vec<String>,
    /// The base URL, which replaces those of the document.
    pub server: Option<String>,
    /// The origins that operations may name, besides that of the document's server. Others are not
    /// called.
    pub allow_servers: Vec<String>,
    /// The secrets for the security schemes.
    pub auth: Auth,
    /// Headers of all requests, the values with places for secrets.
    pub headers: Vec<(String, String)>,
}

impl Default for OpenApiSpec {
    fn default() -> Self {
        Self {
            declaration: Declaration::new("", ""),
            prefix: None,
            include: Vec::new(),
            exclude: Vec::new(),
            server: None,
            allow_servers: Vec::new(),
            auth: Auth::default(),
            headers: Vec::new(),
        }
    }
}

impl OpenApiSpec {
    /// All operations, without secrets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the tools of the document. They call through the client, and so only where that one
    /// may go. An operation that cannot be called becomes a tool that is never offered, with the
    /// reason.
    ///
    /// # Errors
    /// More operations than a catalog may have, and all that is wrong with the headers.
    pub fn build(&self, document: &OpenApi, client: &HttpClient) -> Result<Vec<Tool>, ToolErrors> {
        let at = Spot::start_of("code");
        let located = |text: &str| Located { value: text.into(), at: at.clone() };
        let declared = DeclaredOpenApi {
            file: Some(Located { value: "openapi".into(), at: at.clone() }),
            include: self.include.iter().map(|text| located(text)).collect(),
            exclude: self.exclude.iter().map(|text| located(text)).collect(),
            server: self.server.as_deref().map(located),
            allow_servers: self.allow_servers.iter().map(|text| located(text)).collect(),
            reads_only: false,
            auth: self.auth.clone(),
            schemes: self.auth.by_scheme.iter().map(|(name, _)| located(name)).collect(),
            shared: Arc::new(Shared {
                headers: self.headers.clone(),
                allow_addresses: Vec::new(),
                max_body_bytes: DEFAULT_MAX_BODY_BYTES,
                max_redirects: DEFAULT_MAX_REDIRECTS,
                lint_allow: Vec::new(),
                pin: false,
            }),
        };
        let problems = Problems::new("code");
        let tools =
            declared.tools(document, &self.declaration, self.prefix.as_deref(), (&at, &problems));
        let made =
            tools.into_iter().map(|(_, declaration, one)| one.tool(declaration, client, |_| true));
        let made = made.collect::<Result<Vec<_>, _>>()?;
        let errors: Vec<_> = problems
            .into_diagnostics()
            .errors()
            .map(|error| FieldError {
                field: String::new(),
                offset: None,
                at: None,
                message: error.message.clone(),
                help: error.help.clone(),
            })
            .collect();
        match errors.is_empty() {
            true => Ok(made),
            false => Err(ToolErrors { tool: "openapi".to_owned(), errors }),
        }
    }
}
