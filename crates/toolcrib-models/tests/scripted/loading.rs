//! What is said about scripts that are wrong.

use proptest::{
    collection::vec,
    prelude::{any, prop_assert, proptest},
    sample::select,
};
use toolcrib_models::ScriptedModel;

use crate::{text, user};

fn problems(script: &str) -> String {
    ScriptedModel::from_toml("script:test.toml", script)
        .unwrap_err()
        .to_string()
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
    2:1: a script has no key `version`
      help: its keys are `rule`
    5:1: a rule has no key `nmae`
      help: did you mean `name`?
    6:8: `user` is not a regular expression: unclosed group
      help: the syntax is that of https://docs.rs/regex; write patterns in '…', where TOML leaves backslashes alone
    7:12: `offered` must be a string or a list of strings; this is an integer
    8:10: `called` is empty
      help: name at least one tool, or leave the key out
    9:14: `not_called` must be a string or a list of strings; this is an integer
    10:17: `tools_allowed` must be true or false; this is a string
    11:12: `delay_ms` must be an integer from 0 up; this is a negative integer
    12:8: `text` is not a template: unexpected end of input, expected end of variable block
    15:8: the capture `results` hides the variable `results`
      help: give the capture another name
    16:8: `text` uses `ordr`, which is not defined
      help: did you mean `order`?
    17:26: `input_tokens` must be an integer from 0 up; this is a float
    17:42: `cost_usd` must be a number from 0 up; this is a negative integer
    17:46: the usage has no key `total`
      help: its keys are `input_tokens`, `cached_input_tokens`, `output_tokens`, `cost_usd`
    19:1: the rule answers nothing
      help: give it `text`, `calls` or both
    22:5: the condition has no `result`
      help: name the tool whose last result is meant
    22:17: `rows` is not a JSON pointer
      help: write a `/` before every key and position, as in `/rows/0/amount`; in a key, `~` is `~0` and `/` is `~1`
    23:31: `/a~2` is not a JSON pointer
      help: write a `/` before every key and position, as in `/rows/0/amount`; in a key, `~` is `~0` and `/` is `~1`
    24:5: the condition asks nothing
      help: a condition has exactly one of `exists`, `equals`, `matches`, `contains`, `min_items`, `max_items`, `is_error`
    25:5: `exists` needs a `pointer`
      help: to ask whether the tool has a result at all, use the rule's `called` or `not_called`
    26:5: `is_error` is about the result as a whole
      help: leave the `pointer` out
    27:5: the condition asks several things at once: `min_items`, `max_items`
      help: a condition has exactly one of `exists`, `equals`, `matches`, `contains`, `min_items`, `max_items`, `is_error`; write one condition for each
    28:31: `matches` is not a regular expression: invalid character class range, the start must be <= the end
      help: the syntax is that of https://docs.rs/regex; write patterns in '…', where TOML leaves backslashes alone
    29:30: JSON has no dates and times
      help: write it as a string
    29:42: a condition has no key `contians`
      help: did you mean `contains`?
    30:5: `when` must be a list of tables; this is a string
    35:5: the call has no `tool`
      help: name the tool that is called
    35:33: `calls[0].args.a.b[1]` is not a template: unexpected end of block
    36:5: the call has both `args` and `raw`
      help: `args` are data, `raw` is text in their place; keep one
    36:32: JSON has only finite numbers
      help: write another number, or a string
    36:44: JSON has no dates and times
      help: write it as a string
    36:58: `calls[1].args.x` uses `a`, which is not defined
      help: this rule has `user`, `results`, `result_texts`, `errors`
    37:26: `args` must be a table; this is a string
    37:34: a call has no key `arg`
      help: did you mean `args`?
    "#);
}

#[test]
fn a_script_without_rules_or_with_misplaced_ones_is_refused() {
    insta::assert_snapshot!(problems(""), @r#"
    1:1: the script has no rule
      help: write at least one `[[rule]]`
    "#);
    insta::assert_snapshot!(problems("rule = []"), @r#"
    1:1: the script has no rule
      help: write at least one `[[rule]]`
    "#);
    insta::assert_snapshot!(problems("[rule]\ntext = 'x'"), @r#"
    1:1: `rule` must be a list of tables; this is a table
      help: write `[[rule]]` above every table, or `rule = [{ … }]`
    "#);
    insta::assert_snapshot!(problems("[[rules]]\ntext = 'x'"), @r#"
    1:1: the script has no rule
      help: write at least one `[[rule]]`
    1:3: a script has no key `rules`
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
    3:1: duplicate key
    5:8: string values must be quoted, expected literal string
    "#);
    let first = &errors.problems()[0];
    assert_eq!(
        (first.line, first.column, first.help.as_deref()),
        (3, 1, None)
    );
}

#[test]
fn a_pattern_that_is_wrong_does_not_make_its_captures_unknown() {
    let found = problems("[[rule]]\nuser = '(?P<a>x'\ntext = '{{ a }}'");
    assert_eq!(
        found.lines().filter(|line| !line.contains("help:")).count(),
        1,
        "{found}"
    );
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

    /// Made of a script's own words, so that it comes further than the TOML parser.
    #[test]
    fn no_jumble_of_a_scripts_words_makes_the_loader_panic(
        words in vec(
            select(vec![
                "[[rule]]", "\n", "\n", " = ", " = ", "\"", "'", "{", "}", "[", "]", ",", ".",
                "{{", "}}", "{%", "%}", "(?P<a>", "\\d+", ")", "é", "1", "-1", "nan", "true",
                "user", "text", "calls", "when", "tool", "args", "raw", "result", "pointer",
                "/a/0", "~", "equals", "matches", "usage", "delay_ms", "results.a | int", "#",
            ]),
            0..60,
        ),
    ) {
        let _ = ScriptedModel::from_toml("script:test.toml", &words.concat());
    }

    #[test]
    fn no_value_of_a_key_makes_the_loader_panic(
        key in select(vec![
            "name", "user", "offered", "tools_allowed", "when", "delay_ms", "text", "calls",
            "usage", "unknown",
        ]),
        value in "(\"[^\"\\\\\n]{0,20}\"|-?[0-9]{1,25}(\\.[0-9]+)?|\\[[0-9, ]{0,5}\\]|\\{ *[a-z]{1,9} = \"[^\"\\\\\n]{0,12}\" *\\})",
    ) {
        let script = format!("[[rule]]\n{key} = {value}\n");
        if let Err(errors) = ScriptedModel::from_toml("script:test.toml", &script) {
            prop_assert!(!errors.problems().is_empty());
            prop_assert!(errors.problems().iter().all(|problem| problem.line <= 3));
        }
    }
}
