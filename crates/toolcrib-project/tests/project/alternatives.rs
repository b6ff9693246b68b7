//! `alternatives`: sources that rules query instead of others.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

use toolcrib_engine::{Engine, TurnError, TurnOptions};

use crate::folder::Folder;

/// A server that answers every request so.
fn answers(status: &'static str, body: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut asked = BufReader::new(stream.try_clone().unwrap()).lines();
            while asked.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
            );
        }
    });
    address
}

fn hub(name: &str, at: SocketAddr, more: &str) -> String {
    format!(
        "[hub.{name}]\nurl = \"http://{at}/tools\"\nkey = []\nttl = \"forever\"\nprefix = \"crm_\"\n\
         allow_addresses = [\"127.0.0.1\"]\n{more}\
         call = {{ method = \"POST\", url = \"http://{at}/{{tool}}\", body = \"{{arguments}}\" }}\n"
    )
}

const RULE: &str = "[[reliability]]\nwhen = { stage = 'discover' }\nthen = 'retry_other'\n";
const ONE: &str = r#"[{"name":"find","description":"Finds."}]"#;

fn names(engine: &Engine) -> Result<Vec<String>, TurnError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let iteration = turn.iteration().await?;
        Ok(iteration.menu().names().map(ToString::to_string).collect())
    })
}

/// The engine's events about failures: from which source to which.
fn moves(engine: &Engine) -> Arc<Mutex<Vec<String>>> {
    let moves: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = Arc::clone(&moves);
    engine
        .events()
        .on("reliability.retried", move |event| {
            let event = serde_json::to_value(event).unwrap();
            let said = format!("{} {} {}", event["then"], event["provider"], event["to"]);
            into.lock().unwrap().push(said);
        })
        .unwrap();
    moves
}

#[test]
fn a_hub_that_fails_is_listed_by_the_next_of_its_alternatives() {
    let (broken, fine) = (answers("503 Down", ""), answers("200 OK", ONE));
    let hubs = |first, second, third| {
        let more = "alternatives = [\"second\", \"third\"]\n";
        [hub("first", first, more), hub("second", second, ""), hub("third", third, "")].concat()
    };
    let engine = |project: String| Folder::with(&project).load().engine_builder().build().unwrap();
    let third = engine(format!("{RULE}{}", hubs(broken, broken, fine)));
    let said = moves(&third);
    assert_eq!(names(&third).unwrap(), ["crm_find"]);
    assert_eq!(
        *said.lock().unwrap(),
        [
            r#""retry_other" "cached > hub:first" "cached > hub:second""#,
            r#""retry_other" "cached > hub:second" "cached > hub:third""#
        ]
    );
    // An alternative lists nothing in addition to its source.
    let first = engine(format!("{RULE}{}", hubs(fine, fine, fine)));
    assert_eq!(names(&first).unwrap(), ["crm_find"]);
    // Without a rule no alternative is queried.
    assert!(names(&engine(hubs(broken, fine, fine))).unwrap().is_empty());
    let all_broken = format!("{RULE}{}", hubs(broken, broken, broken));
    assert!(names(&engine(all_broken)).unwrap().is_empty());
}

#[test]
fn mcp_servers_have_alternatives_too_those_of_files_and_of_plugins() {
    let project = "
mcp_files = ['.mcp.json']
[mcp.git]
command = 'no-such-program-a'
alternatives = ['mirror']
[plugin.crm]
path = 'crm'
programs = true
";
    let folder = Folder::with(&format!("{project}{RULE}"))
        .file(".mcp.json", r#"{"mcpServers": {"mirror": {"command": "no-such-program-b"}}}"#)
        .file(
            "crm/plugin.toml",
            "[mcp.one]\ncommand = 'no-such-program-c'\nalternatives = ['two']\n\
             on_failure = 'omit'\n[mcp.two]\ncommand = 'no-such-program-d'\n",
        );
    let engine = folder.load().engine_builder().build().unwrap();
    let said = moves(&engine);
    assert!(names(&engine).unwrap().is_empty());
    let mut said = said.lock().unwrap().clone();
    said.sort();
    assert_eq!(
        said,
        [
            r#""retry_other" "mcp:git" "mcp:mirror""#,
            r#""retry_other" "plugin(crm) > mcp:one" "plugin(crm) > mcp:two""#
        ]
    );
}

#[test]
fn one_that_is_named_twice_is_refused() {
    let at = "127.0.0.1:9".parse().unwrap();
    let project = [
        RULE.to_owned(),
        hub("a", at, "alternatives = ['c', 'd', 'c']\n"),
        hub("b", at, "alternatives = ['c']\n"),
        hub("c", at, ""),
        hub("d", at, ""),
    ];
    insta::assert_snapshot!(Folder::with(&project.concat()).problems(), @"
    toolcrib.toml:10:27: the hub `c` is an alternative already, at toolcrib.toml:10
        help: an alternative belongs to one source: name it only there
    toolcrib.toml:18:17: the hub `c` is an alternative already, at toolcrib.toml:10
        help: an alternative belongs to one source: name it only there
    ");
}

const MIRROR: &str = "[mcp.git]\nurl = 'https://a.example/'\nalternatives = ['mirror']\n\
                      [mcp.mirror]\nurl = 'https://b.example/'\n";

#[test]
fn that_no_rule_has_them_asked_is_said_where_they_are_named() {
    let at = "127.0.0.1:9".parse().unwrap();
    let project = [hub("a", at, "alternatives = ['b', 'c']\n"), hub("b", at, ""), hub("c", at, "")];
    let project = format!("{}{MIRROR}", project.concat());
    insta::assert_snapshot!(Folder::with(&project).load().warnings(), @r#"
    toolcrib.toml:7:17: warning: the alternatives of `a` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    toolcrib.toml:25:17: warning: the alternatives of `git` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    "#);
    for when in ["stage = 'discover'", "attempt_below = 3"] {
        let rule = format!("[[reliability]]\nwhen = {{ {when} }}\nthen = 'retry_other'\n");
        let loaded = Folder::with(&format!("{rule}{project}")).load();
        assert!(loaded.warnings().is_empty(), "{}", loaded.warnings());
    }
    let other = "[[reliability]]\nwhen = { stage = 'discover' }\nthen = 'retry'\n";
    assert!(!Folder::with(&format!("{other}{project}")).load().warnings().is_empty());
}

/// A source's name is in the names and facts of its tools, and an alternative has a separate one.
#[test]
fn who_speaks_of_a_source_and_not_of_its_alternative_is_warned() {
    let at = "127.0.0.1:9".parse().unwrap();
    let hubs = [hub("first", at, "alternatives = ['second']\n"), hub("second", at, "")].concat();
    let rules = "policy_default = 'allow'\n\
                 [[policy]]\neffect = 'deny'\ntoolset = 'first'\n\
                 [[policy]]\neffect = 'deny'\nmcp_server = 'git'\n\
                 [[policy]]\neffect = 'deny'\ntool = 'mcp__git__*'\n\
                 [[policy]]\neffect = 'deny'\norigin = ['mcp:git', 'hub:f*']\n\
                 [[policy]]\neffect = 'deny'\nmcp_server = ['git', 'mirror']\n\
                 [[policy]]\neffect = 'deny'\norigin = ['mcp:*', 'hub:*']\n\
                 [[policy]]\neffect = 'deny'\ntoolset = 'second'\n\
                 [[personality]]\nname = 'p'\nmcp_servers = ['git']\ntoolset = ['first']\n\
                 exclude = ['mcp__git__log']\n";
    let project = format!("{rules}{RULE}{hubs}{MIRROR}");
    insta::assert_snapshot!(Folder::with(&project).load().warnings(), @"
    toolcrib.toml:4:11: warning: `first` is matched here, and its alternative `second` is not: this does not apply to the tools of the alternative
        help: name both
    toolcrib.toml:7:14: warning: `git` is matched here, and its alternative `mirror` is not: this does not apply to the tools of the alternative
        help: name both
    toolcrib.toml:10:8: warning: `git` is matched here, and its alternative `mirror` is not: this does not apply to the tools of the alternative
        help: name both
    toolcrib.toml:13:11: warning: `git` is matched here, and its alternative `mirror` is not: this does not apply to the tools of the alternative
        help: name both
    toolcrib.toml:13:22: warning: `first` is matched here, and its alternative `second` is not: this does not apply to the tools of the alternative
        help: name both
    toolcrib.toml:25:16: warning: `git` is matched here, and its alternative `mirror` is not: this does not apply to the tools of the alternative
        help: name both
    toolcrib.toml:26:12: warning: `first` is matched here, and its alternative `second` is not: this does not apply to the tools of the alternative
        help: name both
    toolcrib.toml:27:12: warning: `git` is matched here, and its alternative `mirror` is not: this does not apply to the tools of the alternative
        help: name both
    ");
}

/// The prefix of names and patterns of tools shows their possible sources.
#[test]
fn who_means_tools_of_a_source_and_none_of_its_alternative_is_warned() {
    let at = "127.0.0.1:9".parse().unwrap();
    let own = |name: &str, more: &str| {
        let prefix = format!("prefix = \"{name}_\"");
        hub(name, at, more).replace("prefix = \"crm_\"", &prefix)
    };
    let hubs = [
        own("first", "alternatives = ['second']\n"),
        own("second", ""),
        hub("one", at, "alternatives = ['two']\n"),
        hub("two", at, ""),
    ];
    let sources = format!("{RULE}{}{MIRROR}", hubs.concat());
    let warnings = |rules: &str| {
        let project = format!("policy_default = 'allow'\n{rules}{sources}");
        let warnings = Folder::with(&project).load().warnings().to_string();
        let said = warnings.lines().filter_map(|line| line.split_once("warning: "));
        said.map(|(_, said)| said.split(':').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let unnamed = |source: &str, alternative: &str| {
        format!("`{source}` is matched here, and its alternative `{alternative}` is not")
    };
    let (git, first) = (unnamed("git", "mirror"), unnamed("first", "second"));
    for (tools, expected) in [
        ("'mcp__git__*', 'mcp__m*'", vec![]),
        ("'mcp__git__log', 'mcp__mirror__log'", vec![]),
        ("'mcp__git__log', 'mcp__??????__log'", vec![]),
        ("'mcp__git__log', '*_log'", vec![]),
        ("'mcp__mirror__log'", vec![]),
        ("'mcp__g*'", vec![&git]),
        ("'mcp__git__log'", vec![&git]),
        ("'mcp__???__log'", vec![&git]),
        ("'first_*'", vec![&first]),
        ("'first_find', 'mcp__git__log'", vec![&first, &git]),
        ("'*', 'mcp__git__log'", vec![]),
        ("'first_find', 'second_find'", vec![]),
        ("'crm_find'", vec![]),
    ] {
        let rule = format!("[[policy]]\neffect = 'deny'\ntool = [{tools}]\n");
        assert_eq!(warnings(&rule).iter().collect::<Vec<_>>(), expected, "{tools}");
        let personality = format!("[[personality]]\nname = 'p'\nexclude = [{tools}]\n");
        assert_eq!(warnings(&personality).iter().collect::<Vec<_>>(), expected, "{tools}");
    }
    for (toolset, expected) in [
        ("'first_find'", vec![&first]),
        ("'first_find', 'second'", vec![]),
        ("'first', 'second_find'", vec![]),
        ("'crm_find'", vec![]),
    ] {
        let personality = format!("[[personality]]\nname = 'p'\ntoolset = [{toolset}]\n");
        assert_eq!(warnings(&personality).iter().collect::<Vec<_>>(), expected, "{toolset}");
    }
}

#[test]
fn alternatives_that_are_unknown_themselves_or_in_a_circle_are_refused() {
    let at = "127.0.0.1:9".parse().unwrap();
    let project = [
        hub("a", at, "alternatives = ['b', 'd', 'a']\n"),
        hub("b", at, "alternatives = ['c']\n"),
        hub("c", at, "alternatives = ['a']\n"),
        "[mcp.one]\nurl = 'https://a.example/'\nalternatives = ['a', 'two', 3]\n\
         [mcp.two]\nurl = 'https://b.example/'\nalternatives = ['one']\n"
            .to_owned(),
        "[[reliability]]\nwhen = { stage = 'tool' }\nthen = 'retry_other'\n".to_owned(),
    ];
    insta::assert_snapshot!(Folder::with(&project.concat()).problems(), @r#"
    toolcrib.toml:7:17: the hub `b` is an alternative of `a`, and cannot have alternatives
        help: name all alternatives, in order, at the source that they replace
    toolcrib.toml:7:17: warning: the alternatives of `a` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    toolcrib.toml:7:22: unknown hub `d`
        help: the hubs are `a`, `b`, `c`
    toolcrib.toml:7:27: the hub `a` cannot be its own alternative
        help: name all alternatives, in order, at the source that they replace
    toolcrib.toml:15:17: the hub `c` is an alternative of `b`, and cannot have alternatives
        help: name all alternatives, in order, at the source that they replace
    toolcrib.toml:15:17: warning: the alternatives of `b` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    toolcrib.toml:23:17: the hub `a` is an alternative of `c`, and cannot have alternatives
        help: name all alternatives, in order, at the source that they replace
    toolcrib.toml:23:17: warning: the alternatives of `c` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    toolcrib.toml:27:17: unknown MCP server `a`
        help: the MCP servers are `one`, `two`
    toolcrib.toml:27:17: warning: the alternatives of `one` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    toolcrib.toml:27:22: the MCP server `two` is an alternative of `one`, and cannot have alternatives
        help: name all alternatives, in order, at the source that they replace
    toolcrib.toml:27:29: `alternatives[2]` must be a text in quotes; this is a whole number
    toolcrib.toml:30:17: the MCP server `one` is an alternative of `two`, and cannot have alternatives
        help: name all alternatives, in order, at the source that they replace
    toolcrib.toml:30:17: warning: the alternatives of `two` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    toolcrib.toml:33:8: then = "retry_other" has no effect at the stage `tool`: only models and sources have alternatives
        help: write stage = "model" or stage = "discover" in `when`, or another `then`
    "#);
}
