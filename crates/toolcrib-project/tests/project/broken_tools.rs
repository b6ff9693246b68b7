//! Errors in tools.

use toolcrib_project::Mode;

use crate::folder::{DATABASE, Folder, RUN, TOOL};

#[test]
fn tools_are_checked_by_themselves_against_each_other_and_against_the_database() {
    let folder = Folder::with(&format!(
        r#"{DATABASE}
[[tool]]
kind = "sql"
name = "refund charge"
description = " "
statements = []
[[tool]]
kind = "sqlite"
name = "fetch"
url = "https://example.org"
[[tool]]
name = "list_charges"
description = "Lists."
read_only = true
statements = ["SELECT id, amont FROM charges WHERE id = :id", "DELETE FROM charges", """
SELECT id,
       amont
FROM charges"""]
params.idd = {{ type = "integer" }}
[[tool]]
kind = "sql"
name = "list_charges"
description = "Lists."
database = "dsk"
statements = "SELECT 1"
[[tool]]
kind = "sql"
name = "escaped"
description = "Lists."
schema_file = "odd.json"
params = {{}}
statements = ["SELECT 1 AS \"a\", amont FROM charges", "SELECT :ids, :id"]
[[tool]]
kind = "sql"
name = "unbound"
description = "Lists."
statements = ["SELECT :ids, :id"]
[tool.params]
ids = {{ type = "array" }}
spare = {{ type = "string" }}
"#
    ));
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:8:8: `refund charge` is not a tool name: it contains ' '; use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`
    toolcrib.toml:9:15: `description` is blank
    toolcrib.toml:10:14: `statements` is an empty list
        help: write at least one statement in the list
    toolcrib.toml:12:8: `kind` cannot be `sqlite`
        help: did you mean `sql`?
    toolcrib.toml:15:1: `kind` is missing in `[[tool]]`
        help: write for example: kind = "sql"
    toolcrib.toml:19:27: statement 1: no such column: amont; did you mean `amount`?
    toolcrib.toml:19:63: statement 2 writes, and the tool is declared `read_only`; drop one or the other
    toolcrib.toml:21:8: statement 3: no such column: amont; did you mean `amount`?
    toolcrib.toml:26:8: two tools are called `list_charges`; the first is at toolcrib.toml:16
        help: rename one of them
    toolcrib.toml:28:12: unknown database `dsk`
        help: did you mean `desk`?
    toolcrib.toml:29:14: `statements` must be a list in `[…]`; this is a text
        help: write statements = ["SELECT 1"]
    toolcrib.toml:34:15: `params` and `schema_file` both describe the arguments
        help: keep one of them
    toolcrib.toml:36:15: statement 1: no such column: amont; did you mean `amount`?
    toolcrib.toml:41:29: statement 1 uses `:id`, and there is no parameter of that name; declare it, or use one of `ids`, `spare`
    toolcrib.toml:44:9: no statement uses the parameter `spare`; use it as `:spare` or drop it
    "#);
}

#[test]
fn parameters_must_be_json_schemas() {
    let folder = Folder::with(&format!(
        r#"{DATABASE}
[[tool]]
kind = "sql"
name = "t"
description = "Lists."
statements = ["SELECT :a, :b, :c, :d, :e, :f, :g"]
[tool.params]
a = {{ type = "string", pattern = "(" }}
b = {{ type = "string", minLength = -1, enum = "a" }}
c = "string"
d = {{ type = "object", properties = {{ x = {{ tpe = "string" }} }} }}
e = {{ type = "string", required = true }}
f = {{ type = "array", items = {{ type = "strng" }} }}
g = {{ type = "string", default = 2024-01-01, optional = "yes" }}
h = {{ type = ["integer", "nul"], descripton = "x" }}
i = {{ type = "integer", minimum = nan, default = 9223372036854775808 }}
j = {{ anyOf = [{{ type = "string", optional = true }}] }}
"#
    ));
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:12:34: this is not a JSON Schema: `pattern`: the pattern cannot be read: it is not one of ECMA-262, or it is too large
    toolcrib.toml:13:36: this is not a JSON Schema: `minLength`: -1 is less than the minimum of 0
    toolcrib.toml:13:47: `enum` must be a list in `[…]`; this is a text
        help: write enum = ["a"]
    toolcrib.toml:14:5: a schema was expected
        help: write it as { type = "integer", description = "…" }
    toolcrib.toml:15:45: unknown keyword `tpe` in a schema
        help: did you mean `type`?
    toolcrib.toml:16:35: `required` is not a flag of a parameter
        help: remove it: a parameter is required unless it has `optional = true`
    toolcrib.toml:17:40: `type` cannot be `strng`
        help: did you mean `string`?
    toolcrib.toml:18:34: JSON has no dates and times
        help: write it as a text in quotes
    toolcrib.toml:18:57: `optional` must be `true` or `false`; this is a text
    toolcrib.toml:19:26: `type` cannot be `nul`
        help: did you mean `null`?
    toolcrib.toml:19:34: unknown keyword `descripton` in a schema
        help: did you mean `description`?
    toolcrib.toml:20:35: JSON has only finite numbers
        help: write another number, or a text in quotes
    toolcrib.toml:20:50: this whole number needs more than 64 bits
    toolcrib.toml:21:35: unknown keyword `optional` in a schema
        help: only a parameter itself can have `optional`; inside it, list the required properties in `required`
    "#);
}

#[test]
fn schema_files_must_hold_the_schema_of_an_object() {
    let tool = |file: &str| {
        format!(
            "[[tool]]\nkind = \"sql\"\nname = \"{file}\"\ndescription = \"x\"\n\
             schema_file = \"{file}.json\"\nstatements = [\"SELECT 1\"]\n"
        )
    };
    let tools = ["broken", "list", "odd", "outside", "missing"].map(tool).concat();
    let folder = Folder::with(&format!("{DATABASE}{tools}"))
        .file("broken.json", "{\n  \"type\": object }")
        .file("list.json", "[]")
        .file("odd.json", r#"{ "type": "object", "properties": { "a": { "type": "strin" } } }"#)
        .file("outside.json", r#"{ "type": "object", "$ref": "http://localhost/x" }"#);
    insta::assert_snapshot!(folder.problems(), @r#"
    toolcrib.toml:33:15: `missing.json` does not exist
    broken.json:2:11: this is not JSON: expected value
    list.json:1:1: the schema is not of an object: models pass arguments as one
        help: write at the top level: "type": "object"
    odd.json:1:1: at /properties/a/type: this is not a JSON Schema: `type`: it must be one of string, integer, number, boolean, array, object, null, or a list of them
    outside.json:1:1: this is not a JSON Schema: the `$ref` to `http://localhost/x` has no target in the schema, and remote references are not fetched
    "#);
}

#[test]
fn a_column_that_only_a_newer_seed_has_points_at_fresh() {
    let folder = Folder::with(&format!("{DATABASE}{TOOL}"));
    drop(folder.load_as(RUN).unwrap());
    let folder = folder
        .file("seed.sql", "CREATE TABLE charges (id INTEGER PRIMARY KEY, cents INTEGER);")
        .file("toolcrib.toml", format!("{DATABASE}{}", TOOL.replace("amount", "cents")));
    let problems = folder.problems();
    let problem = problems.errors().next().unwrap();
    assert_eq!((problem.line, problem.column), (12, 27), "{problem}");
    assert!(problem.help.as_ref().unwrap().contains("--fresh"), "{problem}");
    assert!(folder.load_as(Mode::Run { fresh: true }).is_ok());
}
