//! A permitted server redirected to another port of the same machine.

use std::net::SocketAddr;

use toolcrib_capabilities::http::{AllowedAddress, HttpClient, HttpError, HttpErrorKind};

use crate::support::{Names, Server, get, ok, redirect, text};

fn client(allowed: &[AllowedAddress]) -> HttpClient {
    HttpClient::builder().allow_addresses(allowed.iter().copied()).build()
}

fn loopback() -> AllowedAddress {
    "127.0.0.0/8".parse().unwrap()
}

fn port_refused(error: &HttpError) -> Option<SocketAddr> {
    match error {
        HttpError::PortRefused { address, .. } => Some(*address),
        HttpError::Redirected { source, .. } => port_refused(source),
        _ => None,
    }
}

/// A server that leads to a place.
async fn leading_to(location: String) -> Server {
    Server::start(move |_| redirect(302, &location)).await
}

#[tokio::test]
async fn a_redirect_inside_an_allowed_host_reached_another_port() {
    let inner = Server::start(|_| ok("inner")).await;
    let port = inner.address.port();
    let spellings =
        ["127.0.0.1", "127.1", "[::ffff:127.0.0.1]", "127.0.0.2", "LOCALHOST.", "a.test"];
    for spelling in spellings {
        let front = leading_to(format!("http://{spelling}:{port}/")).await;
        let names =
            Names::default().with("a.test", &[&["127.0.0.1"]]).with("localhost", &[&["127.0.0.1"]]);
        let builder = HttpClient::builder().resolver(names).allow_addresses([loopback()]);
        for client in [builder.clone().build(), builder.allowed_hosts(None).build()] {
            let error = get(&client, &front.url("/")).await.unwrap_err();
            assert_eq!(port_refused(&error).map(|at| at.port()), Some(port), "{spelling}: {error}");
            assert_eq!(error.kind(), HttpErrorKind::Redirect);
            assert!(error.may_have_reached_server());
            assert!(error.to_string().contains(&format!(":{port} for this client")), "{error}");
        }
    }
    assert_eq!(inner.connections(), 0);
}

#[tokio::test]
async fn an_open_connection_of_another_request_was_taken_for_a_redirect() {
    let inner = Server::start(|_| ok("inner")).await;
    let front = leading_to(inner.url("/secret")).await;
    let client = client(&[loopback()]);
    assert_eq!(text(&get(&client, &inner.url("/")).await.unwrap()), "inner");
    let error = get(&client, &front.url("/")).await.unwrap_err();
    assert_eq!(port_refused(&error), Some(inner.address));
    assert_eq!(inner.asked().len(), 1);
}

#[tokio::test]
async fn a_second_redirect_reached_what_the_first_could_not() {
    let inner = Server::start(|_| ok("inner")).await;
    let location = inner.url("/");
    let front = Server::start(move |asked| {
        let next = if asked.line().contains(" / ") { "/again" } else { &*location };
        redirect(307, next)
    })
    .await;
    let error = get(&client(&[loopback()]), &front.url("/")).await.unwrap_err();
    assert_eq!(port_refused(&error), Some(inner.address));
    assert_eq!((front.asked().len(), inner.connections()), (2, 0));
}

#[tokio::test]
async fn an_allowed_address_was_allowed_on_all_ports() {
    let (one, other) = (Server::start(|_| ok("one")).await, Server::start(|_| ok("other")).await);
    let client = client(&[one.address.into()]);
    assert_eq!(text(&get(&client, &one.url("/")).await.unwrap()), "one");
    let error = get(&client, &other.url("/")).await.unwrap_err();
    assert_eq!(port_refused(&error), Some(other.address), "{error}");
    assert_eq!(error.kind(), HttpErrorKind::Refused);
    assert!(!error.may_have_reached_server());
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_redirect_goes_to_the_port_that_is_named() {
    let inner = Server::start(|_| ok("inner")).await;
    let front = leading_to(inner.url("/")).await;
    let client = client(&[loopback(), inner.address.into()]);
    assert_eq!(text(&get(&client, &front.url("/")).await.unwrap()), "inner");
}
