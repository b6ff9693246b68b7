//! A page of an allowed origin was never let in: its preflight was refused, and no answer could be
//! read. The endpoint's own pages were refused too.

use std::fs;

use super::served::{Answer, Served, message, with_metadata};
use crate::support::Project;

const PAGE: &str = "https://tools.example";

/// A browser's preflight before a request with a token: it contains the names of the real request's
/// headers, and each must be allowed.
fn preflight(served: &Served, path: &str, origin: &str, method: &str, headers: &str) -> Answer {
    let sent = [
        ("Origin", origin),
        ("Access-Control-Request-Method", method),
        ("Access-Control-Request-Headers", headers),
    ];
    served.send("OPTIONS", path, &sent, "")
}

fn lets_through(answer: &Answer, origin: &str, method: &str, headers: &str) -> bool {
    let listed = |name: &str| {
        let list = answer.header(name).unwrap_or_default();
        list.split(',').map(|each| each.trim().to_lowercase()).collect::<Vec<_>>()
    };
    let allowed = listed("access-control-allow-headers");
    (200..300).contains(&answer.status)
        && answer.header("access-control-allow-origin") == Some(origin)
        && listed("access-control-allow-methods").contains(&method.to_lowercase())
        && headers.split(',').all(|name| allowed.contains(&name.trim().to_lowercase()))
}

fn list(served: &Served, headers: &[(&str, &str)]) -> Answer {
    let common = [
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/list"),
    ];
    let body = message("tools/list", &with_metadata(serde_json::json!({})));
    served.send("POST", "/mcp", &[&common[..], headers].concat(), &body)
}

fn token(project: &Project) -> String {
    let token = fs::read_to_string(project.state().join("serve-token")).unwrap();
    format!("Bearer {}", token.trim())
}

#[test]
fn a_browser_did_not_send_the_request_of_an_allowed_page() {
    let project = Project::desk();
    let mut serve = project.command(&["serve", "--allow-origin", PAGE]);
    let served = Served::start(&project, &mut serve);
    let token = token(&project);
    let stateless =
        "authorization,content-type,mcp-protocol-version,mcp-method,mcp-name,mcp-param-x";
    let sessions =
        "authorization, content-type, mcp-session-id, last-event-id, mcp-protocol-version";
    for path in ["/mcp", "/mcp/skill/billing", "/mcp/skill/unknown"] {
        for (method, headers) in [("POST", stateless), ("GET", sessions), ("DELETE", sessions)] {
            let answer = preflight(&served, path, PAGE, method, headers);
            assert!(lets_through(&answer, PAGE, method, headers), "{path} {method}: {answer:?}");
            assert!(answer.header("vary").unwrap().eq_ignore_ascii_case("origin"), "{answer:?}");
            assert_eq!(answer.header("access-control-allow-credentials"), None);
        }
    }
    // The page reads the response, and errors too.
    let list = |headers: &[(&str, &str)]| list(&served, &[&[("Origin", PAGE)], headers].concat());
    let answer = list(&[("Authorization", &token)]);
    assert_eq!(answer.status, 200, "{answer:?}");
    for answer in [answer, list(&[]), list(&[("Authorization", "Bearer wrong")])] {
        assert_eq!(answer.header("access-control-allow-origin"), Some(PAGE), "{answer:?}");
        assert!(answer.header("access-control-expose-headers").unwrap().contains("mcp-session-id"));
    }
    assert_eq!(list(&[]).status, 401, "a page needs a token as anybody does");
}

#[test]
fn a_page_of_the_endpoint_itself_was_refused() {
    let project = Project::desk();
    let served = Served::start(&project, &mut project.command(&["serve"]));
    let (token, port) = (token(&project), served.port().to_owned());
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        for page in ["127.0.0.1", "localhost", "[::1]"] {
            let (host, page) = (format!("{host}:{port}"), format!("http://{page}:{port}"));
            let sent = [("Host", &*host), ("Origin", &*page), ("Authorization", &*token)];
            let answer = list(&served, &sent);
            assert_eq!(answer.status, 200, "{host} {page}: {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), Some(&*page));
        }
    }
}

#[test]
fn other_pages_are_refused_and_told_nothing() {
    let project = Project::desk();
    let mut serve = project.command(&["serve", "--allow-origin", PAGE]);
    let served = Served::start(&project, &mut serve);
    let (token, port) = (token(&project), served.port().to_owned());
    let rebound = format!("evil.example:{port}");
    let own = served.address.clone();
    for (host, origin) in [
        (own.as_str(), "https://evil.example".to_owned()),
        (&own, "https://tools.example.evil.example".to_owned()),
        // Another page of this machine.
        (&own, "http://localhost:1".to_owned()),
        // A name that was made to lead here: its page is of the same origin as its requests.
        (&rebound, format!("http://{rebound}")),
        (&rebound, PAGE.to_owned()),
    ] {
        let sent = [("Host", host), ("Origin", &*origin), ("Authorization", &*token)];
        let asks = [&sent[..2], &[("Access-Control-Request-Method", "POST")]].concat();
        for answer in [list(&served, &sent), served.send("OPTIONS", "/mcp", &asks, "")] {
            assert_eq!(answer.status, 403, "{host} {origin}: {answer:?}");
            let told = answer.headers.iter().any(|(name, _)| name.starts_with("access-control"));
            assert!(!told, "{host} {origin}: {answer:?}");
        }
    }
    // A program other than a browser needs no preflight.
    let answer = served.send("OPTIONS", "/mcp", &[], "");
    assert_eq!((answer.status, answer.header("access-control-allow-origin")), (401, None));
}

#[test]
fn a_pattern_was_accepted_as_an_origin_and_matched_nothing() {
    let project = Project::desk();
    for (flag, pattern) in [("--allow-origin", "*"), ("--allow-host", "*.example")] {
        let refused = project.toolcrib(&["serve", "--http", "0", flag, pattern]);
        assert_eq!(refused.code, Some(2), "{flag} {pattern}: {}", refused.stderr);
        let told = refused.stderr.contains(pattern) && refused.stderr.contains("patterns with `*`");
        assert!(told, "{flag} {pattern}: {}", refused.stderr);
    }
}
