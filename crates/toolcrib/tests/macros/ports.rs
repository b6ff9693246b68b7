//! Ports that are functions.

use serde_json::json;
use toolcrib::{
    policy::{Approval, call_approver},
    prelude::*,
    secrets::{Secret, SecretError, secrets_fn},
};

/// Pays an amount out, with a key.
#[tool(capabilities(secrets = ["BANK_KEY", "OTHER_KEY"]))]
async fn pay(amount: u32, key: String, cx: ToolContext) -> Result<String, ToolError> {
    let key = cx.secret(&key).await?;
    Ok(format!("{amount} paid with a key of {} characters", key.expose().len()))
}

#[tokio::test]
async fn async_approvers_and_secret_functions_serve_a_call() {
    let approver = call_approver(|call| {
        let amount = call.args["amount"].as_u64();
        async move {
            tokio::task::yield_now().await;
            match amount.unwrap() {
                ..100 => Approval::Approved,
                100 => panic!("a bug"),
                _ => Approval::Refused("that is too much".into()),
            }
        }
    });
    let secrets = secrets_fn(|name| match name {
        "BANK_KEY" => Ok(Secret::new("0123456789")),
        _ => Err(SecretError::Unknown { name: name.into() }),
    });
    let engine = Engine::builder()
        .tool(pay_tool())
        .policy(Policy::of([Rule::ask("money").tools(["pay"])]))
        .approver(approver)
        .secrets(secrets)
        .build()
        .unwrap();
    let mut turn = engine.turn(TurnOptions::default()).unwrap();
    let mut iteration = turn.iteration().await.unwrap();
    let calls = [(50, "BANK_KEY"), (50, "OTHER_KEY"), (100, "BANK_KEY"), (150, "BANK_KEY")]
        .map(|(amount, key)| ToolCall::new("c", "pay", json!({ "amount": amount, "key": key })));
    let results = iteration.execute(calls.into()).await;
    assert_eq!(&*results[0].text, "50 paid with a key of 10 characters");
    let codes: Vec<_> = results.iter().map(|result| result.code).collect();
    let denied = Some(ErrorCode::Denied);
    assert_eq!(codes, [None, Some(ErrorCode::NotAvailable), denied, denied]);
    assert!(results[3].text.contains("that is too much"), "{}", results[3].text);
}
