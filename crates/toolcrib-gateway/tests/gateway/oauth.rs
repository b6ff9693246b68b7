//! Access by the tokens of an authorization server.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    hmac,
    rand::SystemRandom,
    signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair as _},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};
use toolcrib_capabilities::http::{HttpClient, HttpClientBuilder};
use toolcrib_core::{Policy, Rule, RuleConditions};
use toolcrib_engine::Personality;
use toolcrib_gateway::{Access, Gateway, GatewayError, HttpAccess, ResourceServer, TokenAlgorithm};

use super::{
    support::{engine, tool},
    web::{ANA, Reply, Web, initialize, names, post, request, stateless},
};

const RESOURCE: &str = "https://tools.example/mcp";
const ISSUER: &str = "https://login.example";

/// Only what hangs takes so long.
const HANGS: Duration = Duration::from_secs(300);

/// The keys of an issuer.
struct Issuer {
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
    random: SystemRandom,
}

fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl Issuer {
    fn new() -> Self {
        let random = SystemRandom::new();
        let kind = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let ec = EcdsaKeyPair::generate_pkcs8(kind, &random).unwrap();
        let ed = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        Self {
            ec: EcdsaKeyPair::from_pkcs8(kind, ec.as_ref(), &random).unwrap(),
            ed: Ed25519KeyPair::from_pkcs8(ed.as_ref()).unwrap(),
            random,
        }
    }

    fn keys(&self) -> String {
        let point = self.ec.public_key().as_ref();
        let (x, y) = (encoded(&point[1..33]), encoded(&point[33..]));
        let ed = encoded(self.ed.public_key());
        json!({ "keys": [
            { "kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig", "x": x, "y": y },
            { "kty": "OKP", "crv": "Ed25519", "kid": "ed", "alg": "EdDSA", "x": ed },
            { "kty": "unknown", "kid": 5 },
        ]})
        .to_string()
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims.to_string()));
        let signature = match header["kid"].as_str() {
            Some("ed") => encoded(self.ed.sign(signed.as_bytes())),
            _ => encoded(self.ec.sign(&self.random, signed.as_bytes()).unwrap()),
        };
        format!("{signed}.{signature}")
    }

    /// A token whose secret is the public key.
    fn symmetric(&self) -> String {
        let header = json!({ "alg": "HS256", "kid": "ec" });
        let signed = format!("{}.{}", encoded(header.to_string()), encoded(claims().to_string()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.ec.public_key().as_ref());
        format!("{signed}.{}", encoded(hmac::sign(&key, signed.as_bytes())))
    }

    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = claims();
        change(&mut claims);
        self.sign(&json!({ "alg": "ES256", "kid": "ec", "typ": "at+jwt" }), &claims)
    }
}

fn claims() -> Value {
    json!({
        "iss": ISSUER, "aud": [RESOURCE, "other"], "sub": "ana", "exp": now() + 600,
        "scope": "mcp extra", "groups": ["writers"],
    })
}

/// An identity provider on the loopback address.
struct Provider {
    url: String,
    /// The documents by path; other paths do not exist.
    documents: Arc<Mutex<Vec<(String, String)>>>,
    requests: Arc<AtomicUsize>,
}

impl Provider {
    async fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let documents = Arc::<Mutex<Vec<(String, String)>>>::default();
        let requests = Arc::<AtomicUsize>::default();
        let (served, counter) = (Arc::clone(&documents), Arc::clone(&requests));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::SeqCst);
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    request.push(stream.read_u8().await.unwrap());
                }
                let request = String::from_utf8(request).unwrap();
                let path = request.split(' ').nth(1).unwrap();
                let found = served.lock().unwrap().iter().find(|(known, _)| known == path).cloned();
                let (status, body) = found.map_or((404, String::new()), |(_, body)| (200, body));
                let head = format!(
                    "HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                    body.len()
                );
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            }
        });
        Self { url, documents, requests }
    }

    fn publish(&self, path: &str, body: &impl ToString) {
        let mut documents = self.documents.lock().unwrap();
        documents.retain(|(known, _)| known != path);
        documents.push((path.to_owned(), body.to_string()));
    }

    fn keys(&self) -> String {
        format!("{}/keys", self.url)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// A client that may reach this machine.
fn loopback() -> HttpClientBuilder {
    HttpClient::builder().allow_addresses(["127.0.0.0/8".parse().unwrap()])
}

/// A gateway that accepts the tokens of an issuer, and a static one.
async fn web(issuer: &Issuer, more: impl FnOnce(ResourceServer) -> ResourceServer) -> Web {
    let provider = Provider::new().await;
    provider.publish("/keys", &issuer.keys());
    let server = ResourceServer::new(RESOURCE, ISSUER).jwks(provider.keys()).client(loopback());
    of(more(server.scope("mcp"))).await
}

async fn of(server: ResourceServer) -> Web {
    let writers = RuleConditions { roles: vec!["writer".into()], ..RuleConditions::default() };
    let mut policy = Policy::of([
        Rule::allow("writers write").tools(["write"]).when(writers),
        Rule::deny("others read").tools(["write"]),
    ]);
    policy.roles.grant_to_claim("groups", ["writers"], "writer");
    let engine = engine().tools([tool("read"), tool("write")]).policy(policy);
    let gateway = Gateway::builder(engine.build().unwrap()).build();
    let access = HttpAccess::new().token(ANA, Access::new().principal("static"));
    Web::of(&gateway, access.oauth(server)).await
}

async fn list(web: &Web, token: &str) -> Reply {
    web.reply(stateless("/mcp", token, "tools/list", json!({}))).await
}

#[tokio::test]
async fn a_token_for_this_endpoint_has_the_claims_of_its_bearer() {
    let issuer = Issuer::new();
    let web = web(&issuer, |server| server).await;
    let reply = list(&web, &issuer.token(|_| {})).await;
    assert_eq!(names(&reply), ["read", "write"]);
    let reply = list(&web, &issuer.token(|claims| claims["groups"] = json!([]))).await;
    assert_eq!(names(&reply), ["read"]);
    let ed = issuer.sign(&json!({ "alg": "EdDSA", "kid": "ed" }), &claims());
    assert_eq!(list(&web, &ed).await.status, 200);
    // A declared token still works.
    assert_eq!(list(&web, ANA).await.status, 200);
}

#[tokio::test]
async fn every_other_token_is_refused() {
    let issuer = Issuer::new();
    let web = web(&issuer, |server| server).await;
    let stranger = Issuer::new();
    let header = |alg: &str| json!({ "alg": alg, "kid": "ec" });
    let by_header = |header: Value| issuer.sign(&header, &claims());
    let mut crit = header("ES256");
    crit["crit"] = json!(["b64"]);
    let mut proof = header("ES256");
    proof["typ"] = json!("dpop+jwt");
    let whole = issuer.token(|_| {});
    let unsigned = whole.rsplit_once('.').unwrap().0.to_owned();
    let tokens = [
        ("another audience", issuer.token(|it| it["aud"] = json!("https://other.example/mcp"))),
        ("no audience", issuer.token(|it| it["aud"] = json!(null))),
        ("another issuer", issuer.token(|it| it["iss"] = json!("https://login.example/"))),
        ("expired", issuer.token(|it| it["exp"] = json!(now() - 120))),
        ("no expiry", issuer.token(|it| it["exp"] = json!("never"))),
        ("not yet", issuer.token(|it| it["nbf"] = json!(now() + 600))),
        ("no principal", issuer.token(|it| it["sub"] = json!(" "))),
        ("bound", issuer.token(|it| it["cnf"] = json!({ "jkt": "x" }))),
        ("another key", stranger.token(|_| {})),
        ("none", by_header(header("none"))),
        ("symmetric", by_header(header("HS256"))),
        ("signed with the public key", issuer.symmetric()),
        ("not yet, as a text", issuer.token(|it| it["nbf"] = json!((now() + 600).to_string()))),
        ("confused", by_header(header("EdDSA"))),
        ("critical", by_header(crit)),
        ("a proof", by_header(proof)),
        ("unknown key", by_header(json!({ "alg": "ES256", "kid": "new" }))),
        ("unsigned", format!("{unsigned}.")),
        ("cut", unsigned),
        ("changed", whole.replacen('.', ".e30", 1)),
        ("text", "no-token-at-all-0123".to_owned()),
        ("long", "a".repeat(20_000)),
    ];
    for (what, token) in tokens {
        let reply = list(&web, &token).await;
        assert_eq!(reply.status, 401, "{what}");
        let challenge = reply.challenge.unwrap();
        assert_eq!(
            challenge,
            "Bearer resource_metadata=\"https://tools.example/.well-known/oauth-protected-resource\
             /mcp\", scope=\"mcp\", error=\"invalid_token\"",
            "{what}"
        );
    }
}

#[tokio::test]
async fn a_missing_scope_is_named_and_the_algorithms_can_be_narrowed() {
    let issuer = Issuer::new();
    let web = web(&issuer, |server| server.algorithms([TokenAlgorithm::Es256])).await;
    let reply = list(&web, &issuer.token(|claims| claims["scope"] = json!("mcpx"))).await;
    assert_eq!(reply.status, 403);
    let challenge = reply.challenge.unwrap();
    assert!(challenge.contains("error=\"insufficient_scope\", scope=\"mcp\""), "{challenge}");
    let listed = issuer.token(|claims| {
        claims["scope"] = json!(null);
        claims["scp"] = json!(["mcp"]);
    });
    assert_eq!(list(&web, &listed).await.status, 200);
    let ed = issuer.sign(&json!({ "alg": "EdDSA", "kid": "ed" }), &claims());
    assert_eq!(list(&web, &ed).await.status, 401);
}

#[tokio::test]
async fn the_metadata_is_public_and_names_the_issuer() {
    let issuer = Issuer::new();
    let web = web(&issuer, |server| server).await;
    for path in ["", "/mcp"] {
        let path = format!("/.well-known/oauth-protected-resource{path}");
        let mut get = stateless(&path, "", "tools/list", json!({}));
        *get.method_mut() = hyper::Method::GET;
        get.headers_mut().remove("authorization");
        let reply = web.reply(get).await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.message()["resource"], RESOURCE);
        assert_eq!(reply.message()["authorization_servers"], json!([ISSUER]));
        assert_eq!(reply.message()["scopes_supported"], json!(["mcp"]));
    }
}

#[tokio::test]
async fn each_endpoint_is_a_resource_of_its_own() {
    let issuer = Issuer::new();
    let provider = Provider::new().await;
    provider.publish("/keys", &issuer.keys());
    let server = ResourceServer::new(RESOURCE, ISSUER).jwks(provider.keys()).client(loopback());
    let gateway = |server: ResourceServer| async {
        let desk = Personality::new("desk").toolset(["read"]);
        let engine = engine().tools([tool("read"), tool("write")]).personality(desk);
        let gateway = Gateway::builder(engine.build().unwrap()).build();
        Web::of(&gateway, HttpAccess::new().oauth(server).endpoint("front", "desk")).await
    };
    let web = gateway(server.clone()).await;
    let front = format!("{RESOURCE}/front");
    let get = |path: &str| {
        let mut get = stateless(path, "", "tools/list", json!({}));
        *get.method_mut() = hyper::Method::GET;
        get.headers_mut().remove("authorization");
        get
    };
    let well_known = "/.well-known/oauth-protected-resource/mcp";
    let metadata = web.reply(get(&format!("{well_known}/front"))).await;
    assert_eq!(metadata.message()["resource"], *front);
    assert_eq!(web.reply(get(&format!("{well_known}/back"))).await.status, 401);
    let refused = web.reply(get("/mcp/front")).await.challenge.unwrap();
    assert_eq!(
        refused,
        format!("Bearer resource_metadata=\"https://tools.example{well_known}/front\"")
    );
    let token = |audience: &str| issuer.token(|claims| claims["aud"] = json!(audience));
    let lists = async |web: &Web, path: &str, token: &str| {
        web.reply(stateless(path, token, "tools/list", json!({}))).await
    };
    let of_front = token(&front);
    assert_eq!(names(&lists(&web, "/mcp/front", &of_front).await), ["read"]);
    assert_eq!(lists(&web, "/mcp", &of_front).await.status, 401, "for the other endpoint only");
    assert_eq!(lists(&web, "/mcp/front", &token(RESOURCE)).await.status, 401);
    assert_eq!(names(&lists(&web, "/mcp", &token(RESOURCE)).await), ["read", "write"]);
    // A declared audience is that of all endpoints; a session stays that of one.
    let web = gateway(server.audience("all")).await;
    let of_all = token("all");
    assert_eq!(names(&lists(&web, "/mcp/front", &of_all).await), ["read"]);
    let session = web.session("/mcp", &of_all).await;
    let request = request("tools/list", &json!({}));
    let elsewhere = web.reply(post("/mcp/front", &of_all, Some(&session), &request)).await;
    assert_eq!(elsewhere.status, 404);
}

#[tokio::test]
async fn new_keys_of_the_issuer_are_fetched_but_not_for_every_unknown_one() {
    let (before, after) = (Issuer::new(), Issuer::new());
    let provider = Provider::new().await;
    provider.publish("/keys", &before.keys());
    let server = ResourceServer::new(RESOURCE, ISSUER).jwks(provider.keys()).client(loopback());
    let web = of(server).await;
    assert_eq!(list(&web, &before.token(|_| {})).await.status, 200);
    assert_eq!(provider.requests(), 1);
    let rotated = |issuer: &Issuer| {
        issuer.sign(&json!({ "alg": "ES256", "kid": "next", "typ": "at+jwt" }), &claims())
    };
    provider.publish("/keys", &after.keys().replace("\"ec\"", "\"next\""));
    for _ in 0..5 {
        assert_eq!(list(&web, &rotated(&after)).await.status, 401);
    }
    assert_eq!(provider.requests(), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(11)).await;
    tokio::time::resume();
    assert_eq!(list(&web, &rotated(&after)).await.status, 200);
    assert_eq!(provider.requests(), 2);
    // The old key is not one of the issuer any more.
    assert_eq!(list(&web, &before.token(|_| {})).await.status, 401);
    assert_eq!(list(&web, &rotated(&before)).await.status, 401);
}

#[tokio::test]
async fn the_keys_are_found_by_the_metadata_of_the_issuer_itself() {
    let issuer = Issuer::new();
    for path in ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"] {
        let provider = Provider::new().await;
        let name = provider.url.clone();
        provider.publish("/keys", &issuer.keys());
        let metadata = |issuer: &str| json!({ "issuer": issuer, "jwks_uri": provider.keys() });
        provider.publish(path, &metadata(&name));
        let token = issuer.token(|claims| claims["iss"] = json!(name));
        let web = of(ResourceServer::new(RESOURCE, &*name)).await;
        assert_eq!(list(&web, &token).await.status, 200, "{path}");
        provider.publish(path, &metadata("https://other.example"));
        let web = of(ResourceServer::new(RESOURCE, &*name)).await;
        assert_eq!(list(&web, &token).await.status, 401, "{path}");
    }
}

#[tokio::test]
async fn a_private_address_is_not_reached_unless_it_is_declared() {
    let issuer = Issuer::new();
    let provider = Provider::new().await;
    provider.publish("/keys", &issuer.keys());
    let web = of(ResourceServer::new(RESOURCE, ISSUER).jwks(provider.keys())).await;
    assert_eq!(list(&web, &issuer.token(|_| {})).await.status, 401);
    assert_eq!(provider.requests(), 0);
}

#[tokio::test]
async fn a_session_continues_with_the_next_token_and_not_with_one_of_other_rights() {
    let issuer = Issuer::new();
    let web = web(&issuer, |server| server).await;
    let session = web.session("/mcp", &issuer.token(|claims| claims["uti"] = json!("a"))).await;
    // Issuers add claims that mean nothing here, and differ in each token.
    let next = issuer.token(|claims| {
        claims["exp"] = json!(now() + 900);
        claims["uti"] = json!("b");
        claims["sid"] = json!("c");
    });
    assert_eq!(web.names(&next, &session).await, ["read", "write"]);
    let list = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" });
    for token in [
        issuer.token(|claims| claims["groups"] = json!([])),
        issuer.token(|claims| claims["sub"] = json!("bob")),
        issuer.token(|claims| claims["scope"] = json!("mcp")),
        issuer.token(|claims| claims["client_id"] = json!("another")),
    ] {
        assert_eq!(web.post(&token, Some(&session), &list).await.status, 404);
    }
}

#[tokio::test]
async fn a_stream_ends_when_the_token_that_opened_it_is_refused() {
    let issuer = Issuer::new();
    let web = web(&issuer, |server| server).await;
    let long = issuer.token(|_| {});
    let session = web.session("/mcp", &long).await;
    let listen = |token: &str, last: Option<&str>| {
        let mut get = post("/mcp", token, Some(&session), &json!({}));
        *get.method_mut() = hyper::Method::GET;
        if let Some(last) = last {
            get.headers_mut().insert("last-event-id", last.parse().unwrap());
        }
        get
    };
    let subscribe = |token: &str| {
        let filter = json!({ "notifications": { "toolsListChanged": true } });
        stateless("/mcp", token, "subscriptions/listen", filter)
    };
    // The leeway is a minute. On a busy machine, a token may be refused before its streams are open.
    let mut left = 1;
    let (short, refused_at) = loop {
        left *= 2;
        let expires = now() - 60 + left;
        let short = issuer.token(|it| it["exp"] = json!(expires));
        let ended = async {
            tokio::join!(
                web.reply(listen(&short, None)),
                web.reply(listen(&short, Some("0/0"))),
                web.reply(subscribe(&short)),
            )
        };
        let (first, again, subscribed) = timeout(HANGS, ended).await.unwrap();
        if [&first, &again, &subscribed].iter().all(|reply| reply.status == 200) {
            assert!(now() >= expires + 60, "not before: {first:?} {again:?}");
            assert!(subscribed.body.contains("acknowledged"), "{subscribed:?}");
            break (short, expires + 60);
        }
        assert!(now() >= expires + 60, "{first:?} {again:?} {subscribed:?}");
    };
    // The session continues with the next token, whose stream is still open.
    // Verification compares whole seconds.
    while now() <= refused_at {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(web.reply(listen(&short, None)).await.status, 401);
    for open in [listen(&long, None), subscribe(&long)] {
        let open = timeout(Duration::from_secs(3), web.reply(open)).await;
        assert!(open.is_err(), "{open:?}");
    }
    assert_eq!(web.names(&long, &session).await, ["read", "write"]);
}

/// The limit of verified identities with sessions.
const IDENTITIES: usize = 1024;

#[tokio::test]
async fn users_over_the_session_limit_are_told_when_to_retry() {
    let issuer = Issuer::new();
    let web = web(&issuer, |server| server).await;
    let begin = |user: usize| {
        let token = issuer.token(|claims| claims["sub"] = json!(format!("user-{user}")));
        (post("/mcp", &token, None, &initialize()), token)
    };
    let mut connection = web.connection().await;
    let mut first = None;
    for user in 0..IDENTITIES {
        let (request, token) = begin(user);
        connection.ready().await.unwrap();
        let reply = Reply::of(connection.send_request(request).await.unwrap()).await;
        assert_eq!(reply.status, 200, "user {user}: {reply:?}");
        first.get_or_insert((token, reply.session.unwrap()));
    }
    let (token, session) = first.unwrap();
    let refused = web.send(begin(IDENTITIES).0).await;
    let wait = refused.headers()["retry-after"].to_str().unwrap();
    assert_eq!((refused.status().as_u16(), wait), (503, "60"));
    assert_eq!(web.names(&token, &session).await, ["read", "write"], "a known user is served");
    assert_eq!(list(&web, ANA).await.status, 200, "so is a declared token");

    let mut end = post("/mcp", &token, Some(&session), &json!({}));
    *end.method_mut() = hyper::Method::DELETE;
    assert_eq!(web.reply(end).await.status, 202);
    assert_eq!(web.reply(begin(IDENTITIES).0).await.status, 200, "there is room again");
    web.end().await;
}

#[tokio::test]
async fn invalid_settings_are_refused() {
    for server in [
        ResourceServer::new("http://tools.example/mcp", ISSUER),
        ResourceServer::new(RESOURCE, "login.example"),
        ResourceServer::new(RESOURCE, ISSUER).algorithms([]),
        ResourceServer::new(RESOURCE, ISSUER).scope("a b"),
        ResourceServer::new(RESOURCE, ISSUER).jwks("http://login.example/keys"),
    ] {
        let gateway = Gateway::builder(engine().build().unwrap()).build();
        let web = Web::of(&gateway, HttpAccess::new().oauth(server)).await;
        let served = web.served.await.unwrap();
        assert!(matches!(served, Err(GatewayError::OAuth(_))), "{served:?}");
    }
}
