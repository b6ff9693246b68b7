//! What a decision permits, and for how long.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc, thread, time::Duration};

use serde_json::json;
use toolcrib_approvals::{ApprovalError, ApprovalKeys, GrantScope};
use toolcrib_core::{Approver as _, ErrorCode, StoredArguments};

use crate::setup::{Made, Setup, payment};

#[tokio::test]
async fn an_approval_counts_once_and_a_denial_gives_its_reason() {
    let setup = Setup::new();
    let id = setup.parked(&payment(5)).await;
    let again = setup.make(&payment(5)).await;
    assert_eq!(again.code, Some(ErrorCode::AwaitingApproval));
    assert_eq!(setup.open(), id, "a repetition waits for the same decision");
    assert!(again.value.contains(&format!("toolcrib approve {id}")), "{}", again.value);

    setup.approvals.approve(&id).unwrap();
    let key = setup.config().join("key");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(setup.make(&payment(5)).await.is_ok());
    assert_eq!(setup.make(&payment(5)).await.code, Some(ErrorCode::AwaitingApproval));
    assert_eq!(setup.paid(), 1);

    let second = setup.open();
    assert_ne!(second, id);
    setup.approvals.deny(&second, Some("not today".into())).unwrap();
    let denied = setup.make(&payment(5)).await;
    assert_eq!(denied.code, Some(ErrorCode::Denied));
    assert!(denied.value.contains("not today"), "{}", denied.value);
    assert_eq!(setup.paid(), 1);
    let states: Vec<_> =
        setup.approvals.list(true).unwrap().into_iter().map(|one| one.state).collect();
    assert_eq!(states.iter().map(|state| &**state).collect::<Vec<_>>(), ["used", "denied"]);
}

#[tokio::test]
async fn the_arguments_are_deleted_with_the_decision() {
    let setup = Setup::new();
    let made = Made { args: json!({ "note": "very private words" }), ..payment(1) };
    let holds = |setup: &Setup| {
        let files = fs::read_dir(setup.folder.path()).unwrap().flatten();
        let names =
            files.filter(|one| one.file_name().to_string_lossy().starts_with("sessions.db"));
        let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
        setup.file().query_row(checkpoint, [], |_| Ok(())).unwrap();
        let mut all = names.map(|one| fs::read(one.path()).unwrap());
        all.any(|bytes| bytes.windows(18).any(|part| part == b"very private words"))
    };
    let id = setup.parked(&made).await;
    assert!(holds(&setup));
    setup.approvals.deny(&id, None).unwrap();
    assert!(!holds(&setup));
    setup.make(&made).await;
    let id = setup.parked(&made).await;
    setup.approvals.approve(&id).unwrap();
    assert!(setup.make(&made).await.is_ok() && !holds(&setup));
}

#[tokio::test]
async fn secrets_are_references_and_others_cannot_wait() {
    let setup = Setup::new();
    let secret = Made { args: json!({ "auth": "Bearer s3cr3t-value" }), ..payment(1) };
    let made = Made { session: Some(setup.session()), ..secret };
    let id = setup.parked(&made).await;
    let arguments = setup.approvals.get(&id).unwrap().stored.call.arguments.unwrap();
    assert_eq!(arguments.value, json!({ "auth": "Bearer secret:token" }));
    let approver = setup.approvals.approver(made.session.clone());
    let parked = approver.parked(&Arc::from("call_1")).await;
    assert_eq!(parked, Some(arguments));
    assert_eq!(approver.parked(&Arc::from("call_2")).await, None);
    setup.approvals.approve(&id).unwrap();
    assert!(setup.make(&made).await.is_ok());

    let unnamed = Made { args: json!({ "auth": "unnamed-secret" }), ..payment(1) };
    let refused = setup.make(&unnamed).await;
    assert_eq!(refused.code, Some(ErrorCode::Denied));
    assert!(refused.value.contains("contain a secret"), "{}", refused.value);
    assert!(!refused.cause.unwrap().contains("unnamed-secret"));
    let written = Made { args: json!({ "auth": "Bearer secret:token" }), ..made };
    let parked = setup.parked(&written).await;
    let arguments = setup.approvals.get(&parked).unwrap().stored.call.arguments.unwrap();
    assert_eq!(arguments, StoredArguments::new(written.args, Vec::new()), "a text of the model");
}

#[tokio::test]
async fn a_grant_covers_calls_like_one_until_it_ends_or_is_revoked() {
    let setup = Setup::new();
    let id = setup.parked(&payment(50)).await;
    let stored = setup.approvals.get(&id).unwrap().stored.call.arguments.unwrap();
    let scope = |condition: &str| {
        GrantScope::new(&stored.value, vec![condition.to_owned()], false).unwrap()
    };
    let small = setup.approvals.grant(&id, &scope("amount<50"), Duration::from_secs(60));
    assert!(matches!(small, Err(ApprovalError::NotCovered { .. })));
    let hour = Duration::from_secs(3_600);
    let (_, grant) = setup.approvals.grant(&id, &scope("amount<=50"), hour).unwrap();
    for amount in [50, 49, 1] {
        assert!(setup.make(&payment(amount)).await.is_ok());
    }
    assert_eq!(setup.approvals.grants().unwrap(), std::slice::from_ref(&grant));
    let others = [
        payment(51),
        Made { args: json!({ "amount": 1, "to": "eve" }), ..payment(1) },
        Made { tool: "refund", ..payment(1) },
        Made { principal: Some("bob"), ..payment(1) },
        Made { tenant: Some("acme"), ..payment(1) },
        Made { args: json!({ "amount": 1, "to": "ben", "bcc": "eve" }), ..payment(1) },
    ];
    for other in &others {
        assert_eq!(setup.make(other).await.code, Some(ErrorCode::AwaitingApproval), "{other:?}");
    }
    // The call itself was approved too, and that was used by the first.
    assert_eq!(setup.paid(), 3);
    setup.approvals.revoke(&grant.id).unwrap();
    assert_eq!(setup.make(&payment(1)).await.code, Some(ErrorCode::AwaitingApproval));
    assert!(
        setup.approvals.grants().unwrap().is_empty() && setup.approvals.revoke(&grant.id).is_err()
    );
}

#[tokio::test]
async fn what_waits_too_long_expires_and_too_much_does_not_wait() {
    let setup = Setup::new();
    let at_once = setup.expiring(Duration::ZERO);
    assert_eq!(
        setup.make_with(&payment(1), &at_once).await.code,
        Some(ErrorCode::AwaitingApproval)
    );
    let listed = setup.approvals.list(false).unwrap();
    assert_eq!(&*listed[0].state, "expired");
    let late = setup.approvals.approve(&listed[0].stored.id);
    assert!(matches!(late, Err(ApprovalError::Expired { .. })), "{late:?}");

    let large = Made { args: json!({ "note": "x".repeat(300_000) }), ..payment(1) };
    let refused = setup.make(&large).await;
    assert_eq!(refused.code, Some(ErrorCode::Denied));
    assert!(refused.value.contains("too large"), "{}", refused.value);
}

#[tokio::test]
async fn a_key_that_others_can_read_settles_nothing() {
    let setup = Setup::new();
    let id = setup.parked(&payment(1)).await;
    setup.approvals.approve(&id).unwrap();
    let key = setup.config().join("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o640)).unwrap();
    let refused = setup.make(&payment(1)).await;
    assert_eq!(refused.code, Some(ErrorCode::Denied));
    assert!(refused.cause.unwrap().contains("other users have access to it"));
    assert!(setup.approvals.approve(&id).is_err());
    assert_eq!(setup.paid(), 0);
}

/// Each thread once removed the draft of another, and its caller could not decide.
#[test]
fn threads_that_create_the_key_at_the_same_time_all_get_it() {
    let folder = tempfile::tempdir().unwrap();
    for round in 0..20 {
        let keys = ApprovalKeys::new(Some(folder.path().join(round.to_string())));
        thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(|| keys.read_or_create())).collect();
            for thread in threads {
                thread.join().unwrap().unwrap();
            }
        });
        let files = fs::read_dir(keys.folder().unwrap()).unwrap();
        assert_eq!(files.count(), 1, "no draft is left");
    }
}
