//! A project with a mistake in every section, and the trust reviews of all examples.

use std::{fs, path::Path};

use toolcrib_project::{LoadError, LoadOptions, PROJECT_FILE, Project};

use crate::folder::{DATABASE, Folder, TOOL};

/// Each section has a mistake in its own keys and one in a name that another section declares.
const PROJECT: &str = r#"
convert_text_arguments = "yes"
mcp_files = ["servers.json", "absent.json"]
policy_default = "maybe"
prices = "absent.toml"
[agent]
model = "fsat"
fallback_models = ["slow", "ollama:llama9"]
system_file = "absent.md"
max_iterations = 0
[limits]
tool_timeout = 30
max_cost_usd = 0.5
[budget]
day = { max_cost_usd = 2, max_token = 5 }
[price."openai:gpt-5"]
input = "cheap"
[sandbox]
tier = "ful"
[skills]
folder = "skills"
tools = "latest"
[artifacts]
store = "disk"
keep_for = "2 years"
[sessions]
store = "memory"
[approvals]
mode = "lax"
[secrets]
KEY = { env = "TOOLCRIB_TEST_ABSENT" }
UNUSED = { env = "" }
"BAD NAME" = { env = "X" }
[database.desk]
file = "desk.db"
seed = "absent.sql"
[database.twin]
file = "desk.db"
seed = "seed.sql"
[database.server]
url = "secret:KEYS"
[files.notes]
folder = "absent"
write = true
[files.more]
write = "no"
[model.fast]
vendor = "openay"
key = "secret:KEYS"
[mcp.git]
command = "/absent/git-server"
env = { TOKEN = "${TOOLCRIB_TEST_ABSENT}", KEY = "secret:KEYS" }
alternatives = ["gti"]
sandbox_hosts = ["a b"]
[mcp.web]
url = "ftp://example.com"
allow_addresses = ["everywhere"]
lint_allow = ["no_rule"]
[hub.skills]
url = "https://hub.example/{tenant}"
key = []
ttl = "never"
call = { method = "POST", url = "https://hub.example/{tool}", headers = { A = "secret:KEYS" } }
[plugin.crm]
path = "plugins/crm"
secrets = ["KEYS"]
databases = ["deks"]
files = ["note"]
allow_addresses = ["nowhere"]
[plugin.gone]
path = "plugins/gone"
[serve]
audit = "audit.log"
drain = "soon"
[serve.tls]
certificate = "absent.pem"
[serve.oauth]
issuer = "https://login.example"
personality = "clrek"
[[serve.token]]
secret = "KEYS"
personality = "clrek"
[tool_search]
reveal = "late"
defer_toolsets = ["biling"]
[breaker]
failures = 0
[retry_budget]
share = -1
[[role]]
name = "trainee"
principals = []
[[role]]
name = "trainee"
principals = ["intern"]
[[policy]]
effect = "deny"
tool = ["fnid", "mcp__gti__push"]
toolset = "biling"
mcp_server = "gti"
origin = "hub:skils"
plugin = "crn"
personality = "clrek"
team = "night"
role = "trainees"
skill = "bilings"
[[policy]]
effect = "refuse"
[[reliability]]
when = { stage = "discover", kind = "timeout" }
then = "retry_othr"
[[personality]]
name = "clerk"
toolset = ["fnid"]
mcp_servers = ["gti"]
plugins = ["crn"]
files = ["note"]
exclude = ["fnid"]
model = "fsat"
system_file = "absent.md"
network = { deny = ["a b"] }
[[personality]]
name = "clerk"
[team.day]
members = ["clrek"]
[[hook]]
at = "before_call"
name = "guard"
tool = "fnid"
program = "/absent/guard"
[[tool]]
kind = "sql"
name = "find"
description = "Finds."
database = "deks"
statements = ["SELECT :id"]
[[tool]]
kind = "sql"
name = "find"
description = "Finds again."
database = "desk"
schema_file = "absent.schema.json"
statements = ["SELECT 1"]
artifact_kind = "lgo"
[[tool]]
kind = "sql_explore"
name = "tables"
database = "deks"
max_rows = 0
[[tool]]
kind = "command"
name = "run"
description = "Runs."
program = "/absent/run"
args = ["{x}"]
inherit_env = [3]
env = { KEY = "secret:KEYS" }
[[tool]]
kind = "files"
name = "files"
files = ["note"]
[[tool]]
kind = "http"
name = "ask"
description = "Asks."
url = "https://api.example/{city}"
headers = { A = "{secret:KEYS}" }
allow_addresses = ["nowhere"]
[[tool]]
kind = "openapi"
name = "shop"
file = "absent.yaml"
auth = "KEYS"
[[tool]]
kind = "openapi"
file = "broken.yaml"
[[tool]]
kind = "terminal"
shell = "/absent/shell"
max_jobs = -1
[[tool]]
kind = "code"
working_dir = "absent"
sandbox_read = ["absent"]
[[tool]]
kind = "todo"
untrusted = true
[[tool]]
kind = "memory"
scope = "word"
[[tool]]
kind = "clarify"
read_only = false
[[tool]]
kind = "task"
agents = ["clrek"]
max_cost_usd = 1
max_depth = 20
[[tool]]
kind = "web"
hosts = ["a b"]
search_addresses = ["127.0.0.1"]
[[tool]]
kind = "sqll"
name = "bad name"
"#;

const PLUGIN: &str = r#"
[agent]
model = "x"
[mcp.git]
command = "git"
[hub.skills]
url = "https://hub.example"
[[tool]]
kind = "command"
name = "export"
description = "Exports."
program = "sh"
inherit_env = ["HOME"]
[[tool]]
kind = "memory"
scope = "principal"
[[tool]]
kind = "task"
[[tool]]
kind = "files"
name = "crm"
files = ["notes"]
"#;

const SKILL: &str = "---\nname: billing\ndescription: Charges.\nmetadata:\n  toolcrib-tools: fnid\n  \
                     toolcrib-tools-mode: allways\n---\nLook first.\n";

#[test]
fn mistakes_in_every_section_are_reported_at_once_in_the_order_of_the_files() {
    let folder = Folder::with(PROJECT)
        .file("servers.json", r#"{ "mcpServers": { "git": { "command": 3 }, "web": {} } }"#)
        .file("broken.yaml", "openapi: [")
        .file("plugins/crm/plugin.toml", PLUGIN)
        .skill("billing", SKILL);
    let problems = folder.problems().to_string();
    insta::assert_snapshot!(problems, @r##"
    toolcrib.toml:2:26: `convert_text_arguments` must be `true` or `false`; this is a text
    toolcrib.toml:3:30: `absent.json` does not exist
    toolcrib.toml:4:18: `policy_default` cannot be `maybe`
        help: the values are `allow`, `deny`
    toolcrib.toml:5:10: `absent.toml` does not exist
    toolcrib.toml:7:9: unknown model `fsat`
        help: did you mean `fast`?
    toolcrib.toml:8:20: unknown model `slow`
        help: write anthropic:MODEL, openai:MODEL, gemini:MODEL, ollama:MODEL, "script:FILE" for a scripted model, or the name of a [model.NAME] of the project
    toolcrib.toml:9:15: `absent.md` does not exist
    toolcrib.toml:10:18: `max_iterations` must be from 1 to 1000
    toolcrib.toml:12:16: `tool_timeout` must be a duration in quotes, such as "30s"; this is a whole number
    toolcrib.toml:13:16: `max_cost_usd` cannot be kept: the model `ollama:llama9` has no price
        help: write [price."ollama:llama9"] with input and output in US dollars per million tokens, or limit `max_tokens` instead
    toolcrib.toml:15:24: `max_cost_usd` cannot be kept: the model `ollama:llama9` has no price
        help: write [price."ollama:llama9"] with input and output in US dollars per million tokens, or limit `max_tokens` instead
    toolcrib.toml:15:27: unknown key `max_token` in `[day]`
        help: did you mean `max_tokens`?
    toolcrib.toml:16:1: `output` is missing in `[price."openai:gpt-5"]`
        help: write for example: output = 10
    toolcrib.toml:17:9: `input` must be a number; this is a text
    toolcrib.toml:19:8: `tier` cannot be `ful`
        help: did you mean `full`?
    toolcrib.toml:22:9: `tools` is one of `while_active`, `always`, `latest_only`, `hidden_until_active`, not `latest`
        help: did you mean `latest_only`?
    toolcrib.toml:24:9: `store` cannot be `disk`
        help: the values are `files`, `memory`
    toolcrib.toml:25:12: `keep_for` is longer than a year
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:27:9: `store` cannot be `memory`
        help: write "file", "none" or "secret:NAME"
    toolcrib.toml:29:8: `mode` cannot be `lax`
        help: the values are `advisory`, `strict`
    toolcrib.toml:31:1: warning: nothing refers to the secret `KEY`
        help: use it, or remove it
    toolcrib.toml:32:18: `env` is blank
    toolcrib.toml:33:1: `BAD NAME` is not a valid name of a secret
        help: use letters without accents, digits, `_`, `-` and `.`
    toolcrib.toml:36:8: `absent.sql` does not exist
    toolcrib.toml:38:8: `desk.db` is the file of database `desk` already
        help: give each database a separate file
    toolcrib.toml:41:7: unknown secret `KEYS`
        help: did you mean `KEY`?
    toolcrib.toml:41:7: warning: secret `KEYS` does not exist
        help: until it is, the tools of the database `server` cannot be used
    toolcrib.toml:43:10: `absent` does not exist
        help: create the folder, or write the path of an existing one
    toolcrib.toml:45:1: `folder` is missing in `[files.more]`
        help: write for example: folder = "notes"
    toolcrib.toml:46:9: `write` must be `true` or `false`; this is a text
    toolcrib.toml:48:10: `vendor` cannot be `openay`
        help: did you mean `openai`?
    toolcrib.toml:50:6: an MCP server `git` exists already, at servers.json:1
        help: rename one of them; a section without `command` and `url` changes settings of the existing one
    toolcrib.toml:52:18: the environment variable `TOOLCRIB_TEST_ABSENT` is not set; set it, or write `${TOOLCRIB_TEST_ABSENT:-DEFAULT}`
    toolcrib.toml:52:58: unknown secret `KEYS`
        help: did you mean `KEY`?
    toolcrib.toml:53:17: unknown MCP server `gti`
        help: did you mean `git`?
    toolcrib.toml:53:17: warning: the alternatives of `git` are never queried, and their tools never offered: no rule has `retry_other` at the stage `discover`
        help: write a [[reliability]] with when = { stage = "discover" } and then = "retry_other"
    toolcrib.toml:55:6: an MCP server `web` exists already, at servers.json:1
        help: rename one of them; a section without `command` and `url` changes settings of the existing one
    toolcrib.toml:55:6: mcp server `web`: the URL cannot be used: it begins with `ftp:`, and with neither http:// nor https://
    toolcrib.toml:57:20: `everywhere` is neither an address nor a net
        help: write an address such as "127.0.0.1" or a net such as "10.1.0.0/16", with a port if it is not that of the URL: "127.0.0.1:8080"
    toolcrib.toml:58:15: unknown lint rule `no_rule`
        help: the rules are `duplicate-name`, `invalid-name`, `confusable-name`, `missing-description`, `vague-description`, `long-description`, `says-what-not-when`, `confusable-description`, `cannot-be-found`, `undescribed-parameter`, `unclear-default`, `enum-in-prose`, `invalid-schema`, `unknown-required`, `large-tool`, `large-catalog`, `hidden-characters`, `hidden-markup`, `padded-text`, `instruction-to-model`, `encoded-instruction`, `claims-precedence`, `speaks-of-foreign-tool`, `source-failed`, `endless-ttl`
    toolcrib.toml:62:7: `ttl` is not a duration: expected number at 0
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:63:87: unknown secret `KEYS`
        help: did you mean `KEY`?
    toolcrib.toml:66:12: unknown secret `KEYS`
        help: did you mean `KEY`?
    toolcrib.toml:67:14: unknown database `deks`
        help: did you mean `desk`?
    toolcrib.toml:68:10: unknown folder `note`
        help: did you mean `notes`?
    toolcrib.toml:69:20: `nowhere` is neither an address nor a net
        help: write an address such as "127.0.0.1" or a net such as "10.1.0.0/16", with a port if it is not that of the URL: "127.0.0.1:8080"
    toolcrib.toml:71:8: `plugins/gone` does not exist
    toolcrib.toml:74:9: `drain` is not a duration: expected number at 0
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    toolcrib.toml:75:1: `key` is missing in `[serve.tls]`
        help: write for example: key = "FILE.pem"
    toolcrib.toml:77:1: `resource` is missing in `[serve.oauth]`
        help: write for example: resource = "https://tools.example/mcp"
    toolcrib.toml:79:15: unknown personality `clrek`
        help: did you mean `clerk`?
    toolcrib.toml:81:10: this is not a reference to a secret
        help: write secret = "secret:NAME", and below a [secrets]: NAME = { env = "VARIABLE" }; the secret itself does not belong in this file
    toolcrib.toml:82:15: unknown personality `clrek`
        help: did you mean `clerk`?
    toolcrib.toml:84:10: `reveal` cannot be `late`
        help: the values are `call_tool`, `append`
    toolcrib.toml:87:12: `failures` must be from 1 to 1000
    toolcrib.toml:89:9: `share` must be a finite number from 0 to 10
    toolcrib.toml:92:14: `principals` is an empty list
        help: write at least one text in it
    toolcrib.toml:94:8: role `trainee` is declared twice; the first is at toolcrib.toml:91
        help: put all its principals into one list
    toolcrib.toml:96:1: the rule applies to no personality: no member of its teams is in `personality`
    toolcrib.toml:98:9: unknown tool `fnid`
        help: did you mean `find`?
    toolcrib.toml:98:17: unknown MCP server `gti`
        help: did you mean `mcp__git__push`?
    toolcrib.toml:99:11: unknown toolset `biling`
        help: the toolsets are `agents`, `code`, `file`, `mcp`, `mcp.elicitation`, `mcp.prompts`, `mcp.resources`, `mcp.roots`, `mcp.sampling`, `memory`, `person`, `skills`, `terminal`, `todo`, `web`
    toolcrib.toml:100:14: unknown MCP server `gti`
        help: did you mean `git`?
    toolcrib.toml:101:10: unknown hub `skils`
        help: did you mean `skills`?
    toolcrib.toml:102:10: unknown plugin `crn`
        help: did you mean `crm`?
    toolcrib.toml:103:15: unknown personality `clrek`
        help: did you mean `clerk`?
    toolcrib.toml:104:8: unknown team `night`
        help: there is only `day`
    toolcrib.toml:105:8: unknown role `trainees`
        help: did you mean `trainee`?
    toolcrib.toml:106:9: unknown skill `bilings`
        help: did you mean `billing`?
    toolcrib.toml:108:10: `effect` cannot be `refuse`
        help: the values are `allow`, `deny`, `ask`, `halt`
    toolcrib.toml:110:30: unknown key `kind` in `when`
        help: the keys here are `stage`, `provider`, `error_class`, `error_name`, `code`, `message_contains`, `http_status`, `validation_error`, `attempt_below`, `elapsed_below`, `tokens_below`, `cost_usd_below`
    toolcrib.toml:111:8: `then` cannot be `retry_othr`
        help: did you mean `retry_other`?
    toolcrib.toml:114:12: unknown tool or toolset `fnid`
        help: did you mean `find`?
    toolcrib.toml:115:16: unknown MCP server `gti`
        help: did you mean `git`?
    toolcrib.toml:116:12: unknown plugin `crn`
        help: did you mean `crm`?
    toolcrib.toml:117:10: unknown folder `note`
        help: did you mean `notes`?
    toolcrib.toml:118:12: unknown tool `fnid`
        help: did you mean `find`?
    toolcrib.toml:119:9: unknown model `fsat`
        help: did you mean `fast`?
    toolcrib.toml:120:15: `absent.md` does not exist
    toolcrib.toml:121:21: `a b` is not a valid host; write `api.example.com`, or `*.example.com` for all below that name, without scheme, port and path
    toolcrib.toml:123:8: two personalities are named `clerk`; the first is at toolcrib.toml:113
        help: rename one of them
    toolcrib.toml:125:12: unknown personality `clrek`
        help: did you mean `clerk`?
    toolcrib.toml:129:8: unknown tool `fnid`
        help: did you mean `find`?
    toolcrib.toml:130:11: /absent/guard is not an executable file
    toolcrib.toml:135:12: unknown database `deks`
        help: did you mean `desk`?
    toolcrib.toml:139:8: two tools are called `find`; the first is at toolcrib.toml:133
        help: rename one of them
    toolcrib.toml:142:15: `absent.schema.json` does not exist
    toolcrib.toml:144:17: there is no kind of artifact `lgo`
        help: the kinds are `jsonl`, `json`, `markdown`, `csv`, `tsv`, `csv-semicolon`, `text`
    toolcrib.toml:148:12: unknown database `deks`
        help: did you mean `desk`?
    toolcrib.toml:149:12: `max_rows` must be from 1 to 1000000
    toolcrib.toml:154:11: /absent/run is not an executable file
    toolcrib.toml:155:11: there is no parameter `x`; declare it
    toolcrib.toml:156:16: `inherit_env[0]` must be a text in quotes; this is a whole number
    toolcrib.toml:157:23: unknown secret `KEYS`
        help: did you mean `KEY`?
    toolcrib.toml:161:10: unknown folder `note`
        help: did you mean `notes`?
    toolcrib.toml:166:29: the URL: there is no parameter `city`; declare it
    toolcrib.toml:167:26: unknown secret `KEYS`
        help: did you mean `KEY`?
    toolcrib.toml:168:20: `nowhere` is neither an address nor a net
        help: write an address such as "127.0.0.1" or a net such as "10.1.0.0/16", with a port if it is not that of the URL: "127.0.0.1:8080"
    toolcrib.toml:172:8: `absent.yaml` does not exist
    toolcrib.toml:173:8: this is not a reference to a secret
        help: write "secret:NAME", and declare NAME below `[secrets]`
    toolcrib.toml:179:9: /absent/shell is not an executable file
    toolcrib.toml:180:12: `max_jobs` must be from 0 to 64
    toolcrib.toml:183:15: `absent` does not exist
    toolcrib.toml:184:17: `absent` does not exist
        help: create it before Toolcrib starts, or remove it from the list
    toolcrib.toml:187:1: unknown key `untrusted` in `[[tool]]`
        help: this kind marks the results that others may have written
    toolcrib.toml:190:9: `scope` cannot be `word`
        help: the values are `global`, `personality`, `principal`, `team`
    toolcrib.toml:193:1: unknown key `read_only` in `[[tool]]`
        help: this kind declares it for each of its tools
    toolcrib.toml:196:11: unknown personality `clrek`
        help: did you mean `clerk`?
    toolcrib.toml:197:16: `max_cost_usd` cannot be kept: the model `ollama:llama9` has no price
        help: write [price."ollama:llama9"] with input and output in US dollars per million tokens, or limit `max_tokens` instead
    toolcrib.toml:198:13: `max_depth` must be from 1 to 8
    toolcrib.toml:201:10: `a b` is not a valid host; write `api.example.com`, or `*.example.com` for all below that name, without scheme, port and path
    toolcrib.toml:202:21: `search_addresses` has no effect without `search_url`
        help: add `search_url`, or take this out
    toolcrib.toml:204:8: `kind` cannot be `sqll`
        help: did you mean `sql`?
    toolcrib.toml:205:8: `bad name` is not a tool name: it contains ' '; use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    broken.yaml:1:1: this is not an OpenAPI document: as YAML, line 2, column 1: while parsing a node, did not find expected node content
    plugins/crm/plugin.toml:2:2: unknown key `agent` in this file
        help: a plugin adds tools, skills, MCP servers and hubs; everything else belongs in the project's own file
    plugins/crm/plugin.toml:4:6: an MCP server `git` exists already, at toolcrib.toml:50
        help: rename one of them
    plugins/crm/plugin.toml:5:11: the plugin `crm` runs programs, which the project does not grant
        help: to permit it, write below [plugin.crm]: programs = true
    plugins/crm/plugin.toml:6:1: `key` is missing in `[hub.skills]`
        help: write for example: key = ["tenant"], or [] where all are given the same
    plugins/crm/plugin.toml:6:1: `ttl` is missing in `[hub.skills]`
        help: write for example: ttl = "60s", or "forever"
    plugins/crm/plugin.toml:6:1: `call` is missing in `[hub.skills]`
        help: write for example: call = { method = "POST", url = "https://registry.example/run/{tool}", body = "{arguments}" }
    plugins/crm/plugin.toml:6:6: a hub `skills` exists already, at toolcrib.toml:59
        help: rename one of them
    plugins/crm/plugin.toml:6:6: `skills_` begins with the prefix `skills_` of the hub `skills` and does not belong to the plugin `crm`
        help: write another prefix, such as prefix = "crm_"
    plugins/crm/plugin.toml:12:11: the plugin `crm` runs programs, which the project does not grant
        help: to permit it, write below [plugin.crm]: programs = true
    plugins/crm/plugin.toml:13:16: the plugin `crm` may not read environment variables: they can contain secrets
        help: write "secret:NAME" in `env` or `headers`, and let the project grant the secret
    plugins/crm/plugin.toml:14:1: two tools are called `memory_read`; the first is at toolcrib.toml:188
        help: rename one of them
    plugins/crm/plugin.toml:14:1: two tools are called `memory_write`; the first is at toolcrib.toml:188
        help: rename one of them
    plugins/crm/plugin.toml:14:1: two tools are called `memory_search`; the first is at toolcrib.toml:188
        help: rename one of them
    plugins/crm/plugin.toml:14:1: two tools are called `session_search`; the first is at toolcrib.toml:188
        help: rename one of them
    plugins/crm/plugin.toml:14:1: a plugin cannot reach the memory of the agent and its sessions
        help: declare the tool in the project's own file
    plugins/crm/plugin.toml:17:1: two tools are called `task`; the first is at toolcrib.toml:194
        help: rename one of them
    plugins/crm/plugin.toml:17:1: a plugin cannot give tasks to agents of the project
        help: declare the tool in the project's own file
    plugins/crm/plugin.toml:22:10: the plugin `crm` uses the folder `notes`, which the project does not grant
        help: to permit it, write below [plugin.crm]: files = ["notes"]
    servers.json:1:39: `command` must be a text in quotes; this is a number
    servers.json:1:51: server `web` has neither `command` nor `url`
        help: write "command": "…" for a program, or "url": "https://…"
    skills/billing/SKILL.md:1:1: warning: skill `billing` is left out until this file is mended
    skills/billing/SKILL.md:6:24: warning: `toolcrib-tools-mode` is one of `while_active`, `always`, `latest_only`, `hidden_until_active`, not `allways`
        help: did you mean `always`?
    "##);
}

#[test]
fn the_trust_review_of_each_example_shows_its_powers() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut folders: Vec<_> =
        fs::read_dir(examples).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| folder.join(PROJECT_FILE).is_file());
    folders.sort();
    let mut shown = String::new();
    for folder in folders {
        let review = Project::review(&folder, &LoadOptions::default()).unwrap();
        shown += &format!("# {}\n", folder.file_name().unwrap().display());
        for power in &review.powers {
            shown += &format!("{power}\n");
        }
    }
    insta::assert_snapshot!(shown, @r##"
    # code-fixer
    tool `lint` (toolcrib.toml:21)
      starts: sh -c "the linter, the compiler or the tests of the code"
      in the folder: app
      with these variables set: TERM, NO_COLOR, PAGER=cat, GIT_PAGER=cat
    tool `typecheck` (toolcrib.toml:21)
      starts: sh -c "the linter, the compiler or the tests of the code"
      in the folder: app
      with these variables set: TERM, NO_COLOR, PAGER=cat, GIT_PAGER=cat
    tool `run_tests` (toolcrib.toml:21)
      starts: sh -c "the linter, the compiler or the tests of the code"
      in the folder: app
      with these variables set: TERM, NO_COLOR, PAGER=cat, GIT_PAGER=cat
    # five-hundred
    MCP server `github` (toolcrib.toml:57)
      starts: python3 server.py github
    MCP server `gitlab` (toolcrib.toml:62)
      starts: python3 server.py gitlab
    MCP server `atlassian` (toolcrib.toml:67)
      starts: python3 server.py atlassian
    MCP server `slack` (toolcrib.toml:72)
      starts: python3 server.py slack
    MCP server `datadog` (toolcrib.toml:77)
      starts: python3 server.py datadog
    MCP server `git` (toolcrib.toml:82)
      starts: python3 server.py git
    MCP server `browser` (toolcrib.toml:87)
      starts: python3 server.py browser
    MCP server `devtools` (toolcrib.toml:92)
      starts: python3 server.py devtools
    MCP server `maps` (toolcrib.toml:97)
      starts: python3 server.py maps
    MCP server `workspace` (toolcrib.toml:102)
      starts: python3 server.py workspace
    # gateway
    MCP server `files` (.mcp.json:3)
      starts: npx -y @modelcontextprotocol/server-filesystem@2026.8.31 notes
    MCP server `git` (.mcp.json:7)
      starts: uvx mcp-server-git@2026.10.19 --repository ../..
    MCP server `time` (.mcp.json:11)
      starts: uvx mcp-server-time@2026.10.19
    # log-detective
    tool `read_log` (toolcrib.toml:16)
      starts: ./read-log.sh
      receives from your environment: LOG_MEGABYTES, PATH
    # night-shift
    tool `close_account` (toolcrib.toml:10)
      starts: sh close-account.sh {number}
      receives from your environment: PATH
    tool `transfer` (toolcrib.toml:21)
      starts: sh transfer.sh {to}
      receives from your environment: PATH
    # own-database
    # support-desk
    "##);
}

#[test]
fn a_review_opens_nothing_and_refuses_files_with_errors() {
    let sound = format!("{DATABASE}{TOOL}").replace("FROM charges", "FROM absent");
    let folder = Folder::with(&sound);
    let before = folder.listing();
    let review = Project::review(folder.path(), &LoadOptions::default()).unwrap();
    assert!(review.powers.is_empty());
    assert_eq!(folder.listing(), before);
    // Only a load asks the database.
    insta::assert_snapshot!(folder.problems(), @"toolcrib.toml:12:15: statement 1: no such table: absent");
    let broken = Folder::with("[[policy]]\ntool = 'absent'\n");
    let refused = Project::review(broken.path(), &LoadOptions::default());
    assert!(matches!(refused, Err(LoadError::Diagnostics(_))), "{refused:?}");
}
