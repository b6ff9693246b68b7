//! The index from its callers' point of view.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use proptest::prelude::*;
use serde_json::{Value, json};
use toolcrib_core::{Tool, ToolBuilder};
use toolcrib_search::Index;

fn finished(builder: ToolBuilder) -> Tool {
    builder.handler(|_: Value, _| async { "" }).unwrap()
}

fn tool(name: &str, description: &str) -> Tool {
    finished(Tool::builder(name).description(description))
}

fn names(index: &Index, need: &str) -> Vec<String> {
    index.search(need, 10).iter().map(|hit| hit.tool.name().to_string()).collect()
}

fn desk() -> Vec<Tool> {
    vec![
        tool("find_order", "Looks up an order by its number."),
        tool("refund_payment", "Returns the money of a charge to the customer."),
        tool("listPullRequests", "The open changes of a repository."),
        tool("calendar_create_event", "Adds an appointment."),
        finished(
            Tool::builder("forecast").description("What the coming days bring.").input_schema(
                json!({
                    "type": "object",
                    "properties": {
                        "city": { "type": "string", "description": "Where." },
                        "unit": { "enum": ["celsius", "fahrenheit"], "type": "string" },
                    },
                }),
            ),
        ),
    ]
}

#[test]
fn names_descriptions_parameters_and_values_are_found() {
    let index = Index::new(&desk());
    for (need, first) in [
        ("refund a customer twice charged", "refund_payment"),
        ("orders", "find_order"),
        ("open pull requests", "listPullRequests"),
        ("appointments", "calendar_create_event"),
        ("temperature in fahrenheit", "forecast"),
        ("which city", "forecast"),
    ] {
        assert_eq!(names(&index, need)[0], first, "{need}");
    }
}

#[test]
fn another_word_for_the_same_thing_is_found_after_the_word_itself() {
    let index = Index::new(&[
        tool("erase_entry", "Erases an entry."),
        tool("remove_entry", "Removes an entry."),
        tool("print_entry", "Prints an entry."),
    ]);
    assert_eq!(names(&index, "delete an entry")[2], "print_entry");
    assert_eq!(names(&index, "erase an entry"), ["erase_entry", "remove_entry", "print_entry"]);
    assert_eq!(names(&index, "remove an entry"), ["remove_entry", "erase_entry", "print_entry"]);
    let requests = Index::new(&desk());
    assert_eq!(names(&requests, "PR")[0], "listPullRequests");
}

#[test]
fn joined_and_misspelled_names_are_found() {
    let index = Index::new(&desk());
    for (need, first) in [
        ("listpullrequests", "listPullRequests"),
        ("refundpayment", "refund_payment"),
        ("calender", "calendar_create_event"),
        ("forcast", "forecast"),
    ] {
        assert_eq!(names(&index, need)[0], first, "{need}");
    }
}

#[test]
fn a_quoted_name_is_first() {
    let text = "Use it before `find_order`: find_order needs an order, find it here.";
    let mut tools = vec![tool("order_finder_help", text)];
    tools.extend(desk());
    assert_eq!(names(&Index::new(&tools), "call find_order with 1042")[0], "find_order");
}

#[test]
fn the_server_prefix_of_a_name_is_a_weak_match() {
    let of_server = |name: &str| {
        let name = format!("mcp__order__{name}");
        finished(Tool::builder(name).description("It works.").mcp_server("order"))
    };
    let mut tools = vec![of_server("ping"), of_server("pong")];
    tools.extend(desk());
    let index = Index::new(&tools);
    assert_eq!(names(&index, "order")[0], "find_order");
    assert!(names(&index, "order").contains(&"mcp__order__ping".to_owned()));
    let among = index.search_among("order", 1, |tool| tool.mcp_server() == Some("order"));
    assert_eq!(among[0].tool.name(), "mcp__order__ping");
}

#[test]
fn a_name_with_capitals_within_is_also_one_word() {
    let of_server = |name: &str, server: &str| {
        let name = format!("mcp__{server}__{name}");
        finished(Tool::builder(name).description("Opens an issue.").mcp_server(server))
    };
    let tools = [of_server("new", "gittea"), of_server("open", "gitlab")];
    let index = Index::new(&tools);
    assert_eq!(names(&index, "an issue on GitLab")[0], "mcp__gitlab__open");
    let ranking = index.ranking("an issue on GitLab", &tools[1]).unwrap();
    assert_eq!(ranking.matched, ["issue", "gitlab"]);
}

#[test]
fn a_need_without_anything_in_common_finds_nothing() {
    let index = Index::new(&desk());
    for need in ["", "   ", "zzqqxx", "the of and", "\u{1F980}"] {
        assert_eq!(names(&index, need), Vec::<String>::new(), "{need:?}");
    }
    assert!(Index::new(&[]).search("refund", 5).is_empty());
}

#[test]
fn a_standing_names_the_missing_words() {
    let tools = desk();
    let ranking = Index::new(&tools).ranking("refund by wire transfer", &tools[1]).unwrap();
    assert_eq!(ranking.rank, Some(1));
    assert_eq!(ranking.matched, ["refund"]);
    assert_eq!(ranking.missing, ["wire", "transfer"]);
    let unknown = tool("other", "Not indexed.");
    assert_eq!(Index::new(&tools).ranking("refund", &unknown), None);
}

#[test]
fn texts_of_any_size_are_bounded() {
    let long: String = (0..200_000).map(|number| format!("word{number} ")).collect();
    let index = Index::new(&[tool("huge", &long), tool("small", "word7 only")]);
    assert_eq!(names(&index, "word7")[0], "small");
    assert_eq!(names(&index, &long).len(), 2);
}

/// Few words, so that random tools and needs have some in common.
const WORDS: [&str; 12] = [
    "order", "refund", "list", "mail", "send", "city", "weather", "create", "file", "search",
    "report", "delete",
];

fn text(words: std::ops::Range<usize>) -> impl Strategy<Value = String> {
    let word = prop::sample::select(&WORDS[..]);
    prop::collection::vec(word, words).prop_map(|words| words.join(" "))
}

/// Tools by number, each with its words; a number may return with other words.
fn catalog() -> impl Strategy<Value = Vec<(u8, String)>> {
    prop::collection::vec((0..40_u8, text(1..6)), 0..60)
}

fn tools(catalog: &[(u8, String)]) -> Vec<Tool> {
    let mut tools: Vec<Tool> = Vec::new();
    for (number, words) in catalog {
        let name = format!("{}_{number}", words.split(' ').next().unwrap());
        if tools.iter().all(|tool| *tool.name() != *name) {
            tools.push(tool(&name, words));
        }
    }
    tools
}

fn scores(index: &Index, need: &str) -> Vec<(String, f32)> {
    let hits = index.search(need, 100);
    hits.iter().map(|hit| (hit.tool.name().to_string(), hit.score)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// After any changes an index finds exactly what a new one finds.
    #[test]
    fn an_updated_index_is_like_a_new_one(
        catalogs in prop::collection::vec(catalog(), 1..6),
        needs in prop::collection::vec(text(1..5), 1..4),
    ) {
        let mut index = Index::new(&[]);
        for catalog in &catalogs {
            let tools = tools(catalog);
            index = index.updated(&tools);
            let new = Index::new(&tools);
            prop_assert_eq!(index.len(), tools.len());
            for need in &needs {
                prop_assert_eq!(scores(&index, need), scores(&new, need));
            }
        }
    }

    /// Only tools of the catalog are found, each once, the best first, and a shorter list is the
    /// beginning of a longer one.
    #[test]
    fn lists_are_ordered_and_of_the_catalog(catalog in catalog(), need in text(1..5)) {
        let tools = tools(&catalog);
        let index = Index::new(&tools);
        let all = scores(&index, &need);
        for pair in all.windows(2) {
            prop_assert!(pair[0].1 >= pair[1].1);
        }
        for (place, (name, _)) in all.iter().enumerate() {
            prop_assert!(tools.iter().any(|tool| *tool.name() == **name));
            let tool = tools.iter().find(|tool| *tool.name() == **name).unwrap();
            prop_assert_eq!(index.ranking(&need, tool).unwrap().rank, Some(place + 1));
        }
        let few: Vec<_> = index.search(&need, 3).iter().map(|hit| hit.tool.name().to_string()).collect();
        let first: Vec<_> = all.iter().take(3).map(|(name, _)| name.clone()).collect();
        prop_assert_eq!(few, first);
    }

    /// Any text is a need, and any text is a description.
    #[test]
    fn any_text_is_searched(description in "\\PC{1,200}", need in "\\PC{0,200}") {
        if let Ok(tool) = Tool::builder("any").description(description).handler(|_: Value, _| async { "" }) {
            prop_assert!(Index::new(&[tool]).search(&need, 5).len() <= 1);
        }
    }
}
