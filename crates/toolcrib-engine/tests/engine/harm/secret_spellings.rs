//! Secrets left in everyday spellings, and in arguments to tools that pass them on.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{Capabilities, ErrorCode, EventKind, Secret, Tool, ToolContext, secrets_fn};
use toolcrib_engine::{Engine, REDACTED, Redactor};

use crate::support::{Log, builder, once, says};

const SECRETS: [&str; 6] = [
    "hunter22",
    "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY=",
    "p&ss <w>\"o'r\\d/%41&amp;=3D",
    "correct horse battery staple",
    "pässwörter-😀-9",
    "%%%%\\\\\\\\====&&&&",
];

/// A spelling, as a function of the secret.
type Spelling = (&'static str, fn(&str) -> String);

fn percent(text: &str, keep: impl Fn(u8) -> bool, upper: bool) -> String {
    let one = |byte: u8| match (keep(byte), upper) {
        (true, _) => char::from(byte).to_string(),
        (false, true) => format!("%{byte:02X}"),
        (false, false) => format!("%{byte:02x}"),
    };
    text.bytes().map(one).collect()
}

fn units(text: &str, one: impl Fn(u16) -> String) -> String {
    text.encode_utf16().map(one).collect()
}

fn chars(text: &str, one: impl Fn(char) -> String) -> String {
    text.chars().map(one).collect()
}

fn hex(text: &str, separator: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(separator)
}

/// Every second character in upper case.
fn mixed_case(text: &str) -> String {
    let one = |(at, c): (usize, char)| if at % 2 == 0 { c } else { c.to_ascii_uppercase() };
    text.chars().enumerate().map(one).collect()
}

fn alone(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// Hand-escaped HTML: the five signs.
fn html(text: &str) -> String {
    chars(text, |c| match c {
        '&' => "&amp;".to_owned(),
        '<' => "&lt;".to_owned(),
        '>' => "&gt;".to_owned(),
        '"' => "&quot;".to_owned(),
        '\'' => "&#x27;".to_owned(),
        other => other.to_string(),
    })
}

fn quoted_printable(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'!'..=b'<' | b'>'..=b'~' => char::from(byte).to_string(),
        _ => format!("={byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn in_json(text: &str) -> String {
    let json = json!(text).to_string();
    json[1..json.len() - 1].to_owned()
}

const SPELLINGS: [Spelling; 38] = [
    ("plain", str::to_owned),
    ("percent", |s| percent(s, alone, true)),
    ("percent, lower case", |s| percent(s, alone, false)),
    ("every byte percent", |s| percent(s, |_| false, false)),
    ("some bytes percent", |s| {
        percent(s, |byte| byte % 3 != 0 && byte != b'%' && byte < 128, true)
    }),
    ("form", |s| percent(s, |byte| alone(byte) || byte == b' ', true).replace(' ', "+")),
    ("percent twice", |s| percent(&percent(s, alone, true), alone, true)),
    ("json", in_json),
    ("json twice", |s| in_json(&in_json(s))),
    ("json of percent", |s| in_json(&percent(s, alone, true))),
    ("percent of json", |s| percent(&in_json(s), alone, true)),
    ("all \\u", |s| units(s, |unit| format!("\\u{unit:04x}"))),
    ("all \\U of json", |s| units(s, |unit| format!("\\u{unit:04X}"))),
    ("some \\u", |s| {
        units(s, |unit| match char::from_u32(u32::from(unit)) {
            Some(c) if c.is_ascii_lowercase() => c.to_string(),
            _ => format!("\\u{unit:04x}"),
        })
    }),
    ("\\u in json", |s| units(s, |unit| format!("\\\\u{unit:04x}"))),
    ("\\u{}", |s| chars(s, |c| format!("\\u{{{:x}}}", u32::from(c)))),
    ("\\x", |s| s.bytes().map(|byte| format!("\\x{byte:02x}")).collect()),
    ("html", html),
    ("html twice", |s| html(&html(s))),
    ("percent of html", |s| percent(&html(s), alone, true)),
    ("percent of decimal", |s| {
        percent(&chars(s, |c| format!("&#{};", u32::from(c))), alone, false)
    }),
    ("all decimal", |s| chars(s, |c| format!("&#{};", u32::from(c)))),
    ("all decimal, zeros", |s| chars(s, |c| format!("&#{:07};", u32::from(c)))),
    ("all hexadecimal", |s| chars(s, |c| format!("&#x{:x};", u32::from(c)))),
    ("all hexadecimal, zeros", |s| chars(s, |c| format!("&#X{:06X};", u32::from(c)))),
    ("quoted-printable", quoted_printable),
    ("hex", |s| hex(s, "")),
    ("upper hex", |s| hex(s, "").to_uppercase()),
    ("hex with colons", |s| hex(s, ":").to_uppercase()),
    ("hex with blanks", |s| hex(s, " ")),
    ("hex in mixed case", |s| mixed_case(&hex(s, ""))),
    ("hex in mixed case with hyphens", |s| mixed_case(&hex(s, "-"))),
    ("base64", |s| STANDARD.encode(s)),
    ("base64 for URLs", |s| URL_SAFE_NO_PAD.encode(s)),
    ("base64, one before", |s| STANDARD_NO_PAD.encode(format!("a{s}"))),
    ("base64, two before and some after", |s| URL_SAFE.encode(format!("me{s}!"))),
    ("base64 of user and password", |s| STANDARD.encode(format!("ana:{s}"))),
    ("base64 in a URL", |s| percent(&STANDARD.encode(format!("x:{s}")), alone, true)),
];

#[test]
fn a_form_that_is_escaped_twice_more_is_found() {
    let forms: [Spelling; 4] = [
        ("plain", str::to_owned),
        ("percent", |s| percent(s, alone, true)),
        ("hex", |s| hex(s, ":")),
        ("base64", |s| STANDARD.encode(s)),
    ];
    let escapes: [Spelling; 4] = [
        ("json twice", |s| in_json(&in_json(s))),
        ("percent twice", |s| percent(&percent(s, alone, true), alone, true)),
        ("percent of json", |s| percent(&in_json(s), alone, true)),
        ("percent of html", |s| percent(&html(s), alone, true)),
    ];
    for secret in SECRETS {
        let redactor = Redactor::new([secret.to_owned()]);
        for ((form, spell), (escape, escaped)) in
            forms.iter().flat_map(|form| escapes.iter().map(move |escape| (form, escape)))
        {
            let spelled = escaped(&spell(secret));
            let clean = redactor.text(&spelled).into_owned();
            assert!(is_gone(&clean, &spelled), "{escape} of {form}: {spelled:?} is {clean:?}");
        }
    }
    // An encoding of an encoding is not, as the page on secrets says.
    let redactor = Redactor::new(["hunter22hunter22".to_owned()]);
    for twice in [
        STANDARD.encode(STANDARD.encode("hunter22hunter22")),
        hex(&STANDARD.encode("hunter22hunter22"), ""),
    ] {
        assert_eq!(redactor.text(&twice), twice);
    }
}

/// Breaks a text every `width` characters, but not inside parts that must stay whole.
fn broken(text: &str, width: usize, with: &str) -> String {
    let mut out = String::new();
    for (at, c) in text.chars().enumerate() {
        if at > 0 && at % width == 0 {
            out.push_str(with);
        }
        out.push(c);
    }
    out
}

/// Whether only harmless parts of a spelling are left: for base64 within a longer text, the
/// encoding of its neighbors.
fn is_gone(clean: &str, spelled: &str) -> bool {
    const LONGEST_LEFT: usize = 7;
    let left: String = clean.replace(REDACTED, "").split_whitespace().collect();
    clean.contains(REDACTED)
        && !spelled.is_empty()
        && left.trim_matches(['=', '%', '3', 'D']).len() <= LONGEST_LEFT + 2
}

#[test]
fn a_secret_left_in_another_spelling() {
    for secret in SECRETS {
        let redactor = Redactor::new([secret.to_owned()]);
        for (name, spell) in SPELLINGS {
            let spelled = spell(secret);
            let clean = redactor.text(&spelled).into_owned();
            assert!(is_gone(&clean, &spelled), "{name}: {spelled:?} became {clean:?}");
            let within = format!("The key: [{spelled}], keep it.");
            let clean = redactor.text(&within).into_owned();
            assert!(clean.starts_with("The key: [") && clean.ends_with("], keep it."), "{clean}");
            let inner = &clean["The key: [".len()..clean.len() - "], keep it.".len()];
            assert!(is_gone(inner, &spelled), "{name}: {within:?} became {clean:?}");
        }
    }
}

#[test]
fn a_secret_left_when_it_was_broken_over_lines() {
    let breaks =
        ["\n", "\r\n", "\n    ", " \n\t", "=\n", "=\r\n", " \\\n  ", "\\n", "\\r\\n", "%0A"];
    for secret in ["wJalrXUtnFEMIzK7MDENGzbPxRfiCYEXAMPLEKEY", "hunter22hunter22"] {
        let redactor = Redactor::new([secret.to_owned()]);
        let spellings =
            [secret.to_owned(), hex(secret, ""), STANDARD.encode(format!("ab{secret}"))];
        for spelled in spellings {
            for with in breaks {
                for width in [1, 2, 3, 4, 7, 12, spelled.len() - 1] {
                    let text = broken(&spelled, width, with);
                    let clean = redactor.text(&text).into_owned();
                    let clean = clean.replace(with, "");
                    assert!(is_gone(&clean, &spelled), "{with:?} {width}: {text:?} is {clean:?}");
                }
            }
        }
    }
}

#[test]
fn a_secret_left_when_an_escaped_blank_preceded_the_break() {
    let redactor = Redactor::new(["hunter22".to_owned()]);
    for blank in ["%20%0A", "&nbsp;\n", "&#32;&#10;", "\\t\\n", " %0A", "%20 \r\n", "\\u0020\\n\\n"]
    {
        for at in 1..8 {
            let (before, after) = "hunter22".split_at(at);
            let text = format!("is {before}{blank}{after} it");
            assert_eq!(redactor.text(&text), format!("is {REDACTED} it"), "{text:?}");
        }
    }
}

#[test]
fn a_secret_left_when_a_stream_was_cut_after_blanks_before_a_break() {
    let redactor = Redactor::new(["hunter22".to_owned()]);
    for (first, second) in
        [("h    ", "\nunter22"), ("hu \t  ", " \nnter22"), ("h%20", "%0Aunter22")]
    {
        let mut stream = redactor.stream();
        let shown = stream.push(first) + &stream.push(second) + &stream.finish();
        assert_eq!(shown, REDACTED, "{first:?} {second:?}");
    }
}

#[test]
fn a_key_of_several_lines_left_when_it_was_escaped() {
    let key = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n";
    let redactor = Redactor::new([key.to_owned()]);
    for spelled in [in_json(key), percent(key, alone, true), key.replace('\n', "\r\n  ")] {
        let clean = redactor.text(&spelled).into_owned();
        assert!(!clean.contains("MIIE") && !clean.contains("hkiG"), "{clean}");
    }
    let line = redactor.text("line aGtpRzl3MEJBUUVGQUFTQw== of it").into_owned();
    assert!(!line.contains("RzkzMEJ") && line.contains(REDACTED), "{line}");
}

#[test]
fn a_spelling_left_where_a_stream_was_cut() {
    let redactor = Redactor::new(SECRETS.map(str::to_owned));
    for secret in ["hunter22", "p&ss <w>\"o'r\\d/%41&amp;=3D"] {
        for (name, spell) in SPELLINGS {
            let text = format!("a {} b {}", spell(secret), broken(secret, 3, "\n  "));
            let whole = redactor.text(&text).into_owned();
            for size in [1, 7] {
                let chars: Vec<char> = text.chars().collect();
                let mut stream = redactor.stream();
                let mut shown = String::new();
                for piece in chars.chunks(size) {
                    shown += &stream.push(&piece.iter().collect::<String>());
                }
                shown += &stream.finish();
                assert_eq!(shown, whole, "{name} in pieces of {size}");
            }
        }
    }
}

#[test]
fn a_short_value_garbled_text_in_its_encodings() {
    let redactor = Redactor::default();
    redactor.learn("abcd").unwrap();
    for text in ["61626364", "YWJjZA==", "a%62cd", "ab\ncd", "a&#98;cd"] {
        assert_eq!(redactor.text(text), text);
    }
    assert_eq!(redactor.text("an abcd, a\\u0062cd"), "an [redacted], [redacted]");
}

#[test]
fn a_text_of_signs_alone_was_mistaken_for_a_secret() {
    let redactor = Redactor::new(SECRETS.map(str::to_owned));
    for piece in [
        "%25", "\\", "\\n", "\n", " \n", "&amp;", "&#x", "=", "=\n", "%", "hunter2", "%68",
        "\\u0068",
    ] {
        let text = piece.repeat(20_000 / piece.len());
        assert_eq!(redactor.text(&text), text);
    }
}

proptest! {
    #[test]
    fn ordinary_text_stays_as_it_is(
        text in "([a-zA-Z0-9 .,:;/+=&%\\\\<>\"'#{}-]|&amp;|%20|\\\\n|\n){0,200}"
    ) {
        let redactor = Redactor::new(["Zq8#Zq8#Zq8#Zq8#".to_owned(), "ÄÖÜäöüß-ÄÖÜ".to_owned()]);
        prop_assert_eq!(redactor.text(&text).into_owned(), text);
    }

    #[test]
    fn a_secret_in_a_mixed_spelling_is_found(
        secret in "[!-~ä]{8,24}",
        ways in proptest::collection::vec(0_u8..8, 24),
        before in "[a-z ]{0,8}",
        after in "[a-z ]{0,8}",
    ) {
        let one = |(c, way): (char, &u8)| match way {
            0 => percent(&c.to_string(), |_| false, true),
            1 => units(&c.to_string(), |unit| format!("\\u{unit:04x}")),
            2 => format!("&#{};", u32::from(c)),
            3 => format!("&#x{:04X};", u32::from(c)),
            4 => percent(&percent(&c.to_string(), |_| false, true), alone, true),
            _ => c.to_string(),
        };
        let spelled: String = secret.chars().zip(&ways).map(one).collect();
        let redactor = Redactor::new([secret]);
        let text = format!("{before} {spelled} {after}");
        prop_assert_eq!(redactor.text(&text).into_owned(), format!("{before} {REDACTED} {after}"));
    }
}

/// A tool that counts its calls.
fn counted(calls: &Arc<AtomicUsize>, name: &str, secrets: &[&str], open_world: bool) -> Tool {
    let calls = Arc::clone(calls);
    let builder = builder(name)
        .input_schema(json!({ "type": "object" }))
        .capabilities(Capabilities::none().secrets(secrets.iter().copied()));
    let builder = if open_world { builder.open_world() } else { builder };
    builder
        .handler(move |_: Value, _: ToolContext| {
            calls.fetch_add(1, Ordering::Relaxed);
            async { "sent" }
        })
        .unwrap()
}

fn posting(calls: &Arc<AtomicUsize>) -> Engine {
    let redactor = Redactor::default();
    redactor.learn_named("CRM_KEY", "s3cr3t/of the+crm").unwrap();
    redactor.learn("nameless-secret").unwrap();
    redactor.learn("1042").unwrap();
    Engine::builder()
        .redactor(redactor)
        .secrets(secrets_fn(|_| Ok(Secret::new("s3cr3t/of the+crm"))))
        .tools([
            counted(calls, "post", &[], true),
            counted(calls, "crm", &["CRM_KEY"], true),
            counted(calls, "note", &[], false),
        ])
        .build()
        .unwrap()
}

#[tokio::test]
async fn a_secret_was_passed_to_a_tool_that_sends_it_away() {
    let calls = Arc::default();
    let engine = posting(&calls);
    let log = Log::of(engine.events());
    let spelled: Vec<String> =
        SPELLINGS.iter().map(|(_, spell)| spell("s3cr3t/of the+crm")).collect();
    for text in &spelled {
        for args in [
            json!({ "body": text }),
            json!({ "list": [{ "deep": format!("x {text} y") }] }),
            json!({ text.as_str(): 1 }),
        ] {
            let result = once(&engine, "post", args).await;
            assert_eq!(result.code, Some(ErrorCode::Denied), "{text}");
            let cause = result.cause.as_deref().unwrap();
            assert!(cause.contains("`CRM_KEY`"), "{cause}");
            assert!(!format!("{result:?}").contains("s3cr3t"), "{result:?}");
        }
    }
    let nameless = once(&engine, "post", json!({ "body": "a nameless-secret" })).await;
    assert_eq!(nameless.code, Some(ErrorCode::Denied));
    let declared = once(&engine, "crm", json!({ "body": "my nameless-secret" })).await;
    assert_eq!(declared.code, Some(ErrorCode::Denied), "of two secrets it declares the other");
    assert_eq!(calls.load(Ordering::Relaxed), 0);
    let events = log.events();
    assert!(events.iter().any(|event| matches!(&event.kind, EventKind::PolicyDenied { rule, .. } if **rule == *"secret_arguments")));
    assert!(!json!(events).to_string().contains("s3cr3t"));
}

#[tokio::test]
async fn a_call_that_gives_nothing_away_is_made() {
    let calls = Arc::default();
    let engine = posting(&calls);
    for (tool, body) in
        [("post", "order 1042"), ("crm", "s3cr3t/of the+crm"), ("note", "s3cr3t/of the+crm")]
    {
        let result = once(&engine, tool, json!({ "body": body })).await;
        assert!(result.is_ok(), "{result:?}");
    }
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_network_capability_makes_a_tool_one_that_sends() {
    let tool = |builder| says(builder, "");
    assert!(
        tool(builder("a").capabilities(Capabilities::none().network(["a.example"]))).open_world()
    );
    assert!(tool(builder("b").capabilities(Capabilities::none().process(["git"]))).open_world());
    assert!(tool(builder("c").mcp_server("git")).open_world());
    assert!(!tool(builder("d").capabilities(Capabilities::none().secrets(["KEY"]))).open_world());
}
