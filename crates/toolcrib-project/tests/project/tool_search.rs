//! `[tool_search]` and `defer`: the tools that a model searches.

use toolcrib_engine::{Iteration, TurnOptions};

use crate::folder::{DATABASE, Folder, block_on};

/// Tools named `a`, `b` and `c`, of the toolsets `ta`, `tb` and `tc`.
fn tools(of_b: &str) -> String {
    let tool = |name: &str, more: &str| {
        format!(
            "[[tool]]\nkind = \"sql\"\nname = \"{name}\"\ndescription = \"Charges.\"\n\
             toolset = \"t{name}\"\nstatements = [\"SELECT id FROM charges\"]\n{more}\n"
        )
    };
    [DATABASE, &tool("a", ""), &tool("b", of_b), &tool("c", "")].concat()
}

/// The names of the deferred tools.
fn deferred(project_file: &str) -> Vec<String> {
    let engine = Folder::with(project_file).load().engine_builder().build().unwrap();
    let names = |iteration: &Iteration| {
        let deferred = iteration.menu().deferred().iter();
        deferred.map(|tool| tool.name().to_string()).collect()
    };
    block_on(async {
        let mut turn = engine.turn(TurnOptions::default()).unwrap();
        names(&turn.iteration().await.unwrap())
    })
}

#[test]
fn tools_are_deferred_by_themselves_by_toolset_and_above_a_number() {
    let none = Vec::<String>::new();
    assert_eq!(deferred(&tools("")), none);
    assert_eq!(deferred(&tools("defer = true")), ["b"]);
    let with = |section: &str, of_b: &str| deferred(&format!("{section}\n{}", tools(of_b)));
    assert_eq!(with("tool_search = { defer_toolsets = [\"ta\", \"tc\"] }", ""), ["a", "c"]);
    assert_eq!(with("tool_search = { defer_above = 3 }", ""), none);
    assert_eq!(with("tool_search = { defer_above = 2 }", ""), ["a", "b", "c"]);
    assert_eq!(with("tool_search = { defer_above = 2 }", "defer = false"), ["a", "c"]);
}
