//! Text of a page that its reader cannot see reached the model, and pages on ports of other protocols
//! were requested.

use toolcrib_core::ErrorCode;

use crate::support::{fetch, read_html};

/// What hides the word `hidden`, as an attribute of its element.
const HIDING: [&str; 22] = [
    "hidden",
    "aria-hidden='true'",
    "style='display:none'",
    "style='display : NONE !important'",
    "style='visibility:hidden'",
    "style='opacity:0'",
    "style='font-size:0'",
    "style='font-size:1px'",
    "style='color:#fff'",
    "style='color:white;background-color:#ffffff'",
    "style='color:rgb(254, 254, 254)'",
    "style='color:transparent'",
    "style='background:#123456;color:#123457'",
    "style='position:absolute;left:-9999px'",
    "style='text-indent:-5000px'",
    "style='clip:rect(0,0,0,0);position:absolute'",
    "style='clip-path:inset(100%)'",
    "style='transform:scale(0)'",
    "style='height:0;overflow:hidden'",
    "class='x gone'",
    "id='gone'",
    "class='pale'",
];

const SHEET: &str = "<style>/* .seen{display:none} */ @import url(a.css); .gone{display:none} \
                     #gone, i.none { visibility: hidden } .pale { color: #fefefe } \
                     @media print { .seen { display: none } } .tab{display:none} \
                     .tab.open{display:block} .zero{font-size:0} .twelve{font-size:12px}</style>";

#[tokio::test]
async fn text_that_a_reader_cannot_see_reached_the_model() {
    for hiding in HIDING {
        let page = format!(
            "<html><head>{SHEET}</head><body><p>seen before</p><div {hiding}><p>hidden</p></div>\
             <p>seen after</p></body></html>"
        );
        let read = read_html(&page).await;
        assert!(!read.contains("hidden"), "{hiding}: {read}");
        assert!(read.contains("seen before") && read.contains("seen after"), "{hiding}: {read}");
        // The same where an element loses its format.
        let deep = "<div>".repeat(150);
        let page =
            format!("<html>{SHEET}<body>{deep}<p>seen</p><p {hiding}>hidden</p></body></html>");
        let read = read_html(&page).await;
        assert!(!read.contains("hidden") && read.contains("seen"), "{hiding}: {read}");
    }
}

#[tokio::test]
async fn text_that_a_reader_sees_is_kept() {
    for seen in [
        "<p class='seen'>word</p>",
        "<p style='color:#333'>word</p>",
        "<p style='color:white;background:#000'>word</p>",
        "<div style='background:navy;background-color:#000080'><p style='color:#fff'>word</p></div>",
        "<div style='font-size:0'><p style='font-size:14px'>word</p></div>",
        "<div class='zero'><p class='twelve'>word</p></div>",
        "<div style='visibility:hidden'><p style='visibility:visible'>word</p></div>",
        "<div class='tab open'>word</div>",
        "<p style='left:-1px;text-indent:2em;opacity:0.9'>word</p>",
    ] {
        let read =
            read_html(&format!("<html><head>{SHEET}</head><body>{seen}</body></html>")).await;
        assert!(read.contains("word"), "{seen}: {read}");
    }
    // The background of another style sheet is not known.
    let page = "<link rel=stylesheet href=dark.css><body><p style='color:white'>word</p></body>";
    assert!(read_html(page).await.contains("word"));
}

#[tokio::test]
async fn a_port_that_browsers_block_was_requested() {
    for port in [1, 22, 25, 110, 143, 587, 993, 2049, 6000, 6667, 10080] {
        let url = format!("http://127.0.0.1:{port}/");
        let (code, message) = fetch(&url).await.unwrap_err();
        assert_eq!(code, ErrorCode::InputInvalid, "{port}: {message}");
        assert!(message.contains("port"), "{message}");
    }
}
