//! Where a request may go.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use toolcrib_capabilities::http::{
    HeaderValue, HostPattern, HttpClient, HttpError, HttpErrorKind, HttpRequest, Method,
};
use toolcrib_core::NetworkRules;

use crate::support::{Names, Server, get, local, ok, redirect, send, text};

fn hosts(patterns: &[&str]) -> Vec<HostPattern> {
    patterns.iter().map(|pattern| pattern.parse().unwrap()).collect()
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_however_it_is_spelt() {
    let server = Server::start(|_| ok("inside")).await;
    let client = HttpClient::builder().build();
    for spelling in [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "127。0。0。1",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[::127.0.0.1]",
        "[2002:7f00:1::]",
        "[::1]",
        "0.0.0.0",
        "[::]",
    ] {
        let error = get(&client, &server.url_of(spelling, "/")).await.unwrap_err();
        assert!(matches!(error, HttpError::AddressRefused { .. }), "{spelling}: {error}");
        assert!(!error.may_have_reached_server());
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_systems_names_of_this_machine_lead_nowhere() {
    let server = Server::start(|_| ok("inside")).await;
    let client = HttpClient::builder().build();
    for spelling in ["localhost", "LOCALHOST", "localhost.", "loc%61lhost"] {
        let error = get(&client, &server.url_of(spelling, "/")).await.unwrap_err();
        assert!(matches!(error, HttpError::AddressRefused { .. }), "{spelling}: {error}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_name_with_one_refused_address_is_refused_and_nothing_is_dialed() {
    let server = Server::start(|_| ok("inside")).await;
    for answer in [["127.0.0.1", "10.0.0.7"], ["10.0.0.7", "127.0.0.1"]] {
        let names = Names::default().with("both.example", &[&answer]);
        let client = local().resolver(names).build();
        let error = get(&client, &server.url_of("both.example", "/?token=s3cret")).await;
        assert_eq!(
            error.unwrap_err().to_string(),
            "`both.example` leads to 10.0.0.7, which is private; if this is intended, allow that \
             address for this client"
        );
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn the_address_that_was_judged_is_the_one_that_is_dialed() {
    let server = Server::start(|_| ok("here")).await;
    let names = Names::default().with("turn.example", &[&["127.0.0.1"], &["169.254.169.254"]]);
    let client = local().resolver(names.clone()).build();
    let url = server.url_of("turn.example", "/");

    // One lookup, and what it would answer the next time does not matter.
    assert_eq!(text(&get(&client, &url).await.unwrap()), "here");
    assert_eq!(names.asked(), ["turn.example"]);
    // An open connection leads where it led.
    assert_eq!(text(&get(&client, &url).await.unwrap()), "here");
    assert_eq!(names.asked(), ["turn.example"]);
    assert_eq!(server.connections(), 1);

    // A new one is judged anew.
    let again = local().resolver(names.clone()).build();
    let error = get(&again, &url).await.unwrap_err();
    assert!(matches!(error, HttpError::AddressRefused { .. }), "{error}");
    assert_eq!(names.asked().len(), 2);
}

#[tokio::test]
async fn a_name_is_asked_for_as_it_is_compared() {
    let server = Server::start(|_| ok("")).await;
    let names = Names::default().with("a.example", &[&["::ffff:127.0.0.1"]]);
    let client = local().resolver(names.clone()).allowed_hosts(Some(hosts(&["a.example"]))).build();
    get(&client, &server.url_of("A.Example.", "/x?y=z#w")).await.unwrap();
    assert_eq!(names.asked(), ["a.example"]);
    let asked = &server.asked()[0];
    assert_eq!(asked.line(), "GET /x?y=z HTTP/1.1");
    assert_eq!(asked.header("host"), Some(&*format!("a.example:{}", server.address.port())));
}

#[tokio::test]
async fn the_next_address_is_tried_where_one_takes_no_connection() {
    let server = Server::start(|_| ok("second")).await;
    // Nothing listens there.
    let names = Names::default().with("two.example", &[&["127.0.0.9", "127.0.0.1"]]);
    let client = HttpClient::builder()
        .allow_addresses(["127.0.0.0/8".parse().unwrap()])
        .resolver(names)
        .build();
    assert_eq!(text(&get(&client, &server.url_of("two.example", "/")).await.unwrap()), "second");
}

#[tokio::test]
async fn what_cannot_be_found_or_connected_to_was_certainly_not_asked() {
    let names =
        Names::default().with("empty.example", &[&[]]).with("gone.example", &[&["127.0.0.1"]]);
    let client = local().resolver(names).build();
    let port = {
        // Nobody listens there any more.
        Server::start(|_| ok("")).await.address.port()
    };
    for host in ["unknown.example", "empty.example"] {
        let error = get(&client, &format!("http://{host}/")).await.unwrap_err();
        assert!(matches!(error, HttpError::Resolve { .. }), "{error}");
        assert!(error.to_string().contains(host), "{error}");
        assert!(!error.may_have_reached_server());
    }
    tokio::task::yield_now().await;
    let error = get(&client, &format!("http://gone.example:{port}/")).await.unwrap_err();
    assert!(matches!(error, HttpError::Connect { .. }), "{error}");
    assert!(!error.may_have_reached_server());
}

#[tokio::test]
async fn a_client_asks_only_the_hosts_that_it_is_bound_to() {
    let server = Server::start(|_| ok("")).await;
    let names = Names::default()
        .with("a.example", &[&["127.0.0.1"]])
        .with("b.example", &[&["127.0.0.1"]])
        .with("x.b.example", &[&["127.0.0.1"]]);
    let all = local().resolver(names.clone()).build();
    let bound = all.only(hosts(&["a.example", "*.b.example"]));
    let narrower = bound.only(hosts(&["*.example"]));
    let other = bound.only(hosts(&["b.example"]));
    let built =
        local().resolver(names).allowed_hosts(Some(hosts(&["a.example", "*.b.example"]))).build();

    let allowed = async |client: &HttpClient, host: &str| match get(
        client,
        &server.url_of(host, "/"),
    )
    .await
    {
        Ok(_) => true,
        Err(HttpError::HostNotAllowed { host: named }) => {
            assert_eq!(named, host);
            false
        }
        Err(error) => panic!("{error}"),
    };
    for client in [&bound, &built, &narrower] {
        assert!(allowed(client, "a.example").await);
        assert!(!allowed(client, "b.example").await);
        assert!(allowed(client, "x.b.example").await);
        assert!(!allowed(client, "127.0.0.1").await);
    }
    // Narrowed twice, it is bound by both.
    assert!(!allowed(&other, "a.example").await);
    assert!(!allowed(&other, "b.example").await);
    assert!(!allowed(&all.only([]), "a.example").await);
    assert!(allowed(&all, "b.example").await);
}

#[tokio::test]
async fn a_redirect_is_bound_by_the_same_hosts() {
    let server = Server::start(|_| redirect(302, "http://b.example/")).await;
    let names = Names::default().with("a.example", &[&["127.0.0.1"]]);
    let client = local().resolver(names.clone()).build().only(hosts(&["a.example"]));
    let error = get(&client, &server.url_of("a.example", "/")).await.unwrap_err();
    assert!(error.to_string().contains("`b.example` is not among the permitted hosts"), "{error}");
    assert_eq!(names.asked(), ["a.example"]);
}

#[tokio::test]
async fn what_the_client_says_by_itself_cannot_be_said_twice() {
    let server = Server::start(|_| ok("")).await;
    let client = local().user_agent(HeaderValue::from_static("desk/1")).build();
    for name in ["host", "content-length", "transfer-encoding", "connection", "te", "upgrade"] {
        let mut request = HttpRequest::get(server.url("/"));
        request.headers.insert(name, HeaderValue::from_static("x"));
        let error = send(&client, request).await.unwrap_err();
        assert!(matches!(error, HttpError::Request { .. }), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
    for method in [Method::CONNECT, Method::TRACE] {
        let error = send(&client, HttpRequest::new(method, server.url("/"))).await.unwrap_err();
        assert!(matches!(error, HttpError::Request { .. }), "{error}");
    }
    assert_eq!(server.connections(), 0);

    let mut request = HttpRequest::new(Method::PUT, server.url("//evil.example/a|b?c='`"));
    request.body = Some("body".into());
    send(&client, request).await.unwrap();
    send(&client, HttpRequest::new(Method::DELETE, server.url("/"))).await.unwrap();
    let asked = server.asked();
    assert_eq!(asked[0].line(), "PUT //evil.example/a|b?c=%27` HTTP/1.1");
    assert_eq!(asked[0].body, "body");
    assert_eq!(asked[0].header("user-agent"), Some("desk/1"));
    assert_eq!(asked[0].header("accept-encoding"), Some("gzip"));
    assert_eq!(asked[1].body, "");
}

#[tokio::test]
async fn the_debug_output_of_a_request_contains_no_secret() {
    for (url, seen) in [
        ("https://a.example:8443/path?token=s3cret#s3cret", "https://a.example:8443/path"),
        ("https://s3cret:s3cret@a.example/path", "https://a.example/path"),
        ("http:s3cret@a.example\\path", "http://a.example/path"),
        ("s3cret:s3cret@a.example/path", "cannot be used"),
        ("//s3cret@a.example/path", "cannot be used"),
    ] {
        let mut request = HttpRequest::get(url);
        for name in ["authorization", "x-api-key", "x-goog-api-key", "cookie"] {
            request.headers.insert(name, HeaderValue::from_static("s3cret"));
        }
        request.body = Some("s3cret".into());
        let shown = format!("{request:?}");
        assert!(shown.contains(seen) && shown.contains("x-goog-api-key"), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    let server = Server::start(|_| ok("s3cret")).await;
    let answer = get(&local().build(), &server.url("/?token=s3cret")).await.unwrap();
    assert!(!format!("{answer:?}").contains("s3cret"), "{answer:?}");
    let asked = HttpRequest::get(server.url("/?token=s3cret"));
    let stream = local().build().stream(asked, &CancellationToken::new()).await.unwrap();
    assert!(!format!("{stream:?}").contains("s3cret"), "{stream:?}");
}

#[tokio::test]
async fn what_was_not_sent_is_told_from_what_could_not_be() {
    let closed = Server::start(|_| ok("")).await.url("/");
    let inside = Server::start(|_| redirect(302, "http://10.0.0.1/")).await;
    let client = local().resolver(Names::default()).build();
    for (url, kind) in [
        ("file:///x", HttpErrorKind::Refused),
        ("http://10.0.0.1/", HttpErrorKind::Refused),
        ("http://unknown.example/", HttpErrorKind::Unreachable),
        (&closed, HttpErrorKind::Unreachable),
        (&inside.url("/"), HttpErrorKind::Redirect),
    ] {
        let error = get(&client, url).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
    let error = get(&client.only([]), &closed).await.unwrap_err();
    assert_eq!(error.kind(), HttpErrorKind::Refused);
}

#[tokio::test]
async fn rules_only_narrow_what_the_client_may_ask_and_denials_win() {
    let server = Server::start(|_| ok("here")).await;
    let names = ["a.test", "b.a.test", "c.test"];
    let known =
        names.iter().fold(Names::default(), |known, name| known.with(name, &[&["127.0.0.1"]]));
    let texts = |texts: &[&str]| texts.iter().map(|text| Arc::from(*text)).collect::<Vec<_>>();
    type Case<'a> = (&'a [&'a str], Option<&'a [&'a str]>, &'a [&'a str], &'a [&'a str]);
    let cases: [Case<'_>; 7] = [
        // declared, allowed, denied: what is left
        (&["a.test", "c.test"], None, &[], &["a.test", "c.test"]),
        (&["a.test", "c.test"], Some(&["c.test"]), &[], &["c.test"]),
        (&["a.test"], Some(&["*.test"]), &[], &["a.test"]),
        (&["a.test"], Some(&["c.test"]), &[], &[]),
        (&["*.test"], Some(&[]), &[], &[]),
        (&["*.test"], None, &["*.a.test"], &["a.test", "c.test"]),
        (&["*.test"], Some(&["*.a.test", "a.test"]), &["a.test"], &["b.a.test"]),
    ];
    for (declared, allow, deny, left) in cases {
        let rules = NetworkRules { allow: allow.map(texts), deny: texts(deny) };
        let client = local().resolver(known.clone()).build().only(hosts(declared));
        let client = client.within(&rules).unwrap();
        for name in names {
            let asked = get(&client, &server.url_of(name, "/")).await;
            if left.contains(&name) {
                assert_eq!(text(&asked.unwrap()), "here", "{rules:?}: {name}");
            } else {
                let error = asked.unwrap_err();
                let refused = matches!(error, HttpError::HostNotAllowed { .. });
                assert!(refused, "{rules:?}: {name}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_redirect_to_a_denied_host_is_not_followed() {
    let target = Server::start(|_| ok("secret")).await;
    let location = target.url_of("denied.test", "/");
    let server = Server::start(move |_| redirect(302, &location)).await;
    let names = Names::default()
        .with("fine.test", &[&["127.0.0.1"]])
        .with("denied.test", &[&["127.0.0.1"]]);
    let rules = NetworkRules { allow: None, deny: vec!["denied.test".into()] };
    let client = local().resolver(names).build().within(&rules).unwrap();
    let error = get(&client, &server.url_of("fine.test", "/")).await.unwrap_err();
    assert!(error.to_string().contains("denied.test"), "{error}");
    assert_eq!(target.connections(), 0);
}

#[test]
fn a_rule_that_names_no_host_lets_nothing_be_asked() {
    let rules = NetworkRules { allow: None, deny: vec!["https://a.test".into()] };
    let error = HttpClient::builder().build().within(&rules).unwrap_err();
    assert_eq!(error.pattern, "https://a.test");
}
