//! Errors in secrets.

use crate::folder::Folder;

/// A tool that refers to a secret.
fn tool(name: &str, reference: &str) -> String {
    format!(
        "[[tool]]\nkind = \"command\"\nname = \"{name}\"\ndescription = \"x\"\n\
         program = \"true\"\nenv = {{ A = \"{reference}\" }}\n"
    )
}

#[test]
fn a_secret_is_declared_by_where_it_is_and_never_by_what_it_is() {
    let folder = Folder::with(
        r#"
[secrets]
plain = "sk-1234567890"
pasted = { env = "sk-1234567890" }
dollar = { env = "$API_KEY" }
empty = {}
"two words" = { env = "PATH" }
from = { file = "key.txt", env = "PATH" }
digit = { env = "1A" }
"#,
    );
    let problems = folder.problems();
    assert!(!problems.to_string().contains("1234567890"), "{problems}");
    insta::assert_snapshot!(problems, @r#"
    toolcrib.toml:3:9: the source of the secret is missing
        help: write { env = "VARIABLE" }; the value itself does not belong in this file
    toolcrib.toml:4:18: this is not a valid name of an environment variable
        help: write only its name, of letters, digits and `_`: env = "WEATHER_KEY"; the value itself does not belong in this file
    toolcrib.toml:5:18: this is not a valid name of an environment variable
        help: write only its name, of letters, digits and `_`: env = "WEATHER_KEY"; the value itself does not belong in this file
    toolcrib.toml:6:9: `env` is missing in secret `empty`
        help: write for example: env = "VARIABLE"
    toolcrib.toml:7:1: `two words` is not a valid name of a secret
        help: use letters without accents, digits, `_`, `-` and `.`
    toolcrib.toml:8:1: warning: nothing refers to the secret `from`
        help: use it, or remove it
    toolcrib.toml:8:10: unknown key `file` in secret `from`
        help: the keys here are `env`, `vault`
    toolcrib.toml:9:17: this is not a valid name of an environment variable
        help: write only its name, of letters, digits and `_`: env = "WEATHER_KEY"; the value itself does not belong in this file
    "#);
}

#[test]
fn what_a_tool_refers_to_must_be_declared() {
    let tools = [
        tool("a", "secret:WEATHER_KEYS"),
        tool("b", "x {secret:GEO_KEY} {secret:OTHER}"),
        tool("c", "secret:WEATHER_KEY"),
        tool("d", "Bearer secret:WEATHER_KEY"),
    ]
    .concat();
    let declared = "[secrets]\nWEATHER_KEY = { env = \"PATH\" }\nOTHER = { env = \"PATH\" }\n";
    insta::assert_snapshot!(Folder::with(&format!("{declared}{tools}")).problems(), @r#"
    toolcrib.toml:9:21: unknown secret `WEATHER_KEYS`
        help: did you mean `WEATHER_KEY`?
    toolcrib.toml:15:24: unknown secret `GEO_KEY`
        help: the secrets are `WEATHER_KEY`, `OTHER`
    toolcrib.toml:27:21: the environment variable `A`: a secret inside a text is written `{secret:NAME}`
    "#);
    insta::assert_snapshot!(Folder::with(&tool("a", "secret:KEY")).problems(), @r#"
    toolcrib.toml:6:21: unknown secret `KEY`
        help: write below a [secrets]: KEY = { env = "VARIABLE" }
    "#);
}

#[test]
fn a_variable_that_gives_no_secret_and_a_secret_that_nothing_needs_are_warnings() {
    let project = Folder::with(&format!(
        "[secrets]\nKEY = {{ env = \"TOOLCRIB_TEST_NOT_SET\" }}\n\
         SPARE = {{ env = \"TOOLCRIB_TEST_NOT_SET\" }}\nPATH = {{ env = \"PATH\" }}\n{}{}",
        tool("a", "secret:KEY"),
        tool("b", "secret:PATH"),
    ))
    .load();
    insta::assert_snapshot!(project.warnings(), @r#"
    toolcrib.toml:2:15: warning: the environment variable `TOOLCRIB_TEST_NOT_SET` is not set
        help: until this is changed, tools that need the secret `KEY` are not offered
    toolcrib.toml:3:1: warning: nothing refers to the secret `SPARE`
        help: use it, or remove it
    "#);
}
