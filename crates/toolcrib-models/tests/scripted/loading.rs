//! Errors about invalid scripts.

use proptest::{
    collection::vec,
    prelude::{any, prop_assert, proptest},
    sample::select,
};
use toolcrib_models::ScriptedModel;

use crate::{text, user};

fn problems(script: &str) -> String {
    ScriptedModel::from_toml("script:test.toml", script).unwrap_err().to_string()
}

#[test]
fn everything_that_is_wrong_is_reported_at_once_with_its_place() {
    let script = r#"
version = 1

[[rule]]
nmae = "typo"
user = '(unclosed'
offered = [1, "a"]
called = []
not_called = 5
tools_allowed = "yes"
delay_ms = -1
text = "{{ unclosed"

[[rule]]
user = 'é (?P<order>\d+) (?P<results>x)'
text = "{{ ordr }} {{ whatever_else }}"
usage = { input_tokens = 1.5, cost_usd = -1, total = 3 }

[[rule]]
name = "answers nothing"
when = [
    { pointer = "rows", equals = 1 },
    { result = "t", pointer = "/a~2", exists = true },
    { result = "t" },
    { result = "t", exists = true },
    { result = "t", pointer = "/a", is_error = true },
    { result = "t", min_items = 1, max_items = 2 },
    { result = "t", matches = '[z-a]' },
    { result = "t", equals = 1979-05-27, contians = "x" },
    "no table",
]

[[rule]]
calls = [
    { args = { a = { b = ["ok", "{% if %}"] } } },
    { tool = "t", args = { n = nan, when = 07:32:00, x = "{{ a }} {{ user }}" }, raw = "x" },
    { tool = "t", args = "text", arg = 1 },
]
"#;
    insta::assert_snapshot!(problems(script), @r#"
    script:test.toml:2:1: unknown key `version` in this file
        help: there is only `rule`
    script:test.toml:5:1: unknown key `nmae` in `[[rule]]`
        help: did you mean `name`?
    script:test.toml:6:8: `user` is not a regular expression: unclosed group
        help: the syntax is that of https://docs.rs/regex; write patterns in '…', where TOML does not change backslashes
    script:test.toml:7:12: `offered[0]` must be a text in quotes; this is a whole number
    script:test.toml:8:10: `called` is an empty list
        help: write at least one text in it
    script:test.toml:9:14: `not_called` must be a text in quotes or a list of them; this is a whole number
    script:test.toml:10:17: `tools_allowed` must be `true` or `false`; this is a text
    script:test.toml:11:12: `delay_ms` must be from 0 up
    script:test.toml:12:8: `text` is not a template: unexpected end of input, expected end of variable block
    script:test.toml:15:8: the capture `results` hides the variable `results`
        help: give the capture another name
    script:test.toml:16:8: `text` uses `ordr`, which is not defined
        help: did you mean `order`?
    script:test.toml:17:26: `input_tokens` must be a whole number; this is a decimal number
    script:test.toml:17:42: `cost_usd` must be a finite number from 0 up
    script:test.toml:17:46: unknown key `total` in `usage`
        help: the keys here are `input_tokens`, `cached_input_tokens`, `cache_write_tokens`, `output_tokens`, `cost_usd`
    script:test.toml:19:1: the rule has no answer
        help: give it `text`, `calls` or both
    script:test.toml:22:5: `result` is missing in a condition
        help: write for example: result = "refund"
    script:test.toml:22:17: `rows` is not a JSON pointer
        help: write a `/` before every key and position, as in `/rows/0/amount`; in a key, `~` is `~0` and `/` is `~1`
    script:test.toml:23:31: `/a~2` is not a JSON pointer
        help: write a `/` before every key and position, as in `/rows/0/amount`; in a key, `~` is `~0` and `/` is `~1`
    script:test.toml:24:5: the condition has no check
        help: a condition has exactly one of `exists`, `equals`, `matches`, `contains`, `min_items`, `max_items`, `is_error`
    script:test.toml:25:5: `exists` needs a `pointer`
        help: to check whether the tool has a result at all, use the rule's `called` or `not_called`
    script:test.toml:26:5: `is_error` is about the result as a whole
        help: remove the `pointer`
    script:test.toml:27:5: the condition has several checks: `min_items`, `max_items`
        help: a condition has exactly one of `exists`, `equals`, `matches`, `contains`, `min_items`, `max_items`, `is_error`; write one condition for each
    script:test.toml:28:31: `matches` is not a regular expression: invalid character class range, the start must be <= the end
        help: the syntax is that of https://docs.rs/regex; write patterns in '…', where TOML does not change backslashes
    script:test.toml:29:30: JSON has no dates and times
        help: write it as a text in quotes
    script:test.toml:29:42: unknown key `contians` in a condition
        help: did you mean `contains`?
    script:test.toml:30:5: `when[8]` must be a table; this is a text
    script:test.toml:35:5: `tool` is missing in a call
        help: write for example: tool = "refund"
    script:test.toml:35:33: `calls[0].args.a.b[1]` is not a template: unexpected end of block
    script:test.toml:36:5: the call has both `args` and `raw`
        help: `args` are data, `raw` is text instead; keep one
    script:test.toml:36:32: JSON has only finite numbers
        help: write another number, or a text in quotes
    script:test.toml:36:44: JSON has no dates and times
        help: write it as a text in quotes
    script:test.toml:36:58: `calls[1].args.x` uses `a`, which is not defined
        help: the variables of this rule are `user`, `results`, `result_texts`, `errors`, `error`, `error_tool`
    script:test.toml:37:26: `args` must be a table; this is a text
    script:test.toml:37:34: unknown key `arg` in a call
        help: did you mean `args`?
    "#);
}

#[test]
fn a_script_without_rules_or_with_misplaced_ones_is_refused() {
    insta::assert_snapshot!(problems(""), @r#"
    script:test.toml:1:1: the script has no rule
        help: write at least one `[[rule]]`
    "#);
    insta::assert_snapshot!(problems("rule = []"), @r#"
    script:test.toml:1:1: the script has no rule
        help: write at least one `[[rule]]`
    "#);
    insta::assert_snapshot!(problems("[rule]\ntext = 'x'"), @r#"
    script:test.toml:1:1: `[rule]` defines a single table, but a list of tables is expected
        help: write `[[rule]]`
    "#);
    insta::assert_snapshot!(problems("[[rules]]\ntext = 'x'"), @r#"
    script:test.toml:1:1: the script has no rule
        help: write at least one `[[rule]]`
    script:test.toml:1:3: unknown key `rules` in this file
        help: did you mean `rule`?
    "#);
}

#[test]
fn what_is_no_toml_is_reported_as_such() {
    let errors = ScriptedModel::from_toml(
        "script:test.toml",
        "[[rule]]\ntext = 'a'\ntext = 'b'\n[[rule]]\nuser = \ntxt = 1\n",
    )
    .unwrap_err();
    insta::assert_snapshot!(errors, @r#"
    script:test.toml:3:1: this is not TOML: duplicate key
    script:test.toml:5:8: this is not TOML: string values must be quoted, expected literal string
    "#);
    let first = errors.iter().next().unwrap();
    assert_eq!((first.line, first.column, first.help.as_deref()), (3, 1, None));
}

#[test]
fn a_pattern_that_is_wrong_does_not_make_its_captures_unknown() {
    let found = problems("[[rule]]\nuser = '(?P<a>x'\ntext = '{{ a }}'");
    assert_eq!(found.lines().filter(|line| !line.contains("help:")).count(), 1, "{found}");
}

#[test]
fn captures_of_several_patterns_have_different_names_and_differ_speaks_of_them() {
    let script = r#"
[[rule]]
user = ['order (?P<order>\d+)', 'no (?P<what>.+)', 'for (?P<order>\d+)(?P<error>!)?']
differ = ["order", "waht"]
text = "{{ order }} {{ what }}"

[[rule]]
user = ['(?P<a>x)', '']
differ = "a"
text = "x"

[[rule]]
user = []
differ = ["a", "b"]
text = "{{ a }}"

[[rule]]
differ = ["a", "b"]
text = "x"
"#;
    insta::assert_snapshot!(problems(script), @r#"
    script:test.toml:3:52: the capture `order` is in two patterns
        help: give the capture another name
    script:test.toml:3:52: the capture `error` hides the variable `error`
        help: give the capture another name
    script:test.toml:4:20: `differ` names `waht`, which is not a group of `user`
        help: did you mean `what`?
    script:test.toml:8:21: `user[1]` is blank
    script:test.toml:9:10: `differ` names one group only
        help: name two groups or more, which then must not all contain the same text
    script:test.toml:13:8: `user` is an empty list
        help: write at least one text in it
    script:test.toml:18:11: `differ` names `a`, which is not a group of `user`
        help: no groups of `user` exist
    script:test.toml:18:16: `differ` names `b`, which is not a group of `user`
        help: no groups of `user` exist
    "#);
}

#[test]
fn a_condition_on_any_tool_is_only_about_errors() {
    let script = r#"
[[rule]]
text = "x"
when = [
    { result = "*" },
    { result = "*", is_error = false },
    { result = "*", is_error = "yes" },
    { result = "*", is_error = true, pointer = "/a" },
    { result = "*", contains = "x" },
    { result = "*", is_error = true, contains = "x" },
]
"#;
    insta::assert_snapshot!(problems(script), @r#"
    script:test.toml:5:5: a condition on any tool can only check for an error
        help: `*` is for `is_error = true`; for everything else name the tool
    script:test.toml:6:5: a condition on any tool can only check for an error
        help: `*` is for `is_error = true`; for everything else name the tool
    script:test.toml:7:32: `is_error` must be `true` or `false`; this is a text
    script:test.toml:8:5: a condition on any tool can only check for an error
        help: `*` is for `is_error = true`; for everything else name the tool
    script:test.toml:9:5: a condition on any tool can only check for an error
        help: `*` is for `is_error = true`; for everything else name the tool
    script:test.toml:10:5: a condition on any tool can only check for an error
        help: `*` is for `is_error = true`; for everything else name the tool
    "#);
}

#[tokio::test]
async fn the_variables_of_jinja_itself_are_known() {
    let script =
        "[[rule]]\ntext = '{% set x = 2 %}{% for i in range(x) %}{{ loop.index }}{% endfor %}'";
    assert_eq!(text(script, &user("hi")).await, "12");
}

proptest! {
    #[test]
    fn no_text_makes_the_loader_panic(text in any::<String>()) {
        let _ = ScriptedModel::from_toml("script:test.toml", &text);
    }

    /// Made of a script's own words, so that more of it passes the TOML parser.
    #[test]
    fn no_jumble_of_a_scripts_words_makes_the_loader_panic(
        words in vec(
            select(vec![
                "[[rule]]", "\n", "\n", " = ", " = ", "\"", "'", "{", "}", "[", "]", ",", ".",
                "{{", "}}", "{%", "%}", "(?P<a>", "\\d+", ")", "é", "1", "-1", "nan", "true",
                "user", "text", "calls", "when", "tool", "args", "raw", "result", "pointer",
                "/a/0", "~", "equals", "matches", "usage", "delay_ms", "results.a | int", "#",
                "differ", "*", "is_error", "error_tool",
            ]),
            0..60,
        ),
    ) {
        let _ = ScriptedModel::from_toml("script:test.toml", &words.concat());
    }

    #[test]
    fn no_value_of_a_key_makes_the_loader_panic(
        key in select(vec![
            "name", "user", "differ", "offered", "tools_allowed", "when", "delay_ms", "text", "calls",
            "usage", "unknown",
        ]),
        value in "(\"[^\"\\\\\n]{0,20}\"|-?[0-9]{1,25}(\\.[0-9]+)?|\\[[0-9, ]{0,5}\\]|\\{ *[a-z]{1,9} = \"[^\"\\\\\n]{0,12}\" *\\})",
    ) {
        let script = format!("[[rule]]\n{key} = {value}\n");
        if let Err(errors) = ScriptedModel::from_toml("script:test.toml", &script) {
            prop_assert!(!errors.is_empty());
            prop_assert!(errors.iter().all(|problem| problem.line <= 3));
        }
    }
}
