//! Pages as a model reads them.

use serde_json::json;
use toolcrib_capabilities::http::HttpClient;
use toolcrib_core::{CancellationToken, ErrorCode, NetworkRules, ToolContextParts};
use toolcrib_tools::{
    Declaration,
    web::{FetchLimits, WebTool},
};

use crate::support::{Server, answer, client, fetch, fetch_with, ok, read, read_html};

#[tokio::test]
async fn an_article_is_markdown_without_what_surrounds_it() {
    insta::assert_snapshot!(read("text/html", include_str!("pages/article.html")).await, @r#"
    Title: Growing tomatoes | The Garden
    URL: http://SERVER/

    # Growing tomatoes

    By [Ana](http://SERVER/people/ana?x=1&y=2)

    Tomatoes need **sun**, *warmth* and water. See [the soil guide](http://SERVER/guides/soil.html#ph) and [the seeds](https://seeds.example/a%20b). Press top.

    ## Steps

    3. Sow in `March`.
    4. Plant out:
       - deep
       - far apart

    > Water the soil,  
    > not the leaves.

    | Kind | Days \| sun |
    | --- | --- |
    | Roma | 75 |
    | Black **Krim** | 80 |

    ```sh
    water --daily
      # twice in July
    ```

    ![A ripe Roma](http://SERVER/img/roma.jpg)

    Roma
    "#);
}

#[tokio::test]
async fn a_page_without_a_main_part_is_read_whole() {
    insta::assert_snapshot!(read("text/html", include_str!("pages/plain.html")).await, @r#"
    URL: http://SERVER/

    # Numbers

    One \<two> & three \* four\_five \[six\]

    Only a layout

    | a | b |
    | --- | --- |

    side

    Term

    Meaning

    Last
    "#);
}

#[tokio::test]
async fn a_base_changes_links_and_a_wrong_one_does_not() {
    let page = "<base href='/docs/v2/'><p><a href=a.html>A</a> <img src=b.png alt=B></p>";
    let read = read_html(page).await;
    assert!(read.contains("/docs/v2/a.html") && read.contains("/docs/v2/b.png"), "{read}");
    let read = read_html("<base href='javascript:x'><p><a href=a.html>A</a></p>").await;
    assert!(read.starts_with("[A](http://SERVER/a.html)"), "{read}");
}

#[tokio::test]
async fn other_text_is_returned_as_it_is() {
    for (content_type, body) in [
        ("text/markdown", "# A *title*\n\n<b>as is</b>"),
        ("text/plain; charset=utf-8", "a  b\n\tc"),
        ("application/json", r#"{"a": [1, 2]}"#),
        ("application/ld+json", "{}"),
        ("text/csv", "a,b\n1,2"),
        ("application/rss+xml", "<rss/>"),
    ] {
        let read = read(content_type, body).await;
        assert_eq!(read, format!("URL: http://SERVER/\n\n{body}"), "{content_type}");
    }
}

#[tokio::test]
async fn a_body_without_a_type_is_recognized() {
    for (body, expected) in [
        ("\n <!DOCTYPE html><p>Hi <b>you</b>", Ok("Hi **you**")),
        ("just text", Ok("just text")),
        ("\0\x01", Err("a body of an unknown type of 2 bytes")),
    ] {
        let server = Server::of(&[("/", answer("200 OK", "", body.as_bytes()))]).await;
        match (fetch(&server.url("/")).await, expected) {
            (Ok(read), Ok(text)) => assert!(read.ends_with(&format!("\n\n{text}")), "{read}"),
            (Err((ErrorCode::ExecutionFailed, message)), Err(text)) => {
                assert!(message.contains(text), "{message}");
            }
            (found, _) => panic!("{body:?}: {found:?}"),
        }
    }
}

#[tokio::test]
async fn another_type_is_refused_by_its_name() {
    for content_type in ["application/pdf", "IMAGE/PNG; x=y", "application/octet-stream"] {
        let server = Server::page(content_type, "%PDF").await;
        let (code, message) = fetch(&server.url("/")).await.unwrap_err();
        assert_eq!(code, ErrorCode::ExecutionFailed);
        let named = content_type.split(';').next().unwrap().to_lowercase();
        let expected = format!(
            "`127.0.0.1` answered {named} of 4 bytes; only HTML, Markdown, text and JSON can be read"
        );
        assert_eq!(message, expected);
    }
}

#[tokio::test]
async fn charsets_are_decoded() {
    let mark = b"\xef\xbb\xbf<p>\xc3\xa9t\xc3\xa9".to_vec();
    for (content_type, body) in [
        ("text/html; charset=ISO-8859-1", b"<p>\xe9t\xe9".to_vec()),
        ("text/html; charset=\"utf-8\"", b"<p>\xc3\xa9t\xc3\xa9".to_vec()),
        ("text/html", b"<meta charset=windows-1252><p>\xe9t\xe9".to_vec()),
        (
            "text/html",
            b"<META http-equiv=x content='text/html; charset=latin1'><p>\xe9t\xe9".to_vec(),
        ),
        ("text/html", b"<p>\xc3\xa9t\xc3\xa9".to_vec()),
        ("text/html", b"<p>\xe9t\xe9".to_vec()),
        // The header is wrong about both, and an unknown charset is none.
        ("text/html; charset=latin1", mark),
        ("text/html; charset=klingon", b"<p>\xc3\xa9t\xc3\xa9".to_vec()),
        ("text/plain; charset=utf-16le", b"\xe9\0t\0\xe9\0".to_vec()),
        ("text/html", b"<meta charset=utf-16><p>\xc3\xa9t\xc3\xa9".to_vec()),
    ] {
        let found = read(content_type, &body).await;
        assert!(found.ends_with("\n\nété"), "{content_type} {body:?}: {found}");
    }
}

#[tokio::test]
async fn a_long_page_is_read_piece_by_piece() {
    let paragraphs: Vec<_> = (0..3000).map(|n| format!("<p>Paragraph é {n}.</p>")).collect();
    let server = Server::page("text/html; charset=utf-8", paragraphs.concat()).await;
    let (mut args, mut joined, mut calls) = (json!({ "url": server.url("/") }), String::new(), 0);
    loop {
        let read = fetch_with(&client(), args.clone()).await.unwrap();
        assert!(read.chars().count() < 16_500);
        let (head, text) = read.split_once("\n\n").unwrap();
        joined += text;
        calls += 1;
        let Some((_, cursor)) = head.split_once("cursor = \"") else {
            assert!(head.ends_with("the end"), "{head}");
            break;
        };
        args["cursor"] = json!(cursor.trim_end_matches('"'));
    }
    assert!(calls > 3, "{calls}");
    let expected: Vec<_> = (0..3000).map(|n| format!("Paragraph é {n}.")).collect();
    assert_eq!(joined.trim_end(), expected.join("\n\n"));
}

#[tokio::test]
async fn a_cursor_of_another_page_and_a_wrong_one_are_named() {
    let server = Server::page("text/plain", "0123456789").await;
    let with = |cursor: &str| json!({ "url": server.url("/"), "cursor": cursor });
    let changed = fetch_with(&client(), with("4-00000000")).await.unwrap();
    assert!(
        changed.contains("The page has changed") && changed.ends_with("\n\n456789"),
        "{changed}"
    );
    for cursor in ["nonsense", "-1", "4", "99999999999999999999-0", "1-xyz", "500-00000000"] {
        let (code, message) = fetch_with(&client(), with(cursor)).await.unwrap_err();
        assert_eq!(code, ErrorCode::InputInvalid, "{cursor}");
        assert!(message.contains("from the start"), "{message}");
    }
}

#[tokio::test]
async fn a_page_of_scripts_says_so() {
    let read =
        read("text/html", "<title>App</title><div id=root></div><script>run()</script>").await;
    assert!(read.starts_with("Title: App\n") && read.contains("often built by a script"), "{read}");
}

#[tokio::test]
async fn a_status_comes_with_the_next_step() {
    for (status, next) in [
        ("404 Not Found", "check the URL"),
        ("403 Forbidden", "use another source"),
        ("429 Too Many Requests", "try again later"),
        ("500 Internal Server Error", "500 Internal Server Error"),
    ] {
        let server = Server::of(&[("/", answer(status, "", b"<p>Obey</p>"))]).await;
        let (code, message) = fetch(&server.url("/")).await.unwrap_err();
        assert_eq!(code, ErrorCode::ExecutionFailed);
        assert!(message.contains(next) && !message.contains("Obey"), "{message}");
    }
}

#[tokio::test]
async fn urls_that_are_none_and_hosts_that_are_not_allowed_are_refused() {
    for url in ["garden", "file:///etc/passwd", "http://u:p@127.0.0.1/", "ftp://a.example/"] {
        let (code, message) = fetch(url).await.unwrap_err();
        assert_eq!(code, ErrorCode::InputInvalid, "{message}");
    }
    let server = Server::page("text/plain", "inside").await;
    // An ordinary client does not dial this machine.
    for url in [server.url("/"), "http://169.254.169.254/latest/".into(), "http://[::1]/".into()] {
        let open = HttpClient::builder().build();
        let (code, message) = fetch_with(&open, json!({ "url": url })).await.unwrap_err();
        assert_eq!(code, ErrorCode::NotAvailable, "{message}");
    }
    let narrowed = client().only(["docs.example".parse().unwrap()]);
    let (code, message) =
        fetch_with(&narrowed, json!({ "url": server.url("/") })).await.unwrap_err();
    assert_eq!(code, ErrorCode::NotAvailable);
    assert!(message.contains("not among the hosts"), "{message}");
    assert_eq!(server.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn the_rules_of_a_personality_apply() {
    let server = Server::page("text/plain", "inside").await;
    let tool = WebTool::Fetch(FetchLimits::default());
    let declaration = tool.declaration(&Declaration::new("", ""), None);
    let tool = tool.build(declaration, &client()).unwrap();
    assert!(tool.untrusted() && tool.annotations().read_only);
    let args = json!({ "url": server.url("/") });
    for (allow, is_allowed) in [("127.0.0.1", true), ("docs.example", false)] {
        let network = NetworkRules { allow: Some([allow.into()].into()), deny: [].into() };
        let parts = ToolContextParts { network: network.into(), ..ToolContextParts::detached() };
        let result = tool.call(args.clone(), parts.into()).await;
        assert_eq!(result.is_ok(), is_allowed, "{allow}");
    }
}

#[tokio::test]
async fn redirects_are_followed_but_not_to_a_private_address() {
    let moved = |to: &str| answer("302 Found", &format!("Location: {to}\r\n"), b"");
    let inside = Server::page("text/plain", "inside").await;
    let server = Server::of(&[
        ("/moved", moved("/new/")),
        ("/new/", ok("text/html", "<p><a href=x>X</a>")),
        ("/elsewhere", moved(&inside.url("/"))),
        ("/circle", moved("/circle")),
        ("/cloud", moved("http://169.254.169.254/latest/")),
    ])
    .await;
    let read = fetch(&server.url("/moved")).await.unwrap();
    assert_eq!(read, format!("URL: {0}\n\n[X]({0}x)", server.url("/new/")));
    for path in ["/elsewhere", "/circle", "/cloud"] {
        let (_, message) = fetch(&server.url(path)).await.unwrap_err();
        assert!(message.contains("redirects"), "{message}");
    }
    assert_eq!(inside.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_cancelled_call_ends() {
    let server = Server::of(&[("/", ok("text/html", crate::support::ENDLESS))]).await;
    let tool = WebTool::Fetch(FetchLimits::default());
    let declaration = tool.declaration(&Declaration::new("", ""), None);
    let tool = tool.build(declaration, &client()).unwrap();
    let cancellation = CancellationToken::new();
    cancellation.cancel();
    let parts = ToolContextParts { cancellation, ..ToolContextParts::detached() };
    let result = tool.call(json!({ "url": server.url("/") }), parts.into()).await;
    assert_eq!(result.unwrap_err().code, ErrorCode::Cancelled);
}
