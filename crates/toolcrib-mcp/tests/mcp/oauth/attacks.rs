//! Servers, providers and pages that try to get a token, or to plant one.

use std::time::Duration;

use toolcrib_core::Secret;
use toolcrib_testbed::{IdentityFaults, visit};

use super::*;

async fn fails(setting: &Setting, faults: IdentityFaults) -> String {
    setting.provider.set_faults(faults);
    let error = login(&setting.client(), &[]).await.unwrap_err().to_string();
    assert!(setting.provider.requests("/token").is_empty(), "{error}");
    assert_eq!(setting.client().authorization().unwrap().status().unwrap(), None);
    error
}

fn faults(set: impl FnOnce(&mut IdentityFaults)) -> IdentityFaults {
    let mut faults = IdentityFaults::default();
    set(&mut faults);
    faults
}

#[tokio::test]
async fn an_answer_of_another_issuer_is_refused() {
    let setting = Setting::start().await;
    let evil = || Some("https://evil.example".to_owned());
    let error = fails(&setting, faults(|it| it.redirect_issuer = evil())).await;
    assert!(error.contains("the issuer in the redirect is `https://evil.example`"), "{error}");
    // Not the same text, although the same address.
    let similar = format!("{}/", setting.provider.issuer());
    let error = fails(&setting, faults(|it| it.redirect_issuer = Some(similar))).await;
    assert!(error.contains("the issuer in the redirect"), "{error}");
    let error = fails(&setting, faults(|it| it.no_redirect_issuer = true)).await;
    assert!(error.contains("does not name its issuer"), "{error}");
    let error = fails(&setting, faults(|it| it.metadata_issuer = evil())).await;
    assert!(error.contains("the issuer in the authorization server's metadata"), "{error}");
}

#[tokio::test]
async fn an_injected_code_does_not_end_a_login() {
    let setting = Setting::start().await;
    let client = setting.client();
    let show = |address: &str| {
        let address = address.to_owned();
        let query = address.split_once('?').unwrap().1.to_owned();
        let fields: Vec<_> = url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let of = |name: &str| fields.iter().find(|(key, _)| key == name).unwrap().1.clone();
        let (redirect, state) = (of("redirect_uri"), of("state"));
        tokio::spawn(async move {
            let planted = [
                format!("{redirect}?code=planted&state=guessed"),
                format!("{redirect}?code=planted"),
                format!("{redirect}?code=planted&state={state}&state={state}"),
                redirect.replace("/callback", &format!("/other?code=planted&state={state}")),
            ];
            for address in planted {
                assert_eq!(visit(&address).await.unwrap().0, 404, "{address}");
            }
            browse(&address).await
        });
    };
    let authorization = client.authorization().unwrap();
    authorization.login(&[], show, &CancellationToken::new()).await.unwrap();
    let exchanged = setting.provider.requests("/token");
    assert_eq!(exchanged.len(), 1);
    assert!(exchanged[0]["code"].starts_with("code-"));
}

#[tokio::test]
async fn a_wrong_state_is_waited_out() {
    let setting = Setting::start().await;
    setting.provider.set_faults(faults(|it| it.redirect_state = Some("other".to_owned())));
    let client = setting.client();
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let show = |address: &str| {
        let address = address.to_owned();
        tokio::spawn(async move {
            assert_eq!(browse(&address).await.unwrap(), 404);
            stop.cancel();
        });
    };
    let authorization = client.authorization().unwrap();
    let error = authorization.login(&[], show, &cancel).await.unwrap_err();
    assert!(matches!(error, OAuthError::Cancelled), "{error}");
    assert!(setting.provider.requests("/token").is_empty());
}

#[tokio::test]
async fn a_server_cannot_get_a_token_of_another_resource() {
    let setting = Setting::start().await;
    setting.server.set_resource("https://bank.example/mcp");
    let error = login(&setting.client(), &[]).await.unwrap_err().to_string();
    assert!(error.contains("the resource in the server's metadata"), "{error}");
    assert!(setting.provider.requests("/authorize").is_empty());
}

#[tokio::test]
async fn a_token_of_another_server_is_not_accepted_or_sent() {
    let setting = Setting::start().await;
    let other = ProtectedServer::start(&setting.provider).await.unwrap();
    login(&setting.client(), &[]).await.unwrap();
    // The same store and name, another address.
    let http = Http::new(other.url()).oauth(setting.oauth());
    let client = mcp_client("guarded", http).build().unwrap();
    client.tools().await.unwrap_err();
    let sent = other.authorizations();
    assert!(!sent.is_empty() && sent.iter().all(Option::is_none), "{sent:?}");
}

#[tokio::test]
async fn a_registration_is_not_used_at_another_provider() {
    let setting = Setting::start().await;
    login(&setting.client(), &[]).await.unwrap();
    let second = IdentityProvider::start().await.unwrap();
    setting.server.set_issuer(second.issuer());
    setting.provider.revoke_all(true);
    setting.client().tools().await.unwrap_err();
    login(&setting.client(), &[]).await.unwrap();
    assert_eq!(second.requests("/register").len(), 1);
    let known = &setting.provider.requests("/authorize")[0]["client_id"];
    assert_ne!(second.requests("/authorize")[0]["client_id"], *known);
}

#[tokio::test]
async fn a_client_secret_goes_to_its_issuer_only() {
    let setting = Setting::start().await;
    let evil = IdentityProvider::start().await.unwrap();
    setting.server.set_issuer(evil.issuer());
    let oauth = setting.oauth().client_id("machine").issuer(setting.provider.issuer());
    let oauth = oauth.client_secret(Secret::new("a secret of the machine"));
    for oauth in [oauth.clone(), oauth.client_credentials()] {
        let client = setting.client_with(oauth);
        let error = login(&client, &[]).await.unwrap_err().to_string();
        assert!(error.contains("the authorization server in the server's metadata"), "{error}");
    }
    assert!(evil.requests("/token").is_empty() && evil.requests("/authorize").is_empty());
    let without = setting.oauth().client_id("machine").client_secret(Secret::new("a secret"));
    let http = Http::new(setting.server.url()).oauth(without);
    let error = mcp_client("guarded", http).build().unwrap_err().to_string();
    assert!(error.contains("needs `issuer`"), "{error}");
}

#[tokio::test]
async fn a_redirect_to_another_address_is_refused() {
    let setting = Setting::start().await;
    let elsewhere = Some("https://evil.example/callback".to_owned());
    let error = fails(&setting, faults(|it| it.registered_redirect = elsewhere)).await;
    assert!(error.contains("the redirect address in the registration"), "{error}");
}

#[tokio::test]
async fn an_endpoint_without_encryption_is_not_used() {
    let setting = Setting::start().await;
    let elsewhere = Some("http://evil.example/token".to_owned());
    let error = fails(&setting, faults(|it| it.token_endpoint = elsewhere)).await;
    assert!(error.contains("does not use https"), "{error}");
}

#[tokio::test]
async fn a_provider_without_pkce_or_registration_is_refused_with_advice() {
    let setting = Setting::start().await;
    let error = fails(&setting, faults(|it| it.no_pkce = true)).await;
    assert!(error.contains("S256"), "{error}");
    let error = fails(&setting, faults(|it| it.no_registration = true)).await;
    assert!(error.contains("`client_id`"), "{error}");
    let error = fails(&setting, faults(|it| it.refuses_consent = true)).await;
    assert!(error.contains("access_denied"), "{error}");
}

#[tokio::test]
async fn a_locked_or_damaged_record_ends_in_an_error() {
    let setting = Setting::start().await;
    let client = setting.client();
    login(&client, &[]).await.unwrap();
    let key = setting.store.keys().pop().unwrap();
    setting.store.write(&key, Some("{ \"access_token\": \"hush")).unwrap();
    let error = setting.client().tools().await.unwrap_err().to_string();
    assert!(error.contains("damaged") && !error.contains("hush"), "{error}");
    let lock = setting.store.try_lock(&key).unwrap().unwrap();
    assert!(setting.store.try_lock(&key).unwrap().is_none());
    drop(lock);
    let login = tokio::time::timeout(Duration::from_secs(300), async {
        let never = CancellationToken::new();
        client.authorization().unwrap().logout(&never).await
    });
    login.await.unwrap().unwrap();
    assert!(setting.store.keys().is_empty());
}
