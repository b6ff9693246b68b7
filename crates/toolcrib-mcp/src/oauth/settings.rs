use std::sync::Arc;

use toolcrib_core::Secret;

use super::store::TokenStore;

/// How a client gets tokens for a server. Without further settings, it registers itself where the
/// authorization server permits it.
#[derive(Clone)]
pub struct OAuth {
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) client_id: Option<String>,
    pub(super) client_secret: Option<Secret>,
    pub(super) issuer: Option<String>,
    pub(super) scopes: Vec<String>,
    pub(super) redirect_port: u16,
    pub(super) client_credentials: bool,
    pub(super) command_flags: String,
    pub(super) on_secret: Arc<dyn Fn(&str) + Send + Sync>,
}

impl OAuth {
    /// Keeps tokens in this store.
    pub fn new(store: impl TokenStore) -> Self {
        Self {
            store: Arc::new(store),
            client_id: None,
            client_secret: None,
            issuer: None,
            scopes: Vec::new(),
            redirect_port: 0,
            client_credentials: false,
            command_flags: String::new(),
            on_secret: Arc::new(|_| {}),
        }
    }

    /// The id of this client: the address of its metadata document (`https://…`), which is used
    /// where the authorization server reads such documents, or an id that the
    /// [issuer](Self::issuer) has assigned.
    #[must_use]
    pub fn client_id(mut self, id: impl Into<String>) -> Self {
        self.client_id = Some(id.into());
        self
    }

    /// The secret of an assigned id. It is sent to the [issuer](Self::issuer) only.
    #[must_use]
    pub fn client_secret(mut self, secret: Secret) -> Self {
        self.client_secret = Some(secret);
        self
    }

    /// The only authorization server that may be used. Required with a secret: a server can name
    /// any authorization server.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// The scopes to request, besides those that the server demands. Default: the scopes of the
    /// server's metadata.
    #[must_use]
    pub fn scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// The local port of the redirect, for authorization servers that compare it. Default: a free
    /// one.
    #[must_use]
    pub fn redirect_port(mut self, port: u16) -> Self {
        self.redirect_port = port;
        self
    }

    /// Requests tokens for the client itself, without a person. Needs a secret.
    #[must_use]
    pub fn client_credentials(mut self) -> Self {
        self.client_credentials = true;
        self
    }

    /// The options by which `toolcrib mcp login` finds the server, such as ` --import FILE`, for the error
    /// that names the command. Default: none.
    #[must_use]
    pub fn command_flags(mut self, flags: impl Into<String>) -> Self {
        self.command_flags = flags.into();
        self
    }

    /// Calls a function with each token and secret before it is used, so that it can be redacted.
    #[must_use]
    pub fn on_secret(mut self, learn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_secret = Arc::new(learn);
        self
    }

    /// Why it cannot be used.
    pub(crate) fn problem(&self) -> Option<&'static str> {
        let is_document = self.is_document();
        if self.client_secret.is_some() && (self.client_id.is_none() || is_document) {
            return Some("a client secret needs the `client_id` that it belongs to");
        }
        if self.client_secret.is_some() && self.issuer.is_none() {
            return Some(
                "a client secret needs `issuer`, the only authorization server that may get it",
            );
        }
        if self.client_credentials && self.client_secret.is_none() {
            return Some("client credentials need `client_id`, `client_secret` and `issuer`");
        }
        None
    }

    /// Whether the id is the address of a metadata document.
    pub(super) fn is_document(&self) -> bool {
        self.client_id.as_deref().is_some_and(|id| id.starts_with("https://"))
    }
}

// Without secrets.
toolcrib_core::__internal::debug_fields!(OAuth { client_id, issuer, scopes, .. });
