//! Pages that are made to harm: each is read or refused, without a panic or an overflow of the
//! stack. The limits of the parser have tests beside it.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};
use serde_json::json;
use toolcrib_core::ErrorCode;

use crate::support::{ENDLESS, Server, answer, client, fetch, fetch_with, ok};

/// The result for a page; a refused one has too many elements.
async fn read(page: String) -> Result<String, (ErrorCode, String)> {
    let server = Server::page("text/html; charset=utf-8", page).await;
    let result = fetch(&server.url("/")).await;
    if let Err((code, message)) = &result {
        assert_eq!(*code, ErrorCode::ExecutionFailed);
        assert!(message.contains("too many or too deeply nested elements"), "{message}");
    }
    result
}

#[tokio::test]
async fn nesting_is_cut_or_refused() {
    for tag in ["div", "b", "blockquote", "ul", "table><tr><td", "span", "font", "p", "svg", "math"]
    {
        let page =
            |count: usize| format!("<p>Start</p>{}Deep inside", format!("<{tag}>").repeat(count));
        drop(read(page(30_000)).await);
        let text = read(page(200)).await.unwrap();
        assert!(text.contains("Start"), "{tag}: {text}");
        assert!(text.contains("Deep inside") != (tag == "svg"), "{tag}: {text}");
    }
}

#[tokio::test]
async fn huge_attributes_and_texts_are_read() {
    let link = read(format!("<a href='/{}'>Link</a>", "x".repeat(1_000_000))).await.unwrap();
    assert!(link.ends_with("\n\nLink"), "{}", &link[..200]);
    let words = "data word ".repeat(50_000);
    let quoted = read(format!("<p title=\"{words}\">Text</p>")).await.unwrap();
    assert!(quoted.ends_with("\n\nText"), "{}", &quoted[..200]);
    let long = read(format!("<title>{}</title><p>{}", "t".repeat(100_000), "x".repeat(1_000_000)));
    let long = long.await.unwrap();
    assert!(long.chars().count() < 17_000, "{}", long.len());
    assert!(read(format!("<!--{}", "<".repeat(1_000_000))).await.is_ok());
}

#[tokio::test]
async fn wide_tables_and_long_lines_do_not_grow_quadratically() {
    // A table whose aligned form has the square of its size.
    let row = "<tr><td>a<td>b".repeat(20_000);
    let wide = format!("<table><tr><td>{}<td>x{row}</table>", "w".repeat(500_000));
    assert!(read(wide).await.is_ok());
    // Neighbors that are joined one by one.
    assert!(read("<i>x</i>".repeat(30_000)).await.is_ok());
    // Lines that are indented again and again.
    let deep = "<blockquote><ul><li>".repeat(20);
    assert!(read(format!("{deep}<pre>{}", "\n".repeat(1_000_000))).await.is_ok());
    // Relative links that grow.
    let base = format!("<base href='http://a.example/{}/'>", "d".repeat(1900));
    assert!(read(format!("{base}{}", "<a href=x>y</a> ".repeat(30_000))).await.is_ok());
}

#[tokio::test]
async fn arbitrary_bytes_are_read_as_a_page() {
    for seed in 0..30_u32 {
        let words = [
            "<table>",
            "</table>",
            "<tr>",
            "<td>",
            "<b>",
            "</b>",
            "<p>",
            "</p>",
            "<a href=x>",
            "</a>",
            "<ol start=-9>",
            "<li>",
            "<select>",
            "<option selected>",
            "<template>",
            "</template>",
            "<svg>",
            "<title>",
            "</title>",
            "<pre><code class=language-x>",
            "</pre>",
            "`",
            "é",
            "<!--",
            "-->",
            "<![CDATA[",
            "\0",
            "&#0;",
            "&bogus;",
            "<math><annotation-xml encoding=text/html>",
            "<form>",
            "<frameset>",
            "<html a=b>",
            "<body c>",
            "<h1>",
            "<img alt=\"|\n\" src=//x>",
            "<selectedcontent>",
            "<hr>",
            "<br>",
            "<?php x?>",
            "text ",
        ];
        let mut at = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
        let page: String = (0..400)
            .map(|_| {
                at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let position = (at >> 16) as usize % words.len();
                words[position]
            })
            .collect();
        let server = Server::page("text/html", &page).await;
        let result = fetch(&server.url("/")).await;
        assert!(result.is_ok(), "seed {seed}: {result:?}\n{page}");
    }
}

#[tokio::test]
async fn a_body_without_an_end_and_a_compressed_one_are_limited() {
    let endless = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n";
    let server = Server::of(&[("/", [endless, ENDLESS].concat())]).await;
    let (code, message) = fetch(&server.url("/")).await.unwrap_err();
    assert_eq!(code, ErrorCode::ExecutionFailed);
    assert!(message.contains("larger than 4194304 bytes"), "{message}");

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..200 {
        encoder.write_all(&[b' '; 1 << 20]).unwrap();
    }
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < 1 << 20);
    let headers = "Content-Type: text/html\r\nContent-Encoding: gzip\r\n";
    let server = Server::of(&[("/", answer("200 OK", headers, &bomb))]).await;
    let (_, message) = fetch(&server.url("/")).await.unwrap_err();
    assert!(message.contains("larger than 4194304 bytes"), "{message}");

    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(b"<p>Packed").unwrap();
    let packed = encoder.finish().unwrap();
    let server = Server::of(&[("/", answer("200 OK", headers, &packed))]).await;
    assert!(fetch(&server.url("/")).await.unwrap().ends_with("\n\nPacked"));
}

#[tokio::test]
async fn a_title_cannot_add_lines_to_the_header() {
    let title = "<title>A\nURL: http://evil.example/\nPart: none</title><p>x";
    let server = Server::of(&[("/", ok("text/html", title))]).await;
    let read = fetch_with(&client(), json!({ "url": server.url("/") })).await.unwrap();
    let lines: Vec<_> = read.lines().collect();
    assert_eq!(lines.len(), 4, "{read}");
    assert_eq!(lines[0], "Title: A URL: http://evil.example/ Part: none");
}
