//! Slips that newcomers make, and what is said of them: what was meant, and how it is written.

use crate::folder::{DATABASE, Folder, TOOL};

/// A tool of a kind, with the keys that all have.
fn tool(kind: &str, name: &str, rest: &str) -> String {
    format!("[[tool]]\nkind = \"{kind}\"\nname = \"{name}\"\ndescription = \"x\"\n{rest}\n")
}

#[test]
fn a_command_line_is_a_program_and_its_arguments() {
    let tools = [
        tool("command", "words", "program = \"wc -l\""),
        tool("command", "shell", "program = \"cat notes | wc -l\""),
        tool("command", "in_folder", "program = \"./run.sh  --fast {x}\""),
        tool("command", "line", "program = \"wc\"\nargs = \"-l {file}\"\nok_exit_codes = 0"),
        tool("command", "quoted", "program = \"wc\"\nargs = \"-l 'a b'\""),
        tool("command", "both", "program = \"wc -l\"\nargs = [\"-c\"]"),
        tool("command", "folder", "program = \"true\"\nworking_dir = \"tols\""),
    ]
    .concat();
    let folder = Folder::with(&tools).file("tools/x", "");
    let root = folder.path().canonicalize().unwrap();
    let problems = folder.problems().to_string().replace(root.to_str().unwrap(), "/desk");
    assert!(!problems.contains(&std::env::var("PATH").unwrap()), "{problems}");
    insta::assert_snapshot!(problems, @r#"
    toolcrib.toml:5:11: there is no program `wc -l` on the PATH; `program` is one name; its arguments belong in `args`
        help: write program = "wc" and args = ["-l"]
    toolcrib.toml:10:11: there is no program `cat notes | wc -l` on the PATH; `program` is one name; its arguments belong in `args`
        help: there is no shell; write a script into the project and name it: program = "./NAME"
    toolcrib.toml:15:11: /desk/./run.sh  --fast {x} is not an executable file
        help: write program = "./run.sh" and args = ["--fast", "{x}"]
    toolcrib.toml:21:8: `args` must be a list in `[…]`; this is a text
        help: write args = ["-l", "{file}"]
    toolcrib.toml:22:17: `ok_exit_codes` must be a list in `[…]`; this is a whole number
        help: write ok_exit_codes = [0]
    toolcrib.toml:28:8: `args` must be a list in `[…]`; this is a text
        help: write args = ["…", "…"], one text for each argument
    toolcrib.toml:33:11: there is no program `wc -l` on the PATH; `program` is one name; its arguments belong in `args`
        help: write program = "wc" and args = ["-l", …]
    toolcrib.toml:40:15: `tols` does not exist
        help: did you mean `tools`?
    "#);
}

#[test]
fn a_secret_is_told_from_a_parameter() {
    let tools = [
        tool(
            "http",
            "ask",
            "url = \"https://a.example/?key={KEY}\"\nheaders = { A = \"Bearer {KEY}\" }\n\
             body = \"{OTHER}\"\nmethod = \"POST\"",
        ),
        tool(
            "command",
            "run",
            "program = \"true\"\nargs = [\"--key={KEY}\"]\nenv = { K = \"{KEY}\" }",
        ),
        tool("command", "pass", "program = \"true\"\nenv = { K = \"secret:OTHER\" }"),
        tool("command", "home", "program = \"true\"\nstdin = \"json\""),
    ]
    .concat();
    let secrets = "[secrets]\nKEY = { env = \"PATH\" }\nOTHER = { env = \"PATH\" }\n";
    let params = "[tool.params]\nTOKEN = { env = \"sk-1234567890\" }\nRegion = { env = 3, type = \"string\" }\n";
    let problems = Folder::with(&format!("{secrets}{tools}{params}")).problems();
    assert!(!problems.to_string().contains("1234567890"), "{problems}");
    insta::assert_snapshot!(problems, @r#"
    toolcrib.toml:8:32: the URL: `KEY` is a secret
        help: no secret is allowed here; give it in a header
    toolcrib.toml:9:26: the header `A`: `KEY` is a secret
        help: write `{secret:KEY}`
    toolcrib.toml:10:10: the body: `OTHER` is a secret
        help: no secret is allowed here; give it in a header
    toolcrib.toml:17:17: `KEY` is a secret
        help: no secret is allowed here; give it in the environment: env = { KEY = "secret:KEY" }
    toolcrib.toml:18:15: the environment variable `K`: `KEY` is a secret
        help: write `{secret:KEY}`
    toolcrib.toml:32:9: this looks like a secret, but a parameter is a schema
        help: it belongs below [secrets]: TOKEN = { env = "VARIABLE" }
    toolcrib.toml:33:12: unknown keyword `env` in a schema
        help: the keywords of a schema are `type`, `description`, `enum`, `const`, `default`, `examples`, `title`, `format`, `minimum`, `maximum`, `exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `minLength`, `maxLength`, `pattern`, `minItems`, `maxItems`, `uniqueItems`, `minContains`, `maxContains`, `minProperties`, `maxProperties`, `required`, `dependentRequired`, `deprecated`, `$comment`, `items`, `contains`, `additionalProperties`, `propertyNames`, `unevaluatedItems`, `unevaluatedProperties`, `not`, `if`, `then`, `else`, `allOf`, `anyOf`, `oneOf`, …
    "#);
}

#[test]
fn a_list_a_url_and_a_pointer_are_shown_as_they_are_written() {
    let ask = |name: &str, rest: &str| {
        tool("http", name, &format!("url = \"https://a.example\"\n{rest}"))
    };
    let tools = [
        tool("http", "no_scheme", "url = \"api.example.com/v1\"\nallow_addresses = \"127.0.0.1\""),
        tool("http", "a_port", "url = \"localhost:8000/v1\""),
        ask("dots", "pointer = \"data.days[0]\""),
        ask("dollar", "pointer = \"$.data['days']\""),
        ask("slash", "pointer = \"data/days\""),
        ask("tilde", "pointer = \"/da~ta\""),
        ask("nothing", "pointer = \"$\"\n[tool.params]\nx = { enum = \"a\" }"),
        tool("sql", "list", "database = \"desk\"\nstatements = \"SELECT 1\""),
    ]
    .concat();
    insta::assert_snapshot!(Folder::with(&format!("{DATABASE}{tools}")).problems(), @r#"
    toolcrib.toml:9:7: the URL: it begins with neither http:// nor https://
    toolcrib.toml:10:19: `allow_addresses` must be a list in `[…]`; this is a text
        help: write allow_addresses = ["127.0.0.1"]
    toolcrib.toml:15:7: the URL: it begins with `localhost:`, and with neither http:// nor https://
    toolcrib.toml:21:11: `pointer`: this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a key and `~0` for a `~`
        help: did you mean `/data/days/0`?
    toolcrib.toml:27:11: `pointer`: this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a key and `~0` for a `~`
        help: did you mean `/data/days`?
    toolcrib.toml:33:11: `pointer`: this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a key and `~0` for a `~`
        help: did you mean `/data/days`?
    toolcrib.toml:39:11: `pointer`: this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a key and `~0` for a `~`
    toolcrib.toml:45:11: `pointer`: this is no JSON pointer; write `/data/0`, with `~1` for a `/` inside a key and `~0` for a `~`
    toolcrib.toml:47:5: the parameter `x`: nothing uses it; write `{x}` where it belongs, or drop it
    toolcrib.toml:47:14: `enum` must be a list in `[…]`; this is a text
        help: write enum = ["a"]
    toolcrib.toml:53:14: `statements` must be a list in `[…]`; this is a text
        help: write statements = ["SELECT 1"]
    "#);
}

#[test]
fn one_table_where_there_may_be_several_is_told_once() {
    let one = TOOL.replace("[[tool]]", "[tool]");
    let rules = "policy_default = \"allow\"\n[policy]\neffect = \"deny\"\ntool = \"list_charges\"\n\
                 role = \"clerk\"\n[role]\nname = \"clerk\"\nprincipals = \"ann\"\n";
    insta::assert_snapshot!(Folder::with(&format!("{rules}{DATABASE}{one}")).problems(), @r#"
    toolcrib.toml:2:1: `[policy]` defines a single table, but a list of tables is expected
        help: write `[[policy]]`
    toolcrib.toml:6:1: `[role]` defines a single table, but a list of tables is expected
        help: write `[[role]]`
    toolcrib.toml:14:1: `[tool]` defines a single table, but a list of tables is expected
        help: write `[[tool]]`
    "#);
    let params = "[tool.params]\nid = { type = \"integer\" }\n";
    let twice = format!("{one}{params}").repeat(3);
    insta::assert_snapshot!(Folder::with(&twice).problems(), @r#"
    toolcrib.toml:12:2: table `tool` is already defined
        help: make them one table; where there may be several, write `[[tool]]` above each
    "#);
}

#[test]
fn a_file_that_is_not_there_points_at_one_that_is_near() {
    let file = "[agent]\nmodel = \"script:scripts/scrpt.toml\"\nsystem_file = \"system.txt\"\n\
                [database.desk]\nfile = \"desk.db\"\nseed = \"sed.sql\"\n";
    let folder = Folder::with(file).file("scripts/script.toml", "").file("system.md", "");
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:2:9: script `scripts/scrpt.toml` does not exist
        help: did you mean `scripts/script.toml`?
    toolcrib.toml:3:15: `system.txt` does not exist
        help: did you mean `system.md`?
    toolcrib.toml:6:8: `sed.sql` does not exist
        help: did you mean `seed.sql`?
    "#);
}

#[test]
fn a_private_host_that_may_not_be_dialed_is_a_warning() {
    let at = |name: &str, host: &str, allowed: &str| {
        tool("http", name, &format!("url = \"{host}/x\"\nallow_addresses = [{allowed}]"))
    };
    let tools = [
        at("loopback", "http://127.0.0.1:8000", ""),
        at("spelt", "https://0x7f.1", "\"10.0.0.0/8\""),
        at("six", "http://[fd00::7]", ""),
        at("mapped", "http://[::ffff:192.168.0.7]", ""),
        at("name", "http://localhost:8000", ""),
        at("loopback_allowed", "http://127.0.0.1:8000", "\"127.0.0.0/8\""),
        at("six_allowed", "http://[fd00::7]", "\"fd00::/8\""),
        at("name_allowed", "http://localhost", "\"127.0.0.1\""),
        at("public", "https://1.1.1.1", ""),
        at("elsewhere", "https://localhost.example", ""),
    ]
    .concat();
    insta::assert_snapshot!(Folder::with(&tools).load().warnings(), @r#"
    toolcrib.toml:5:15: warning: `127.0.0.1` is not on the public internet, and `allow_addresses` does not allow it: every call will be `not_available`
        help: if it is meant, write allow_addresses = ["127.0.0.1/32"]
    toolcrib.toml:11:16: warning: `127.0.0.1` is not on the public internet, and `allow_addresses` does not allow it: every call will be `not_available`
        help: if it is meant, add "127.0.0.1/32" to `allow_addresses`
    toolcrib.toml:17:15: warning: `[fd00::7]` is not on the public internet, and `allow_addresses` does not allow it: every call will be `not_available`
        help: if it is meant, write allow_addresses = ["fd00::7/128"]
    toolcrib.toml:23:15: warning: `[::ffff:c0a8:7]` is not on the public internet, and `allow_addresses` does not allow it: every call will be `not_available`
        help: if it is meant, write allow_addresses = ["192.168.0.7/32"]
    toolcrib.toml:29:15: warning: `localhost` is not on the public internet, and `allow_addresses` does not allow it: every call will be `not_available`
        help: if it is meant, write allow_addresses = ["127.0.0.1/32", "::1/128"]
    "#);
}
