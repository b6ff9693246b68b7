//! The scripts in the format's reference behave as the page says.

use serde_json::json;
use toolcrib_core::{Arguments, ModelResponse, fence};

use crate::{Conversation, model, try_ask, user};

fn scripts() -> Vec<&'static str> {
    let page = include_str!("../../../../docs/models.md");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.filter(|block| block.contains("[[rule]]")).collect()
}

/// The full example's answer: its text and its calls.
async fn ask(conversation: &Conversation) -> String {
    let example = model(scripts().last().unwrap());
    let ModelResponse { text, calls, .. } = try_ask(&example, conversation).await.unwrap();
    let calls = calls.iter().map(|call| match &call.arguments {
        Arguments::Json(args) => format!("{}{args}", call.name),
        Arguments::Text(text) => panic!("unparsed: {text}"),
    });
    [text].into_iter().chain(calls).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_scripts_load() {
    assert_eq!(scripts().into_iter().map(model).count(), 2);
}

#[tokio::test(start_paused = true)]
async fn the_full_example_refunds_one_of_two_equal_charges() {
    let start =
        user("I was charged twice for order #7, please refund one").offering(&["read_skill"]);
    assert_eq!(ask(&start).await, r#"read_skill{"id":"billing"}"#);

    let active = start.result("read_skill", "Look the charges up.").offering(&[
        "read_skill",
        "list_charges",
        "refund_charge",
    ]);
    assert_eq!(ask(&active).await, r#"list_charges{"order_id":7}"#);

    let charges = json!({ "rows": [{ "id": 1, "cents": 2500 }, { "id": 2, "cents": 2500 }] });
    let looked_up =
        active.clone().result("list_charges", fence("list_charges", &charges.to_string()));
    assert_eq!(
        ask(&looked_up).await,
        r#"There are 2 charges. I ask for a refund of one. refund_charge{"order_id":7}"#
    );
    assert_eq!(
        ask(&looked_up.clone().offering(&["list_charges"])).await,
        "Order 7 has 2 charges, 50.00 in all. I may not refund them."
    );
    assert_eq!(ask(&looked_up.clone().wrapping_up()).await, "I could not finish this in time.");

    let refunded = json!({ "rows": [{ "charge_id": 2, "cents": 2500 }] });
    assert_eq!(
        ask(&looked_up.clone().result("refund_charge", refunded)).await,
        "I refunded 25.00 for order 7 (charge 2)."
    );
    let refused = json!({ "rows": [], "note": "It was refunded before." });
    assert_eq!(
        ask(&looked_up.clone().result("refund_charge", refused)).await,
        "Nothing was refunded: It was refunded before."
    );
    assert_eq!(
        ask(&looked_up.error("refund_charge", "the database is locked")).await,
        "The refund failed: the database is locked"
    );
    assert_eq!(
        ask(&active.error("list_charges", "no database")).await,
        "I could not look that up: no database"
    );
    assert_eq!(ask(&user("hello")).await, "I can help with double charges. Which order is it?");
}
