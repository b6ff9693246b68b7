//! Conditions on arguments, one by one.

use serde_json::json;

use super::*;

fn at(pointer: &str) -> ArgumentMatch {
    ArgumentMatch::at(pointer).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "`json!(..)` reads better without a `&`")]
fn some(condition: &ArgumentMatch, args: Value) -> bool {
    condition.evaluate(&args, Effect::Deny).unwrap()
}

#[expect(clippy::needless_pass_by_value, reason = "`json!(..)` reads better without a `&`")]
fn each(condition: &ArgumentMatch, args: Value) -> bool {
    condition.evaluate(&args, Effect::Allow).unwrap()
}

fn judge(condition: &ArgumentMatch, args: &Value, effect: Effect) -> Result<bool, String> {
    condition.evaluate(args, effect)
}

#[test]
fn every_test_holds_on_what_it_says_and_on_no_other_type() {
    let matched = |condition: ArgumentMatch, value: Value| some(&condition, json!({"x": value}));
    let x = || at("/x");
    for (condition, value, expected) in [
        (x().equals("a"), json!("a"), true),
        (x().equals("a"), json!("A"), false),
        (x().equals(1), json!(1.0), true),
        (x().equals(1), json!("1"), false),
        (x().equals(json!({"a": [1]})), json!({"a": [1.0]}), true),
        (x().equals(json!({"a": [1]})), json!({"a": [1], "b": 2}), false),
        (x().equals(json!({"a": 1, "b": 2})), json!({"a": 1, "c": 2}), false),
        (x().equals(json!([1, 2])), json!([1.0, 2]), true),
        (x().equals(json!([1, 2])), json!([1]), false),
        (x().equals(Value::Null), json!(null), true),
        (x().one_of(["a", "b"]), json!("b"), true),
        (x().one_of(["a", "b"]), json!("c"), false),
        (x().one_of([1, 2]), json!(2.0), true),
        (x().one_of(Vec::<Value>::new()), json!(1), false),
        (x().starts_with("/etc"), json!("/etc/passwd"), true),
        (x().starts_with("/etc"), json!("/tmp/etc"), false),
        (x().starts_with("/etc"), json!(5), false),
        (x().matches("^a+$").unwrap(), json!("aaa"), true),
        (x().matches("^a+$").unwrap(), json!("aab"), false),
        (x().matches("b").unwrap(), json!("abc"), true),
        (x().matches("1").unwrap(), json!(1), false),
        (x().less_than(3), json!(2.9), true),
        (x().less_than(3), json!(3), false),
        (x().less_than(3), json!("2"), false),
        (x().greater_than(3), json!(3.1), true),
        (x().greater_than(3), json!(3), false),
        (x().greater_than(u64::MAX), json!(i64::MIN), false),
        (x().greater_than(i64::MAX), json!(u64::MAX), true),
        // Integers that are equal as floating point.
        (x().equals(9_007_199_254_740_993_u64), json!(9_007_199_254_740_992_u64), false),
        (x().greater_than(i64::MAX - 1), json!(i64::MAX), true),
        (x().greater_than(0).less_than(10), json!(5), true),
        (x().greater_than(0).less_than(10), json!(10), false),
        (x().greater_than(0).less_than(10), json!(0), false),
        (x().exists(true), json!(null), true),
        (x().exists(false), json!(null), false),
        (x(), json!(null), true),
    ] {
        assert_eq!(matched(condition.clone(), value.clone()), expected, "{condition:?} {value}");
    }
}

#[test]
fn where_there_is_nothing_only_exists_false_holds() {
    for args in [json!({}), json!({"y": 1}), json!({"x": {}}), json!(["x"]), json!("x")] {
        for condition in [
            at("/x/z"),
            at("/x/z").exists(true),
            at("/x/z").equals(Value::Null),
            at("/x/z").less_than(1),
            at("/x/z").exists(false).equals(1),
        ] {
            assert!(!some(&condition, args.clone()), "{condition:?} {args}");
            assert!(!each(&condition, args.clone()), "{condition:?} {args}");
        }
        assert!(some(&at("/x/z").exists(false), args.clone()));
        assert!(each(&at("/x/z").exists(false), args));
    }
}

#[test]
fn a_list_fits_a_rule_that_denies_by_some_item_and_one_that_allows_by_each() {
    let etc = at("/paths").starts_with("/etc");
    for (paths, by_some, by_each) in [
        (json!(["/etc/a", "/etc/b"]), true, true),
        (json!(["/tmp/a", "/etc/b"]), true, false),
        (json!(["/etc/a", "/tmp/b"]), true, false),
        (json!(["/tmp"]), false, false),
        (json!([]), false, false),
        (json!([["/etc/a"], "/tmp"]), true, false),
        (json!([["/etc/a"], "/etc"]), true, true),
    ] {
        let args = json!({"paths": paths});
        assert_eq!(some(&etc, args.clone()), by_some, "{args}");
        assert_eq!(each(&etc, args.clone()), by_each, "{args}");
        for effect in [Effect::Ask, Effect::Halt] {
            assert_eq!(judge(&etc, &args, effect), Ok(by_some), "{args}");
        }
    }
    // All tests on one item, not each on some item.
    let both = at("/n").greater_than(5).less_than(7);
    assert!(!some(&both, json!({"n": [1, 9]})));
    assert!(some(&both, json!({"n": [1, 6]})));
    assert!(each(&at("/n").equals(json!([1, 2])), json!({"n": [1, 2]})));
}

#[test]
fn pointers_go_through_names_positions_and_all_items() {
    let args = json!({
        "a/b": {"~": 1}, "files": [{"path": "/x"}, {"path": "/y", "mode": 7}], "": 2, "*": 3,
    });
    let matched = |pointer: &str, value: Value| {
        let condition = at(pointer).equals(value);
        (some(&condition, args.clone()), each(&condition, args.clone()))
    };
    assert_eq!(matched("/a~1b/~0", json!(1)), (true, true));
    assert_eq!(matched("/files/1/path", json!("/y")), (true, true));
    assert_eq!(matched("/files/0/path", json!("/y")), (false, false));
    assert_eq!(matched("/files/01/path", json!("/y")), (false, false));
    assert_eq!(matched("/files/+1/path", json!("/y")), (false, false));
    assert_eq!(matched("/files/2/path", json!("/y")), (false, false));
    assert_eq!(matched("/files/*/path", json!("/y")), (true, false));
    assert_eq!(matched("/files/*/mode", json!(7)), (true, false));
    assert_eq!(matched("/", json!(2)), (true, true));
    assert_eq!(matched("/*", json!(3)), (true, true));
    assert_eq!(matched("", args.clone()), (true, true));
    assert!(some(&at("/files/*/mode").exists(false), args.clone()));
    assert!(!each(&at("/files/*/mode").exists(false), args));
    assert!(!some(&at("/files/*/mode").exists(false), json!({"files": []})));
}

#[test]
fn what_cannot_be_made_says_why() {
    let pointer = |text: &str| ArgumentMatch::at(text).unwrap_err().to_string();
    for text in ["path", "/a~2", "/a~"] {
        assert_eq!(
            pointer(text),
            format!(
                "`{text}` is not a valid JSON pointer; write `/` and the argument's name, such as \
                 `/path`"
            )
        );
    }
    let pattern = |text: &str| at("/x").matches(text).unwrap_err().to_string();
    assert_eq!(pattern("(a"), "`(a` is not a valid regular expression: unclosed group");
    assert_eq!(
        pattern("a{1000}{1000}"),
        "`a{1000}{1000}` is not a valid regular expression: it exceeds 1 MiB compiled"
    );
    assert!(at("/x").matches(&"a".repeat(MAX_PATTERN)).is_ok());
    assert_eq!(
        pattern(&"a".repeat(MAX_PATTERN + 1)),
        "the pattern has 1001 bytes; the limit is 1000"
    );
}

#[test]
fn what_cannot_be_told_is_an_error_even_where_another_test_fails() {
    let search = at("/x").matches("a").unwrap();
    assert!(some(&search, json!({"x": "a".repeat(MAX_SEARCHED)})));
    let long = json!({"x": ["b", "a".repeat(MAX_SEARCHED + 1)]});
    let said = search.evaluate(&long, Effect::Deny).unwrap_err();
    assert_eq!(said, "a text of 65537 bytes is too long to be searched (at most 65536)");
    let both = at("/x").equals(1).matches("a").unwrap();
    assert!(judge(&both, &long, Effect::Allow).is_err());
    let odd = ArgumentMatch::by("odd", |args| match args["x"].as_u64() {
        Some(x) => Ok(x % 2 == 1),
        None => Err("x is not a number".to_owned()),
    });
    assert_eq!(odd.name(), "odd");
    assert_eq!(at("/x").name(), "/x");
    assert!(some(&odd, json!({"x": 3})) && !some(&odd, json!({"x": 4})));
    assert_eq!(judge(&odd, &json!({}), Effect::Deny), Err("x is not a number".to_owned()));
    let broken = ArgumentMatch::by("broken", |_| panic!("oh"));
    assert_eq!(judge(&broken, &json!({}), Effect::Deny), Err("it panicked: oh".to_owned()));
}
