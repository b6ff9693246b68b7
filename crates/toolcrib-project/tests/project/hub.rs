//! `[hub.NAME]`: what loads, and what is said of what does not.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
};

use toolcrib_engine::{TurnError, TurnOptions};

use crate::{documented::block, folder::Folder};

/// With what dials.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn the_documented_hub_loads_and_fails_without_a_tenant() {
    let secrets = "[secrets]\nCRM_KEY = { env = \"TOOLCRIB_TEST_NOT_SET\" }\n";
    let documented = block("## Hubs").replace("on_failure = \"omit\"", "on_failure = \"fail\"");
    let project = Folder::with(&format!("{secrets}{documented}")).load();
    let engine = project.engine_builder().build().unwrap();
    let fails = |options| {
        let Err(TurnError::Discovery(error)) = block_on(engine.turn(options).unwrap().iteration())
        else {
            panic!("it cannot be listed")
        };
        error.to_string()
    };
    assert_eq!(
        fails(TurnOptions::default()),
        "provider `hub:crm`: its request needs a tenant, and the run names none; with a cache, the \
         key has to declare it"
    );
    let without_key = fails(TurnOptions::default().tenant("acme"));
    assert!(without_key.contains("TOOLCRIB_TEST_NOT_SET` is not set"), "{without_key}");
}

#[test]
fn a_hub_offers_what_its_server_lists_under_its_prefix() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // One request: the second iteration is served by the cache.
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
        let line = asked.next().unwrap().unwrap();
        while !asked.next().unwrap().unwrap().is_empty() {}
        let body = r#"[{"name":"find","description":"Finds."},{"name":"drop","description":"x"}]"#;
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
        line
    });
    let project = Folder::with(&format!(
        r#"
policy_default = "allow"
[hub.crm]
url = "http://{address}/tools"
key = []
ttl = "forever"
allow_addresses = ["127.0.0.1"]
call = {{ method = "POST", url = "http://{address}/run/{{tool}}", body = "{{arguments}}" }}
[[policy]]
tool = "crm_drop"
effect = "deny"
"#
    ))
    .load();
    let engine = project.engine_builder().build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    for _ in 0..2 {
        let iteration = block_on(turn.iteration()).unwrap();
        let names: Vec<_> = iteration.menu().names().map(ToString::to_string).collect();
        assert_eq!(names, ["crm_find"]);
        assert_eq!(iteration.menu().tools()[0].toolset(), Some("crm"));
    }
    assert_eq!(server.join().unwrap(), "GET /tools HTTP/1.1");
}

#[test]
fn what_lacks_the_secret_of_a_call_is_told_at_loading_and_not_offered() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
        while !asked.next().unwrap().unwrap().is_empty() {}
        let body = r#"[{"name":"find","description":"Finds."}]"#;
        let length = body.len();
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").unwrap();
    });
    let project = Folder::with(&format!(
        r#"
[secrets]
KEY = {{ env = "TOOLCRIB_TEST_NOT_SET" }}
[hub.crm]
url = "http://{address}/tools"
key = []
ttl = "forever"
allow_addresses = ["127.0.0.1"]
call = {{ method = "GET", url = "http://{address}/{{tool}}", headers = {{ K = "secret:KEY" }} }}
"#
    ))
    .load();
    let warnings = project.warnings().to_string();
    assert!(
        warnings.contains("the environment variable `TOOLCRIB_TEST_NOT_SET` is not set")
            && warnings.contains("until that is changed, tools of the hub `crm` are not offered"),
        "{warnings}"
    );
    assert_eq!(project.warnings().iter().len(), 1, "{warnings}");
    let engine = project.engine_builder().build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let iteration = block_on(turn.iteration()).unwrap();
    server.join().unwrap();
    assert_eq!(iteration.menu().names().count(), 0);
    let reason = iteration.withheld().tool("crm_find").unwrap().reason;
    insta::assert_snapshot!(reason, @"it is not available now: the secret `KEY` is not available: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set");
}

#[test]
fn what_is_wrong_with_a_hub_is_said_to_the_character() {
    let folder = Folder::with(
        r#"
[hub.empty]
[hub.wrong]
url = "https://a.example/{tenant}?p={principle}"
headers = { X-Key = "secret:KEY" }
list = "items"
prefix = "a."
key = ["tenants"]
ttl = "for ever"
call = { url = "https://a.example/run" }
[hub.unknown]
url = "https://a.example/{tenant}"
key = []
ttl = "60s"
on_failure = "ignore"
cache = 1
call = { method = "POST", url = "https://a.example/{tool}", body = { a = "{argument}" } }
[hub]
flat = "https://a.example/"
"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:2:1: `url` is missing in `[hub.empty]`
        help: write for example: url = "https://registry.example/tools"
    toolcrib.toml:2:1: `key` is missing in `[hub.empty]`
        help: write for example: key = ["tenant"], or [] where all are given the same
    toolcrib.toml:2:1: `ttl` is missing in `[hub.empty]`
        help: write for example: ttl = "60s", or "forever"
    toolcrib.toml:2:1: `call` is missing in `[hub.empty]`
        help: write for example: call = { method = "POST", url = "https://registry.example/run/{tool}", body = "{arguments}" }
    toolcrib.toml:4:38: the URL: there is no place `principle` here; use one of `tenant`, `principal`, `cursor`
    toolcrib.toml:5:29: unknown secret `KEY`
        help: write below a [secrets]: KEY = { env = "VARIABLE" }
    toolcrib.toml:6:8: `list`: this is no JSON pointer; write `/data/tools`, with `~1` for a `/` inside a key and `~0` for a `~`
    toolcrib.toml:7:10: `prefix`: `a.x` is not a tool name: it contains '.'; use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    toolcrib.toml:8:8: `key[0]` cannot be `tenants`
        help: did you mean `tenant`?
    toolcrib.toml:9:7: `ttl` is not a duration: expected number at 0
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:10:16: in `call`, the URL: nothing says which tool is called; write `{tool}` into the URL, a header or the body
    toolcrib.toml:12:27: `{tenant}` is in the request, and `key` does not declare it, so it is never known
        help: add "tenant" to `key`
    toolcrib.toml:15:14: `on_failure` cannot be `ignore`
        help: the values are `fail`, `stale`, `omit`
    toolcrib.toml:16:1: unknown key `cache` in `[hub.unknown]`
        help: the keys here are `headers`, `url`, `list`, `name`, `description`, `schema`, `next`, `prefix`, `order`, `key`, `ttl`, `stale_for`, `stale_on_error`, `timeout`, `on_failure`, `defer`, `pin`, `alternatives`, `lint_allow`, `allow_addresses`, `call`
    toolcrib.toml:17:76: in `call`, the body at `/a`: there is no place `argument` here; use one of `tenant`, `principal`, `tool`, `arguments`
    toolcrib.toml:19:8: `flat` is not a hub
        help: write `[hub.NAME]`, with a name of your choice, and below it `url`
    "#);
}
