//! The kinds `json` and `jsonl`.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{ask_within, body, cursor, invalid, keep, query, turn};

fn asked(content: impl AsRef<[u8]>, name: &str, args: Value) -> String {
    let turn = turn();
    keep(&turn, content);
    query(&turn, name, args).unwrap()
}

fn refused(content: impl AsRef<[u8]>, name: &str, args: Value) -> String {
    let turn = turn();
    keep(&turn, content);
    query(&turn, name, args).unwrap_err().message
}

const ORDERS: &str = r#"{
  "orders": [
    { "id": 1, "total": 20.5, "customer": { "name": "Ann" }, "tags": ["new"] },
    { "id": 2, "total": 120, "customer": { "name": "Ben" } },
    { "id": 3, "total": 99, "customer": { "name": "Cem" }, "tags": [] }
  ],
  "page": 1,
  "a/b": { "~": null },
  "text": "äöü"
}"#;

#[test]
fn a_document_says_what_it_is() {
    for (at, shape, length) in [
        ("", "object of 4 keys", Some("4")),
        ("/orders", "array of 3 items", Some("3")),
        ("/orders/1/id", "number", None),
        ("/text", "string of 3 characters", Some("3")),
        ("/a~1b/~0", "null", None),
    ] {
        assert_eq!(asked(ORDERS, "type", json!({ "at": at })), shape);
        match length {
            Some(length) => assert_eq!(asked(ORDERS, "length", json!({ "at": at })), length),
            None => assert!(refused(ORDERS, "length", json!({ "at": at })).contains("no length")),
        }
    }
    assert_eq!(asked(ORDERS, "keys", json!({})), "orders\npage\na/b\ntext");
    assert_eq!(asked(ORDERS, "keys", json!({ "at": "/orders" })), "id\ntotal\ncustomer\ntags");
    assert!(refused(ORDERS, "keys", json!({ "at": "/text" })).contains("not an object"));
    for at in ["/nope", "/orders/3", "/orders/x", "/page/0", "/orders/-1"] {
        assert!(refused(ORDERS, "type", json!({ "at": at })).contains("no value at that place"));
    }
    assert!(refused(ORDERS, "type", json!({ "at": "orders" })).contains("is a JSON Pointer"));
}

#[test]
fn parts_of_a_document_are_taken_out() {
    assert_eq!(asked(ORDERS, "get", json!({ "at": "/orders/1/customer/name" })), "Ben");
    assert_eq!(asked(ORDERS, "get", json!({ "at": "/orders/0/tags" })), "[\n  \"new\"\n]");
    assert_eq!(
        asked(ORDERS, "slice", json!({ "at": "/orders", "start": 1, "end": 2 })),
        r#"{"id":2,"total":120,"customer":{"name":"Ben"}}"#
    );
    assert_eq!(
        asked(
            ORDERS,
            "pluck",
            json!({ "at": "/orders", "fields": ["id", "/customer/name", "tags"] })
        ),
        r#"{"id":1,"/customer/name":"Ann","tags":["new"]}
{"id":2,"/customer/name":"Ben","tags":null}
{"id":3,"/customer/name":"Cem","tags":[]}"#
    );
    let found = |field: &str, op: &str, value: Value| {
        let args = json!({ "at": "/orders", "field": field, "op": op, "value": value });
        let found = asked(ORDERS, "filter", args);
        found
            .lines()
            .filter_map(|line| line.split_once(": "))
            .map(|(n, _)| n.to_owned())
            .collect::<String>()
    };
    assert_eq!(found("total", "gt", json!(99)), "1");
    assert_eq!(found("total", "ge", json!(99)), "12");
    assert_eq!(found("total", "lt", json!(99.5)), "02");
    assert_eq!(found("total", "le", json!(20.5)), "0");
    assert_eq!(found("/customer/name", "eq", json!("Ben")), "1");
    assert_eq!(found("/customer/name", "ne", json!("Ben")), "02");
    assert_eq!(found("/customer/name", "contains", json!("e")), "12");
    assert_eq!(found("tags", "contains", json!("new")), "0");
    assert_eq!(found("customer", "contains", json!("name")), "012");
    assert_eq!(found("tags", "exists", json!(true)), "02");
    assert_eq!(found("tags", "exists", json!(false)), "1");
    assert!(refused(ORDERS, "slice", json!({})).contains("not an array but: object of 4 keys"));
}

#[test]
fn a_place_in_an_array_has_no_sign_and_no_zeros_in_front() {
    for document in ["[5, 6]", "{\"a\": 5}\n{\"a\": 6}\n"] {
        for at in ["/01", "/+1", "/00", "/ 1", "/-1"] {
            assert!(
                refused(document, "get", json!({ "at": at })).contains("no value at that place")
            );
        }
    }
    assert_eq!(asked("[5, 6]", "get", json!({ "at": "/0" })), "5");
    assert_eq!(asked("{\"01\": 5}", "get", json!({ "at": "/01" })), "5", "a key is any text");
}

#[test]
fn what_a_filter_compares_with_has_to_be_said() {
    for op in ["eq", "ne", "lt", "le", "gt", "ge", "contains"] {
        let args = json!({ "at": "/orders", "field": "total", "op": op });
        let message = refused(ORDERS, "filter", args);
        assert_eq!(message, "`value` is required, with every `op` but `exists`");
    }
    let with = |op: &str, value: Value| json!({ "at": "/orders", "field": "total", "op": op, "value": value });
    for op in ["lt", "le", "gt", "ge"] {
        let message = refused(ORDERS, "filter", with(op, Value::Null));
        assert_eq!(message, "`value` must be a number or a string for this `op`");
    }
    assert_eq!(
        asked("[null, 1]", "filter", json!({ "field": "", "op": "eq", "value": null })),
        "0: null"
    );
    let exists = json!({ "at": "/orders", "field": "tags", "op": "exists" });
    assert_eq!(asked(ORDERS, "filter", exists).lines().count(), 2);
    let misread = json!({ "at": { "orders": 1 }, "field": "total", "op": "exists" });
    assert_eq!(
        refused(ORDERS, "filter", misread),
        "the arguments of `filter`: `at`: expected a string, received an object"
    );
}

#[test]
fn json_path_finds_what_the_rfc_says() {
    let path = |path: &str| asked(ORDERS, "path", json!({ "path": path }));
    assert_eq!(path("$.orders[?@.total > 50].id"), "2\n3");
    assert_eq!(path("$..name"), "\"Ann\"\n\"Ben\"\n\"Cem\"");
    assert_eq!(path("$['a/b']['~']"), "null");
    assert_eq!(path("$.orders[-1:].id"), "3");
    assert_eq!(path("$.orders[?match(@.customer.name, 'B.*')].id"), "2");
    assert_eq!(path("$.nope"), "(nothing)");
    assert_eq!(asked(ORDERS, "path", json!({ "path": "$[0].id", "at": "/orders" })), "1");
    assert_eq!(asked(ORDERS, "path", json!({ "path": "$..id", "limit": 2 })).lines().count(), 3);
    let why = refused(ORDERS, "path", json!({ "path": "orders[" }));
    assert!(why.starts_with("`path` is not a usable JSONPath: "), "{why}");
}

#[test]
fn a_value_that_is_too_large_is_refused_and_its_parts_are_not() {
    // One array of 600,000 numbers, more than the limit of a path.
    let mut document = "{\"small\": [1, 2], \"large\": [".to_owned();
    for n in 0..600_000 {
        document += &format!("{}{n}", if n > 0 { "," } else { "" });
    }
    document += "]}";
    let turn = turn();
    keep(&turn, &document);
    let refusal = invalid(query(&turn, "path", json!({ "path": "$.large[5]" })));
    assert!(refusal.contains("too much to be read as a whole"), "{refusal}");
    assert!(invalid(query(&turn, "get", json!({ "at": "/large" }))).contains("too much"));
    assert_eq!(query(&turn, "path", json!({ "path": "$[1]", "at": "/small" })).unwrap(), "2");
    assert_eq!(query(&turn, "length", json!({ "at": "/large" })).unwrap(), "600000");
    assert_eq!(query(&turn, "get", json!({ "at": "/large/599999" })).unwrap(), "599999");
    let args = json!({ "at": "/large", "start": 599_998 });
    assert_eq!(query(&turn, "slice", args).unwrap(), "599998\n599999");
    let args = json!({ "at": "/large", "field": "", "op": "ge", "value": 599_999 });
    assert_eq!(query(&turn, "filter", args).unwrap(), "599999: 599999");
}

#[test]
fn records_are_asked_as_the_items_of_an_array() {
    let records = "{\"a\":1,\"b\":{\"c\":2}}\n\n{\"a\":3}\n[4]\n";
    assert_eq!(asked(records, "type", json!({})), "jsonl of 3 records");
    assert_eq!(asked(records, "length", json!({})), "3");
    assert_eq!(asked(records, "keys", json!({})), "a\nb");
    assert_eq!(asked(records, "get", json!({ "at": "/0/b/c" })), "2");
    assert_eq!(asked(records, "type", json!({ "at": "/2" })), "array of 1 items");
    assert_eq!(asked(records, "slice", json!({ "start": 1, "end": 2 })), "{\"a\":3}");
    assert_eq!(asked(records, "path", json!({ "path": "$.a" })), "1\n3");
    assert!(refused(records, "get", json!({ "at": "/9" })).contains("no value at that place"));
}

#[test]
fn a_record_that_is_cut_off_is_said_and_the_others_are_shown() {
    let records = "{\"a\":1}\n{\"a\":2}\n{\"a\":";
    let shown = asked(records, "slice", json!({}));
    insta::assert_snapshot!(shown, @r#"
    {"a":1}
    {"a":2}
    [skipped as invalid JSON: 1, the first is line 3: it is cut off: the JSON ends in the middle]
    "#);
    let found = asked(records, "path", json!({ "path": "$.a" }));
    assert!(
        found.starts_with("1\n2\n[skipped as invalid JSON: 1, the first is line 3: it is cut off")
    );
    let why = refused(records, "get", json!({ "at": "/2/a" }));
    assert!(why.contains("the JSON ends in the middle, at line 3, column 5;"), "{why}");
    let keys = asked("{\"a\":1}\n{\"b\":2}\n{\"b\":2} x\n{\"c\":3}\n[", "keys", json!({}));
    assert!(keys.starts_with(
        "a\nb\nc\n[skipped as invalid JSON: 2, the first is line 3: there is content after"
    ));
}

#[test]
fn a_document_that_is_cut_off_or_wrong_is_said_to_be() {
    let cut = refused("{\"a\": [1, 2", "get", json!({ "at": "/a/0" }));
    insta::assert_snapshot!(cut, @"it is cut off: the JSON ends in the middle, at line 1, column 11; use artifact_read or artifact_search instead");
    let turn = turn();
    let source = toolcrib_artifacts::ArtifactSource::of("t", "call").kind("json");
    turn.keep(source, b"{\"a\": 1} trailing").unwrap();
    let error = query(&turn, "get", json!({ "at": "/a" })).unwrap_err().message;
    assert!(error.starts_with("there is content after the JSON document"), "{error}");
}

#[test]
fn json_that_nests_ten_thousand_levels_deep_is_refused_where_it_would_have_to_be_held() {
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    for (name, args) in [
        ("get", json!({})),
        ("path", json!({ "path": "$..a" })),
        ("slice", json!({})),
        ("filter", json!({ "field": "a", "op": "exists" })),
        ("pluck", json!({ "fields": ["a"] })),
    ] {
        let error = refused(&deep, name, args);
        assert!(error.starts_with("it nests deeper than 128 levels"), "{name}: {error}");
    }
    // Neither of these contains a value.
    assert_eq!(asked(&deep, "type", json!({})), "array of 1 items");
    assert_eq!(asked(&deep, "length", json!({})), "1");
    let objects = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    assert_eq!(asked(&objects, "keys", json!({})), "a");
    assert!(refused(&objects, "get", json!({ "at": "/a" })).contains("nests deeper"));
    assert!(refused(&objects, "get", json!({ "at": "/a".repeat(100) })).contains("64 segments"));
}

#[test]
fn of_a_key_that_stands_twice_the_last_counts_in_every_query() {
    let twice = r#"{"a": [1, 2, 3], "b": 0, "a": {"c": [4], "c": [5, 6]}}"#;
    assert_eq!(asked(twice, "type", json!({ "at": "/a" })), "object of 2 keys");
    assert_eq!(asked(twice, "get", json!({ "at": "/a/c/0" })), "5");
    assert_eq!(asked(twice, "path", json!({ "path": "$.a.c[0]" })), "5");
    assert_eq!(asked(twice, "slice", json!({ "at": "/a/c" })), "5\n6");
    assert_eq!(
        asked(twice, "keys", json!({})),
        "a\nb\n[`a` appears twice in one object; the last one counts]"
    );
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        "[a-z\"\\\\/~é ]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::hash_map("[a-c/~]{0,3}", inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// All JSON Pointers into a value.
fn pointers(value: &Value, at: &str, into: &mut Vec<String>) {
    into.push(at.to_owned());
    match value {
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                pointers(item, &format!("{at}/{n}"), into);
            }
        }
        Value::Object(map) => {
            for (key, item) in map {
                let step = key.replace('~', "~0").replace('/', "~1");
                pointers(item, &format!("{at}/{step}"), into);
            }
        }
        _ => {}
    }
}

proptest! {
    /// Streaming a document finds the same as holding it in memory.
    #[test]
    fn what_is_found_by_going_through_is_what_stands_there(value in values()) {
        let document = json!([value]);
        let mut all = Vec::new();
        pointers(&document, "", &mut all);
        let turn = turn();
        keep(&turn, document.to_string());
        for at in all.iter().take(20) {
            let expected = document.pointer(at).unwrap();
            let found = query(&turn, "get", json!({ "at": at })).unwrap();
            match expected {
                Value::String(text) if text.is_empty() => prop_assert_eq!(found, "(nothing)"),
                Value::String(text) => prop_assert_eq!(&found, text),
                expected => {
                    let found: Value = serde_json::from_str(&found).unwrap();
                    prop_assert_eq!(&found, expected);
                }
            }
            if let Value::Array(items) = expected {
                let length = query(&turn, "length", json!({ "at": at })).unwrap();
                prop_assert_eq!(length, items.len().to_string());
            }
        }
    }

    /// All pages of items together are all items.
    #[test]
    fn pages_of_items_are_all_of_them(count in 0_usize..100, budget in 500_usize..1_200) {
        let rows: Vec<_> = (0..count).map(|n| json!({ "n": n, "text": "x".repeat(n % 50) })).collect();
        let turn = turn();
        keep(&turn, json!(rows).to_string());
        let mut found = Vec::new();
        let mut args = json!({ "id": "call", "query": "slice", "args": {} });
        loop {
            let answer = ask_within(&turn, "artifact_query", args.clone(), budget).unwrap();
            prop_assert!(answer.chars().count() <= budget);
            if body(&answer) != "(nothing)" {
                for line in body(&answer).lines() {
                    found.push(serde_json::from_str::<Value>(line).unwrap());
                }
            }
            match cursor(&answer) {
                Some(cursor) => args["cursor"] = json!(cursor),
                None => break,
            }
        }
        prop_assert_eq!(found, rows);
    }
}
