//! `[[personality]]`: what a run reaches at most.

use toolcrib_engine::TurnOptions;
use toolcrib_project::Project;

use crate::{
    documented::block,
    folder::{DATABASE, Folder, TOOL, block_on},
};

/// A tool that requests a host.
fn asks(name: &str, host: &str) -> String {
    format!(
        "[[tool]]\nkind = \"http\"\nname = \"{name}\"\ndescription = \"x\"\ntoolset = \"web\"\n\
         method = \"GET\"\nurl = \"https://{host}/\"\n"
    )
}

/// The tools that a personality is offered.
fn offered(project: &Project, personality: &str) -> Vec<String> {
    let engine = project.engine_builder().build().unwrap();
    let options = TurnOptions::default().personality(personality);
    block_on(async {
        let mut turn = engine.turn(options).unwrap();
        let iteration = turn.iteration().await.unwrap();
        iteration.menu().names().map(ToString::to_string).collect()
    })
}

#[test]
fn each_reaches_what_its_lists_name() {
    let project = Folder::with(&format!(
        "{DATABASE}{TOOL}{}{}
[[personality]]
name = 'billing'
toolset = 'billing'
[[personality]]
name = 'one'
toolset = ['weather', 'list_charges']
exclude = ['list_*']
[[personality]]
name = 'none'
toolset = []
",
        asks("weather", "a.test"),
        asks("news", "b.test"),
    ))
    .load();
    assert_eq!(offered(&project, "default"), ["list_charges", "weather", "news"]);
    assert_eq!(offered(&project, "billing"), ["list_charges"]);
    assert_eq!(offered(&project, "one"), ["weather"]);
    assert!(offered(&project, "none").is_empty());
}

#[test]
fn the_documented_one_loads_and_the_default_one_can_be_declared() {
    let weather =
        format!("{}{}", asks("forecast", "api.example.com"), asks("billing_info", "x.test"))
            .replace("toolset = \"web\"", "toolset = \"billing\"");
    let documented = block("## Personalities").replace("refund*", "billing_*");
    let notes = "[files.notes]\nfolder = 'notes'\n";
    let project = Folder::with(&format!("{weather}{documented}{notes}")).file("notes/x", "").load();
    let [support] = &project.personalities().collect::<Vec<_>>()[..] else { panic!() };
    assert_eq!(&*support.id, "support");
    assert_eq!(support.system.as_deref(), Some("You help customers."));
    assert!(project.personality_model("support").is_some());
    assert_eq!(offered(&project, "support"), ["forecast"]);

    let project = Folder::with(&format!(
        "{}\n[[personality]]\nname = 'default'\ntoolset = []\n",
        asks("weather", "a.test")
    ))
    .load();
    assert!(offered(&project, "default").is_empty());
}

#[test]
fn everything_that_is_wrong_with_them_is_said_at_its_place() {
    let folder = Folder::with(&format!(
        "{DATABASE}{TOOL}
[mcp.git]
command = 'true'
allow_stray_children = true

[[personality]]
toolset = ['biling', 'list_charge', 'mcp', 'mcp__git__log', 7]
mcp_servers = ['gti']
plugins = ['billing']
exclude = ['list_charg', 'lost_*', 'mcp__hg__*']
model = 'anthropi:x'
system = 'a'
system_file = 'b.md'
memory = 'none'
[[personality]]
name = 'twice'
network = {{ allow = ['https://a.test'], deny = 'a.test:1', ports = [1] }}
[[personality]]
name = 'twice'
system_file = 'missing.md'
toolset = {{}}
[[serve.token]]
secret = 'secret:KEY'
personality = 'twise'
[secrets]
KEY = {{ env = 'PATH' }}
"
    ));
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:18:1: `name` is missing in `[[personality]]`
        help: write for example: name = "support"
    toolcrib.toml:19:12: unknown tool or toolset `biling`
        help: did you mean `billing`?
    toolcrib.toml:19:22: unknown tool or toolset `list_charge`
        help: did you mean `list_charges`?
    toolcrib.toml:19:37: `mcp` belongs to MCP servers, to which `toolset` does not apply
        help: name the servers in `mcp_servers`
    toolcrib.toml:19:44: `mcp__git__log` belongs to MCP servers, to which `toolset` does not apply
        help: name the servers in `mcp_servers`
    toolcrib.toml:19:61: `toolset[4]` must be a text in quotes; this is a whole number
    toolcrib.toml:20:16: unknown MCP server `gti`
        help: did you mean `git`?
    toolcrib.toml:21:12: unknown plugin `billing`
        help: no plugins exist
    toolcrib.toml:22:12: unknown tool `list_charg`
        help: did you mean `list_charges`?
    toolcrib.toml:22:26: warning: no tool matches `lost_*`
    toolcrib.toml:22:36: unknown MCP server `hg`
        help: there is only `git`
    toolcrib.toml:23:9: unknown model `anthropi:x`
        help: did you mean `anthropic:x`?
    toolcrib.toml:25:15: `system` and `system_file` both give the system text
        help: keep one of them
    toolcrib.toml:26:1: unknown key `memory` in `[[personality]]`
        help: the keys here are `name`, `system`, `system_file`, `model`, `exclude`, `toolset`, `mcp_servers`, `plugins`, `network`, `files`
    toolcrib.toml:29:22: `https://a.test` is not a valid host; write `api.example.com`, or `*.example.com` for all below that name, without scheme, port and path
    toolcrib.toml:29:48: `a.test:1` is not a valid host; write `api.example.com`, or `*.example.com` for all below that name, without scheme, port and path
    toolcrib.toml:29:60: unknown key `ports` in `network`
        help: the keys here are `allow`, `deny`
    toolcrib.toml:31:8: two personalities are named `twice`; the first is at toolcrib.toml:28
        help: rename one of them
    toolcrib.toml:32:15: `missing.md` does not exist
    toolcrib.toml:33:11: `toolset` must be a list in `[…]`; this is a table
    toolcrib.toml:36:15: unknown personality `twise`
        help: did you mean `twice`?
    "#);
}

#[test]
fn case_34_a_host_that_is_not_covered_is_one_error_per_tool_in_reach() {
    let tools = [
        asks("weather", "api.weather.test"),
        asks("news", "news.test"),
        asks("maps", "maps.test"),
        asks("hidden", "hidden.test"),
    ]
    .concat();
    let folder = Folder::with(&format!(
        "{tools}
[[personality]]
name = 'open'
[[personality]]
name = 'bound'
exclude = ['hidden']
network = {{ allow = ['*.weather.test', 'maps.test'], deny = ['maps.test'] }}
[[personality]]
name = 'blind'
toolset = []
network = {{ allow = [] }}
"
    ));
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:35:11: personality `bound` reaches the tool `news`, but its `network` denies it `news.test`
        help: permit the host with network.allow and network.deny, or exclude the tool: exclude = ["news"]
    toolcrib.toml:35:11: personality `bound` reaches the tool `maps`, but its `network` denies it `maps.test`
        help: permit the host with network.allow and network.deny, or exclude the tool: exclude = ["maps"]
    "#);
}

#[test]
fn a_hub_that_is_called_at_a_host_that_is_not_covered_is_an_error_where_it_is_reached() {
    let folder = Folder::with(
        "[hub.crm]
url = 'https://registry.test/'
key = []
ttl = '60s'
call = { method = 'POST', url = 'https://crm.test/{tool}' }
[[personality]]
name = 'free'
network = { allow = ['crm.test'] }
[[personality]]
name = 'all'
network = { allow = ['registry.test'] }
[[personality]]
name = 'one'
toolset = ['crm_find']
network = { deny = ['crm.test'] }
[[personality]]
name = 'without'
exclude = ['crm_*']
network = { allow = [] }
[[personality]]
name = 'others'
toolset = []
network = { allow = [] }
",
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:11:11: personality `all` reaches tools of the hub `crm`, but its `network` denies them `crm.test`
        help: permit the host with network.allow and network.deny, or exclude the tools: exclude = ["crm_*"]
    toolcrib.toml:15:11: personality `one` reaches tools of the hub `crm`, but its `network` denies them `crm.test`
        help: permit the host with network.allow and network.deny, or exclude the tools: exclude = ["crm_*"]
    "#);
}

#[test]
fn a_tool_whose_secret_is_missing_is_not_offered_and_the_reason_names_the_variable() {
    let project = Folder::with(
        "[secrets]\nKEY = { env = 'TOOLCRIB_TEST_NOT_SET' }\n[[tool]]\nkind = 'command'\n\
         name = 'keyed'\ndescription = 'x'\nprogram = 'true'\nenv = { A = 'secret:KEY' }\n\
         allow_stray_children = true\n",
    )
    .load();
    assert!(offered(&project, "default").is_empty());
    let engine = project.engine_builder().build().unwrap();
    let reason = block_on(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        turn.iteration().await.unwrap().withheld().tool("keyed").unwrap().reason
    });
    insta::assert_snapshot!(reason, @"it is not available now: the secret `KEY` is not available: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set");
}

#[test]
fn an_endpoint_of_a_gateway_has_the_menu_of_a_personality() {
    let file = "[[personality]]\nname = 'desk'\n[serve.endpoint.front-1]\npersonality = 'desk'\n\
                [serve.endpoint.all]\npersonality = 'default'\n";
    let project = Folder::with(file).load();
    let endpoints = project.serving().endpoints.iter();
    let endpoints: Vec<_> = endpoints.map(|one| (&*one.name, &*one.personality)).collect();
    assert_eq!(endpoints, [("front-1", "desk"), ("all", "default")]);
    for (endpoint, problem) in [
        ("[serve.endpoint.a]\npersonality = 'dsek'", "unknown personality `dsek`"),
        ("[serve.endpoint.a]", "`personality` is missing in `[serve.endpoint.a]`"),
        ("[serve.endpoint.skill]\npersonality = 'default'", "`skill` cannot be the name"),
        ("[serve.endpoint.'a/b']\npersonality = 'default'", "`a/b` cannot be the name"),
        ("[serve.endpoint.a]\npersonality = 'default'\ntool = 'x'", "unknown key `tool`"),
    ] {
        let problems = Folder::with(&format!("{file}{endpoint}")).problems().to_string();
        assert!(problems.contains(problem), "{problem}: {problems}");
    }
}
