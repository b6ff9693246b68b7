//! The support desk does its job, on data that it has not seen.

use std::{sync::Barrier, thread};

use rusqlite::params;
use serde_json::Value;

use crate::support::Project;

fn ask(order: u32) -> String {
    format!("I was charged twice for order {order}, please refund one charge")
}

fn euro(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

/// The database's rows of an order: its charges, oldest first, and its refunds.
fn amounts(desk: &Project, table: &str, order: u32) -> Vec<i64> {
    desk.database()
        .prepare(&format!("SELECT amount_cents FROM {table} WHERE order_id = ?1 ORDER BY rowid"))
        .unwrap()
        .query_map(params![order], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Every kind of order in the data, found by its rows and not by its number.
#[test]
fn each_kind_of_order_gets_the_answer_of_its_data() {
    let desk = Project::desk();
    assert_eq!(desk.toolcrib(&["call", "list_charges", "order_id=1001"]).code, Some(0));
    let mut kinds = std::collections::BTreeMap::<&str, u32>::new();
    for order in 1001..1061 {
        let charged = amounts(&desk, "charges", order);
        let refunded = amounts(&desk, "refunds", order);
        let repeated = charged.iter().any(|a| charged.iter().filter(|b| a == *b).count() > 1);
        let (kind, due, said) = match (charged.len(), refunded.as_slice(), repeated) {
            (_, [_, ..], _) => ("refunded", 0, "already refunded"),
            (0, ..) => ("no charge", 0, "has not been charged"),
            (1, ..) => ("one charge", 0, "only once"),
            (2, _, false) => ("two different", 0, "different amounts"),
            (_, _, false) => ("more, all different", 0, "different amounts"),
            (2, ..) => ("two equal", 1, "I have refunded one charge"),
            _ => ("three, some equal", 1, "I have refunded one charge"),
        };
        if *kinds.entry(kind).and_modify(|n| *n += 1).or_insert(1) > 2 {
            continue;
        }
        let (code, run) = desk.json(&["run", &ask(order)]);
        let answer = run["answer"].as_str().unwrap_or_default();
        assert_eq!(code, Some(0), "{run}");
        assert!(answer.contains(said), "order {order} ({kind}): {answer}");
        for amount in charged.iter().chain(&refunded) {
            assert!(answer.contains(&euro(*amount)), "order {order} ({kind}): {answer}");
        }
        let now = amounts(&desk, "refunds", order);
        assert_eq!(now.len(), refunded.len() + due, "order {order} ({kind})");
        assert!(now.iter().all(|amount| charged.contains(amount)));
    }
    assert_eq!(kinds.len(), 7, "{kinds:?}");

    for order in [999, 1000, 1601, 999_999_999] {
        let (_, run) = desk.json(&["run", &ask(order)]);
        let answer = run["answer"].as_str().unwrap();
        assert!(answer.contains("There is no order"), "{answer}");
    }
}

#[test]
fn other_words_for_the_same_wish_work_too() {
    for words in [
        "i was charged TWICE for order #1052 please refund one charge",
        "Double charge on order 1052. Refund one, please.",
        "I was billed two times for order number 1052, please give one charge back",
        "Order 1052 was charged twice. Please refund one charge of order #1052.",
    ] {
        let desk = Project::desk();
        let outcome = desk.toolcrib(&["run", words]);
        assert!(
            outcome.stdout.contains("I have refunded one charge"),
            "{words}: {}",
            outcome.stdout
        );
        assert_eq!(desk.refunds(1052), 1);
    }
}

#[test]
fn a_message_with_two_orders_changes_neither() {
    let desk = Project::desk();
    for words in [
        "Order 1052 and order 1042 were charged twice, refund one charge each",
        "Order 1052 was charged twice, so refund order 1052 and then order 1042",
        "Order 1052 was charged twice, refund order 1042 and not order 1052",
    ] {
        let outcome = desk.toolcrib(&["run", words]);
        assert!(
            outcome.stdout.contains("You name order 1052 and then 1042"),
            "{words}: {}",
            outcome.stdout
        );
        assert_eq!(desk.refunds(1052) + desk.refunds(1042), 0, "{words}");
    }
}

#[test]
fn two_runs_at_the_same_moment_refund_once() {
    for order in [1042, 1046, 1052] {
        let desk = Project::desk();
        let start = Barrier::new(4);
        let answers: Vec<Value> = thread::scope(|scope| {
            let runs: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        start.wait();
                        desk.json(&["run", &ask(order)]).1
                    })
                })
                .collect();
            runs.into_iter().map(|run| run.join().unwrap()).collect()
        });
        assert_eq!(desk.refunds(order), 1, "{answers:#?}");
        let refunded = |run: &&Value| {
            run["answer"].as_str().is_some_and(|a| a.contains("I have refunded one charge"))
        };
        assert_eq!(answers.iter().filter(refunded).count(), 1, "{answers:#?}");
    }
}

#[test]
fn an_intern_is_offered_no_write_tool() {
    let desk = Project::desk();
    for skill in [None, Some("billing"), Some("shipping"), Some("account")] {
        let mut args = vec!["menu", "--as", "intern"];
        args.extend(skill.into_iter().flat_map(|skill| ["--skill", skill]));
        let (_, menu) = desk.json(&args);
        for tool in menu["offered"].as_array().unwrap() {
            assert_eq!(tool["annotations"]["read_only"], true, "{tool}");
        }
    }
    let (_, run) = desk.json(&["run", "--as", "intern", &ask(1042)]);
    assert_eq!(desk.refunds(1042), 0);
    assert!(run["answer"].as_str().unwrap().contains("may not"), "{run}");
    let (code, call) = desk.json(&[
        "call",
        "refund_duplicate_charge",
        "order_id=1042",
        "--skill",
        "billing",
        "--as",
        "intern",
    ]);
    assert_eq!((code, &call["code"]), (Some(1), &"not_available".into()));
    assert!(call["cause"].as_str().unwrap().contains("policy rule 1"));
    assert_eq!(desk.refunds(1042), 0);
}

#[test]
fn hostile_tickets_are_data() {
    let desk = Project::desk();
    for ticket in 1..=14 {
        let id = format!("ticket_id={ticket}");
        let (code, call) = desk.json(&["call", "read_ticket", &id]);
        assert_eq!(code, Some(0), "{call}");
        assert_eq!(call["untrusted"], true);
        let value = call["value"].as_str().unwrap();
        for token in ["<|", "|>", "</untrusted", "<untrusted", "[INST]", "<<SYS>>"] {
            assert!(!value.contains(token), "{token} in {value}");
        }
        let message = format!("show ticket {ticket}");
        let (_, run) = desk.json(&["run", &message]);
        assert_eq!(run["stopped"], "answered", "{run}");
    }
    let refunds: u32 =
        desk.database().query_row("SELECT count(*) FROM refunds", [], |row| row.get(0)).unwrap();
    let (_, fresh) = desk.json(&["run", "--fresh", "hello"]);
    assert_eq!(fresh["stopped"], "answered");
    let seeded: u32 =
        desk.database().query_row("SELECT count(*) FROM refunds", [], |row| row.get(0)).unwrap();
    assert_eq!(refunds, seeded, "a ticket's text caused a refund");
}

#[test]
fn the_data_of_the_desk_matches_its_story() {
    let desk = Project::desk();
    desk.toolcrib(&["call", "list_charges", "order_id=1001"]);
    let (orders, first): (u32, u32) = desk
        .database()
        .query_row("SELECT count(*), min(id) FROM orders", [], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap();
    assert!(orders >= 500 && first == 1001, "{orders} orders from {first}");
    let (_, check) = desk.json(&["check"]);
    assert_eq!(check["tools"].as_array().unwrap().len(), 25);
    let script = std::fs::read_to_string(desk.path().join("script.toml")).unwrap();
    let tools = std::fs::read_to_string(desk.path().join("toolcrib.toml")).unwrap();
    let number = regex::Regex::new(r"[0-9]+").unwrap();
    for text in [script, tools] {
        let is_order = |found: regex::Match<'_>| {
            found.as_str().parse::<u32>().is_ok_and(|n| (1001..=1000 + orders).contains(&n))
        };
        assert!(!number.find_iter(&text).any(is_order), "an order number is hard-coded");
    }
}
