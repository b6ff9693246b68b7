//! Which rule answers.

use serde_json::json;
use toolcrib_core::fence;

use crate::{Conversation, failure, text, user};

/// Whether a rule with these conditions matches.
async fn matches(conditions: &str, conversation: &Conversation) -> bool {
    let script = format!("[[rule]]\n{conditions}\ntext = 'yes'\n[[rule]]\ntext = 'no'");
    text(&script, conversation).await == "yes"
}

#[tokio::test]
async fn the_first_rule_that_matches_answers() {
    let script = "
        [[rule]]
        user = 'b'
        text = 'first'
        [[rule]]
        user = 'a'
        text = 'second'
        [[rule]]
        text = 'third'";
    assert_eq!(text(script, &user("ab")).await, "first");
    assert_eq!(text(script, &user("a")).await, "second");
    assert_eq!(text(script, &user("c")).await, "third");
}

#[tokio::test]
async fn a_user_pattern_is_searched_in_the_last_user_text_only() {
    let seen = user("refund order 7").then("thanks");
    assert!(matches("user = 'thanks'", &seen).await);
    assert!(!matches("user = 'refund'", &seen).await);
}

#[tokio::test]
async fn of_several_user_patterns_each_must_be_found_in_any_order() {
    let user_is = "user = ['(?P<what>refund|return)', 'order (?P<order>\\d+)']";
    assert!(matches(user_is, &user("refund order 7")).await);
    assert!(matches(user_is, &user("of order 7 I want a return")).await);
    assert!(!matches(user_is, &user("refund it")).await);
    assert!(!matches(user_is, &user("order 7")).await);
    let script = format!("[[rule]]\n{user_is}\ntext = '{{{{ what }}}} {{{{ order }}}}'");
    assert_eq!(text(&script, &user("order 7: return")).await, "return 7");
}

#[tokio::test]
async fn groups_that_differ_do_not_all_hold_the_same_text() {
    let rule = "user = ['(?P<first>\\d+)', '(?:.* (?P<last>\\d+))?$', '(?:,(?P<mark>\\d+))?']\n\
                differ = ['first', 'last', 'mark']";
    for (said, expected) in [
        ("7", false),
        ("7 and 7", false),
        ("7 and 8", true),
        ("7 and 77", true),
        ("7 and 8 and 7", false),
    ] {
        assert_eq!(matches(rule, &user(said)).await, expected, "{said}");
    }
}

#[tokio::test]
async fn any_tools_last_result_can_be_asked_for_an_error() {
    let failed = "when = [{ result = '*', is_error = true }]";
    let fine = user("hi").result("a", 1);
    assert!(!matches(failed, &fine).await);
    assert!(!matches(failed, &user("hi")).await);
    assert!(matches(failed, &fine.clone().error("b", "broken")).await);
    let mended = fine.error("b", "broken").result("b", 2);
    assert!(!matches(failed, &mended).await);
    assert!(!matches(failed, &user("hi").error("a", "broken").then("again")).await);
}

#[tokio::test]
async fn all_offered_tools_and_none_of_the_others_must_be_there() {
    let seen = user("hi").offering(&["a", "b"]);
    for (conditions, expected) in [
        ("offered = 'a'", true),
        ("offered = ['a', 'b']", true),
        ("offered = ['a', 'c']", false),
        ("offered = 'A'", false),
        ("not_offered = 'c'", true),
        ("not_offered = ['c', 'b']", false),
    ] {
        assert_eq!(matches(conditions, &seen).await, expected, "{conditions}");
    }
}

#[tokio::test]
async fn called_counts_results_since_the_last_user_message() {
    let before = user("hi").result("a", "1");
    assert!(matches("called = 'a'", &before).await);
    assert!(matches("called = 'a'\nnot_called = 'b'", &before).await);
    assert!(!matches("called = ['a', 'b']", &before).await);
    assert!(!matches("not_called = ['b', 'a']", &before).await);
    let after = before.then("again");
    assert!(!matches("called = 'a'", &after).await);
    assert!(matches("not_called = 'a'", &after).await);
}

#[tokio::test]
async fn whether_tools_are_allowed_can_be_a_condition() {
    let free = user("hi");
    let wrapping_up = user("hi").wrapping_up();
    for (conditions, when_free, when_wrapping_up) in [
        ("tools_allowed = true", true, false),
        ("tools_allowed = false", false, true),
        ("", true, true),
    ] {
        assert_eq!(matches(conditions, &free).await, when_free, "{conditions}");
        assert_eq!(matches(conditions, &wrapping_up).await, when_wrapping_up, "{conditions}");
    }
}

#[tokio::test]
async fn conditions_look_into_a_result() {
    let data = json!({
        "rows": [{ "amount": 25, "paid": true, "a/b~c": "x" }, { "amount": 25.5 }],
        "note": "no refund yet",
        "nothing": null,
    });
    let seen = user("hi").result("t", data).result("plain", "three words here");
    for (condition, expected) in [
        ("pointer = '/rows/0/amount', exists = true", true),
        ("pointer = '/rows/2', exists = true", false),
        ("pointer = '/rows/2', exists = false", true),
        ("pointer = '/nothing', exists = true", true),
        ("pointer = '/rows/0/amount', equals = 25", true),
        ("pointer = '/rows/0/amount', equals = 25.0", true),
        ("pointer = '/rows/1/amount', equals = 25.5", true),
        ("pointer = '/rows/1/amount', equals = 25", false),
        ("pointer = '/rows/0/amount', equals = '25'", false),
        ("pointer = '/rows/0/paid', equals = true", true),
        ("pointer = '/rows/0/a~1b~0c', equals = 'x'", true),
        ("pointer = '/rows/1', equals = { amount = 25.5 }", true),
        ("pointer = '/rows', equals = []", false),
        ("pointer = '/rows/9/amount', equals = 25", false),
        ("pointer = '/note', matches = '^no .* yet$'", true),
        ("pointer = '/note', matches = '^refund'", false),
        ("pointer = '/rows/0/amount', matches = '^25$'", true),
        ("pointer = '/note', contains = 'refund'", true),
        ("pointer = '/note', contains = 'amount'", false),
        ("contains = '\"amount\":25.5'", true),
        ("matches = 'paid.*true'", true),
        ("pointer = '/rows', min_items = 2", true),
        ("pointer = '/rows', min_items = 3", false),
        ("pointer = '/rows', max_items = 2", true),
        ("pointer = '/rows', max_items = 1", false),
        ("pointer = '/note', min_items = 13", true),
        ("pointer = '/note', max_items = 12", false),
        ("pointer = '/rows/0', min_items = 0", false),
        ("is_error = false", true),
        ("is_error = true", false),
    ] {
        let when = format!("when = [{{ result = 't', {condition} }}]");
        assert_eq!(matches(&when, &seen).await, expected, "{condition}");
    }
    for (condition, expected) in [
        ("equals = 'three words here'", true),
        ("matches = 'words'", true),
        ("min_items = 16", true),
        ("pointer = '/0', exists = false", true),
    ] {
        let when = format!("when = [{{ result = 'plain', {condition} }}]");
        assert_eq!(matches(&when, &seen).await, expected, "{condition}");
    }
}

#[tokio::test]
async fn all_conditions_must_hold_and_a_tool_without_a_result_holds_none() {
    let seen = user("hi").result("t", json!({ "a": 1 })).error("u", "broken");
    let both = |a: &str, b: &str| format!("when = [{a}, {b}]");
    let good = "{ result = 't', pointer = '/a', equals = 1 }";
    assert!(matches(&both(good, "{ result = 'u', is_error = true }"), &seen).await);
    assert!(!matches(&both(good, "{ result = 'u', is_error = false }"), &seen).await);
    assert!(!matches(&both(good, "{ result = 'v', pointer = '/a', exists = false }"), &seen).await);
}

#[tokio::test]
async fn the_last_result_is_the_last_of_that_tool_since_the_last_user_message() {
    let is = |n: u32| format!("when = [{{ result = 't', equals = {n} }}]");
    let seen = user("hi").result("t", 1).result("t", 2).result("other", 3);
    assert!(matches(&is(2), &seen).await);
    assert!(!matches(&is(1), &seen).await);
    assert!(!matches(&is(2), &seen.then("more")).await);
}

#[tokio::test]
async fn a_fence_is_taken_off_before_anything_is_looked_at() {
    let fenced = fence("t", r#"{"rows":[{"amount":25}]}"#);
    let seen = user("hi").result("t", &fenced);
    let amount = "when = [{ result = 't', pointer = '/rows/0/amount', equals = 25 }]";
    assert!(matches(amount, &seen).await);
    assert!(matches("when = [{ result = 't', matches = '^\\{.*\\}$' }]", &seen).await);
    assert!(!matches("when = [{ result = 't', contains = 'untrusted' }]", &seen).await);

    let cut = user("hi").result("t", format!("{fenced}\n[truncated — 9000 chars total]"));
    assert!(matches(amount, &cut).await);
    assert!(matches("when = [{ result = 't', contains = '[truncated' }]", &cut).await);
}

#[tokio::test]
async fn no_rule_shows_what_was_seen_and_why_each_rule_failed() {
    let script = r#"
[[rule]]
name = "start"
user = 'refund'
text = "x"

[[rule]]
offered = ["read_skill", "refund"]
text = "x"

[[rule]]
not_offered = "read_skill"
text = "x"

[[rule]]
called = "refund"
text = "x"

[[rule]]
not_called = "list_charges"
text = "x"

[[rule]]
tools_allowed = false
text = "x"

[[rule]]
when = [
    { result = "list_charges", is_error = false },
    { result = "list_charges", pointer = "/rows/0/amount", equals = 30.0 },
]
text = "x"

[[rule]]
when = [{ result = "list_charges", pointer = "/rows/1", exists = true }]
text = "x"

[[rule]]
when = [{ result = "refund", contains = "done" }]
text = "x"

[[rule]]
when = [{ result = "read_ticket", is_error = false }]
text = "x"

[[rule]]
user = ["long", '(?P<a>o)(?P<b>o)?', "short"]
text = "x"

[[rule]]
user = '(?P<a>o).*(?P<b>o)'
differ = ["a", "b"]
text = "x"
"#;
    let seen = user(&"long \u{1b}[31m".repeat(60))
        .offering(&["read_skill", "list_charges"])
        .result("list_charges", json!({ "rows": [{ "amount": 25 }] }))
        .error("read_ticket", "there is no such ticket");
    let message = failure(script, &seen).await.replace(&"long \\u{1b}[31m".repeat(20), "LONG");
    insta::assert_snapshot!(message, @r#"
    no rule matches
    seen:
      user: "LONG"…
      step: 3
      offered: read_skill, list_charges
      tools allowed: true
      result of `list_charges`: "{"rows":[{"amount":25}]}"
      result of `read_ticket` (error): "there is no such ticket"
    rules tried:
      rule "start" (line 2): `user`: the pattern is not found in the last user text
      rule 2 (line 7): `offered`: `refund` is not offered
      rule 3 (line 11): `not_offered`: `read_skill` is offered
      rule 4 (line 15): `called`: `refund` has no result since the last user message
      rule 5 (line 19): `not_called`: `list_charges` has a result already
      rule 6 (line 23): `tools_allowed`: it is true
      rule 7 (line 27): `when[1]`: `/rows/0/amount` in the last result of `list_charges` is 25; expected 30.0
      rule 8 (line 34): `when[0]`: `/rows/1` in the last result of `list_charges` is missing; expected something there
      rule 9 (line 38): `when[0]`: `refund` has no result since the last user message
      rule 10 (line 42): `when[0]`: the last result of `read_ticket` is "there is no such ticket"; expected no error
      rule 11 (line 46): `user[2]`: the pattern is not found in the last user text
      rule 12 (line 50): `differ`: `a`, `b` do not contain different texts
    "#);
}

#[tokio::test]
async fn with_nothing_to_see_no_rule_says_so() {
    let mut nothing = user("");
    nothing.messages.clear();
    let message = failure(
        "[[rule]]\nuser = 'x'\ntext = 'y'\n\
         [[rule]]\nwhen = [{ result = '*', is_error = true }]\ntext = 'y'",
        &nothing,
    )
    .await;
    insta::assert_snapshot!(message, @r#"
    no rule matches
    seen:
      user: ""
      step: 1
      offered: nothing
      tools allowed: true
      no results since the last user message
    rules tried:
      rule 1 (line 1): `user`: the pattern is not found in the last user text
      rule 2 (line 4): `when[0]`: no tool's last result since the last user message is an error
    "#);
}
