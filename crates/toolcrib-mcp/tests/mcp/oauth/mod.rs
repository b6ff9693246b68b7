//! Logins to servers that require authorization, with a real provider of identities on the loopback
//! interface.

mod attacks;
mod tokens;

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use toolcrib_core::{
    CancellationToken, Identity, ToolContext, ToolContextParts, ToolError, ToolOutput,
};
use toolcrib_mcp::{
    McpClient, mcp_client,
    oauth::{Login, MemoryTokens, OAuth, OAuthError, TokenStore as _},
    server::Http,
};
use toolcrib_testbed::{IdentityProvider, ProtectedServer, browse};

/// A provider, a server with its tokens, and the parts of a client.
struct Setting {
    provider: IdentityProvider,
    server: ProtectedServer,
    store: MemoryTokens,
    learned: Arc<Mutex<Vec<String>>>,
}

impl Setting {
    async fn start() -> Self {
        let provider = IdentityProvider::start().await.unwrap();
        let server = ProtectedServer::start(&provider).await.unwrap();
        Self { provider, server, store: MemoryTokens::default(), learned: Arc::default() }
    }

    fn oauth(&self) -> OAuth {
        let learned = Arc::clone(&self.learned);
        OAuth::new(self.store.clone()).on_secret(move |secret| learned.lock().push(secret.into()))
    }

    fn client(&self) -> McpClient {
        self.client_with(self.oauth())
    }

    fn client_with(&self, oauth: OAuth) -> McpClient {
        mcp_client("guarded", Http::new(self.server.url()).oauth(oauth)).build().unwrap()
    }
}

/// Logs in with a browser that consents at once.
async fn login(client: &McpClient, scopes: &[&str]) -> Result<Login, OAuthError> {
    let scopes: Vec<String> = scopes.iter().map(|&scope| scope.to_owned()).collect();
    let show = |address: &str| {
        let address = address.to_owned();
        tokio::spawn(async move { browse(&address).await });
    };
    let authorization = client.authorization().unwrap();
    authorization.login(&scopes, show, &CancellationToken::new()).await
}

/// Calls a tool by the server's own name.
async fn call(client: &McpClient, tool: &str, args: Value) -> Result<ToolOutput, ToolError> {
    let name = format!("mcp__guarded__{tool}");
    let tools = client.tools().await.unwrap();
    let tool = tools.iter().find(|tool| **tool.name() == *name).unwrap();
    tool.call(args, ToolContext::from(ToolContextParts::detached())).await
}

fn of_principal(principal: &str) -> Identity {
    let mut identity = Identity::conversation("test");
    identity.principal = Some(principal.into());
    identity
}
