//! Following redirects.

use toolcrib_capabilities::http::{
    HeaderValue, HttpClient, HttpError, HttpErrorKind, HttpRequest, Method, RedirectPolicy,
    StatusCode,
};

use crate::support::{Names, Server, get, local, ok, redirect, send, text};

/// A server that redirects `/` to `location`, with `status`, and returns any other request.
async fn redirecting(status: u16, location: &str) -> Server {
    let location = location.to_owned();
    Server::start(move |asked| {
        if asked.line().contains(" / ") {
            redirect(status, &location)
        } else {
            ok(&format!("{}, {}", asked.line(), asked.body))
        }
    })
    .await
}

/// A client that may be redirected to all of these.
fn reaching(servers: &[&Server]) -> HttpClient {
    let addresses = servers.iter().map(|server| server.address.into());
    HttpClient::builder().allow_addresses(addresses).build()
}

#[tokio::test]
async fn a_redirect_is_followed_and_says_where_it_led() {
    let server = redirecting(302, "/there?a=b#c").await;
    let answer = get(&local().build(), &server.url("/")).await.unwrap();
    assert_eq!(text(&answer), "GET /there?a=b HTTP/1.1, ");
    assert_eq!(answer.final_url.as_str(), server.url("/there?a=b"));
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test]
async fn what_is_asked_next_goes_by_status_and_method() {
    for (status, method, next) in [
        (301, "GET", "GET"),
        (301, "POST", "GET"),
        (301, "PUT", "PUT"),
        (302, "HEAD", "HEAD"),
        (302, "POST", "GET"),
        (302, "DELETE", "DELETE"),
        (303, "POST", "GET"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (307, "POST", "POST"),
        (307, "GET", "GET"),
        (308, "PUT", "PUT"),
    ] {
        let server = redirecting(status, "/there").await;
        let mut request = HttpRequest::new(method.parse().unwrap(), server.url("/"));
        let with_body = !matches!(method, "GET" | "HEAD");
        if with_body {
            request.body = Some("{}".into());
            request.headers.insert("content-type", HeaderValue::from_static("application/json"));
        }
        // The body of a HEAD's answer is none, so the server has to tell.
        send(&local().build(), request).await.unwrap();
        let asked = server.asked().pop().unwrap();
        let case = format!("{status} {method}");
        assert_eq!(asked.line(), format!("{next} /there HTTP/1.1"), "{case}");
        let kept = with_body && next == method;
        assert_eq!(asked.body, if kept { "{}" } else { "" }, "{case}");
        assert_eq!(asked.header("content-type").is_some(), kept, "{case}");
    }
}

#[tokio::test]
async fn a_redirect_inside_is_refused() {
    for location in [
        "http://169.254.169.254/latest/meta-data/",
        "http://127.0.0.2/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "//192.168.0.1/x",
        "http://0x7f.0.0.2/",
        "http://[::ffff:a00:1]/",
        "http://100.100.100.200/",
        "http://turned.example/",
        "http://[fd00:ec2::254]/",
    ] {
        let server = redirecting(302, location).await;
        let names = Names::default().with("turned.example", &[&["8.8.8.8", "169.254.169.254"]]);
        let client = local().resolver(names).build();
        let error = get(&client, &server.url("/")).await.unwrap_err();
        let HttpError::Redirected { host, source } = &error else { panic!("{location}: {error}") };
        assert_eq!(host, "127.0.0.1");
        // Of a name that leads to several addresses the first that is refused is named.
        let refused =
            matches!(**source, HttpError::AddressRefused { .. } | HttpError::PortRefused { .. });
        assert!(refused, "{location}: {error}");
        assert!(error.may_have_reached_server());
    }
}

#[tokio::test]
async fn a_redirect_to_what_is_no_http_is_refused() {
    for location in [
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "ftp://a.example/",
        "data:,x",
        "javascript:x",
        "http://user:s3cret@127.0.0.1/",
        "http://[::1",
        "http://",
    ] {
        let server = redirecting(301, location).await;
        let error = get(&local().build(), &server.url("/")).await.unwrap_err();
        let HttpError::Redirected { source, .. } = &error else { panic!("{location}: {error}") };
        assert!(matches!(**source, HttpError::Url { .. }), "{location}: {error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
        assert_eq!(server.asked().len(), 1);
    }
    let server = redirecting(302, "/\u{e9}").await;
    get(&local().build(), &server.url("/")).await.unwrap();
    assert_eq!(server.asked()[1].line(), "GET /%C3%A9 HTTP/1.1");
}

#[tokio::test]
async fn another_origin_learns_nothing_that_was_not_meant_for_it() {
    let other = Server::start(|_| ok("other")).await;
    let first = redirecting(302, &other.url("/there")).await;
    let client = reaching(&[&first, &other]);
    let mut request = HttpRequest::get(first.url("/"));
    for name in ["authorization", "cookie", "x-api-key", "x-tenant", "accept", "accept-language"] {
        request.headers.insert(name, HeaderValue::from_static("mine"));
    }
    request.headers.get_mut("accept-language").unwrap().set_sensitive(true);
    assert_eq!(text(&send(&client, request).await.unwrap()), "other");
    let asked = &other.asked()[0];
    assert_eq!(asked.header("accept"), Some("mine"));
    assert!(asked.header("user-agent").unwrap().starts_with("toolcrib/"));
    for name in ["authorization", "cookie", "x-api-key", "x-tenant", "accept-language"] {
        assert_eq!(asked.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn the_same_origin_gets_the_same_headers() {
    let server = redirecting(302, "/there").await;
    let mut request = HttpRequest::get(server.url("/"));
    request.headers.insert("authorization", HeaderValue::from_static("mine"));
    send(&local().build(), request).await.unwrap();
    assert_eq!(server.asked()[1].header("authorization"), Some("mine"));
}

#[tokio::test]
async fn what_may_change_something_is_not_handed_to_another_origin() {
    let other = Server::start(|_| ok("other")).await;
    for (status, method, body) in
        [(307, Method::POST, Some("{}")), (308, Method::PUT, None), (302, Method::DELETE, None)]
    {
        let first = redirecting(status, &other.url("/there")).await;
        let mut request = HttpRequest::new(method.clone(), first.url("/"));
        request.body = body.map(Into::into);
        let error = send(&local().build(), request).await.unwrap_err();
        assert!(matches!(error, HttpError::RedirectElsewhere { .. }), "{method}: {error}");
        assert!(error.may_have_reached_server());
    }
    assert_eq!(other.connections(), 0);
    // A request that becomes a GET is harmless.
    let first = redirecting(303, &other.url("/there")).await;
    let mut request = HttpRequest::new(Method::POST, first.url("/"));
    request.body = Some("s3cret".into());
    let client = reaching(&[&first, &other]);
    assert_eq!(text(&send(&client, request).await.unwrap()), "other");
    assert_eq!(other.asked()[0].body, "");
}

#[tokio::test]
async fn a_redirect_is_followed_so_often_and_never_in_a_circle() {
    let server = Server::start(|asked| {
        let steps: usize =
            asked.line()["GET /".len()..].split(' ').next().unwrap().parse().unwrap();
        if steps == 0 { ok("arrived") } else { redirect(302, &format!("/{}", steps - 1)) }
    })
    .await;
    let client = local().build();
    assert_eq!(text(&get(&client, &server.url("/5")).await.unwrap()), "arrived");
    let error = get(&client, &server.url("/6")).await.unwrap_err();
    assert!(matches!(error, HttpError::TooManyRedirects { limit: 5, .. }), "{error}");
    let mut none = HttpRequest::get(server.url("/1"));
    none.max_redirects = 0;
    let error = send(&client, none).await.unwrap_err();
    assert!(matches!(error, HttpError::TooManyRedirects { limit: 0, .. }), "{error}");

    for location in ["/", "/#again", "http://127.1:PORT/"] {
        let server = Server::start({
            let location = location.to_owned();
            move |asked| {
                let port = asked.header("host").unwrap().split(':').nth(1).unwrap();
                redirect(302, &location.replace("PORT", port))
            }
        })
        .await;
        let error = get(&client, &server.url("/")).await.unwrap_err();
        assert!(matches!(error, HttpError::RedirectLoop { .. }), "{location}: {error}");
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn a_redirect_without_a_place_is_an_answer() {
    for head in ["302 Found", "304 Not Modified", "300 Multiple Choices\r\nLocation: /x"] {
        let server = Server::start(move |_| {
            crate::support::keep(format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n"))
        })
        .await;
        let answer = get(&local().build(), &server.url("/")).await.unwrap();
        assert!(answer.status.is_redirection(), "{head}");
    }
}

/// A request that follows only redirects within its origin.
fn at_origin(url: String) -> HttpRequest {
    let mut request = HttpRequest::new(Method::POST, url);
    request.redirect_policy = RedirectPolicy::SameOrigin;
    request.max_redirects = 3;
    request.headers.insert("authorization", HeaderValue::from_static("mine"));
    request.body = Some("body".into());
    request
}

#[tokio::test]
async fn a_request_to_the_same_origin_is_repeated_unchanged_and_no_other() {
    for status in [307, 308] {
        let server = redirecting(status, "/there?key=1").await;
        let sent = send(&local().build(), at_origin(server.url("/"))).await;
        assert_eq!(text(&sent.unwrap()), "POST /there?key=1 HTTP/1.1, body");
        assert_eq!(server.asked()[1].header("authorization"), Some("mine"));
    }
    let other = Server::start(|_| ok("other")).await;
    let secret = other.url("/there?key=s3cret#part").replace("//", "//user:s3cret@");
    for (status, location, to) in [
        (307, other.url("/there?key=s3cret"), other.url("/there")),
        (308, secret, other.url("/there")),
        (307, "https://127.0.0.1/x".to_owned(), "https://127.0.0.1/x".to_owned()),
        (302, "/there?key=s3cret".to_owned(), "SELF/there".to_owned()),
        (301, "/there".to_owned(), "SELF/there".to_owned()),
        (303, "/there".to_owned(), "SELF/there".to_owned()),
        (307, "/".to_owned(), "SELF/".to_owned()),
        (307, "file:///etc/passwd".to_owned(), String::new()),
        (307, "http://[".to_owned(), String::new()),
    ] {
        let server = redirecting(status, &location).await;
        let error = send(&local().build(), at_origin(server.url("/"))).await.unwrap_err();
        let shown = error.to_string();
        let to = to.replace("SELF/", &server.url("/"));
        assert!(shown.contains(&format!("HTTP {status}")) && shown.contains(&to), "{shown}");
        assert!(!shown.contains("s3cret"), "{shown}");
        assert_eq!((error.kind(), server.asked().len()), (HttpErrorKind::Redirect, 1), "{shown}");
    }
    assert_eq!(other.connections(), 0);
}
