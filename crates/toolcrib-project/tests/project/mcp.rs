//! MCP servers: what is declared of them. Nothing is started here.

use std::path::PathBuf;

use toolcrib_engine::{OnFailure, TurnOptions};
use toolcrib_project::{LoadError, LoadOptions, McpServer, Project};

use crate::{documented::block, folder::Folder};

const SERVER: &str = "[mcp.git]\ncommand = \"true\"\n";

#[test]
fn documented_servers_load_in_order_and_are_not_started() {
    let file = block("## MCP servers").replace("\"uvx\"", "\"true\"");
    let folder = Folder::with(&format!("{file}[secrets]\nDOCS_TOKEN = {{ env = \"PATH\" }}\n"))
        .file(".mcp.json", r#"{ "mcpServers": { "time": { "command": "true" } } }"#);
    let project = folder.load();
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    let servers: Vec<_> = project
        .mcp_servers()
        .iter()
        .map(|server| (server.name().as_str(), server.origin(), server.on_failure()))
        .collect();
    let at = |name: &str| {
        let line =
            file.lines().position(|line| line.starts_with(&format!("[mcp.{name}]"))).unwrap() + 1;
        format!("toolcrib.toml:{line}")
    };
    assert_eq!(
        servers,
        [
            ("git", &*at("git"), OnFailure::Stale),
            ("docs", &*at("docs"), OnFailure::Omit),
            ("tracker", &*at("tracker"), OnFailure::Stale),
            ("time", ".mcp.json:1", OnFailure::Fail),
        ]
    );
    let trusted: Vec<_> = project.mcp_servers().iter().map(McpServer::is_trusted).collect();
    assert_eq!(trusted, [true, false, false, false]);
    for server in project.mcp_servers() {
        assert_eq!(server.client().unwrap().status().state.as_str(), "idle");
    }
    let hidden = project.redactor().text(&std::env::var("PATH").unwrap()).into_owned();
    assert_eq!(hidden, "[redacted]");
}

#[test]
fn a_missing_file_of_servers_is_one_error() {
    let folder = Folder::with(
        r#"
mcp_files = ["missing.json"]
policy_default = "allow"
[mcp.git]
command = "true"
[mcp.files]
trusted = true
[[personality]]
name = "default"
mcp_servers = ["files", "gti"]
exclude = ["mcp__files__write"]
[[policy]]
effect = "deny"
tool = ["mcp__files__*"]
mcp_server = ["files"]
origin = ["mcp:files"]
"#,
    );
    // The second is a mistake whatever the file contains.
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:2:14: `missing.json` does not exist
    toolcrib.toml:10:25: unknown MCP server `gti`
        help: did you mean `git`?
    "#);
}

#[test]
fn everything_that_is_wrong_with_servers_is_said_at_its_place() {
    let folder = Folder::with(
        r#"
mcp_files = [".mcp.json"]
policy_default = "allow"
[mcp]
flat = 1
[mcp.both]
command = "true"
url = "https://a.example/mcp"
[mcp."a b"]
command = "true"
[mcp.nowhere]
trusted = true
[mcp.times]
trusted = true
[mcp.slips]
command = "true"
working_dir = "x"
on_failure = "ignore"
timeout = 5
max_result_chars = 1
[mcp.mixed]
url = "https://a.example/mcp"
args = []
memory_max = "1MiB"
[mcp.variables]
command = "true"
args = ["${TOOLCRIB_TEST_NOT_SET}", "x{secret:KEY}"]
env = { A = "é{secret:NONE}", B = "${workspaceFolder}" }
[mcp.nets]
url = "https://a.example/mcp"
allow_addresses = ["10.0.0.0/99"]
[mcp.clear]
url = "http://far.example/mcp"
headers = { Authorization = "x" }
[mcp.link]
url = "mailto:x"
[mcp.time]
command = "true"
[mcp.files]
memory_max = "1GiB"
allow_addresses = ["127.0.0.1"]
[serve]
[[serve.token]]
principal = "a"
[[serve.token]]
secret = "hush"
[[serve.token]]
secret = "secret:NOPE"
[secrets]
KEY = { env = "PATH" }
[[policy]]
effect = "deny"
tool = ["mcp__gti__*", "mcp__nets__x", "mcp__*__delete_*", "delete_*", "mcp__x_*"]
toolset = "mcp"
"#,
    )
    .file(
        ".mcp.json",
        r#"{ "mcpServers": {
  "time": { "command": "true" },
  "files": { "command": "true", "args": ["${TOOLCRIB_TEST_NOT_SET}"] },
  "off": { "type": "sse", "disabled": true }
} }"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:5:8: `flat` is not an MCP server
        help: write `[mcp.NAME]`, with a name of your choice, and below it `command` for a program, or `url`
    toolcrib.toml:8:7: `command` and `url` both say where the server is
        help: keep one of them
    toolcrib.toml:9:6: `a b` is not a valid name of an MCP server: it contains ' '; use 1 to 32 of the characters a-z, A-Z, 0-9, `_` and `-`, without `__` and not ending in `_`
    toolcrib.toml:11:6: `[mcp.nowhere]` has no `command` and no `url`
        help: write `command` for a program, or `url`; a section without them must name a server of a file of `mcp_files`
    toolcrib.toml:13:6: `[mcp.times]` has no `command` and no `url`
        help: did you mean `[mcp.time]`?
    toolcrib.toml:17:1: unknown key `working_dir` in `[mcp.slips]`
        help: the key is `cwd`, as in `mcpServers` files
    toolcrib.toml:18:14: `on_failure` cannot be `ignore`
        help: the values are `fail`, `stale`, `omit`
    toolcrib.toml:19:11: `timeout` must be a duration in quotes, such as "30s"; this is a whole number
    toolcrib.toml:20:20: `max_result_chars` must be from 100 to 10000000
    toolcrib.toml:23:8: `args` is only for a server with `command`
        help: remove it
    toolcrib.toml:24:14: `memory_max` applies only to a program
        help: remove it
    toolcrib.toml:27:10: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set; set it, or write `${TOOLCRIB_TEST_NOT_SET:-DEFAULT}`
    toolcrib.toml:27:47: no secret is allowed here: other programs of this machine can read it
        help: pass it to a program in its `env`, to an endpoint in its `headers`
    toolcrib.toml:28:23: unknown secret `NONE`
        help: there is only `KEY`
    toolcrib.toml:28:36: `${workspaceFolder}` is known to an editor only; write its value, or `${VAR}` with an environment variable
    toolcrib.toml:31:20: `10.0.0.0/99` is neither an address nor a net
        help: write an address such as "127.0.0.1" or a net such as "10.1.0.0/16", with a port if it is not that of the URL: "127.0.0.1:8080"
    toolcrib.toml:32:6: mcp server `clear`: headers would go to `far.example` unencrypted; use https, or remove them
    toolcrib.toml:35:6: mcp server `link`: the URL cannot be used: it begins with `mailto:`, and with neither http:// nor https://
    toolcrib.toml:37:6: an MCP server `time` exists already, at .mcp.json:2
        help: rename one of them; a section without `command` and `url` changes settings of the existing one
    toolcrib.toml:43:1: `secret` is missing in `[[serve.token]]`
        help: write for example: secret = "secret:NAME"
    toolcrib.toml:46:10: this is not a reference to a secret
        help: write secret = "secret:NAME", and below a [secrets]: NAME = { env = "VARIABLE" }; the secret itself does not belong in this file
    toolcrib.toml:48:10: unknown secret `NOPE`
        help: there is only `KEY`
    toolcrib.toml:50:1: warning: nothing refers to the secret `KEY`
        help: use it, or remove it
    toolcrib.toml:53:9: unknown MCP server `gti`
        help: the MCP servers are `a b`, `both`, `clear`, `files`, `link`, `mixed`, `nets`, `nowhere`, `off`, `slips`, `time`, `times`, `variables`
    toolcrib.toml:53:60: warning: no tool matches `delete_*`
    toolcrib.toml:53:72: warning: no tool matches `mcp__x_*`
    .mcp.json:3:43: server `files` cannot be used: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set; set it, or write `${TOOLCRIB_TEST_NOT_SET:-DEFAULT}`
    "#);
}

#[test]
fn names_of_remote_tools_are_taken_for_servers_that_there_are() {
    let skill = |tool: &str| {
        format!(
            "---\nname: s\ndescription: S.\nallowed-tools: mcp__git__log\nmetadata:\n  \
             toolcrib-tools: {tool}\n---\nDo.\n"
        )
    };
    let with = |tool| Folder::with(SERVER).skill("s", &skill(tool));
    assert!(with("mcp__git__log").load().warnings().is_empty());
    insta::assert_snapshot!(with("mcp__got__log").problems(), @r#"
    skills/s/SKILL.md:6:19: unknown MCP server `got`
        help: did you mean `mcp__git__log`?
    "#);
    let nothing = Folder::with("").skill("s", &skill("mcp__got__log"));
    insta::assert_snapshot!(nothing.problems(), @r#"
    skills/s/SKILL.md:4:16: warning: `allowed-tools` names `mcp__git__log`, and this project has no such tool
        help: the skill says so to the model
    skills/s/SKILL.md:6:19: unknown MCP server `got`
        help: write `[mcp.got]`, and below it `command` or `url`
    "#);
}

#[test]
fn what_is_missing_of_a_server_is_a_warning() {
    let project = Folder::with(
        "[mcp.git]\ncommand = 'toolcrib-no-such-program'\n[mcp.docs]\n\
         url = 'https://docs.example/mcp'\nheaders = { Authorization = 'Bearer {secret:KEY}' }\n\
         [[serve.token]]\nsecret = 'secret:KEY'\n\
         [secrets]\nKEY = { env = 'TOOLCRIB_TEST_NOT_SET' }\n",
    )
    .load();
    insta::assert_snapshot!(project.warnings(), @r#"
    toolcrib.toml:1:6: warning: no program `toolcrib-no-such-program` on the PATH; install it, or write its path, with a `/` in it
        help: until this is changed, the MCP server `git` cannot be used
    toolcrib.toml:5:45: warning: the secret `KEY` cannot be read: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set
        help: until this is changed, the MCP server `docs` cannot be used
    toolcrib.toml:7:10: warning: the secret `KEY` cannot be read: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set
        help: until this is changed, `serve --http` does not start
    "#);
    let [git, docs] = project.mcp_servers() else { panic!() };
    assert!(git.client().is_ok());
    assert!(docs.client().unwrap_err().contains("TOOLCRIB_TEST_NOT_SET"));
    let [token] = project.serve_tokens() else { panic!() };
    assert!(project.token(token).is_err());
}

#[test]
fn files_are_imported_with_a_project_and_without() {
    let folder = Folder::with(SERVER)
        .file("a.json", r#"{ "mcpServers": { "docs": { "url": "https://docs.example/mcp" } } }"#)
        .file("b.json", r#"{ "servers": { "git": { "command": "true" } } }"#);
    let import = |name: &str| folder.path().join(name);
    let options = |imports: &[PathBuf]| LoadOptions {
        imports: imports.to_vec(),
        state: Some(folder.path().join("state")),
        ..LoadOptions::default()
    };
    let names = |project: &Project| -> Vec<_> {
        let servers = project.mcp_servers().iter();
        servers.map(|server| (server.name().to_string(), server.on_failure())).collect()
    };
    let (git, docs) = ("git".to_owned(), "docs".to_owned());
    let project = Project::load(folder.path(), &options(&[import("a.json")])).unwrap();
    assert_eq!(
        names(&project),
        [(git.clone(), OnFailure::Stale), (docs.clone(), OnFailure::Stale)]
    );
    let project = Project::of_imports(&options(&[import("b.json"), import("a.json")])).unwrap();
    assert_eq!(names(&project), [(git, OnFailure::Stale), (docs, OnFailure::Stale)]);
    assert!(project.tools().is_empty() && project.skills().is_empty());
    assert!(!folder.path().join("state").exists());

    let refused = |loaded: Result<Project, LoadError>| {
        let text = loaded.unwrap_err().to_string();
        text.replace(&folder.path().to_string_lossy().into_owned(), "DIR")
    };
    insta::assert_snapshot!(
        refused(Project::load(folder.path(), &options(&[import("b.json")]))),
        @r#"
    toolcrib.toml:1:6: an MCP server `git` exists already, at DIR/b.json:1
        help: rename one of them; a section without `command` and `url` changes settings of the existing one
    "#
    );
    insta::assert_snapshot!(refused(Project::of_imports(&options(&[import("c.json")]))), @"DIR/c.json: it does not exist; did you mean `DIR/a.json`?");
}

#[test]
fn of_an_imported_file_a_server_that_cannot_be_used_costs_no_other() {
    let folder = Folder::with(SERVER).file(
        "a.json",
        r#"{ "mcpServers": {
  "good": { "command": "true" },
  "old": { "type": "sse", "url": "https://a.example/sse" },
  "asks": { "command": "true", "env": { "K": "${input:key}" } },
  "unset": { "command": "true", "args": ["${TOOLCRIB_TEST_NOT_SET}"] },
  "clear": { "url": "http://far.example/mcp", "headers": { "Authorization": "x" } }
} }"#,
    );
    let options = LoadOptions {
        imports: vec![folder.path().join("a.json")],
        state: Some(folder.path().join("state")),
        ..LoadOptions::default()
    };
    let project = Project::of_imports(&options).unwrap();
    let servers = project.mcp_servers();
    let usable: Vec<_> = servers
        .iter()
        .map(|server| (server.name().as_str(), server.client().is_ok(), server.on_failure()))
        .collect();
    assert_eq!(
        usable,
        [
            ("good", true, OnFailure::Stale),
            ("old", false, OnFailure::Stale),
            ("asks", false, OnFailure::Stale),
            ("unset", false, OnFailure::Stale),
            ("clear", false, OnFailure::Stale),
        ]
    );
    let warned = project.warnings().to_string();
    assert_eq!(project.warnings().errors().count(), 0);
    for words in [
        "a.json:3:",
        "`sse`",
        "a.json:4:",
        "`${input:key}`",
        "a.json:5:",
        "a.json:6:",
        "far.example",
    ] {
        assert!(warned.contains(words), "{words}: {warned}");
    }

    // Errors in the project's own files are errors of the project.
    let own = Folder::with("mcp_files = [\"a.json\"]\n").file(
        "a.json",
        r#"{ "mcpServers": { "old": { "type": "sse", "url": "https://a.example/sse" } } }"#,
    );
    assert!(own.problems().to_string().contains("`sse`"));
}

#[test]
fn a_server_without_its_secret_stands_for_the_names_that_its_tools_would_have() {
    let project = Folder::with(
        "[mcp.git]\ncommand = 'true'\nenv = { A = 'secret:KEY' }\non_failure = 'omit'\n\
         [secrets]\nKEY = { env = 'TOOLCRIB_TEST_NOT_SET' }\n",
    )
    .load();
    let engine = project.engine_builder().build().unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let iteration = runtime.block_on(turn.iteration()).unwrap();
    let withheld: Vec<_> = iteration
        .withheld()
        .tools()
        .map(|tool| (tool.name.to_string(), tool.origin.to_string()))
        .collect();
    assert_eq!(withheld, [("mcp__git__*".to_owned(), "mcp:git".to_owned())]);
}

#[test]
fn the_token_is_made_once_and_kept_from_others() {
    use std::{fs, os::unix::fs::PermissionsExt as _};

    let folder = Folder::with("");
    let project = folder.load();
    let made = project.token_file().unwrap();
    assert_eq!(made.path, project.state().join("serve-token"));
    assert_eq!(made.token.expose().len(), 64);
    assert_eq!(fs::metadata(&made.path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(project.token_file().unwrap().token.expose(), made.token.expose());
    assert_eq!(fs::read_dir(project.state()).unwrap().count(), 2, "the token and .gitignore");

    fs::set_permissions(&made.path, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(project.token_file().unwrap_err().to_string().contains("by other users"));
    fs::set_permissions(&made.path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&made.path, " \n").unwrap();
    assert!(project.token_file().unwrap_err().to_string().contains("contains no token"));

    fs::remove_file(&made.path).unwrap();
    // Opening a pipe without a writer would never end.
    let pipe = std::process::Command::new("mkfifo").arg(&made.path).status().unwrap();
    assert!(pipe.success());
    assert!(project.token_file().unwrap_err().to_string().contains("contains no token"));
}

#[test]
fn what_differs_between_callers_is_checked_when_the_project_is_loaded() {
    let folder = Folder::with(
        r#"
[mcp.host]
url = "https://{tenant}.example/mcp"
[mcp.query]
url = "https://a.example/mcp?user={principal}"
[mcp.words]
command = "true"
args = ["--user={principal}"]
[mcp.shared]
url = "https://a.example/mcp"
session = "shared"
[[mcp.shared.caller]]
principal = "ana"
headers = { Authorization = "Bearer {secret:KEY}" }
[mcp.clear]
url = "http://far.example/{principal}"
[[mcp.clear.caller]]
principal = "ana"
headers = { Authorization = "Bearer {secret:KEY}" }
[mcp.callers]
url = "https://a.example/{principal}/mcp"
[[mcp.callers.caller]]
principal = "ana"
headers = { "a b" = "x" }
[[mcp.callers.caller]]
principal = "ana"
env = { A = "x" }
[[mcp.callers.caller]]
principal = ".."
[[mcp.callers.caller]]
tenant = "acme"
[mcp.times]
[[mcp.times.caller]]
principal = "ana"
[secrets]
KEY = { env = "PATH" }
"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:2:6: the `url` of `[mcp.host]` has a placeholder outside its path
        help: write it in a header, or between two `/`
    toolcrib.toml:4:6: the `url` of `[mcp.query]` has a placeholder outside its path
        help: write it in a header, or between two `/`
    toolcrib.toml:8:18: no placeholder of the caller is allowed here
        help: a program's `env`, an endpoint's `headers` and the path of its `url` can contain it
    toolcrib.toml:9:6: `[mcp.shared]` has `session = "shared"`, but its callers have separate credentials
        help: remove `session`, or use the same credentials for all
    toolcrib.toml:17:1: mcp server `clear`: headers would go to `far.example` unencrypted; use https, or remove them
    toolcrib.toml:22:1: mcp server `callers`: the header `a b` has a name that cannot be sent
    toolcrib.toml:25:1: another `caller` of `callers` is principal "ana" and no tenant
        help: remove one of them
    toolcrib.toml:27:7: `env` is only for a server with `command`
        help: remove it
    toolcrib.toml:28:1: the principal is not usable in a URL
        help: change the `caller`, or remove the placeholder
    toolcrib.toml:30:1: it needs a principal, and the caller has none
        help: change the `caller`, or remove the placeholder
    toolcrib.toml:32:6: `[mcp.times]` has no `command` and no `url`
        help: write `command` for a program, or `url`; a section without them must name a server of a file of `mcp_files`
    toolcrib.toml:33:1: callers of a server of a file cannot differ
        help: declare the server here, with `command` or `url`
    "#);
    let folder = Folder::with(
        "[mcp.ok]\nurl = 'https://a.example/of-{principal}/{tenant}/mcp?v=1'\n\
         headers = { Authorization = 'Bearer {principal}' }\n[mcp.alike]\n\
         url = 'https://a.example/mcp'\nheaders = { X-A = '{x}' }\n",
    );
    assert!(folder.load().warnings().is_empty());
}

#[test]
fn an_empty_prefix_is_none_for_gateway_clients() {
    let servers = "[mcp.git]\ncommand = 'git'\nprefix = ''\n";
    let project = Folder::with(servers).load();
    assert_eq!(project.mcp_servers()[0].prefix().map(|prefix| &**prefix), Some(""));
}

/// Two servers whose names differ only by case were two servers with tools of nearly the same names.
#[test]
fn of_servers_of_files_that_differ_only_by_case_the_later_has_a_digest() {
    let folder = Folder::with("mcp_files = ['a.json', 'b.json']\n[mcp.GitHub]\ncommand = 'true'\n")
        .file("a.json", r#"{ "mcpServers": { "github": { "command": "true" } } }"#)
        .file("b.json", r#"{ "mcpServers": { "GITHUB": { "command": "true" } } }"#);
    let project = folder.load();
    let names: Vec<_> = project.mcp_servers().iter().map(|server| server.name().as_str()).collect();
    assert_eq!(names, ["GitHub", "github_c0b0109d", "GITHUB_9d1d9cfc"]);
    insta::assert_snapshot!(project.warnings(), @r"
    a.json:1:19: warning: `github` is named `github_c0b0109d` here, because it differs from `GitHub` only by case
    b.json:1:19: warning: `GITHUB` is named `GITHUB_9d1d9cfc` here, because it differs from `GitHub` only by case
    ");
}

#[test]
fn sections_that_differ_only_by_case_are_an_error() {
    let file = "policy_default = 'allow'\n[mcp.GitHub]\ncommand = 'true'\n[mcp.github]\ncommand = 'true'\n\
                [[policy]]\neffect = 'deny'\ntool = 'mcp__github__delete'\n";
    insta::assert_snapshot!(Folder::with(file).problems(), @r"
    toolcrib.toml:4:6: the name of `[mcp.github]` differs from `[mcp.GitHub]` only by case
        help: rename one of them
    ");
}

#[test]
fn a_tool_of_a_server_has_another_name_here_and_two_never_have_one() {
    let server = "[mcp.git]\ncommand = 'true'\n";
    let tool = |own: &str, more: &str| format!("[mcp.git.tool.{own}]\n{more}\n");
    let project = Folder::with(
        &(server.to_owned()
            + &tool("git_log", "name = 'history'\ndescription = 'Lists commits.'")
            + &tool("'git.show'", "description = 'Shows a commit.'")),
    )
    .load();
    let client = project.mcp_servers()[0].client().unwrap();
    assert_eq!(client.tool_name("git_log"), "mcp__git__history");
    assert!(client.tool_name("git.show").starts_with("mcp__git__git_show_"));
    for (tools, problem) in [
        (
            tool("a", "name = 'b c'"),
            "toolcrib.toml:1:6: MCP server `git`: `b c` cannot be the name",
        ),
        (tool("a", "name = 'x'") + &tool("b", "name = 'x'"), "would both be called `x`"),
        (tool("a", "name = 'b'") + &tool("b", "description = 'B.'"), "would both be called `b`"),
        (tool("a", "rename = 'b'"), "the key is `name`"),
        (tool("a", "description = ''"), "`description`"),
    ] {
        let problems = Folder::with(&(server.to_owned() + &tools)).problems().to_string();
        assert!(problems.contains(problem), "{problem}: {problems}");
    }
}
