//! Errors in a hub before any request.

use toolcrib_tools::{
    http::Method,
    hub::{HubLimits, HubPointers, HubSpec},
};

use crate::support::client;

fn errors(spec: HubSpec) -> Vec<String> {
    let errors = spec.build(&client(), None).unwrap_err();
    errors.errors.iter().map(ToString::to_string).collect()
}

fn good() -> HubSpec {
    HubSpec::new("h", "https://a.example/", Method::POST, "https://a.example/{tool}")
}

#[test]
fn all_errors_of_a_hub_are_reported_together() {
    assert!(good().build(&client(), None).is_ok());
    let spec = HubSpec {
        name: " ".to_owned(),
        url: "https://a.example/{arguments}".to_owned(),
        headers: vec![("Host".to_owned(), "x".to_owned())],
        pointers: HubPointers {
            list: "items".to_owned(),
            next: Some("/~2".to_owned()),
            ..HubPointers::default()
        },
        prefix: "crm.".to_owned(),
        limits: HubLimits { pages: 0, ..HubLimits::default() },
        ..HubSpec::new("h", "", Method::TRACE, "https://{tool}/")
    };
    let pointer = "this is no JSON pointer; write `/data/tools`, with `~1` for a `/` inside a key \
                   and `~0` for a `~`";
    assert_eq!(
        errors(spec),
        [
            &format!("`list`: {pointer}"),
            &format!("`next`: {pointer}"),
            "the name: it is blank; events and messages contain it",
            "`prefix`: `crm.x` is not a tool name: it contains '.'; use 1 to 64 of the characters \
             a-z, A-Z, 0-9, `_` and `-`",
            "the limits: one of them is 0; each must be at least 1",
            "the URL: there is no place `arguments` here; use one of `tenant`, `principal`, `cursor`",
            "the header `Host`: this header is set by the client alone; leave it out",
            "in `call`, the method: `TRACE` is not for asking; use GET, POST, PUT, PATCH or DELETE",
            "in `call`, the URL: `tool` is in the scheme, host or port; those may not depend \
             on an argument",
        ]
    );
}

#[test]
fn the_call_of_a_hub_must_name_its_tool() {
    let spec = HubSpec::new("h", "https://a.example/", Method::POST, "https://a.example/run");
    assert_eq!(
        errors(spec),
        ["in `call`, the URL: nothing says which tool is called; write `{tool}` into the URL, a \
          header or the body"]
    );
    let mut in_body =
        HubSpec::new("h", "https://a.example/", Method::POST, "https://a.example/run");
    in_body.call.body = Some(serde_json::json!({ "name": "{tool}" }));
    assert!(in_body.build(&client(), None).is_ok());
}
