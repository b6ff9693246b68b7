//! A hook whose answer two readers of JSON understood differently.

use crate::hooks::{call, code, folder};

#[test]
fn an_answer_with_two_decisions_was_the_last_one() {
    for answer in [
        r#"{"decision":"deny","reason":"no","decision":"allow"}"#,
        r#"{"decision":"deny","decisio\u006e":"allow"}"#,
        r#"{"decision":"allow","decision":"allow"}"#,
        r#"{"decision":"deny","decision":"rewrite","args":{"text":"a"}}"#,
        r#"{"decision":"rewrite","args":{"text":"a","text":"b"}}"#,
        r#"{"decision":"rewrite","args":{"text":"a"},"args":{"text":"b"}}"#,
        r#"{"decision":"rewrite","args":{"$serde_json::private::RawValue":"{}"}}"#,
        r#"{"decision":"allow"} {"decision":"deny"}"#,
        r#"[{"decision":"allow"}]"#,
    ] {
        let folder = folder(&format!("cat <<'END'\n{answer}\nEND"), "");
        let ran = call(&folder, "say");
        assert_eq!(code(&ran), "denied", "{answer}");
        let cause = ran.result.cause.unwrap_or_default();
        assert!(cause.contains("is not a decision such as"), "{answer}: {cause}");
    }
}
