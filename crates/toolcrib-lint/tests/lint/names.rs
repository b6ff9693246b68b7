//! Names that are duplicate, refused or confusable.

use toolcrib_lint::{LintTool, Linter};

use crate::support::{found_with, named};

/// The findings about names: tools with similar names also have similar descriptions here.
fn found(tools: &[LintTool]) -> String {
    found_with(&Linter::new().allow("confusable-description").unwrap(), tools)
}

#[test]
fn a_name_that_stands_twice() {
    let mut second = named("refund");
    second.description =
        "Gives the money back that a customer paid; only for a whole order.".into();
    let tools = [named("refund"), second.clone()];
    insta::assert_snapshot!(found(&tools), @r#"
    error[duplicate-name] `refund` is the name of two tools: entry 1 and entry 2
      help: rename one of them, or remove it
    "#);
    let at = |tool: LintTool, origin: &str| LintTool { origin: Some(origin.into()), ..tool };
    let tools = [at(named("refund"), "toolcrib.toml:3"), at(second, "mcp:shop")];
    insta::assert_snapshot!(found(&tools), @r#"
    error[duplicate-name] `refund` is the name of two tools: in toolcrib.toml:3 and again in mcp:shop
      help: rename one of them, or remove it
    "#);
}

#[test]
fn names_that_model_apis_refuse() {
    let tools = [named("look up"), named(""), named(&"x".repeat(65)), named("réfund")];
    insta::assert_snapshot!(found(&tools), @r#"
    error[invalid-name] `look up` is not a name that model APIs accept: it has the character " "
      help: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`; one bad name makes them refuse the whole request
    error[invalid-name] `` is not a name that model APIs accept: it is empty
      help: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`; one bad name makes them refuse the whole request
    error[invalid-name] `xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx` is not a name that model APIs accept: it has 65 characters
      help: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`; one bad name makes them refuse the whole request
    error[invalid-name] `réfund` is not a name that model APIs accept: it has the character "é"
      help: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`; one bad name makes them refuse the whole request
    "#);
}

#[test]
fn names_that_are_mixed_up() {
    for (one, other) in [
        ("get_user", "getUser"),
        ("get_user", "Get-User"),
        ("list_charges", "list_changes"),
        ("read_file", "read_files"),
        ("list_query", "list_queries"),
        ("create_issue", "issue_create"),
        ("calender_add", "calendar_add"),
        ("mcp__shop__refunds", "mcp__shops__refunds"),
    ] {
        let found = found(&[named(one), named(other)]);
        assert!(found.starts_with("warning[confusable-name] "), "{one} {other}: {found}");
    }
    insta::assert_snapshot!(
        found(&[
            named("list_charges"),
            named("list_changes"),
            named("listCharges"),
            named("charges_list"),
            named("list_charge"),
        ]),
        @r"
    warning[confusable-name] `list_changes` is easily mixed up with `list_charges`: `changes` and `charges` differ in one character
      help: give one of them a distinct name, from its action or its object
    warning[confusable-name] `listCharges` is easily mixed up with `list_charges`: they differ in case, in signs, or in letters that look alike
      help: give one of them a distinct name, from its action or its object
    warning[confusable-name] `charges_list` is easily mixed up with `list_charges`: they are the same words in another order
      help: give one of them a distinct name, from its action or its object
    warning[cannot-be-found] `charges_list` cannot be found by its first sentence without the words of its name: it ranks 4th, after `list_charges`, `list_changes`, `listCharges`
      help: say in the first sentence what only this tool does, and in those of the others what only they do
    warning[confusable-name] `list_charge` is easily mixed up with `list_charges`: they differ in a plural
      help: give one of them a distinct name, from its action or its object
    warning[cannot-be-found] `list_charge` cannot be found by its first sentence without the words of its name: it ranks 5th, after `list_charges`, `list_changes`, `listCharges`
      help: say in the first sentence what only this tool does, and in those of the others what only they do
    "
    );
    // Cyrillic letters: an invalid name, and a look-alike of another.
    insta::assert_snapshot!(found(&[named("read_file"), named("rеаd_filе")]), @r#"
    error[invalid-name] `rеаd_filе` is not a name that model APIs accept: it has the character "е"
      help: use 1 to 64 of the characters a-z, A-Z, 0-9, `_` and `-`; one bad name makes them refuse the whole request
    warning[confusable-name] `rеаd_filе` is easily mixed up with `read_file`: they differ in case, in signs, or in letters that look alike
      help: give one of them a distinct name, from its action or its object
    "#);
}

#[test]
fn names_that_are_told_apart() {
    for (one, other) in [
        ("get_order", "set_order"),
        ("read_file", "write_file"),
        ("open_ticket", "close_ticket"),
        ("git_add", "git_log"),
        ("subscribe", "unsubscribe"),
        ("list_charges", "list_refunds"),
        ("v1", "v2"),
    ] {
        assert_eq!(found(&[named(one), named(other)]), "", "{one} {other}");
    }
}
