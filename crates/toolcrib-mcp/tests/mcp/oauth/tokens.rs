//! Tokens from the login to the logout.

use std::{
    io,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use serde_json::json;
use toolcrib_core::{CancellationToken, Secret};
use toolcrib_mcp::oauth::{TokenLock, TokenStore};

use super::*;

#[tokio::test]
async fn a_login_gives_tokens_to_this_identity_and_no_other() {
    let setting = Setting::start().await;
    let client = setting.client().on_behalf_of(&of_principal("ana"));
    let error = client.tools().await.unwrap_err().to_string();
    assert!(error.contains("run `toolcrib mcp login guarded --as ana`"), "{error}");
    assert_eq!(client.authorization().unwrap().status().unwrap(), None);

    let granted = login(&client, &["extra"]).await.unwrap();
    assert_eq!(granted.scopes, ["mcp:read", "extra"]);
    assert_eq!(granted.issuer, setting.provider.issuer());
    assert!(granted.renewable);
    assert!(granted.valid_for.unwrap() > Duration::from_secs(3500));

    let fresh = setting.client();
    let names = |tools: Vec<toolcrib_core::Tool>| tools.len();
    assert_eq!(fresh.on_behalf_of(&of_principal("ana")).tools().await.map(names).unwrap(), 2);
    let error = fresh.on_behalf_of(&of_principal("bob")).tools().await.unwrap_err().to_string();
    assert!(error.contains("--as bob"), "{error}");

    let asked = &setting.provider.requests("/authorize")[0];
    assert_eq!(asked["resource"], setting.server.url());
    assert!(asked["redirect_uri"].starts_with("http://127.0.0.1:"), "{asked:?}");
    assert!(asked["state"].len() >= 43 && asked["code_challenge"].len() == 43);
    let exchanged = &setting.provider.requests("/token")[0];
    assert_eq!(exchanged["resource"], setting.server.url());
    assert_eq!(exchanged["redirect_uri"], asked["redirect_uri"]);
}

#[tokio::test]
async fn many_requests_share_one_refresh() {
    let setting = Setting::start().await;
    login(&setting.client(), &[]).await.unwrap();
    // Expired at the server, not yet here.
    setting.provider.revoke_all(false);
    setting.provider.set_delay(Duration::from_millis(200));
    let client = setting.client();
    let client = &client;
    let listed = futures_util::future::join_all((0..4).map(async |_| client.tools().await)).await;
    assert!(listed.iter().all(Result::is_ok));
    setting.provider.revoke_all(false);
    let calls = (0..16).map(async |n| call(client, "read", json!({ "n": n })).await);
    let calls = futures_util::future::join_all(calls).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    let refreshes = setting.provider.requests("/token");
    let refreshes = refreshes.iter().filter(|it| it["grant_type"] == "refresh_token").count();
    assert_eq!(refreshes, 2);
    assert_eq!(setting.server.calls(), 16);
}

#[tokio::test]
async fn an_expired_token_is_renewed_before_it_is_sent() {
    let setting = Setting::start().await;
    setting.provider.set_life(0);
    login(&setting.client(), &[]).await.unwrap();
    let before = setting.server.authorizations().len();
    setting.provider.set_life(3600);
    setting.client().tools().await.unwrap();
    let sent = setting.server.authorizations().split_off(before);
    let first = setting.learned.lock()[1].clone();
    assert!(sent.iter().any(Option::is_some), "{sent:?}");
    assert!(sent.iter().flatten().all(|sent| !sent.ends_with(&first)), "{sent:?}");
}

#[tokio::test]
async fn a_short_lived_token_is_not_renewed_at_each_request() {
    let setting = Setting::start().await;
    setting.provider.set_life(29);
    login(&setting.client(), &[]).await.unwrap();
    let client = setting.client();
    for n in 0..3 {
        call(&client, "read", json!({ "n": n })).await.unwrap();
    }
    assert_eq!(setting.provider.requests("/token").len(), 1);
}

#[tokio::test]
async fn a_login_of_one_client_id_is_not_anothers() {
    let setting = Setting::start().await;
    login(&setting.client(), &[]).await.unwrap();
    setting.client().tools().await.unwrap();
    let other = setting.oauth().client_id("another");
    let error = setting.client_with(other).tools().await.unwrap_err().to_string();
    assert!(error.contains("toolcrib mcp login guarded`"), "{error}");
}

#[tokio::test]
async fn a_login_of_one_grant_is_not_anothers() {
    let setting = Setting::start().await;
    setting.provider.add_client("machine", "a secret of the machine");
    let oauth = || {
        let oauth = setting.oauth().client_id("machine").issuer(setting.provider.issuer());
        oauth.client_secret(Secret::new("a secret of the machine"))
    };
    let grants = || -> Vec<_> {
        let requests = setting.provider.requests("/token");
        requests.iter().map(|asked| asked["grant_type"].clone()).collect()
    };
    // The client's own token is not a person's login.
    setting.client_with(oauth().client_credentials()).tools().await.unwrap();
    let error = setting.client_with(oauth()).tools().await.unwrap_err().to_string();
    assert!(error.contains("toolcrib mcp login guarded`"), "{error}");
    // Neither is a person's login the client's own token.
    login(&setting.client_with(oauth()), &[]).await.unwrap();
    assert_eq!(grants(), ["client_credentials", "authorization_code"]);
    setting.client_with(oauth()).tools().await.unwrap();
    setting.provider.revoke_all(true);
    setting.client_with(oauth().client_credentials()).tools().await.unwrap();
    assert_eq!(grants()[2..], ["client_credentials"]);
}

#[tokio::test]
async fn two_processes_refresh_once() {
    let setting = Setting::start().await;
    login(&setting.client(), &[]).await.unwrap();
    setting.provider.revoke_all(false);
    setting.provider.set_delay(Duration::from_millis(100));
    // Two clients share nothing but the store.
    let (a, b) = (setting.client(), setting.client());
    let (a, b) = tokio::join!(a.tools(), b.tools());
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
    assert_eq!(setting.provider.requests("/token").len(), 2);
}

/// Tokens whose writes can fail.
#[derive(Clone)]
struct FailingTokens {
    tokens: MemoryTokens,
    fails: Arc<AtomicBool>,
}

impl TokenStore for FailingTokens {
    fn read(&self, key: &str) -> io::Result<Option<String>> {
        self.tokens.read(key)
    }

    fn write(&self, key: &str, record: Option<&str>) -> io::Result<()> {
        if self.fails.load(Ordering::Acquire) {
            return Err(io::Error::other("the database is away"));
        }
        self.tokens.write(key, record)
    }

    fn try_lock(&self, key: &str) -> io::Result<Option<TokenLock>> {
        self.tokens.try_lock(key)
    }
}

#[tokio::test]
async fn renewed_tokens_that_cannot_be_stored_are_used_and_stored_later() {
    let setting = Setting::start().await;
    login(&setting.client(), &[]).await.unwrap();
    let fails = Arc::new(AtomicBool::new(true));
    let store = FailingTokens { tokens: setting.store.clone(), fails: Arc::clone(&fails) };
    let client = setting.client_with(OAuth::new(store));
    client.tools().await.unwrap();
    setting.provider.revoke_all(false);
    call(&client, "read", json!({})).await.unwrap();
    // Another process waits for them, and does not send the refresh token that was used.
    let other = setting.client();
    let (listed, ()) = tokio::join!(other.tools(), async { fails.store(false, Ordering::Release) });
    listed.unwrap();
    assert_eq!(setting.provider.requests("/token").len(), 2);
    call(&client, "read", json!({})).await.unwrap();
    call(&other, "read", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_revoked_login_is_not_tried_again() {
    let setting = Setting::start().await;
    login(&setting.client(), &[]).await.unwrap();
    setting.provider.revoke_all(true);
    let client = setting.client();
    for _ in 0..3 {
        let error = client.tools().await.unwrap_err().to_string();
        assert!(error.contains("toolcrib mcp login guarded`"), "{error}");
    }
    assert_eq!(setting.provider.requests("/token").len(), 2);
    login(&client, &[]).await.unwrap();
    setting.client().tools().await.unwrap();
    // The registration was kept, if its address was free.
    let asked = setting.provider.requests("/authorize");
    let is_same = |name: &str| asked[0][name] == asked[1][name];
    assert_eq!(is_same("redirect_uri"), is_same("client_id"));
}

#[tokio::test]
async fn a_demanded_scope_is_added_by_the_next_login() {
    let setting = Setting::start().await;
    setting.server.require_scope("mcp:write");
    let client = setting.client();
    login(&client, &[]).await.unwrap();
    let client = setting.client();
    call(&client, "read", json!({})).await.unwrap();
    call(&client, "write", json!({})).await.unwrap_err();
    assert_eq!(setting.server.calls(), 1);
    let status = client.authorization().unwrap().status().unwrap().unwrap();
    assert_eq!(status.demanded, ["mcp:write"]);
    let granted = login(&client, &[]).await.unwrap();
    assert_eq!(granted.scopes, ["mcp:read", "mcp:write"]);
    assert!(granted.demanded.is_empty());
    call(&setting.client(), "write", json!({})).await.unwrap();
}

#[tokio::test]
async fn a_logout_revokes_the_tokens_and_forgets_them() {
    let setting = Setting::start().await;
    let client = setting.client();
    login(&client, &[]).await.unwrap();
    let never = CancellationToken::new();
    let authorization = client.authorization().unwrap();
    let (had, error) = authorization.logout(&never).await.unwrap();
    assert!(had && error.is_none(), "{error:?}");
    assert!(setting.provider.requests("/revoke")[0]["token"].starts_with("refresh-token-"));
    assert_eq!(authorization.status().unwrap(), None);
    assert!(setting.client().tools().await.is_err());
    let (had, _) = authorization.logout(&never).await.unwrap();
    assert!(!had);
}

#[tokio::test]
async fn a_client_gets_its_own_token_without_a_person() {
    let setting = Setting::start().await;
    setting.provider.add_client("machine", "a secret of the machine");
    let oauth = || {
        let oauth = setting.oauth().client_id("machine").issuer(setting.provider.issuer());
        oauth.client_secret(Secret::new("a secret of the machine")).client_credentials()
    };
    let client = setting.client_with(oauth());
    let calls = (0..4).map(async |n| call(&client, "read", json!({ "n": n })).await);
    let calls = futures_util::future::join_all(calls).await;
    assert!(calls.iter().all(Result::is_ok), "{calls:?}");
    setting.provider.revoke_all(true);
    call(&client, "read", json!({ "n": "again" })).await.unwrap();
    assert_eq!(setting.provider.requests("/token").len(), 2);
    assert!(setting.provider.requests("/authorize").is_empty());
}

#[tokio::test]
async fn every_secret_is_known_to_the_redactor_and_none_is_in_an_error() {
    let setting = Setting::start().await;
    let client = setting.client();
    login(&client, &[]).await.unwrap();
    let learned = setting.learned.lock().clone();
    for kind in ["code-", "access-token-", "refresh-token-"] {
        assert!(learned.iter().any(|secret| secret.starts_with(kind)), "{kind}: {learned:?}");
    }
    // The server quotes the refused token.
    setting.provider.revoke_all(true);
    let error = setting.client().tools().await.unwrap_err();
    let texts = format!("{error} {error:?} {:?}", client.authorization());
    assert!(!texts.contains("token-"), "{texts}");
}

#[tokio::test]
async fn a_refused_fresh_token_is_reported_with_its_audience_and_what_the_server_says() {
    let setting = Setting::start().await;
    login(&setting.client(), &[]).await.unwrap();
    let long = "x".repeat(1000);
    let says = format!(", error=\"invalid_token\", error_description=\"no TOKEN \tfor {long}\"");
    setting.server.refuse_tokens(&says);
    let refused = |error: String| {
        let url = setting.server.url();
        let says =
            format!("it refused a token for the audience `{url}`: invalid_token: no (token)");
        assert!(error.contains(&says) && error.contains("xx…; check"), "{error}");
        assert!(!error.contains('\t') && !error.contains("access-token"), "{error}");
        error
    };
    let error = refused(setting.client().tools().await.unwrap_err().to_string());
    assert!(error.contains("or run `toolcrib mcp login guarded`"), "{error}");
    // The second one was refreshed after the refusal of the first.
    assert_eq!(setting.provider.requests("/token").len(), 2);

    setting.provider.add_client("machine", "a secret of the machine");
    let oauth = setting.oauth().client_id("machine").issuer(setting.provider.issuer());
    let oauth = oauth.client_secret(Secret::new("a secret of the machine")).client_credentials();
    let error = refused(setting.client_with(oauth).tools().await.unwrap_err().to_string());
    assert!(error.contains("`scopes`"), "{error}");
}
