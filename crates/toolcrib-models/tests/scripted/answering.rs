//! A rule's answer.

use std::{sync::Arc, time::Duration};

use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};
use toolcrib_core::{
    Arguments, Message, Model as _, ModelChunk, ModelErrorClass, ToolCall, Usage, fence,
};

use crate::{Conversation, chunks, failure, model, text, try_ask, user};

/// The arguments of the only call of a script's only rule.
async fn args(rule: &str, conversation: &Conversation) -> Value {
    let response = try_ask(&model(&format!("[[rule]]\n{rule}")), conversation).await.unwrap();
    match &response.calls[0].arguments {
        Arguments::Json(args) => args.clone(),
        Arguments::Text(text) => panic!("unparsed: {text}"),
    }
}

#[tokio::test]
async fn captures_and_results_can_be_used_in_the_text() {
    let script = r#"
        [[rule]]
        user = 'order #?(?P<order>\d+)(?P<urgent>!)?'
        called = "list_charges"
        text = """
{% set rows = results.list_charges.rows %}
Order {{ order }}{% if urgent is defined %} (urgent){% endif %}: {{ rows | length }} charges, \
{{ rows | map(attribute="cents") | sum | money }} in all.
{% for row in rows | selectattr("id", "gt", 1) %}
- {{ row.id }}: {{ row.cents | money }}
{% endfor %}
{{ result_texts.note }} / {{ results.note | upper }} / {{ errors.note }} / {{ user }}
"""
    "#;
    let rows = json!({ "rows": [{ "id": 1, "cents": 2500 }, { "id": 2, "cents": 1205 }] });
    let seen = user("order #1042")
        .result("list_charges", fence("list_charges", &rows.to_string()))
        .error("note", "broken");
    assert_eq!(
        text(script, &seen).await,
        "Order 1042: 2 charges, 37.05 in all.\n- 2: 12.05\nbroken / BROKEN / True / order #1042\n"
    );
}

#[tokio::test]
async fn the_first_error_in_the_order_of_the_calls_has_variables_of_its_own() {
    let script = "[[rule]]\ntext = '{% if error is defined %}{{ error_tool }}: {{ error }}\
                  {% else %}fine{% endif %}'";
    let seen = user("hi").result("a", 1);
    assert_eq!(text(script, &seen).await, "fine");
    let seen = seen.error("b", &fence("b", "first")).error("c", "second");
    assert_eq!(text(script, &seen).await, "b: first");
    // The position of each tool's last result decides.
    let seen = seen.error("b", "third");
    assert_eq!(text(script, &seen).await, "c: second");
    let seen = seen.result("c", 2);
    assert_eq!(text(script, &seen).await, "b: third");
    assert_eq!(text(script, &seen.then("again")).await, "fine");
}

#[tokio::test]
async fn a_lone_expression_in_args_keeps_its_type() {
    let rule = r#"
        user = '(?P<order>\d+)'
        [[rule.calls]]
        tool = "t"
        [rule.calls.args]
        zebra = "{{ order | int }}"
        text = "{{ order }}"
        two = "{{ order }}{{ order }}"
        spaced = " {{ order | int }}"
        trimmed = "{{- order | int -}}"
        rows = "{{ results.list.rows }}"
        nested = { list = ["{{ results.list.rows[0].ok }}", 1, 2.5, false], none = "{{ none }}" }
        map = "{{ {'a': [order | float, -1]} }}"
        plain = "no template"
        empty = ""
    "#;
    let seen = user("order 7").offering(&["t"]).result("list", r#"{"rows":[{"z":1,"ok":true}]}"#);
    // As text, because the order of the keys is that of the script.
    assert_eq!(
        args(rule, &seen).await.to_string(),
        json!({
            "zebra": 7,
            "text": "7",
            "two": "77",
            "spaced": " 7",
            "trimmed": 7,
            "rows": [{ "z": 1, "ok": true }],
            "nested": { "list": [true, 1, 2.5, false], "none": null },
            "map": { "a": [7.0, -1] },
            "plain": "no template",
            "empty": "",
        })
        .to_string()
    );
}

#[tokio::test]
async fn absent_args_are_an_empty_object_and_raw_text_stays_unparsed() {
    let script = r#"
        [[rule]]
        calls = [{ tool = "t" }, { tool = "t", raw = '{"order": {{ user }}, ' }]
    "#;
    let response = try_ask(&model(script), &user("7").offering(&["t"])).await.unwrap();
    assert_eq!(
        response.calls,
        [
            ToolCall::new("call_1", "t", json!({})),
            ToolCall::unparsed("call_2", "t", r#"{"order": 7, "#)
        ]
    );
}

#[tokio::test]
async fn ids_count_all_calls_of_the_conversation() {
    let script = "[[rule]]\ntext = 'both'\ncalls = [{ tool = 't' }, { tool = 'u' }]";
    let mut seen = user("hi").offering(&["t", "u"]).result("t", 1).then("again").result("u", 2);
    seen.messages.push(Message::assistant("done", []));
    let response = try_ask(&model(script), &seen).await.unwrap();
    let ids: Vec<_> = response.calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids, ["call_3", "call_4"]);
    assert_eq!(response.text, "both");
}

#[tokio::test]
async fn a_tool_that_is_not_offered_is_called_only_by_a_rule_that_says_so() {
    let call = |more: &str| {
        format!("[[rule]]\nname = 'pay back'\ncalls = [{{ tool = 'Refund_Charge'{more} }}]")
    };
    let seen = user("hi").offering(&["list_charges", "refund_charge"]);
    insta::assert_snapshot!(failure(&call(""), &seen).await, @r#"rule "pay back" (line 1): it calls `Refund_Charge`, which is not offered; offered: list_charges, refund_charge; did you mean `refund_charge`? (to call it all the same, set `even_if_not_offered = true`)"#);
    let nothing = failure(&call(""), &user("hi")).await;
    assert!(nothing.contains("offered: nothing ("), "{nothing}");

    let hallucinating = call(", even_if_not_offered = true");
    let response = try_ask(&model(&hallucinating), &seen).await.unwrap();
    assert_eq!(&*response.calls[0].name, "Refund_Charge");
}

#[tokio::test]
async fn a_failing_template_is_named_with_its_rule_and_field() {
    let seen = user("hi").offering(&["t"]).result("list", r#"{"rows":[]}"#);
    for (rule, expected) in [
        ("text = '{{ results.list.rows[0].id }}'", "`text`: `results.list.rows[0]` is undefined"),
        ("text = '{{ results.refund }}'", "`text`: `results.refund` is undefined"),
        ("text = '{{ errors.refund }}'", "`text`: `errors.refund` is undefined"),
        ("user = '(?P<n>x)?'\ntext = '{{ n }}'", "`text`: `n` is undefined"),
        ("text = '{{ error }}'", "`text`: `error` is undefined"),
        ("text = '{{ user | nope }}'", "`text`: filter nope is unknown"),
        ("text = '{{ user | money }}'", "`text`: cannot convert"),
        (
            "text = \"one\\n{{ results.list.nope }}\"",
            "`text`: `results.list.nope` is undefined (line 2 of the template)",
        ),
        (
            "calls = [{ tool = 't', args = { a = { b = [1, '{{ results.list.nope }}'] } } }]",
            "`calls[0].args.a.b[1]`: the value is undefined",
        ),
        (
            "calls = [{ tool = 't', args = { a = '{{ [results.list.nope] }}' } }]",
            "`calls[0].args.a`: the value is undefined",
        ),
        (
            "calls = [{ tool = 't', args = { a = '{{ 1e308 * 10 }}' } }]",
            "`calls[0].args.a`: the number is not finite",
        ),
        (
            "calls = [{ tool = 't', args = { a = '{{ 10 ** 30 }}' } }]",
            "`calls[0].args.a`: number out of range",
        ),
        ("calls = [{ tool = 't', raw = '{{ errors.x }}' }]", "`calls[0].raw`: `errors.x` is"),
    ] {
        let error = try_ask(&model(&format!("[[rule]]\n{rule}")), &seen).await.unwrap_err();
        assert_eq!(error.class, ModelErrorClass::NoRule);
        let expected = format!("rule 1 (line 1): {expected}");
        assert!(error.message.starts_with(&expected), "{} <> {expected}", error.message);
    }
}

#[tokio::test]
async fn a_template_cannot_run_forever() {
    let loops = "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}";
    let message = failure(&format!("[[rule]]\ntext = '{loops}'"), &user("hi")).await;
    assert!(message.ends_with("`text`: the template takes more than 50000 steps"), "{message}");
}

#[tokio::test]
async fn the_text_streams_in_pieces_that_make_up_the_whole() {
    let script = "[[rule]]\ntext = 'I refunded one charge of 25.00 for order {{ user }}.'";
    let mut chunks = chunks(&model(script), &user("1042")).await;
    let Some(Ok(ModelChunk::Done(response))) = chunks.pop() else { panic!("no end") };
    let pieces: Vec<_> = chunks
        .into_iter()
        .map(|chunk| match chunk {
            Ok(ModelChunk::Text(text)) => text,
            other => panic!("{other:?}"),
        })
        .collect();
    assert!(pieces.len() > 1, "{pieces:?}");
    assert_eq!(pieces.concat(), response.text);
    assert_eq!(response.text, "I refunded one charge of 25.00 for order 1042.");
}

#[tokio::test]
async fn a_rule_with_calls_alone_streams_no_text() {
    let script = "[[rule]]\ncalls = [{ tool = 't' }]";
    let chunks = chunks(&model(script), &user("hi").offering(&["t"])).await;
    assert!(matches!(chunks.as_slice(), [Ok(ModelChunk::Done(_))]), "{chunks:?}");
}

#[tokio::test]
async fn usage_is_what_the_rule_states_and_otherwise_estimated() {
    let seen = user("four");
    let stated = "usage = { input_tokens = 10, cached_input_tokens = 4, cache_write_tokens = 3, output_tokens = 5, \
                  cost_usd = 0.25 }";
    let usage = |more: &str| {
        let model = model(&format!("[[rule]]\ntext = '12345'\n{more}"));
        let seen = seen.clone();
        async move { try_ask(&model, &seen).await.unwrap().usage }
    };
    assert_eq!(
        usage(stated).await,
        Usage {
            input_tokens: 10,
            cached_input_tokens: 4,
            cache_write_tokens: 3,
            output_tokens: 5,
            cost_usd: Some(0.25)
        }
    );
    // 15 of the system text, 2 of the empty tool block, 4 of the message; 5 of the answer.
    let estimated = Usage { input_tokens: 6, output_tokens: 2, ..Usage::NOTHING };
    assert_eq!(usage("").await, estimated);
    assert_eq!(usage("usage = { cost_usd = 1 }").await, Usage { cost_usd: Some(1.0), ..estimated });
}

#[tokio::test(start_paused = true)]
async fn a_delay_is_waited_and_ends_when_the_stream_is_dropped() {
    let model = model("[[rule]]\ndelay_ms = 5000\ntext = 'late'");
    let start = Instant::now();
    assert_eq!(try_ask(&model, &user("hi")).await.unwrap().text, "late");
    assert_eq!(start.elapsed(), Duration::from_secs(5));

    let mut stream = Arc::clone(&model).respond(user("hi").request());
    assert!(timeout(Duration::from_secs(1), stream.next()).await.is_err());
    assert_eq!(Arc::strong_count(&model), 2);
    drop(stream);
    assert_eq!(Arc::strong_count(&model), 1);
}

#[tokio::test]
async fn the_same_conversation_gives_the_same_answer() {
    let model = model("[[rule]]\ntext = '{{ results }}'\ncalls = [{ tool = 't' }]");
    let seen = user("hi").offering(&["t"]).result("b", json!({ "z": 1, "a": 2 })).result("a", 1);
    let first = try_ask(&model, &seen).await.unwrap();
    assert_eq!(first.text, "{'b': {'z': 1, 'a': 2}, 'a': 1}");
    assert_eq!(try_ask(&model, &seen).await.unwrap(), first);
}
