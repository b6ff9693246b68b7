//! `alternatives`: sources that rules have asked in place of others.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener},
    sync::{Arc, Mutex},
    thread,
};

use toolcrib_engine::{Engine, IterationError, TurnOptions};

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

fn names(engine: &Engine) -> Result<Vec<String>, IterationError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let iteration = turn.iteration().await?;
        Ok(iteration.menu().names().map(ToString::to_string).collect())
    })
}

/// What the engine says it did about failures: from whom to whom.
fn moves(engine: &Engine) -> Arc<Mutex<Vec<String>>> {
    let moves: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = Arc::clone(&moves);
    engine.events().on("reliability.retried", move |event| {
        let event = serde_json::to_value(event).unwrap();
        let said = format!("{} {} {}", event["then"], event["provider"], event["to"]);
        into.lock().unwrap().push(said);
    });
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
    // Who stands in for others lists nothing beside them.
    let first = engine(format!("{RULE}{}", hubs(fine, fine, fine)));
    assert_eq!(names(&first).unwrap(), ["crm_find"]);
    // Without a rule nobody is asked instead.
    let error = names(&engine(hubs(broken, fine, fine))).unwrap_err();
    assert!(matches!(error, IterationError::Discovery(_)), "{error:?}");
    assert!(names(&engine(format!("{RULE}{}", hubs(broken, broken, broken)))).is_err());
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
    assert!(names(&engine).is_err());
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
    toolcrib.toml:7:17: the hub `b` is only asked in place of `a`, and names alternatives of its own
        help: name all that may be asked, in order, where it is that others stand in for
    toolcrib.toml:7:22: there is no hub `d`
        help: the hubs are `a`, `b`, `c`
    toolcrib.toml:7:27: the hub `a` is no alternative to itself
        help: name all that may be asked, in order, where it is that others stand in for
    toolcrib.toml:15:17: the hub `c` is only asked in place of `b`, and names alternatives of its own
        help: name all that may be asked, in order, where it is that others stand in for
    toolcrib.toml:23:17: the hub `a` is only asked in place of `c`, and names alternatives of its own
        help: name all that may be asked, in order, where it is that others stand in for
    toolcrib.toml:27:17: there is no MCP server `a`
        help: the MCP servers are `one`, `two`
    toolcrib.toml:27:22: the MCP server `two` is only asked in place of `one`, and names alternatives of its own
        help: name all that may be asked, in order, where it is that others stand in for
    toolcrib.toml:27:29: `alternatives[2]` must be a text in quotes; this is a whole number
    toolcrib.toml:30:17: the MCP server `one` is only asked in place of `two`, and names alternatives of its own
        help: name all that may be asked, in order, where it is that others stand in for
    toolcrib.toml:33:8: then = "retry_other" can do nothing at the stage `tool`: only of models and sources there are others
        help: write stage = "model" or stage = "discover" in `when`, or another `then`
    "#);
}

/// What is kept back of one source would be offered by another.
#[test]
fn rules_that_forget_an_alternative_are_told() {
    let at = "127.0.0.1:9".parse().unwrap();
    let mirror = hub("mirror", at, "").replace("crm_", "other_");
    let project = [
        "policy_default = 'allow'\n".to_owned(),
        hub("crm", at, "alternatives = ['same', 'mirror']\n"),
        hub("same", at, ""),
        mirror,
        "[mcp.git]\nurl = 'https://a.example/'\nalternatives = ['two']\n\
         [mcp.two]\nurl = 'https://b.example/'\n\
         [[policy]]\neffect = 'deny'\ntool = ['mcp__git__push', 'crm_drop']\n\
         [[policy]]\neffect = 'halt'\nmcp_server = 'git'\n\
         [[policy]]\neffect = 'deny'\ntool = ['mcp__git__*', 'mcp__t*', 'crm_x', 'other_x']\n\
         [[policy]]\neffect = 'allow'\ntool = 'mcp__git__log'\n\
         [[policy]]\neffect = 'deny'\ntoolset = 'crm'\norigin = 'mcp:git'\n\
         [[personality]]\nname = 'p'\nexclude = 'mcp__git__rm'\n"
            .to_owned(),
    ];
    let project = Folder::with(&project.concat()).load();
    insta::assert_snapshot!(project.warnings(), @r#"
    toolcrib.toml:31:9: warning: `mcp__git__push` says nothing of `mcp__two__push`, which may be offered in its place
        help: name both: ["mcp__git__push", "mcp__two__push"]
    toolcrib.toml:31:27: warning: `crm_drop` says nothing of `other_drop`, which may be offered in its place
        help: name both: ["crm_drop", "other_drop"]
    toolcrib.toml:34:14: warning: `git` says nothing of `two`, which may be offered in its place
        help: name both: ["git", "two"]
    toolcrib.toml:43:11: warning: `crm` says nothing of `same`, which may be offered in its place
        help: name both: ["crm", "same"]
    toolcrib.toml:43:11: warning: `crm` says nothing of `mirror`, which may be offered in its place
        help: name both: ["crm", "mirror"]
    toolcrib.toml:44:10: warning: `mcp:git` says nothing of `mcp:two`, which may be offered in its place
        help: name both: ["mcp:git", "mcp:two"]
    toolcrib.toml:47:11: warning: `mcp__git__rm` says nothing of `mcp__two__rm`, which may be offered in its place
        help: name both: ["mcp__git__rm", "mcp__two__rm"]
    "#);
}
