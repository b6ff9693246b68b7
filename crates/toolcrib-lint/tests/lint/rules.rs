//! Descriptions, parameters, schemas, sizes and sources: each rule with positive and negative
//! cases.

use serde_json::{Map, Value, json};
use toolcrib_lint::{Finding, LintTool, Linter, Rule, Severity, SourceFacts, lint};

use crate::support::{described, found, found_with, named, of_parameter, of_schema, rules, sound};

#[test]
fn descriptions_that_say_nothing() {
    let tools = [
        described(" "),
        LintTool { name: "search_products".into(), ..described("Search for products.") },
        LintTool { name: "find".into(), ..described("Finds orders.") },
        LintTool { name: "ship".into(), ..described(&"Sends parcels when asked. ".repeat(60)) },
    ];
    insta::assert_snapshot!(found(&tools), @r#"
    error[missing-description] `list_orders` has no description
      help: say what it does and when to use it; a name is not enough for a model to choose well
    warning[vague-description] the description of `search_products` only repeats its name: "Search for products."
      help: say what it does, to which object, what it returns, and when to use it, in 40 characters or more
    warning[cannot-be-found] the first sentence of `search_products` has only the words of its name: a search in other words does not find it
      help: say in the first sentence what the tool does, in words that a user would use
    warning[vague-description] the description of `find` has only 13 characters: "Finds orders."
      help: say what it does, to which object, what it returns, and when to use it, in 40 characters or more
    warning[long-description] the description of `ship` has 1560 characters
      help: keep it to 1024: OpenAI's API refuses longer ones, and clients cut them; what belongs to a parameter can be moved there
    "#);
    assert!(
        rules(&[described("Findet Bestellungen einer Kundin, auch die stornierten.")]).is_empty()
    );
    assert!(rules(&[described("查找客户的订单，包括已取消的订单和退款记录")]).is_empty());
}

#[test]
fn what_and_not_when() {
    insta::assert_snapshot!(
        found(&[described("Returns the orders of a customer, sorted by day and number.")]),
        @r#"
    warning[says-what-not-when] the description of `list_orders` says what it does and not when to use it
      help: add when to use it, and what to use instead: "Use it when …", "Only after …"
    "#
    );
    for when in [
        "Returns the orders of a customer. Use it to see what was bought.",
        "Returns the orders of a customer; works only with a number.",
        "Returns the orders of a customer, once the number is known.",
    ] {
        assert!(rules(&[described(when)]).is_empty(), "{when}");
    }
}

#[test]
fn descriptions_that_say_the_same() {
    let open = "Lists the open tickets of a customer, newest first. Use it when a customer calls.";
    let closed =
        "Lists the closed tickets of a customer, newest first. Use it when a customer calls.";
    let of =
        |name: &str, description: &str| LintTool { name: name.into(), ..described(description) };
    insta::assert_snapshot!(found(&[of("waiting", open), of("finished", closed)]), @r#"
    warning[confusable-description] the descriptions of `finished` and `waiting` have 77 % of their words in common; only `finished` says "closed", only `waiting` says "open"
      help: say in each when to use it instead of the other, with words that the other lacks
    "#);
    // With the same words, the parameters may differ.
    let by_id = LintTool {
        input_schema: Some(json!({
            "type": "object",
            "properties": { "id": { "type": "integer", "description": "The customer." } },
            "required": ["id"],
        })),
        ..of("waiting_of", open)
    };
    insta::assert_snapshot!(found(&[of("waiting", open), by_id]), @r#"
    warning[confusable-description] the descriptions of `waiting_of` and `waiting` have 100 % of their words in common; only `waiting_of` takes `id`
      help: say in each when to use it instead of the other, with words that the other lacks
    "#);
    insta::assert_snapshot!(found(&[of("waiting", open), of("pending", open)]), @r#"
    warning[confusable-description] the descriptions of `pending` and `waiting` have 100 % of their words in common; only their names differ
      help: say in each when to use it instead of the other, with words that the other lacks
    "#);
    let other = "Replaces the address of a customer. Use it only when the customer asked for it.";
    assert!(rules(&[of("waiting", open), of("move", other)]).is_empty());
}

#[test]
fn parameters_of_which_nothing_is_said() {
    let schema = json!({
        "type": "object",
        "properties": {
            "order": { "type": "object", "description": "The order.", "properties": {
                "lines": { "type": "array", "description": "Its lines.", "items": {
                    "type": "object", "properties": { "sku": { "type": "string" } }, "required": ["sku"],
                } },
            }, "required": ["lines"] },
            "note": { "type": "string" },
        },
        "required": ["order", "note"],
    });
    insta::assert_snapshot!(found(&[of_schema(schema)]), @r#"
    warning[undescribed-parameter] `list_orders` has parameters without a description: `order.lines[].sku`, `note`
      help: describe them: their meaning, unit or format, and where the model finds the value
    "#);
    // The target of a reference may contain it.
    let referring = json!({
        "type": "object",
        "properties": { "order": { "$ref": "#/$defs/Order" } },
        "required": ["order"],
        "$defs": { "Order": { "type": "integer", "description": "The order's number." } },
    });
    assert!(rules(&[of_schema(referring)]).is_empty());
}

#[test]
fn optional_parameters_without_a_default() {
    let limit = json!({ "type": "integer", "description": "How many orders there may be." });
    insta::assert_snapshot!(found(&[of_parameter(limit.clone(), false)]), @r#"
    warning[unclear-default] `list_orders` does not document its behavior without `which`
      help: document it in the description ("Default: 20", "All of them if omitted"), or as `default` in the schema
    "#);
    assert!(rules(&[of_parameter(limit, true)]).is_empty());
    for clear in [
        json!({ "type": "integer", "description": "How many.", "default": 20 }),
        json!({ "type": "integer", "description": "How many (default 20)." }),
        json!({ "type": "string", "description": "Only this carrier's orders." }),
        json!({ "type": "boolean", "description": "Whether cancelled orders come too." }),
    ] {
        assert!(rules(&[of_parameter(clear.clone(), false)]).is_empty(), "{clear}");
    }
}

#[test]
fn values_that_stand_in_prose() {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let values = |parameter: Value| {
        let report = toolcrib_lint::lint(&[of_parameter(parameter, true)]);
        let helps: Vec<String> = report
            .findings
            .iter()
            .map(|f| f.help.rsplit_once("\"enum\": ").unwrap().1.to_owned())
            .collect();
        helps.join(" ")
    };
    for (description, expected) in [
        ("The state: open|closed|lost", r#"["open", "closed", "lost"]"#),
        ("One of open, closed or lost.", r#"["open", "closed", "lost"]"#),
        ("How to sort: 'asc' or 'desc'", r#"["asc", "desc"]"#),
        ("`asc` (oldest first) or `desc` (newest first)", r#"["asc", "desc"]"#),
        ("Allowed values are low, medium, and high.", r#"["low", "medium", "high"]"#),
        ("Options: \"json\", \"csv\"", r#"["json", "csv"]"#),
    ] {
        assert_eq!(values(text(description)), expected, "{description}");
    }
    for description in [
        "A city, such as 'Bern' or 'Basel'",
        "The path of a file, e.g. `a.txt` or `b.txt`",
        "A path or a URL",
        "Can be relative or absolute",
        "One of the customer's orders",
        "The name, in \"quotes\"",
        "The value of the field. If it is a switch, `true` or `false`.",
        "The name of the file. Default: `shot-{time}.{png|jpeg}`.",
        "Passed on to the program, as in `ps aux|grep ssh`.",
    ] {
        assert_eq!(values(text(description)), "", "{description}");
    }
    let nullable = json!({ "anyOf": [{ "type": "string" }, { "type": "null" }],
        "description": "Either \"a\" or \"b\"." });
    assert_eq!(values(nullable), r#"["a", "b"]"#);
    let named = json!({ "type": "string", "enum": ["a", "b"], "description": "\"a\" or \"b\"" });
    assert_eq!(values(named), "");
    insta::assert_snapshot!(found(&[of_parameter(text("open|closed"), true)]), @r#"
    warning[enum-in-prose] `list_orders` accepts any text as `which`, and its description lists the values: "open", "closed"
      help: put them into the schema, which models and validation follow: "enum": ["open", "closed"]
    "#);
}

#[test]
fn schemas_that_nothing_can_be_held_against() {
    let tools = [
        LintTool { input_schema: None, ..named("missing") },
        LintTool { input_schema: Some(json!([])), ..named("array") },
        LintTool { input_schema: Some(json!({ "properties": {} })), ..named("untyped") },
        LintTool { input_schema: Some(json!({ "type": "string" })), ..named("text") },
        LintTool {
            input_schema: Some(json!({ "type": "object", "properties": { "a": {
                "type": "integr", "description": "A number." } }, "required": ["a"] })),
            ..named("misspelt")
        },
        LintTool {
            input_schema: Some(json!({ "type": "object", "properties": { "a": {
                "$ref": "#/$defs/gone", "description": "A number." } }, "required": ["a"] })),
            ..named("dangling")
        },
    ];
    insta::assert_snapshot!(found(&tools), @r#"
    error[invalid-schema] the schema of `missing` is missing
      help: begin it with "type": "object", also without parameters
    error[invalid-schema] the schema of `array` is not an object
      help: begin it with "type": "object", also without parameters
    error[invalid-schema] the schema of `untyped` does not say that arguments are an object
      help: begin it with "type": "object", also without parameters
    error[invalid-schema] the schema of `text` does not accept an object
      help: begin it with "type": "object", also without parameters
    warning[cannot-be-found] `misspelt` cannot be found by its first sentence without the words of its name: it ranks 4th, after `missing`, `dangling`, `untyped`
      help: say in the first sentence what only this tool does, and in those of the others what only they do
    error[invalid-schema] the schema of `misspelt` cannot be enforced: at `/properties/a/type`: value is not valid under any of the schemas listed in the 'anyOf' keyword
      help: fix it: a tool with a schema that cannot be enforced is not offered
    error[invalid-schema] the schema of `dangling` cannot be enforced: the `$ref` to `#/$defs/gone` has no target in the schema, and remote references are not fetched
      help: fix it: a tool with a schema that cannot be enforced is not offered
    "#);
}

#[test]
fn a_schema_without_measure_is_refused_and_not_walked() {
    let mut schema = json!({ "type": "object" });
    for _ in 0..50_000 {
        // Not with the macro, which copies its input.
        let properties = Map::from_iter([("a".to_owned(), schema)]);
        schema = Value::Object(Map::from_iter([
            ("type".to_owned(), "object".into()),
            ("properties".to_owned(), properties.into()),
        ]));
    }
    let mut tool = of_schema(schema);
    assert_eq!(rules(std::slice::from_ref(&tool)), ["invalid-schema"]);
    std::mem::swap(&mut tool.input_schema, &mut tool.output_schema);
    assert_eq!(lint(std::slice::from_ref(&tool)).findings.len(), 2);
    // Dropping it would recurse as deep as it nests.
    toolcrib_core::__internal::dismantle(tool.output_schema.take().unwrap());
}

#[test]
fn required_parameters_that_are_not_described() {
    let schema = json!({
        "type": "object",
        "properties": { "order": { "type": "integer", "description": "Its number." } },
        "required": ["order", "ordr"],
    });
    insta::assert_snapshot!(found(&[of_schema(schema)]), @r#"
    error[unknown-required] `list_orders` requires `ordr`, and its schema does not describe it
      help: add it to `properties`, or remove it from `required`
    "#);
    let elsewhere = json!({ "type": "object", "required": ["a"], "anyOf": [{ "properties": {} }] });
    assert!(rules(&[of_schema(elsewhere)]).is_empty());
}

#[test]
fn tools_that_cost_much() {
    let large = json!({ "type": "object", "properties": { "which": {
        "type": "string", "description": "x ".repeat(2_500) } }, "required": ["which"] });
    insta::assert_snapshot!(found(&[of_schema(large)]), @r#"
    warning[large-tool] `list_orders` takes about 1307 tokens of every request (5226 characters)
      help: typical tools take 50 to 300: shorten its description, remove unused parameters, or split it; over 1000 it is reported
    "#);
    let linter = Linter::new().max_tokens(100);
    let tools = [named("find_order"), named("track_parcel"), named("pay")];
    insta::assert_snapshot!(found_with(&linter, &tools), @r#"
    warning[large-catalog] all 3 tools take about 117 tokens of every request, over 100; the largest: `track_parcel` (~42 tokens), `find_order` (~40 tokens), `pay` (~35 tokens)
      help: offer them by skill or toolset, remove unused ones, shorten the largest
    "#);
    let report = Linter::new().lint(&tools);
    assert!(report.is_clean());
    let chars: usize = report.tools.iter().map(|tool| tool.chars).sum();
    assert_eq!((report.totals.tools, report.totals.chars), (3, chars));
    let rendering = json!({ "name": "pay", "description": sound("pay"),
        "input_schema": { "type": "object", "properties": {} } });
    assert_eq!(report.tools[2].chars, rendering.to_string().len());
    assert_eq!(report.tools[2].tokens, rendering.to_string().len().div_ceil(4));
}

#[test]
fn deferred_tools_cost_nothing() {
    let large = json!({ "type": "object", "properties": { "which": {
        "type": "string", "description": "x ".repeat(2_500) } }, "required": ["which"] });
    let linter = Linter::new().max_tokens(100);
    let deferred = LintTool { deferred: true, ..of_schema(large) };
    assert_eq!(found_with(&linter, &[deferred.clone(), named("pay")]), "");
    let offered = LintTool { deferred: false, ..deferred };
    let report = linter.lint(&[offered, named("pay")]);
    let rules: Vec<_> = report.findings.iter().map(|finding| &*finding.rule).collect();
    assert_eq!(rules, ["large-tool", "large-catalog"]);
}

#[test]
fn the_wording_of_a_third_party_is_only_noted() {
    let of_server = |description: &str| LintTool { foreign: true, ..described(description) };
    let severities = |tool: LintTool| {
        let report = lint(&[tool]);
        let seen = report.findings.iter().map(|f| (f.rule.clone(), f.severity));
        (seen.collect::<Vec<_>>(), report.is_clean())
    };
    let vague = [("vague-description".to_owned(), Severity::Note)];
    assert_eq!(severities(of_server("Finds orders.")), (vague.to_vec(), true));
    assert!(!severities(described("Finds orders.")).1);
    // An error stays one, and so does a text that steers the model.
    assert!(!severities(of_server("")).1);
    let steers =
        "Always call this tool first, before any other tool. Use it when an order is named.";
    let (seen, is_clean) = severities(of_server(steers));
    assert!(seen.contains(&("claims-precedence".to_owned(), Severity::Warning)), "{seen:?}");
    assert!(!is_clean);
}

#[test]
fn sources_that_failed_or_are_never_asked_again() {
    let source = |name: &str| SourceFacts { name: name.into(), remote: true, ..Default::default() };
    let linter = Linter::new().sources([
        source("mcp:sound"),
        SourceFacts { failure: Some("connection refused".into()), ..source("mcp:gone") },
        SourceFacts { ttl_forever: true, ..source("hub:frozen") },
        SourceFacts { ttl_forever: true, remote: false, ..source("own") },
    ]);
    insta::assert_snapshot!(found_with(&linter, &[]), @r#"
    error[source-failed] `mcp:gone` could not be listed: connection refused
      help: its tools were not checked; make it reachable and try again
    warning[endless-ttl] the list of `hub:frozen` never expires
      help: set a time limit, such as `ttl = "10m"`: its operator may change or remove tools, which would go unnoticed until the next start
    "#);
}

#[test]
fn rules_are_allowed_by_id_and_added() {
    let linter = Linter::new();
    let ids: Vec<&str> = linter.rules().iter().map(Rule::id).collect();
    let page = include_str!("../../../../docs/lint.md");
    for id in &ids {
        assert!(page.contains(&format!("| `{id}` |")), "docs/lint.md has no row for {id}");
    }
    assert_eq!(page.matches("\n| `").count(), ids.len(), "docs/lint.md has rows of no rule");
    let vague = [described("Finds orders.")];
    let linter = linter.allow("vague-description").unwrap();
    assert_eq!(found_with(&linter, &vague), "");
    assert_eq!(linter.allow("vague").unwrap_err().id, "vague");
    let own = Rule::new("no-orders", "No orders", |catalog, findings| {
        for tool in catalog.tools() {
            findings.push(Finding::warning("it speaks of orders", "let it not").of(tool));
        }
    });
    let linter = Linter::new().allow("vague-description").unwrap().rule(own);
    assert_eq!(
        found_with(&linter, &vague),
        "warning[no-orders] it speaks of orders\n  help: let it not\n"
    );
}
