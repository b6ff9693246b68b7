//! `[plugin.NAME]`: folders of a project whose parts carry an id.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    sync::{Arc, Mutex},
};

use toolcrib_core::Tool;
use toolcrib_engine::{Engine, TurnOptions};
use toolcrib_project::{LoadError, LoadOptions, Project};

use crate::{
    documented::block,
    folder::{DATABASE, Folder, SKILL, TOOL, block_on},
};

const PLUGIN: &str = "[plugin.crm]\npath = \"plugins/crm\"\n";
const ASKS: &str = "[[tool]]\nkind = \"http\"\nname = \"find_customer\"\ndescription = \"Finds.\"\n\
                    toolset = \"customers\"\nmethod = \"GET\"\nurl = \"https://crm.example.com/\"\n";
const PROGRAM: &str = "[[tool]]\nkind = \"command\"\nname = \"export\"\ndescription = \"Exports.\"\n\
                       program = \"./export.sh\"\n";

/// A project with its own tool, and one plugin.
fn desk(project: &str, plugin: &str) -> Folder {
    Folder::with(&format!("{project}\n{PLUGIN}{DATABASE}{TOOL}"))
        .file("plugins/crm/plugin.toml", plugin)
}

fn executable(folder: &Folder, script: &str) {
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path().join(script), mode).unwrap();
}

fn engine(project: &Project) -> Engine {
    project.engine_builder().build().unwrap()
}

/// The offered tools, each with its plugin.
fn offered(engine: &Engine, options: TurnOptions) -> Vec<(String, Option<String>)> {
    block_on(async {
        let mut turn = engine.turn(options).unwrap();
        let iteration = turn.iteration().await.unwrap();
        let named = |tool: &Tool| (tool.name().to_string(), tool.plugin().map(str::to_owned));
        iteration.menu().tools().iter().map(named).collect()
    })
}

fn names(engine: &Engine, personality: &str) -> Vec<String> {
    let options = TurnOptions::default().personality(personality);
    offered(engine, options).into_iter().map(|(name, _)| name).collect()
}

fn why(engine: &Engine, personality: &str, tool: &str) -> String {
    block_on(async {
        let options = TurnOptions::default().personality(personality);
        let mut turn = engine.turn(options).unwrap();
        let iteration = turn.iteration().await.unwrap();
        iteration.withheld().tool(tool).unwrap().reason.to_string()
    })
}

#[test]
fn what_a_folder_adds_carries_its_id_obeys_lists_and_rules_and_leaves_with_it() {
    let project = "
policy_default = 'allow'
[[personality]]
name = 'bare'
plugins = []
[[personality]]
name = 'clerk'
plugins = ['crm']
toolset = []
[[policy]]
effect = 'deny'
plugin = 'crm'
personality = 'default'
";
    let folder = desk(project, ASKS)
        .file("plugins/crm/skills/customers/SKILL.md", "---\nname: customers\ndescription: Who.\nmetadata:\n  toolcrib-tools: find_customer\n---\nLook.\n");
    let project = folder.load();
    assert_eq!(project.plugins().collect::<Vec<_>>(), ["crm"]);
    let of_crm: Vec<_> =
        project.tools().iter().filter(|tool| tool.plugin() == Some("crm")).collect();
    assert_eq!(of_crm.len(), 1);
    assert_eq!(of_crm[0].origin_label(), "plugins/crm/plugin.toml:1 (plugin `crm`)");
    let engine = engine(&project);
    assert_eq!(engine.plugins().collect::<Vec<_>>(), ["crm"]);
    assert_eq!(engine.skills().get("customers").unwrap().plugin.as_deref(), Some("crm"));
    let as_clerk = offered(&engine, TurnOptions::default().personality("clerk"));
    assert_eq!(as_clerk[0], ("find_customer".into(), Some("crm".into())));
    assert_eq!(as_clerk.len(), 2, "and `read_skill`: {as_clerk:?}");
    assert_eq!(names(&engine, "bare"), ["list_charges"], "without the plugin's skill");
    assert_eq!(names(&engine, "default"), ["list_charges", "read_skill"]);
    insta::assert_snapshot!(why(&engine, "bare", "find_customer"), @"personality `bare` does not list plugin `crm` in `plugins`; to offer it: personality `clerk`");
    insta::assert_snapshot!(why(&engine, "default", "find_customer"), @"policy rule 1 (toolcrib.toml:10) denies it; to offer it: personality `clerk`");
    let without = engine.without_plugin("crm").unwrap();
    assert_eq!(names(&without, "clerk"), Vec::<String>::new());
    assert_eq!(names(&without, "default"), ["list_charges"]);
    assert_eq!(without.skills().iter().count(), 0);
}

#[test]
fn skills_of_a_plugin_change_between_turns_as_the_projects_do() {
    let folder = desk("", ASKS).skill("billing", SKILL);
    let project = folder.load();
    assert!(project.warnings().is_empty(), "{}", project.warnings());
    let engine = engine(&project);
    let ids = || -> Vec<String> {
        engine.skills().iter().map(|skill| format!("{} {:?}", skill.id, skill.plugin)).collect()
    };
    assert_eq!(ids(), ["billing None"]);
    let text = |body: &str| format!("---\nname: customers\ndescription: Who.\n---\n{body}\n");
    let folder = folder.file("plugins/crm/skills/customers/SKILL.md", text("Look."));
    assert_eq!(ids(), ["billing None", "customers Some(\"crm\")"]);
    let before = engine.skills().get("customers").unwrap().body.clone();
    let _folder = folder.file("plugins/crm/skills/customers/SKILL.md", text("Look twice."));
    assert_ne!(engine.skills().get("customers").unwrap().body, before);
}

#[test]
fn a_skill_whose_name_is_taken_meanwhile_is_left_out_and_all_else_goes_on() {
    let text = |name: &str| format!("---\nname: {name}\ndescription: Who.\n---\nLook.\n");
    let folder = desk("", ASKS).file("plugins/crm/skills/customers/SKILL.md", text("customers"));
    let engine = engine(&folder.load());
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let into = Arc::clone(&told);
    engine
        .events()
        .on("skill.reload_failed", move |event| {
            let event = serde_json::to_value(event).unwrap();
            into.lock().unwrap().push(event["problem"].as_str().unwrap().to_owned());
        })
        .unwrap();
    let ids = || -> Vec<String> {
        engine.skills().iter().map(|skill| format!("{} {:?}", skill.id, skill.plugin)).collect()
    };
    assert_eq!(ids(), ["customers Some(\"crm\")"]);
    let _folder = folder.skill("customers", &text("customers")).skill("returns", &text("returns"));
    assert_eq!(ids(), ["customers None", "returns None"]);
    drop(engine.turn(TurnOptions::default()).unwrap());
    insta::assert_snapshot!(told.lock().unwrap().join("\n"), @"two skills are called `customers`: skills/customers/SKILL.md and plugins/crm/skills/customers/SKILL.md (plugin `crm`); the latter is omitted until one of them is renamed");
}

#[test]
fn a_hub_of_a_plugin_takes_no_names_of_others() {
    let hub = |name: &str, prefix: &str| {
        format!(
            "[hub.{name}]\nurl = 'https://a.example/'\nkey = []\nttl = '60s'\n{prefix}\
             call = {{ method = 'POST', url = 'https://a.example/{{tool}}', body = '{{arguments}}' }}\n"
        )
    };
    let plugin = [
        ("a", "prefix = 'list_'\n"),
        ("b", "prefix = 'o'\n"),
        ("read", ""),
        ("d", "prefix = 'own_'\n"),
        ("mcp", ""),
        ("f", "prefix = 'mcp__git__'\n"),
        ("g", "prefix = 'desk'\n"),
        ("fine", ""),
        ("fine_too", "prefix = 'fine_'\n"),
    ]
    .map(|(name, prefix)| hub(name, prefix))
    .concat();
    let project = format!("{}[plugin.desk]\npath = 'plugins/desk'\n", hub("own", ""));
    let of_other = ASKS.replace("find_customer", "desk_find");
    let folder = desk(&project, &plugin).file("plugins/desk/plugin.toml", of_other);
    insta::assert_snapshot!(folder.problems(), @r#"
    plugins/crm/plugin.toml:5:10: `list_charges` begins with the prefix `list_` of the hub `a` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:11:10: `own_` begins with the prefix `o` of the hub `b` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:13:6: `read_skill` begins with the prefix `read_` of the hub `read` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:22:10: `own_` begins with the prefix `own_` of the hub `d` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:24:6: `mcp__` begins with the prefix `mcp_` of the hub `mcp` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:24:6: the toolset `mcp` is reserved for tools of MCP servers
        help: rename the hub; its name is the toolset of its tools
    plugins/crm/plugin.toml:33:10: the prefix `mcp__` is reserved for tools of MCP servers
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:39:10: `desk_find` begins with the prefix `desk` of the hub `g` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    "#);
}

/// Which tools a hub has is not known: what the project has itself is not the hub's in any case.
#[test]
fn a_personality_reaches_its_own_tools_whatever_hubs_of_plugins_begin_with() {
    let project = "policy_default = 'allow'\n[[personality]]\nname = 'p'\ntoolset = ['list_charges', 'billing']\n";
    let hub = "[hub.list]\nurl = 'https://a.example/'\nkey = []\nttl = '60s'\n\
               call = { method = 'POST', url = 'https://a.example/{tool}', body = '{arguments}' }\n";
    let problems = desk(project, hub).problems().to_string();
    assert!(!problems.contains("belongs to a plugin"), "{problems}");
}

#[test]
fn two_plugins_have_two_folders() {
    let project = "[plugin.again]\npath = './plugins/crm/'\n";
    let folder = desk(project, ASKS).file("plugins/crm/skills/billing/SKILL.md", SKILL);
    insta::assert_snapshot!(folder.problems(), @"
    toolcrib.toml:5:8: `plugins/crm` is the folder of the plugin `again`
        help: give each plugin a separate folder, or remove one of the two
    ");
}

#[test]
fn what_stands_in_the_documentation_loads() {
    let secrets = "[secrets]\nCRM_KEY = { env = \"TOOLCRIB_TEST_NOT_SET\" }\n";
    let project = format!(
        "{}{secrets}{DATABASE}{TOOL}[files.notes]\nfolder = 'notes'\n",
        block("## Plugins")
    );
    let plugin = {
        let page = include_str!("../../../../docs/project-file.md");
        let section = page.split_once("\n## Plugins\n").unwrap().1;
        section.split("```toml\n").nth(2).unwrap().split_once("```").unwrap().0
    };
    let folder = Folder::with(&project)
        .file("notes/a.md", "")
        .file("plugins/crm/plugin.toml", plugin)
        .file("plugins/crm/skills/customers/SKILL.md", SKILL.replace("billing", "customers"));
    let project = folder.load();
    let of_crm = project.tools().iter().filter(|tool| tool.plugin() == Some("crm"));
    assert!(of_crm.count() >= 1);
}

#[test]
fn what_a_plugin_may_not_say_is_refused_by_name() {
    let folder = desk(
        "",
        "
policy_default = 'allow'
mcp_files = ['.mcp.json']
limts = 1
[agent]
model = 'x'
[secrets]
KEY = { env = 'KEY' }
[[policy]]
effect = 'allow'
[[personality]]
name = 'x'
[skills]
folder = 'skills'
focus = false
[mcp.files]
trusted = true
",
    );
    insta::assert_snapshot!(folder.problems(), @"
    plugins/crm/plugin.toml:2:1: unknown key `policy_default` in this file
        help: a plugin adds tools, skills, MCP servers and hubs; everything else belongs in the project's own file
    plugins/crm/plugin.toml:3:1: unknown key `mcp_files` in this file
        help: declare each server here: write `[mcp.NAME]`
    plugins/crm/plugin.toml:4:1: unknown key `limts` in this file
        help: the keys here are `skills`, `mcp`, `hub`, `tool`
    plugins/crm/plugin.toml:5:2: unknown key `agent` in this file
        help: a plugin adds tools, skills, MCP servers and hubs; everything else belongs in the project's own file
    plugins/crm/plugin.toml:7:2: unknown key `secrets` in this file
        help: a plugin adds tools, skills, MCP servers and hubs; everything else belongs in the project's own file
    plugins/crm/plugin.toml:9:3: unknown key `policy` in this file
        help: a plugin adds tools, skills, MCP servers and hubs; everything else belongs in the project's own file
    plugins/crm/plugin.toml:11:3: unknown key `personality` in this file
        help: a plugin adds tools, skills, MCP servers and hubs; everything else belongs in the project's own file
    plugins/crm/plugin.toml:14:10: skill folder `skills` does not exist
    plugins/crm/plugin.toml:15:1: unknown key `focus` in `[skills]`
        help: it applies to all skills, and belongs in the project's own file
    plugins/crm/plugin.toml:16:6: `[mcp.files]` has no `command` and no `url`
        help: write `command` for a program, or `url`; a section without them must name a server of a file of `mcp_files`
    ");
}

/// Access outside the folder must be granted by the project.
#[test]
fn a_plugin_reaches_nothing_outside_its_folder_that_is_not_granted() {
    let plugin = format!(
        "{PROGRAM}inherit_env = ['HOME']\nworking_dir = '..'\n\
         {ASKS}allow_addresses = ['127.0.0.1']\nheaders = {{ X-Key = 'secret:KEY' }}\n{}\
         [[tool]]\nkind = 'sql'\nname = 'unnamed'\ndescription = 'x'\nstatements = ['SELECT 1']\n\
         [mcp.git]\ncommand = 'true'\nargs = ['${{HOME}}']\ncwd = '../..'\n\
         env = {{ KEY = 'secret:KEY' }}\n\
         [hub.h]\nurl = 'https://a.example/'\nkey = []\nttl = '60s'\nheaders = {{ K = 'secret:KEY' }}\n\
         allow_addresses = ['10.0.0.0/8']\n\
         call = {{ method = 'POST', url = 'https://a.example/{{tool}}', body = '{{arguments}}' }}\n",
        TOOL.replace("list_charges", "all_charges")
            .replace("read_only", "database = \"desk\"\nread_only"),
    );
    let project = "[secrets]\nKEY = { env = 'PATH' }\n";
    let denied = desk(project, &plugin).file("plugins/crm/export.sh", "#!/bin/sh\n");
    executable(&denied, "plugins/crm/export.sh");
    insta::assert_snapshot!(denied.problems(), @r#"
    plugins/crm/plugin.toml:5:11: the plugin `crm` runs programs, which the project does not grant
        help: to permit it, write below [plugin.crm]: programs = true
    plugins/crm/plugin.toml:6:16: the plugin `crm` may not read environment variables: they can contain secrets
        help: write "secret:NAME" in `env` or `headers`, and let the project grant the secret
    plugins/crm/plugin.toml:7:15: `..` leads out of the plugin's folder; copy the needed files into it
    plugins/crm/plugin.toml:15:20: the plugin `crm` dials `127.0.0.1`, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["127.0.0.1"]
    plugins/crm/plugin.toml:16:29: the plugin `crm` needs the secret `KEY`, which the project does not grant
        help: to permit it, write below [plugin.crm]: secrets = ["KEY"]
    plugins/crm/plugin.toml:23:12: the plugin `crm` uses the database `desk`, which the project does not grant
        help: to permit it, write below [plugin.crm]: databases = ["desk"]
    plugins/crm/plugin.toml:26:1: the plugin `crm` uses the database `desk`, which the project does not grant
        help: to permit it, write below [plugin.crm]: databases = ["desk"]
    plugins/crm/plugin.toml:32:11: the plugin `crm` runs programs, which the project does not grant
        help: to permit it, write below [plugin.crm]: programs = true
    plugins/crm/plugin.toml:33:10: the plugin `crm` may not read environment variables: they can contain secrets
        help: write "secret:NAME" in `env` or `headers`, and let the project grant the secret
    plugins/crm/plugin.toml:34:7: `../..` leads out of the plugin's folder; copy the needed files into it
    plugins/crm/plugin.toml:35:23: the plugin `crm` needs the secret `KEY`, which the project does not grant
        help: to permit it, write below [plugin.crm]: secrets = ["KEY"]
    plugins/crm/plugin.toml:40:25: the plugin `crm` needs the secret `KEY`, which the project does not grant
        help: to permit it, write below [plugin.crm]: secrets = ["KEY"]
    plugins/crm/plugin.toml:41:20: the plugin `crm` dials `10.0.0.0/8`, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["10.0.0.0/8"]
    "#);
}

/// Such a server is dialed without `allow_addresses`, so that nothing else of it would be looked
/// at.
#[test]
fn a_plugins_mcp_server_dials_this_machine_only_where_that_is_granted() {
    let plugin = "[mcp.a]\nurl = 'http://127.0.0.1:8080/mcp'\n\
                  [mcp.b]\nurl = 'https://LOCALHOST/mcp'\n\
                  [mcp.c]\nurl = 'http://[::1]:8080/mcp'\n\
                  [mcp.d]\nurl = 'http://0x7f.2/mcp'\n\
                  [mcp.e]\nurl = 'https://mcp.example/mcp'\n";
    insta::assert_snapshot!(desk("", plugin).problems(), @r#"
    plugins/crm/plugin.toml:2:7: the plugin `crm` connects to this machine, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["127.0.0.1"]
    plugins/crm/plugin.toml:4:7: the plugin `crm` connects to this machine, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["127.0.0.1", "::1"]
    plugins/crm/plugin.toml:6:7: the plugin `crm` connects to this machine, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["::1"]
    plugins/crm/plugin.toml:8:7: the plugin `crm` connects to this machine, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["127.0.0.2"]
    "#);
    let granted = |nets: &str| {
        let project = format!("{PLUGIN}allow_addresses = [{nets}]\n");
        Folder::with(&project).file("plugins/crm/plugin.toml", plugin)
    };
    granted("'127.0.0.0/8', '::1'").load();
    insta::assert_snapshot!(granted("'127.0.0.1', '10.0.0.0/8'").problems(), @r#"
    plugins/crm/plugin.toml:4:7: the plugin `crm` connects to this machine, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["127.0.0.1", "::1"]
    plugins/crm/plugin.toml:6:7: the plugin `crm` connects to this machine, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["::1"]
    plugins/crm/plugin.toml:8:7: the plugin `crm` connects to this machine, which the project does not grant
        help: to permit it, write below [plugin.crm]: allow_addresses = ["127.0.0.2"]
    "#);
}

#[test]
fn what_is_granted_works_and_no_path_leaves_the_folder() {
    let grants = "programs = true\nsecrets = ['KEY']\ndatabases = ['desk']\n\
                  allow_addresses = ['127.0.0.1', '10.0.0.0/8']\n";
    let project = format!("[secrets]\nKEY = {{ env = 'PATH' }}\n{PLUGIN}{grants}{DATABASE}{TOOL}");
    let with = |plugin: &str| {
        let folder = Folder::with(&project)
            .file("plugins/crm/plugin.toml", plugin)
            .file("plugins/crm/export.sh", "#!/bin/sh\npwd\n")
            .file("outside.sh", "#!/bin/sh\n")
            .file("outside.json", "{\"type\": \"object\"}");
        executable(&folder, "plugins/crm/export.sh");
        executable(&folder, "outside.sh");
        symlink("../../outside.json", folder.path().join("plugins/crm/link.json")).unwrap();
        folder
    };
    let fine = with(&format!(
        "{PROGRAM}{ASKS}allow_addresses = ['127.0.0.1']\nheaders = {{ X-Key = 'secret:KEY' }}\n{}",
        TOOL.replace("list_charges", "all_charges"),
    ));
    let project = fine.load();
    assert_eq!(project.tools().len(), 4);
    // Its program is its own, and runs in its folder.
    let engine = project.engine_builder().build().unwrap();
    let ran = block_on_io(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        let mut iteration = turn.iteration().await.unwrap();
        let call = toolcrib_core::ToolCall::new("1", "export", serde_json::json!({}));
        iteration.execute(vec![call]).await.remove(0)
    });
    assert!(ran.value.contains("plugins/crm"), "{ran:?}");

    let leaves = with(
        "[skills]\nfolder = '../../skills'\n\
         [[tool]]\nkind = 'command'\nname = 'a'\ndescription = 'x'\nprogram = '../../outside.sh'\n\
         working_dir = '..'\n\
         [[tool]]\nkind = 'command'\nname = 'b'\ndescription = 'x'\nprogram = './export.sh'\n\
         stdin = 'json'\nschema_file = 'link.json'\n\
         [mcp.git]\ncommand = '../../outside.sh'\ncwd = '../..'\n",
    );
    insta::assert_snapshot!(leaves.problems(), @"
    toolcrib.toml:2:1: warning: nothing refers to the secret `KEY`
        help: use it, or remove it
    plugins/crm/plugin.toml:2:10: skill folder `../../skills` leads out of the plugin's folder; copy the needed files into it
    plugins/crm/plugin.toml:7:11: `../../outside.sh` leads out of the plugin's folder; copy the needed files into it
        help: or name it by an absolute path
    plugins/crm/plugin.toml:8:15: `..` leads out of the plugin's folder; copy the needed files into it
    plugins/crm/plugin.toml:15:15: `link.json` leads out of the plugin's folder; copy the needed files into it
    plugins/crm/plugin.toml:17:11: `../../outside.sh` leads out of the plugin's folder; copy the needed files into it
        help: or name it by an absolute path
    plugins/crm/plugin.toml:18:7: `../..` leads out of the plugin's folder; copy the needed files into it
    ");
}

fn block_on_io<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn what_is_taken_missing_or_meant_otherwise_is_said_where_it_stands() {
    let project = "
[plugin.crm]
path = 'plugins/crm'
[plugin.desk]
path = 'plugins/dsk'
secrets = ['NONE']
databases = ['none']
[plugin.home]
path = '.'
[plugin.up]
path = '../up'
[plugin.empty]
path = 'plugins'
[plugin.linked]
path = 'plugins/link'
[plugin.\"no name\"]
[plugin]
flat = 'x'
[[personality]]
name = 'p'
plugins = ['crn']
toolset = ['find_customer', 'customers', 'h_x']
[[policy]]
effect = 'deny'
plugin = 'crn'
[hub.h]
url = 'https://a.example/'
key = []
ttl = '60s'
call = { method = 'POST', url = 'https://a.example/{tool}', body = '{arguments}' }
[mcp.git]
url = 'https://a.example/'
";
    let hub = "[hub.h]\nurl = 'https://a.example/'\nkey = []\nttl = '60s'\n\
               call = { method = 'POST', url = 'https://a.example/{tool}', body = '{arguments}' }\n\
               [mcp.git]\nurl = 'https://b.example/'\n";
    let folder = Folder::with(&format!("policy_default = 'allow'\n{project}{DATABASE}{TOOL}"))
        .skill("billing", SKILL)
        .file("plugins/desk/plugin.toml", "")
        .file(
            "plugins/crm/plugin.toml",
            format!("{ASKS}{}{hub}", ASKS.replace("find_customer", "list_charges")),
        )
        .file("plugins/crm/skills/billing/SKILL.md", SKILL)
        .file("plugins/crm/skills/broken/SKILL.md", "no frontmatter");
    symlink("/tmp", folder.path().join("plugins/link")).unwrap();
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:6:8: `plugins/dsk` does not exist
        help: did you mean `plugins/desk`?
    toolcrib.toml:7:12: unknown secret `NONE`
        help: no secrets exist
    toolcrib.toml:8:14: unknown database `none`
        help: there is only `desk`
    toolcrib.toml:10:8: `.` is the project's own folder
        help: give the plugin a separate folder, such as "plugins/crm"
    toolcrib.toml:12:8: `../up` leads out of the project's folder; copy the needed files into the project
    toolcrib.toml:14:8: `plugins/plugin.toml` does not exist
        help: a plugin's folder must contain it
    toolcrib.toml:16:8: `plugins/link` leads out of the project's folder; copy the needed files into the project
    toolcrib.toml:17:1: `path` is missing in `[plugin.no name]`
        help: write for example: path = "plugins/crm"
    toolcrib.toml:17:9: the name of a plugin follows the rules of tool names: `no name` is not a tool name: it contains ' '; use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    toolcrib.toml:19:8: `flat` is not a plugin
        help: write `[plugin.NAME]`, with a name of your choice, and below it `path`
    toolcrib.toml:22:12: unknown plugin `crn`
        help: did you mean `crm`?
    toolcrib.toml:23:12: `find_customer` belongs to a plugin, to which `toolset` does not apply
        help: name the plugin in `plugins`: ["crm"]
    toolcrib.toml:23:29: `customers` belongs to a plugin, to which `toolset` does not apply
        help: name the plugin in `plugins`: ["crm"]
    toolcrib.toml:26:10: unknown plugin `crn`
        help: did you mean `crm`?
    plugins/crm/plugin.toml:10:8: two tools are called `list_charges`; the first is at toolcrib.toml:41
        help: rename one of them
    plugins/crm/plugin.toml:15:6: a hub `h` exists already, at toolcrib.toml:27
        help: rename one of them
    plugins/crm/plugin.toml:15:6: `h_` begins with the prefix `h_` of the hub `h` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:20:6: an MCP server `git` exists already, at toolcrib.toml:32
        help: rename one of them
    plugins/crm/skills/billing/SKILL.md:1:1: a skill `billing` exists already, at skills/billing/SKILL.md:1
        help: rename one of them
    plugins/crm/skills/broken/SKILL.md:1:1: warning: the file does not begin with frontmatter between two lines of `---`
        help: begin it with: --- / name: broken / description: Its purpose. / ---
    plugins/crm/skills/broken/SKILL.md:1:1: warning: skill `broken` is left out until this file is mended
    "#);
}

#[test]
fn an_id_that_a_plugin_in_code_has_is_taken() {
    let folder = desk("", ASKS);
    let options = LoadOptions { plugins: vec![Arc::from("crm")], ..LoadOptions::default() };
    let Err(LoadError::Diagnostics(problems)) = Project::load(folder.path(), &options) else {
        panic!("it loads")
    };
    insta::assert_snapshot!(problems, @"
    toolcrib.toml:2:9: a plugin `crm` is already added in code
        help: rename one of them
    ");
}
