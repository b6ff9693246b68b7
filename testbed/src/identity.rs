//! An identity provider and an MCP server that requires its tokens.
#![allow(clippy::indexing_slicing, reason = "JSON values, whose indexing does not panic")]

use std::{
    collections::{HashMap, HashSet},
    io,
    net::Ipv4Addr,
    sync::Arc,
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// The deviations of a provider from a correct one.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct IdentityFaults {
    /// Another issuer in its metadata.
    pub metadata_issuer: Option<String>,
    /// Another issuer in the redirect.
    pub redirect_issuer: Option<String>,
    /// No issuer in the redirect, although it is declared.
    pub no_redirect_issuer: bool,
    /// Another state in the redirect.
    pub redirect_state: Option<String>,
    /// Another address in the registration.
    pub registered_redirect: Option<String>,
    /// Another address of the token endpoint.
    pub token_endpoint: Option<String>,
    /// The person refuses.
    pub refuses_consent: bool,
    /// No declaration of PKCE.
    pub no_pkce: bool,
    /// No registration of clients.
    pub no_registration: bool,
}

/// An OAuth authorization server on the loopback interface whose users consent at once. It checks
/// codes, PKCE, redirect addresses, resources, clients and refresh tokens, each of which it accepts
/// once.
pub struct IdentityProvider {
    url: String,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

struct Shared {
    url: String,
    state: Mutex<Provider>,
}

#[derive(Default)]
struct Provider {
    faults: IdentityFaults,
    /// Seconds.
    life: u64,
    /// The delay of each answer of the token endpoint.
    delay: Duration,
    clients: HashMap<String, Client>,
    codes: HashMap<String, Code>,
    refresh: HashMap<String, Grant>,
    tokens: HashMap<String, Grant>,
    revoked: HashSet<String>,
    issued: u32,
    requests: Vec<(String, HashMap<String, String>)>,
}

#[derive(Clone)]
struct Client {
    secret: Option<String>,
    redirect: Option<String>,
}

struct Code {
    client: String,
    redirect: String,
    challenge: String,
    grant: Grant,
}

#[derive(Clone)]
struct Grant {
    client: String,
    resource: String,
    scope: String,
}

impl IdentityProvider {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let provider = Provider { life: 3600, ..Provider::default() };
        let shared = Arc::new(Shared { url: url.clone(), state: Mutex::new(provider) });
        let app = Router::new()
            .route("/.well-known/oauth-authorization-server", get(metadata))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { url, shared, serving })
    }

    /// Its issuer.
    pub fn issuer(&self) -> &str {
        &self.url
    }

    /// Sets its faults.
    pub fn set_faults(&self, faults: IdentityFaults) {
        self.state().faults = faults;
    }

    /// Sets the life of its tokens, in seconds.
    pub fn set_life(&self, seconds: u64) {
        self.state().life = seconds;
    }

    /// Sets how long the token endpoint takes to answer.
    pub fn set_delay(&self, delay: Duration) {
        self.state().delay = delay;
    }

    /// Registers a client with a secret.
    pub fn add_client(&self, id: &str, secret: &str) {
        let client = Client { secret: Some(secret.to_owned()), redirect: None };
        self.state().clients.insert(id.to_owned(), client);
    }

    /// Makes all its tokens invalid; refresh tokens too, if `refresh` is set.
    pub fn revoke_all(&self, refresh: bool) {
        let mut state = self.state();
        state.tokens.clear();
        if refresh {
            state.refresh.clear();
        }
    }

    /// The requests of a path so far: the fields of their forms or queries.
    pub fn requests(&self, path: &str) -> Vec<HashMap<String, String>> {
        let state = self.state();
        let of_path = state.requests.iter().filter(|(asked, _)| asked == path);
        of_path.map(|(_, fields)| fields.clone()).collect()
    }

    fn state(&self) -> MutexGuard<'_, Provider> {
        self.shared.state.lock()
    }
}

impl Drop for IdentityProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn metadata(State(shared): State<Arc<Shared>>) -> Response {
    let faults = shared.state.lock().faults.clone();
    let url = &shared.url;
    let mut metadata = json!({
        "issuer": faults.metadata_issuer.as_ref().unwrap_or(url),
        "authorization_endpoint": format!("{url}/authorize"),
        "token_endpoint": faults.token_endpoint.unwrap_or(format!("{url}/token")),
        "revocation_endpoint": format!("{url}/revoke"),
        "registration_endpoint": format!("{url}/register"),
        "response_types_supported": ["code"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    if let Some(fields) = metadata.as_object_mut() {
        if faults.no_pkce {
            fields.remove("code_challenge_methods_supported");
        }
        if faults.no_registration {
            fields.remove("registration_endpoint");
        }
    }
    answer(StatusCode::OK, &metadata)
}

async fn register(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut state = shared.state.lock();
    state.requests.push(("/register".to_owned(), HashMap::new()));
    let Some(redirect) = body["redirect_uris"][0].as_str() else {
        return refused("invalid_redirect_uri");
    };
    let id = state.fresh("client");
    let client = Client { secret: None, redirect: Some(redirect.to_owned()) };
    state.clients.insert(id.clone(), client);
    let told = state.faults.registered_redirect.as_deref().unwrap_or(redirect);
    let body = json!({
        "client_id": id, "redirect_uris": [told], "token_endpoint_auth_method": "none",
    });
    answer(StatusCode::CREATED, &body)
}

async fn authorize(State(shared): State<Arc<Shared>>, RawQuery(query): RawQuery) -> Response {
    let fields = parsed(query.unwrap_or_default().as_bytes());
    let mut state = shared.state.lock();
    state.requests.push(("/authorize".to_owned(), fields.clone()));
    let of = |name: &str| fields.get(name).cloned().unwrap_or_default();
    let redirect = of("redirect_uri");
    let is_known = state
        .clients
        .get(&of("client_id"))
        .is_some_and(|client| client.redirect.as_ref().is_none_or(|known| *known == redirect));
    if !is_known || of("code_challenge_method") != "S256" {
        return refused("invalid_request");
    }
    let code = state.fresh("code");
    let (client, resource, scope) = (of("client_id"), of("resource"), of("scope"));
    let grant = Grant { client: client.clone(), resource, scope };
    let challenge = of("code_challenge");
    let issued = Code { client, redirect: redirect.clone(), challenge, grant };
    state.codes.insert(code.clone(), issued);
    let faults = &state.faults;
    let mut redirected = url::form_urlencoded::Serializer::new(String::new());
    match faults.refuses_consent {
        true => redirected.append_pair("error", "access_denied"),
        false => redirected.append_pair("code", &code),
    };
    redirected.append_pair("state", faults.redirect_state.as_ref().unwrap_or(&of("state")));
    if !faults.no_redirect_issuer {
        redirected.append_pair("iss", faults.redirect_issuer.as_ref().unwrap_or(&shared.url));
    }
    let location = format!("{redirect}?{}", redirected.finish());
    (StatusCode::FOUND, [(header::LOCATION, location)]).into_response()
}

async fn token(State(shared): State<Arc<Shared>>, headers: HeaderMap, body: Bytes) -> Response {
    let fields = parsed(&body);
    let delay = {
        let mut state = shared.state.lock();
        state.requests.push(("/token".to_owned(), fields.clone()));
        state.delay
    };
    tokio::time::sleep(delay).await;
    let mut state = shared.state.lock();
    let of = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
    let Some(client) = state.client(&headers, of("client_id"), of("client_secret")) else {
        return refused("invalid_client");
    };
    let grant = match of("grant_type") {
        "authorization_code" => {
            let Some(code) = state.codes.remove(of("code")) else {
                return refused("invalid_grant");
            };
            let challenge = base64url(&Sha256::digest(of("code_verifier")));
            let is_same = code.client == client
                && code.redirect == of("redirect_uri")
                && code.challenge == challenge;
            if !is_same {
                return refused("invalid_grant");
            }
            code.grant
        }
        "refresh_token" => {
            let Some(grant) = state.refresh.remove(of("refresh_token")) else {
                return refused("invalid_grant");
            };
            if grant.client != client {
                return refused("invalid_grant");
            }
            grant
        }
        "client_credentials" => {
            Grant { client, resource: of("resource").to_owned(), scope: of("scope").to_owned() }
        }
        _ => return refused("unsupported_grant_type"),
    };
    if grant.resource != of("resource") {
        return refused("invalid_target");
    }
    let (access, refresh) = (state.fresh("access-token"), state.fresh("refresh-token"));
    state.tokens.insert(access.clone(), grant.clone());
    let mut body = json!({
        "access_token": access, "token_type": "Bearer", "expires_in": state.life,
        "scope": grant.scope,
    });
    if of("grant_type") != "client_credentials" {
        state.refresh.insert(refresh.clone(), grant);
        body["refresh_token"] = json!(refresh);
    }
    answer(StatusCode::OK, &body)
}

async fn revoke(State(shared): State<Arc<Shared>>, body: Bytes) -> StatusCode {
    let fields = parsed(&body);
    let mut state = shared.state.lock();
    state.requests.push(("/revoke".to_owned(), fields.clone()));
    if let Some(token) = fields.get("token") {
        state.refresh.remove(token);
        state.tokens.remove(token);
        state.revoked.insert(token.clone());
    }
    StatusCode::OK
}

impl Provider {
    /// A new secret.
    fn fresh(&mut self, kind: &str) -> String {
        self.issued += 1;
        // Long enough to be redacted, and unlike any other text.
        let unique =
            base64url(&Sha256::digest(format!("{kind}-{}-{:p}", self.issued, &self.clients)));
        format!("{kind}-{}-{}", self.issued, unique.get(..24).unwrap_or_default())
    }

    fn client(&self, headers: &HeaderMap, id: &str, secret: &str) -> Option<String> {
        let basic = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let pair = basic.and_then(|value| value.strip_prefix("Basic ")).map(decoded);
        let (id, secret) = match pair {
            // Both parts are encoded as in a form.
            Some(pair) => parsed(pair.replacen(':', "=", 1).as_bytes()).into_iter().next()?,
            None => (id.to_owned(), secret.to_owned()),
        };
        let client = self.clients.get(&id)?;
        let is_same = client.secret.as_ref().is_none_or(|known| *known == secret);
        is_same.then_some(id)
    }
}

fn refused(error: &str) -> Response {
    answer(StatusCode::BAD_REQUEST, &json!({ "error": error }))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, body.to_string()).into_response()
}

fn parsed(form: &[u8]) -> HashMap<String, String> {
    url::form_urlencoded::parse(form).into_owned().collect()
}

fn base64url(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)
}

fn decoded(text: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// An MCP server (2026-07-28) with two tools, `read` and `write`, that requires tokens of a
/// provider. `write` echoes the token that it received, and can require a scope.
pub struct ProtectedServer {
    url: String,
    shared: Arc<Protected>,
    serving: JoinHandle<()>,
}

struct Protected {
    url: String,
    provider: Arc<Shared>,
    state: Mutex<Demands>,
}

#[derive(Default)]
struct Demands {
    issuer: Option<String>,
    resource: Option<String>,
    write_scope: Option<String>,
    refusal: Option<String>,
    authorizations: Vec<Option<String>>,
    calls: u32,
}

impl ProtectedServer {
    /// Starts it on a free port.
    ///
    /// # Errors
    /// If no port is free.
    pub async fn start(provider: &IdentityProvider) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shared = Arc::new(Protected {
            url: url.clone(),
            provider: Arc::clone(&provider.shared),
            state: Mutex::default(),
        });
        let app = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/mcp", post(serve))
            .with_state(Arc::clone(&shared));
        let serving = tokio::spawn(async move {
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { url, shared, serving })
    }

    /// The URL of its endpoint.
    pub fn url(&self) -> String {
        format!("{}/mcp", self.url)
    }

    /// Names another authorization server in its metadata.
    pub fn set_issuer(&self, issuer: &str) {
        self.shared.state.lock().issuer = Some(issuer.to_owned());
    }

    /// Names another resource in its metadata.
    pub fn set_resource(&self, resource: &str) {
        self.shared.state.lock().resource = Some(resource.to_owned());
    }

    /// Requires a scope for the tool `write`.
    pub fn require_scope(&self, scope: &str) {
        self.shared.state.lock().write_scope = Some(scope.to_owned());
    }

    /// Refuses every token, with these further parameters of the challenge, in which `TOKEN` is the
    /// token.
    pub fn refuse_tokens(&self, parameters: &str) {
        self.shared.state.lock().refusal = Some(parameters.to_owned());
    }

    /// The `Authorization` header of each request so far.
    pub fn authorizations(&self) -> Vec<Option<String>> {
        self.shared.state.lock().authorizations.clone()
    }

    /// The number of calls that were executed.
    pub fn calls(&self) -> u32 {
        self.shared.state.lock().calls
    }
}

impl Drop for ProtectedServer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn resource(State(shared): State<Arc<Protected>>) -> Response {
    let state = shared.state.lock();
    let resource = state.resource.clone().unwrap_or_else(|| format!("{}/mcp", shared.url));
    let issuer = state.issuer.as_ref().unwrap_or(&shared.provider.url);
    let metadata = json!({ "resource": resource, "authorization_servers": [issuer] });
    answer(StatusCode::OK, &metadata)
}

async fn serve(State(shared): State<Arc<Protected>>, headers: HeaderMap, body: Bytes) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let mut state = shared.state.lock();
    state.authorizations.push(sent.map(str::to_owned));
    let token = sent.and_then(|sent| sent.strip_prefix("Bearer ")).unwrap_or_default();
    let metadata = format!("{}/.well-known/oauth-protected-resource/mcp", shared.url);
    let own = format!("{}/mcp", shared.url);
    let granted = shared.provider.state.lock().tokens.get(token).cloned();
    let is_accepted = |grant: &Grant| grant.resource == own && state.refusal.is_none();
    let Some(grant) = granted.filter(is_accepted) else {
        let why = state.refusal.as_deref().filter(|_| sent.is_some()).unwrap_or_default();
        let why = why.replace("TOKEN", token);
        let challenge = format!("Bearer resource_metadata=\"{metadata}\", scope=\"mcp:read\"{why}");
        let body = format!("this token is unknown here: {token}");
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)], body)
            .into_response();
    };
    let name = request["params"]["name"].as_str().unwrap_or_default();
    if let (Some(scope), "write") = (&state.write_scope, name)
        && !grant.scope.split(' ').any(|granted| granted == scope)
    {
        let challenge = format!(
            "Bearer error=\"insufficient_scope\", scope=\"{scope}\", \
             resource_metadata=\"{metadata}\""
        );
        return (StatusCode::FORBIDDEN, [(header::WWW_AUTHENTICATE, challenge)]).into_response();
    }
    let tool = |name: &str| json!({ "name": name, "description": "A tool.", "inputSchema": { "type": "object" } });
    let mut result = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "protected", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [tool("read"), tool("write")] }),
        "tools/call" => {
            state.calls += 1;
            json!({ "content": [{ "type": "text", "text": format!("got {token}") }] })
        }
        _ => {
            let error = json!({ "code": -32601, "message": "unknown method" });
            let body = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
            return answer(StatusCode::OK, &body);
        }
    };
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(60_000);
    result["cacheScope"] = json!("private");
    let body = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
    answer(StatusCode::OK, &body)
}

/// Opens an address as a browser does, with its redirects; returns the last status.
///
/// # Errors
/// If a server cannot be reached, or there are too many redirects.
pub async fn browse(address: &str) -> io::Result<u16> {
    let mut address = address.to_owned();
    for _ in 0..5 {
        let (status, location) = visit(&address).await?;
        match location {
            Some(location) => address = location,
            None => return Ok(status),
        }
    }
    Err(io::Error::other("too many redirects"))
}

/// Sends one GET request; returns the status, and where it redirects to.
///
/// # Errors
/// If the server cannot be reached.
pub async fn visit(address: &str) -> io::Result<(u16, Option<String>)> {
    let invalid = || io::Error::other("not an http address");
    let rest = address.strip_prefix("http://").ok_or_else(invalid)?;
    let (host, path) = rest.split_once('/').ok_or_else(invalid)?;
    #[expect(clippy::disallowed_methods, reason = "a browser")]
    let mut stream = TcpStream::connect(host).await?;
    let request = format!("GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
    let location = answer.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("location").then(|| value.trim().to_owned())
    });
    Ok((status.ok_or_else(invalid)?, location))
}
