//! Errors before a call.

use serde_json::{Value, json};
use toolcrib_tools::http::{HttpToolSpec, Method};

use crate::support::{client, get, post, spec};

/// Its errors: each field, the offset, and the text.
fn wrong(spec: HttpToolSpec) -> Vec<(String, Option<usize>, String)> {
    let errors = spec.build(&client()).unwrap_err().errors;
    errors.into_iter().map(|error| (error.field, error.offset, error.message)).collect()
}

/// The only thing that is wrong with it.
fn only(spec: HttpToolSpec) -> (String, Option<usize>, String) {
    let mut all = wrong(spec);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn header(name: &str) -> String {
    format!("/headers/{name}")
}

fn with_headers(headers: &[(&str, &str)], properties: &[&str]) -> HttpToolSpec {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    HttpToolSpec { headers: headers.collect(), ..get("https://a.example/", properties) }
}

#[test]
fn get_and_head_are_read_only_unless_declared_otherwise() {
    for (method, read_only) in [
        (Method::GET, true),
        (Method::HEAD, true),
        (Method::POST, false),
        (Method::PUT, false),
        (Method::PATCH, false),
        (Method::DELETE, false),
    ] {
        let tool = spec(method.clone(), "https://a.example/", &[]).build(&client()).unwrap();
        assert_eq!(tool.annotations().read_only, read_only, "{method}");
        assert!(tool.untrusted());
    }
    let mut writes = get("https://a.example/", &[]);
    writes.declaration.annotations.read_only = false;
    assert!(!writes.build(&client()).unwrap().annotations().read_only);
}

#[test]
fn the_schema_is_closed() {
    let tool = get("https://a.example/{id}", &["id"]).build(&client()).unwrap();
    assert_eq!(tool.input_schema()["additionalProperties"], json!(false));
}

#[test]
fn placeholders_and_parameters_must_be_the_same_set() {
    let all = wrong(get("https://a.example/{ix}?q={q}", &["id?", "q"]));
    let (part, offset, text) = &all[0];
    assert_eq!((&**part, *offset), ("/url", Some(19)));
    assert_eq!(text, "the URL: there is no parameter `ix`; declare it, or use one of `id`, `q`");
    assert_eq!(all[1].0, "/params/id");
    let (part, _, text) = only(get("https://a.example/{id}", &["id", "q"]));
    assert_eq!(part, "/params/q");
    assert_eq!(
        text,
        "the parameter `q`: nothing uses it; write `{q}` where it belongs, or drop it"
    );
}

#[test]
fn a_url_says_which_server_is_asked() {
    let (part, offset, text) = only(get("https://{host}/", &["host"]));
    assert_eq!((&*part, offset), ("/url", Some(9)));
    assert!(text.contains("may not depend on an argument"), "{text}");
    let (_, offset, text) = only(get("https://a.example/x/{id}", &["id?"]));
    assert_eq!(offset, Some(21));
    assert_eq!(text, "the URL: `id` is part of the path and optional; make it required");
    for (url, begins) in [
        ("api.example.com/v1?at=https://b.example", "neither http:// nor https://"),
        ("//a.example/", "neither http:// nor https://"),
        ("ftp://a.example/", "`ftp:`, and with neither http:// nor https://"),
        ("localhost:8000/v1", "`localhost:`, and with neither http:// nor https://"),
    ] {
        let (_, _, text) = only(get(url, &[]));
        assert_eq!(text, format!("the URL: it begins with {begins}"));
    }
}

#[test]
fn a_secret_is_allowed_only_in_headers() {
    for url in ["https://a.example/{secret:KEY}", "https://a.example/?k=secret:KEY"] {
        let (part, offset, text) = only(get(url, &[]));
        assert_eq!((&*part, offset), ("/url", url.find("secret:")));
        assert!(text.contains("no secret is allowed here"), "{text}");
    }
    let (part, _, text) = only(post("https://a.example/", &[], json!({ "a": ["secret:KEY"] })));
    assert_eq!(part, "/body/a/0");
    assert!(text.contains("in a header"), "{text}");

    let spec = with_headers(
        &[("A", "secret:ONE"), ("B", "x"), ("C", "{secret:TWO} {secret:ONE}"), ("D", "{")],
        &[],
    );
    let secrets = spec.secrets();
    assert_eq!(
        secrets,
        [
            (header("A"), "ONE".to_owned()),
            (header("C"), "TWO".to_owned()),
            (header("C"), "ONE".to_owned()),
        ]
    );
}

#[test]
fn a_header_that_cannot_be_sent_is_said() {
    for (name, value, part_of_text) in [
        ("", "x", "not a valid header name"),
        ("a b", "x", "not a valid header name"),
        ("X-A\r\nX-B", "x", "not a valid header name"),
        ("Host", "x", "set by the client"),
        ("Transfer-Encoding", "x", "set by the client"),
        ("accept-encoding", "x", "set by the client"),
        ("X-A", "a\r\nX-B: c", "must not contain line ends"),
        ("X-A", "\0", "must not contain line ends"),
        ("X-A", "Bearer secret:KEY", "a secret inside a text"),
    ] {
        let (part, _, text) = only(with_headers(&[(name, value)], &[]));
        assert_eq!(part, header(name));
        assert!(text.contains(part_of_text), "{name}: {text}");
    }
    let (part, _, text) = only(with_headers(&[("X-A", "1"), ("x-a", "2")], &[]));
    assert_eq!(part, header("x-a"));
    assert!(text.contains("declared twice"), "{text}");
}

#[test]
fn a_body_has_its_method_and_its_depth() {
    let body = Some(json!({}));
    for method in [Method::GET, Method::HEAD] {
        let (part, _, text) =
            only(HttpToolSpec { body: body.clone(), ..spec(method, "https://a.example/", &[]) });
        assert_eq!(part, "/body");
        assert!(text.contains("has no body"), "{text}");
    }
    let (part, _, text) =
        only(post("https://a.example/", &["k"], json!({ "a~/b": [{ "{k}": 1 }] })));
    assert_eq!(part, "/body/a~0~1b/0/{k}");
    assert!(text.contains("`{k}`"), "{text}");

    let deep = |levels| (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    post("https://a.example/", &[], deep(128)).build(&client()).unwrap();
    let (_, _, text) = only(post("https://a.example/", &[], deep(129)));
    assert!(text.ends_with("`: it nests deeper than 128 levels"), "{text}");
}

#[test]
fn a_pointer_points_into_an_answer() {
    let pointing = |pointer: &str, method| HttpToolSpec {
        pointer: Some(pointer.to_owned()),
        ..spec(method, "https://a.example/", &[])
    };
    for good in ["", "/", "/a/0", "/a~0b~1c", "//"] {
        pointing(good, Method::GET).build(&client()).unwrap();
    }
    for bad in ["a", "a/b", "/a~", "/~2", "/~/a", "$.a"] {
        let (part, _, text) = only(pointing(bad, Method::GET));
        assert_eq!(part, "/pointer", "{bad}");
        assert!(text.contains("no JSON pointer"), "{text}");
    }
    assert_eq!(only(pointing("/a", Method::HEAD)).0, "/pointer");
}

#[test]
fn all_errors_of_a_declaration_are_reported_together() {
    let mut spec = HttpToolSpec {
        headers: vec![("X-A".into(), "{y".into()), ("Host".into(), "h".into())],
        body: Some(json!({ "a": "{z}", "b": "}" })),
        pointer: Some("a".into()),
        max_body_bytes: 0,
        ..spec(Method::TRACE, "a.example/{x}", &["unused"])
    };
    spec.declaration.name = "no name".into();
    let parts: Vec<_> = wrong(spec.clone()).into_iter().map(|(part, ..)| part).collect();
    assert_eq!(
        parts,
        [
            "",
            "/method",
            "/url",
            "/url",
            "/headers/X-A",
            "/headers/Host",
            "/body/a",
            "/body/b",
            "/pointer",
            "/max_body_bytes",
        ]
    );
    let errors = spec.build(&client()).unwrap_err();
    let text = errors.to_string();
    assert!(text.starts_with("tool `no name`: `no name` is not a tool name"), "{text}");
    assert!(text.contains("; the header `Host`: this header is set by the client alone"), "{text}");
    assert!(text.contains("; the body at `/a`: there is no parameter `z`"), "{text}");
}
