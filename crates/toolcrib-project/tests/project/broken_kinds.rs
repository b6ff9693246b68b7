//! Errors in tools of the kinds `command` and `http`.

use crate::folder::Folder;

#[test]
fn a_key_of_another_kind_says_which() {
    let folder = Folder::with(
        r#"
[[tool]]
kind = "command"
name = "count"
description = "Counts."
program = "wc"
statements = ["SELECT 1"]
url = "https://example.com"
programm = "wc"
[[tool]]
kind = "http"
name = "fetch"
description = "Fetches."
url = "https://example.com"
args = ["x"]
[[tool]]
name = "no_kind"
description = "Counts."
program = "wc"
max_rows = 3
[[tool]]
name = "nothing"
color = "red"
"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:7:1: unknown key `statements` in `[[tool]]`
        help: only a tool of the kind `sql` has it
    toolcrib.toml:8:1: unknown key `url` in `[[tool]]`
        help: only a tool of the kind `http` has it
    toolcrib.toml:9:1: unknown key `programm` in `[[tool]]`
        help: did you mean `program`?
    toolcrib.toml:15:1: unknown key `args` in `[[tool]]`
        help: only a tool of the kind `command` has it
    toolcrib.toml:16:1: `kind` is missing in `[[tool]]`
        help: write for example: kind = "command"
    toolcrib.toml:20:1: unknown key `max_rows` in `[[tool]]`
        help: only a tool of the kind `sql` has it
    toolcrib.toml:21:1: `kind` is missing in `[[tool]]`
        help: write for example: kind = "sql_explore", "sql", "command", "files", "http", "openapi", "terminal", "code", "todo", "memory", "clarify", "task" or "web"
    "#);
}

#[test]
fn an_http_tool_is_checked_to_the_character() {
    let folder = Folder::with(
        r#"
[[tool]]
kind = "http"
name = "bad_values"
description = "Asks."
method = "FETCH"
url = ""
headers = { "X-A" = 1 }
body = { at = 2024-01-01 }
max_body_bytes = "10MB"
max_redirects = 99
allow_addresses = ["10.0.0.0/8", "localhost"]
[[tool]]
kind = "http"
name = "bad_templates"
description = "Asks."
method = "POST"
url = "https://api.example.com/v1/{citi}/x?days={days}&{days}=1"
pointer = "data/0"
[tool.headers]
Authorization = "Bearer secret:KEY"
"Content Type" = "a"
Host = "a"
x-a = "{days"
X-A = "a"
[tool.body]
text = "{citi} and {days}"
list = ["plain", { inner = '''
a }''' }]
"key {days}" = 1
[tool.params]
city = { type = "string" }
days = { type = "integer" }
spare = { type = "integer" }
[[tool]]
kind = "http"
name = "{origin}"
description = "Asks."
url = "https://{host}/?key={secret:KEY}"
body = "{host}"
[tool.params]
host = { type = "string" }
[[tool]]
kind = "http"
name = "optional"
description = "Asks."
method = "HEAD"
url = "https://a.example/{page}/{other}"
pointer = "/x"
[tool.params]
page = { type = "string", optional = true }
unused = { type = "string" }
[[tool]]
kind = "http"
name = "broken_params"
description = "Asks."
url = "ftp://a.example/{page}"
[tool.params]
page = "string"
[[tool]]
kind = "http"
name = "no_url"
description = "Asks."
headers = { Accept = "{no}" }
[tool.params]
perhaps = { type = "string" }
"#,
    );
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:6:10: `method` cannot be `FETCH`
        help: the values are `GET`, `HEAD`, `POST`, `PUT`, `PATCH`, `DELETE`
    toolcrib.toml:7:7: `url` is blank
    toolcrib.toml:8:21: `X-A` must be a text in quotes; this is a whole number
    toolcrib.toml:9:15: JSON has no dates and times
        help: write it as a text in quotes
    toolcrib.toml:10:18: `max_body_bytes` is not a size: unknown unit `MB`
        help: write a size such as "64KiB", "1MiB" or "2GiB", or a number of bytes
    toolcrib.toml:11:17: `max_redirects` must be from 0 to 20
    toolcrib.toml:12:34: `localhost` is neither an address nor a net
        help: write an address such as "127.0.0.1" or a net such as "10.1.0.0/16", with a port if it is not that of the URL: "127.0.0.1:8080"
    toolcrib.toml:18:36: the URL: there is no parameter `citi`; declare it, or use one of `city`, `days`, `spare`
    toolcrib.toml:18:57: the URL: `days` is in a name of the query; an argument may only follow a `=`
    toolcrib.toml:19:11: `pointer`: this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a key and `~0` for a `~`
        help: did you mean `/data/0`?
    toolcrib.toml:21:25: the header `Authorization`: a secret inside a text is written `{secret:NAME}`
    toolcrib.toml:22:1: the header `Content Type`: this is not a valid header name
    toolcrib.toml:23:1: the header `Host`: this header is set by the client alone; leave it out
    toolcrib.toml:24:8: the header `x-a`: `{` has no `}`; write `{parameter}`, or `{{` for the brace itself
    toolcrib.toml:27:10: the body at `/text`: there is no parameter `citi`; declare it, or use one of `city`, `days`, `spare`
    toolcrib.toml:29:3: the body at `/list/1/inner`: `}` ends no `{parameter}`; write `}}` for the brace itself
    toolcrib.toml:30:16: the body: its key `key {days}` contains a place, which only a value may; write it out, with `{{` and `}}` for braces
    toolcrib.toml:37:8: `{origin}` is not a tool name: it contains '{'; use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    toolcrib.toml:39:29: the URL: no secret is allowed here, where other programs and logs can read it; give it in the environment or in a header
    toolcrib.toml:40:8: the body: a GET has no body; put the arguments into the query, or use POST
    toolcrib.toml:48:27: the URL: `page` is part of the path and optional; make it required
    toolcrib.toml:48:34: the URL: there is no parameter `other`; declare it, or use one of `page`, `unused`
    toolcrib.toml:49:11: `pointer`: the answer to a HEAD has no body to point into; use GET, or drop it
    toolcrib.toml:52:10: the parameter `unused`: nothing uses it; write `{unused}` where it belongs, or drop it
    toolcrib.toml:57:7: the URL: it begins with `ftp:`, and with neither http:// nor https://
    toolcrib.toml:59:8: a schema was expected
        help: write it as { type = "integer", description = "…" }
    toolcrib.toml:60:1: `url` is missing in `[[tool]]`
        help: write for example: url = "https://api.example.com/v1/{city}?days={days}"
    toolcrib.toml:64:24: the header `Accept`: there is no parameter `no`; declare it, or use one of `perhaps`
    "#);
}

#[test]
fn a_command_tool_is_checked_to_the_character() {
    let folder = Folder::with(
        r#"
[[tool]]
kind = "command"
name = "bad_values"
description = "Runs."
program = 3
args = "x"
stdin = "jsn"
env = { A = 1 }
inherit_env = "PATH"
working_dir = "nowhere"
max_output_bytes = 0
memory_max = "1kb"
allow_stray_children = "no"
ok_exit_codes = [0, 256, -1]
[[tool]]
kind = "command"
name = "bad_templates"
description = "Runs."
program = "no-such-program"
working_dir = "seed.sql"
args = ["--", "--city={citi}", "{{{city}", { value = """
{secret:KEY}""", when = "verbos" }, { valu = "x" }]
[tool.env]
"A=B" = "x"
C = "{city}"
D = "Bearer secret:KEY"
[tool.params]
city = { type = "string" }
verbose = { type = "boolean" }
[[tool]]
kind = "command"
name = "unused"
description = "Runs."
program = "../outside/run"
inherit_env = ["PATH", "A=B", "C"]
env = { C = "x" }
args = [{ value = "-x", when = "flag" }, "{other}"]
ok_exit_codes = []
[tool.params]
flag = { type = "boolean" }
spare = { type = "string" }
[[tool]]
kind = "command"
name = "script"
description = "Runs."
program = "./plain.sh"
working_dir = "../.."
[[tool]]
kind = "command"
name = "missing"
description = "Runs."
program = "tools/none.sh"
stdin = "json"
[tool.params]
anything = { type = "string" }
[[tool]]
kind = "command"
name = "broken_params"
description = "Runs."
program = "true"
args = ["{page}"]
[tool.params]
page = "string"
[[tool]]
kind = "command"
name = "no_program"
description = "Runs."
args = ["{page"]
[tool.params]
page = { type = "string" }
"#,
    )
    .file("plain.sh", "#!/bin/sh\n");
    let root = folder.path().canonicalize().unwrap();
    let problems = folder.problems().to_string();
    let problems = problems.replace(root.to_str().unwrap(), "/desk");
    insta::assert_snapshot!(problems, @r#"
    toolcrib.toml:6:11: `program` must be a text in quotes; this is a whole number
    toolcrib.toml:7:8: `args` must be a list in `[…]`; this is a text
        help: write args = ["x"]
    toolcrib.toml:8:9: `stdin` cannot be `jsn`
        help: did you mean `json`?
    toolcrib.toml:9:13: `A` must be a text in quotes; this is a whole number
    toolcrib.toml:10:15: `inherit_env` must be a list in `[…]`; this is a text
        help: write inherit_env = ["PATH"]
    toolcrib.toml:11:15: `nowhere` does not exist
    toolcrib.toml:12:20: `max_output_bytes` must be from 1 byte to 256MiB
    toolcrib.toml:13:14: `memory_max` is not a size: unknown unit `kb`
        help: write a size such as "64KiB", "1MiB" or "2GiB", or a number of bytes
    toolcrib.toml:14:24: `allow_stray_children` must be `true` or `false`; this is a text
    toolcrib.toml:15:21: `ok_exit_codes[1]` must be from 0 to 255
    toolcrib.toml:15:26: `ok_exit_codes[2]` must be from 0 to 255
    toolcrib.toml:20:11: there is no program `no-such-program` on the PATH; install it, or name its file with a `/` in it
    toolcrib.toml:21:15: `seed.sql` is not a folder
    toolcrib.toml:22:24: there is no parameter `citi`; declare it, or use one of `city`, `verbose`
    toolcrib.toml:23:2: no secret is allowed here, where other programs and logs can read it; give it in the environment or in a header
    toolcrib.toml:23:25: there is no parameter `verbos`; declare it, or use one of `city`, `verbose`
    toolcrib.toml:23:39: unknown key `valu` in this item of `args`
        help: did you mean `value`?
    toolcrib.toml:25:1: the environment variable `A=B`: a variable's name is not empty and contains neither `=` nor NUL bytes
    toolcrib.toml:26:7: the environment variable `C`: the environment takes no arguments of a call; pass `city` in `args` or on stdin, and write `{{` for the brace itself
    toolcrib.toml:27:13: the environment variable `D`: a secret inside a text is written `{secret:NAME}`
    toolcrib.toml:35:11: `../outside/run` leads out of the project's folder; copy the needed files into the project
        help: or name it by an absolute path
    toolcrib.toml:36:24: the variable `A=B` of `inherit_env`: a variable's name is not empty and contains neither `=` nor NUL bytes
    toolcrib.toml:36:31: the variable `C` of `inherit_env`: this variable is declared twice; a program would see one of the values
    toolcrib.toml:38:44: there is no parameter `other`; declare it, or use one of `flag`, `spare`
    toolcrib.toml:39:17: `ok_exit_codes` is an empty list: every call would fail
        help: write the exit codes that are not failures, such as [0, 1]; without the key it is 0 alone
    toolcrib.toml:42:9: the parameter `spare`: nothing uses it; write `{spare}` in an item of `args`, pass all as JSON on stdin, or drop it
    toolcrib.toml:47:11: /desk/./plain.sh is not an executable file
        help: make it executable: chmod +x /desk/./plain.sh
    toolcrib.toml:48:15: `../..` leads out of the project's folder; copy the needed files into the project
    toolcrib.toml:53:11: /desk/tools/none.sh is not an executable file
    toolcrib.toml:64:8: a schema was expected
        help: write it as { type = "integer", description = "…" }
    toolcrib.toml:65:1: `program` is missing in `[[tool]]`
        help: write for example: program = "wc"
    toolcrib.toml:69:10: `{` has no `}`; write `{parameter}`, or `{{` for the brace itself
    "#);
}
