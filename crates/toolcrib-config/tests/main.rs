//! TOML input; values with their places, or all problems, as output.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::time::Duration;

use proptest::{
    collection::vec,
    prelude::{any, prop_assert, prop_oneof, proptest},
    strategy::Strategy as _,
};
use serde_json::{Value as Json, json};
use toolcrib_config::{Diagnostics, Document, Problems, Spot, Table, pointer_step};

fn read<T>(text: &str, read: impl FnOnce(&Table<'_>) -> T) -> (Option<T>, Diagnostics) {
    let problems = Problems::new("a.toml");
    let read = Document::new("a.toml", text).read(&problems, read);
    (read, problems.into_diagnostics())
}

#[test]
fn what_is_as_asked_for_comes_with_its_place() {
    let text = r#"
text = "é 'quoted'"
blank = " "
words = ["one", "two"]
flag = true
count = 0x1F
price = 2
share = 0.5
wait = "1m 30s"
large = "64KiB"
small = 512
effect = "deny"

[[rule]]
name = "first"
[[rule]]
name = "second"

[own]
"a key" = 1
b = [2, { c = 'd' }]
"#;
    let (_, problems) = read(text, |file| {
        let value = file.value("text").unwrap();
        let found = value.text().unwrap();
        assert_eq!((&*found.value, found.at.line, found.at.column), ("é 'quoted'", 2, 8));
        assert_eq!(value.text_start().unwrap().column, 9);
        assert_eq!(value.text_start().unwrap().after("é ").column, 11);
        assert_eq!(&*file.value("blank").unwrap().any_text().unwrap().value, " ");
        let words = file.texts("words");
        assert_eq!((&*words[1].value, words[1].at.column), ("two", 17));
        assert_eq!(&*file.texts("text")[0].value, "é 'quoted'");
        assert_eq!(file.boolean("flag"), Some(true));
        assert_eq!(file.integer("count", ..=31_u8), Some(31));
        assert_eq!(file.number("price", 0.0..), Some(2.0));
        assert_eq!(file.number("share", 0.0..=1.0), Some(0.5));
        assert_eq!(file.duration("wait"), Some(Duration::from_secs(90)));
        assert_eq!(file.size("large", ..=65_536), Some(65_536));
        assert_eq!(file.size("small", 512..), Some(512));
        let effect = file.value("effect").unwrap().word(&[("allow", 1), ("deny", 2)]);
        assert_eq!(effect.unwrap().value, 2);
        let rules = file.tables("rule", |rule| (rule.text("name").unwrap().value, rule.at().line));
        assert_eq!(rules, [("first".into(), 14), ("second".into(), 16)]);
        let own = file.value("own").unwrap();
        let entries = own.entries("`[own]`").unwrap();
        let keys: Vec<_> = entries.rest().map(|(key, _)| key.value.to_string()).collect();
        assert_eq!(keys, ["a key", "b"]);
        assert_eq!(own.json().unwrap(), json!({ "a key": 1, "b": [2, { "c": "d" }] }));
    });
    assert_eq!(problems, Diagnostics::default());
}

#[test]
fn what_is_not_as_asked_for_is_recorded_each_at_its_place_and_reading_goes_on() {
    let text = r#"
text = 1
blank = " "
words = [1, "", "a"]
none = []
flag = "yes"
count = -1
much = 99999999999999999999
price = inf
share = 1979-05-27
wait = "2 days"
never = "0s"
unit = "64KB"
large = "2GiB"
small = 1023
size = 1.5
effect = "dney"
items = true
rule = { name = "x" }
rules = [1, {}]
table = [[]]
data = { day = 07:32:00, list = [nan, 99999999999999999999] }
"odd \u001b key" = 1
wrods = []
"#;
    let (read, problems) = read(text, |file| {
        file.text("text");
        file.text("blank");
        assert_eq!(file.texts("words").len(), 1);
        file.texts("none");
        file.boolean("flag");
        file.integer("count", 0..=u64::MAX);
        file.integer("much", 0_i64..);
        file.number("price", 0.0..);
        file.number("share", 0.0..);
        file.duration("wait");
        file.duration("never");
        file.size("unit", ..);
        file.size("large", 1..=1 << 30);
        file.size("small", 1024..);
        file.size("size", ..);
        file.value("effect").unwrap().word(&[("allow", ()), ("deny", ())]);
        assert!(file.value("items").unwrap().items().is_none());
        assert_eq!(file.tables("rule", |rule| rule.text("name").unwrap().at.line), [19]);
        file.tables("rules", |rule| rule.required("name", "\"x\"").is_some());
        file.table("table", |_| ());
        assert_eq!(file.value("data").unwrap().json(), None);
        "done"
    });
    assert_eq!(read, Some("done"));
    insta::assert_snapshot!(problems, @r#"
    a.toml:2:8: `text` must be a text in quotes; this is a whole number
    a.toml:3:9: `blank` is blank
    a.toml:4:10: `words[0]` must be a text in quotes; this is a whole number
    a.toml:4:13: `words[1]` is blank
    a.toml:5:8: `none` is an empty list
        help: write at least one text in it
    a.toml:6:8: `flag` must be `true` or `false`; this is a text
    a.toml:7:9: `count` must be from 0 to 18446744073709551615
    a.toml:8:8: `much` must be from 0 up
    a.toml:9:9: `price` must be a finite number from 0 up
    a.toml:10:9: `share` must be a number; this is a date or time
    a.toml:11:8: `wait` is longer than a day
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    a.toml:12:9: `never` is zero; it would end before it began
        help: write a duration such as "500ms", "30s", "5m" or "1h 30m"
    a.toml:13:8: `unit` is not a size: unknown unit `KB`
        help: write a size such as "64KiB", "1MiB" or "2GiB", or a number of bytes
    a.toml:14:9: `large` must be from 1 byte to 1GiB
    a.toml:15:9: `small` must be from 1KiB up
    a.toml:16:8: `size` must be a size in quotes, such as "64KiB", or a number of bytes; this is a decimal number
    a.toml:17:10: `effect` cannot be `dney`
        help: did you mean `deny`?
    a.toml:18:9: `items` must be a list in `[…]`; this is `true`
        help: write items = [true]
    a.toml:19:8: `rule` must be a list of tables; this is a table
        help: write rule = [{ … }], or `[[rule]]` above each table
    a.toml:20:10: `rules[0]` must be a table; this is a whole number
    a.toml:20:13: `name` is missing in `[[rules]]`
        help: write for example: name = "x"
    a.toml:21:9: `table` must be a table; this is a list
    a.toml:22:16: JSON has no dates and times
        help: write it as a text in quotes
    a.toml:22:34: JSON has only finite numbers
        help: write another number, or a text in quotes
    a.toml:22:39: this whole number needs more than 64 bits
    a.toml:23:1: unknown key `odd \u{1b} key` in this file
        help: the keys here are `text`, `blank`, `words`, `none`, `flag`, `count`, `much`, `price`, `share`, `wait`, `never`, `unit`, `large`, `small`, `size`, `effect`, `items`, `rule`, `rules`, `table`, `data`
    a.toml:24:1: unknown key `wrods` in this file
        help: did you mean `words`?
    "#);
}

#[test]
fn keys_that_were_not_asked_for_are_unknown_unless_the_reader_gives_up_on_them() {
    let text = "[a]\nx = 1\nz = 1\n[b]\nx = 1";
    let (_, problems) = read(text, |file| {
        file.table("a", |a| {
            assert!(a.has("z") && !a.has("y"));
            a.explain("z", "it is a key of `[c]`");
            a.boolean("y")
        });
        file.table("b", |b| {
            b.ignore_the_rest();
            b.boolean("y")
        });
    });
    insta::assert_snapshot!(problems, @r#"
    a.toml:2:1: unknown key `x` in `[a]`
        help: there is only `y`
    a.toml:3:1: unknown key `z` in `[a]`
        help: it is a key of `[c]`
    "#);
}

#[test]
fn a_slip_of_the_pen_is_not_a_missing_key_too() {
    let (_, problems) = read("[a]\nnmae = 1\nother = 2\n[b]\nx = 1", |file| {
        file.table("a", |a| {
            a.required("name", "\"x\"").is_some() || a.required("size", "1").is_some()
        });
        file.table("b", |b| {
            b.ignore_the_rest();
            b.required("y", "2").is_some()
        });
    });
    insta::assert_snapshot!(problems, @r#"
    a.toml:1:1: `size` is missing in `[a]`
        help: write for example: size = 1
    a.toml:2:1: unknown key `nmae` in `[a]`
        help: did you mean `name`?
    a.toml:3:1: unknown key `other` in `[a]`
        help: the keys here are `name`, `size`
    a.toml:4:1: `y` is missing in `[b]`
        help: write for example: y = 2
    "#);
}

#[test]
fn one_table_where_there_may_be_several_is_refused_and_read() {
    let names = |text: &str| {
        let (names, problems) = read(text, |file| {
            file.tables("tool", |tool| tool.text("name").map(|name| name.value.to_string()))
        });
        (names.unwrap_or_default().len(), problems)
    };
    let (read, problems) = names("[tool]\nnam = 'x'\n");
    assert_eq!(read, 1);
    insta::assert_snapshot!(problems, @r#"
    a.toml:1:1: `[tool]` defines a single table, but a list of tables is expected
        help: write `[[tool]]`
    a.toml:2:1: unknown key `nam` in `[[tool]]`
        help: did you mean `name`?
    "#);
    let (read, problems) = names("tool = 'x'\n");
    assert_eq!(read, 0);
    insta::assert_snapshot!(problems, @r#"
    a.toml:1:8: `tool` must be a list of tables; this is a text
        help: write tool = [{ … }], or `[[tool]]` above each table
    "#);
    let twice = "[tool]\nname = 'x'\n[tool.params]\na = 1\n";
    let (_, problems) = names(&format!("{}{twice}", twice.repeat(2)));
    insta::assert_snapshot!(problems, @r#"
    a.toml:5:2: table `tool` is already defined
        help: make them one table; where there may be several, write `[[tool]]` above each
    "#);
    let (_, problems) =
        names("[tools]\na = 1\na = 2\n[tool]\n[[tool]]\n[tools]\n[tool]\na = 1\na = 2\n");
    insta::assert_snapshot!(problems, @r#"
    a.toml:3:1: this is not TOML: duplicate key
    a.toml:5:3: table `tool` is already defined
        help: make them one table; where there may be several, write `[[tool]]` above each
    a.toml:6:2: table `tools` is already defined
        help: make them one table; where there may be several, write `[[tools]]` above each
    "#);
}

#[test]
fn a_single_value_where_a_list_is_expected_is_shown_as_one() {
    let long = "1234567890".repeat(6);
    let text = format!(
        "one = 'x'\nnumber = 3\nlong = '{long}'\nlines = \"\"\"a\nb\"\"\"\ntable = {{}}\ninner = ['x']\n"
    );
    let (_, problems) = read(&text, |file| {
        for key in ["one", "number", "long", "lines", "table"] {
            assert!(file.value(key).unwrap().items().is_none());
        }
        let inner = file.value("inner").unwrap().items().unwrap();
        assert!(inner[0].items().is_none() && inner[0].items_or("write it so").is_none());
    });
    insta::assert_snapshot!(problems, @r#"
    a.toml:1:7: `one` must be a list in `[…]`; this is a text
        help: write one = ['x']
    a.toml:2:10: `number` must be a list in `[…]`; this is a whole number
        help: write number = [3]
    a.toml:3:8: `long` must be a list in `[…]`; this is a text
        help: write long = […]
    a.toml:4:9: `lines` must be a list in `[…]`; this is a text
        help: write lines = […]
    a.toml:6:9: `table` must be a list in `[…]`; this is a table
    a.toml:7:10: `inner[0]` must be a list in `[…]`; this is a text
        help: write ['x']
    a.toml:7:10: `inner[0]` must be a list in `[…]`; this is a text
        help: write it so
    "#);
}

#[test]
fn with_errors_of_syntax_nothing_is_read() {
    let (read, problems) = read("x = \ny = 'a\n[z]\n[z]\n", |_| panic!("it was read"));
    assert_eq!(read, None::<()>);
    insta::assert_snapshot!(problems, @r#"
    a.toml:1:5: this is not TOML: string values must be quoted, expected literal string
    a.toml:2:7: this is not TOML: invalid literal string, expected `'`
    a.toml:4:2: table `z` is already defined
        help: make them one table; where there may be several, write `[[z]]` above each
    "#);
}

#[test]
fn a_problem_serializes_with_its_place_and_help_and_a_list_of_them_is_an_error() {
    let (_, problems) = read("nam = 1", |file| file.text("name").is_some());
    let first = serde_json::to_value(problems.iter().next().unwrap()).unwrap();
    let expected = json!({
        "file": "a.toml", "line": 1, "column": 1,
        "message": "unknown key `nam` in this file", "help": "did you mean `name`?",
    });
    assert_eq!(first, expected);
    let error: Box<dyn std::error::Error> = problems.into();
    assert!(error.to_string().starts_with("a.toml:1:1: "));
}

/// Reads every key with every conversion.
fn read_as_anything(file: &Table<'_>) -> Vec<Json> {
    file.rest()
        .filter_map(|(_, value)| {
            value.text();
            value.text_start();
            value.texts();
            value.boolean();
            value.integer(1..=5_u8);
            value.number(0.0..1.0);
            value.duration();
            value.size(1..=5);
            value.word(&[("a", ())]);
            value.tables("a table", read_as_anything);
            value.json()
        })
        .collect()
}

proptest! {
    #[test]
    fn whatever_stands_in_a_file_is_read_or_refused_within_it(
        lines in vec(
            prop_oneof![
                "[a-zé]{1,3} = (\"[^\"\\\\\n]{0,9}\"|-?[0-9]{1,25}(\\.[0-9]+)?|\\[[0-9, ]{0,5}\\]|\\{ *[a-z]{1,3} = nan *\\})",
                "\\[\\[[a-z]{1,2}\\]\\]",
                any::<String>().prop_map(|text| text.replace('\r', "")),
            ],
            0..8,
        ),
    ) {
        let text = lines.join("\n");
        let (read, problems) = read(&text, read_as_anything);
        prop_assert!(read.is_some() || !problems.is_empty());
        for problem in problems.iter() {
            let line = text.split('\n').nth(problem.line - 1);
            prop_assert!(
                line.is_some_and(|line| problem.column <= line.chars().count() + 1),
                "{problem:?} in {text:?}"
            );
        }
    }
}

#[test]
fn places_lead_to_keys_values_and_characters() {
    let text = "args = [\"a{b}\", { value = 'x\ty' }]\nenv = { \"A/B\" = \"a\\\"b\" }\n";
    let places = Document::new("f", text).read(&Problems::new("f"), |file| {
        let places = file.places();
        file.ignore_the_rest();
        places
    });
    let places = places.unwrap();
    let column = |spot: Option<Spot>| spot.map(|spot| (spot.line, spot.column));
    assert_eq!(column(places.value("/args/0").cloned()), Some((1, 9)));
    assert_eq!(column(places.character("/args/0", 2)), Some((1, 12)));
    // A key inside a text has the place of the text.
    assert_eq!(column(places.character("/args/0/value", 2)), Some((1, 12)));
    assert_eq!(column(places.character("/args/1/value", 2)), Some((1, 30)));
    assert_eq!(column(places.key("/env/A~1B").cloned()), Some((2, 9)));
    // An escaped text has only its own place.
    assert_eq!(column(places.character("/env/A~1B", 3)), Some((2, 17)));
    assert_eq!(places.value("/none"), None);
    assert_eq!(pointer_step("A/B~"), "A~1B~0");
}
