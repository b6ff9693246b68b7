//! Why a tool is offered or not, for people.

use serde_json::Value;

use crate::support::Project;

const BILLING: &str = "refund_duplicate_charge";

#[test]
fn a_withheld_tool_is_explained_link_by_link_with_what_would_offer_it() {
    let desk = Project::desk();
    let outcome = desk.toolcrib(&["explain", BILLING, "--skill", "shipping", "--as", "intern"]);
    assert_eq!(outcome.code, Some(0), "{}", outcome.stderr);
    insta::assert_snapshot!(outcome.stdout, @r"
    refund_duplicate_charge is withheld by policy
      source       passed    comes from toolcrib.toml:70
      personality  passed    personality `default` reaches it
      policy       withheld  policy rule 1 (toolcrib.toml:25) denies it: Trainees look, they do not touch.
    to offer it: activate skill `billing`, and a principal without role `trainee`; less is not enough: policy rule 2 (toolcrib.toml:31) denies it: Data is changed only under a skill that says how.
    ");
    let outcome = desk.toolcrib(&["explain", "list_charges"]);
    assert_eq!(outcome.code, Some(0));
    insta::assert_snapshot!(outcome.stdout, @r#"
    list_charges is offered
      source       passed    comes from toolcrib.toml:39
      personality  passed    personality `default` reaches it
      policy       passed    no rule denies it, and policy_default is "allow"
      skill        passed    no skill is active
      collision    passed    no other tool of its name is offered
    to withhold it: activate skill `account`
    "#);
}

#[test]
fn the_facts_of_the_change_reverse_the_result() {
    let desk = Project::desk();
    let explained = |args: &[&str]| -> Value {
        let args: Vec<_> = ["explain", BILLING].iter().chain(args).copied().collect();
        let (code, why) = desk.json(&args);
        assert_eq!(code, Some(0));
        why
    };
    let why = explained(&["--as", "intern"]);
    assert_eq!(why["offered"], false);
    assert_eq!(why["tool"], BILLING);
    let facts = why["change"]["facts"].as_array().unwrap();
    let named: Vec<_> = facts
        .iter()
        .map(|fact| (fact["fact"].as_str().unwrap(), fact["value"].as_str().unwrap()))
        .collect();
    assert_eq!(named, [("activate_skill", "billing"), ("lose_role", "trainee")]);
    assert_eq!(explained(&["--skill", "billing"])["offered"], true);
    assert_eq!(explained(&["--skill", "billing", "--as", "intern"])["offered"], false);
    assert_eq!(explained(&[])["offered"], false);
    let offered = explained(&["--skill", "billing"]);
    let stages: Vec<_> =
        offered["chain"].as_array().unwrap().iter().map(|cause| cause["stage"].clone()).collect();
    assert_eq!(stages, ["source", "personality", "policy", "skill", "collision"]);
}

#[test]
fn an_unknown_tool_is_a_usage_error_that_names_a_near_one() {
    let desk = Project::desk();
    let outcome = desk.toolcrib(&["explain", "refund_duplicate_charges", "--as", "intern"]);
    assert_eq!(outcome.code, Some(2));
    assert_eq!(
        outcome.stderr,
        "error: unknown tool `refund_duplicate_charges`; did you mean \
         `refund_duplicate_charge`?\n"
    );
    let (code, problem) = desk.json(&["explain", "nothing_like_it"]);
    assert_eq!((code, &problem["error"]["code"]), (Some(2), &Value::from("usage")));
}

#[test]
fn a_menu_with_why_has_one_chain_for_each_known_tool() {
    let desk = Project::desk();
    let (_, menu) = desk.json(&["menu", "--skill", "billing", "--why"]);
    let chains = menu["why"].as_array().unwrap();
    let count = |list: &str| menu[list].as_array().unwrap().len();
    assert_eq!(chains.len(), count("offered") + count("withheld"));
    for chain in chains {
        let links = chain["chain"].as_array().unwrap();
        let (last, before) = links.split_last().unwrap();
        assert!(before.iter().all(|cause| cause["passed"] == true), "{chain}");
        assert_eq!(last["passed"], chain["offered"], "{chain}");
    }
    let (_, plain) = desk.json(&["menu"]);
    assert_eq!(plain.get("why"), None);
}

#[test]
fn a_call_at_which_a_rule_halts_is_refused_and_ends_a_run() {
    let desk = Project::desk();
    let file = std::fs::read_to_string(desk.path().join("toolcrib.toml")).unwrap();
    let (head, rules) = file.split_once("[[policy]]").unwrap();
    let tripwire = "[[policy]]\neffect = \"halt\"\ntool = \"list_charges\"\n\
                    args = { \"/order_id\" = { equals = 1042 } }\nreason = \"Tripwire.\"\n\
                    model_message = \"This ends here.\"\n\n";
    desk.write("toolcrib.toml", &format!("{head}{tripwire}[[policy]]{rules}"));
    let (code, called) = desk.json(&["call", "list_charges", "order_id=1042"]);
    assert_eq!((code, &called["code"]), (Some(1), &Value::from("denied")));
    assert_eq!(called["value"], "This ends here.");
    let (code, _) = desk.json(&["call", "list_charges", "order_id=1043"]);
    assert_eq!(code, Some(0));

    let (code, run) = desk.json(&["run", "I was charged twice for order 1042"]);
    assert_eq!(code, Some(1));
    assert_eq!((&run["stopped"], &run["error"]["code"]), (&"failed".into(), &"halted".into()));
    let message = run["error"]["message"].as_str().unwrap();
    assert!(message.ends_with("ended the run at a call of `list_charges`: Tripwire."), "{message}");
    assert!(!run["tool_calls"].to_string().contains("Tripwire.\",\"structured"), "{run}");
    let calls = run["tool_calls"].as_array().unwrap();
    assert!(calls.iter().any(|call| call["value"] == "This ends here."), "{run}");
    assert_eq!(calls.last().unwrap()["value"], "not made: the run was ended");
}

#[test]
fn prompts_and_resources_of_a_server_are_explained_like_tools() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/remote_notifications.py");
    let project = Project::of(&[(
        "toolcrib.toml",
        &format!(
            "policy_default = 'allow'\n\n[mcp.f]\ncommand = 'python3'\nargs = ['{script}']\n\n\
             [[role]]\nname = 'guest'\nprincipals = ['ann']\n\n\
             [[policy]]\neffect = 'deny'\nrole = 'guest'\ntoolset = 'mcp.*'\nreason = 'Members only.'\n"
        ),
    )]);
    for name in ["mcp__f__resources", "mcp__f__one"] {
        let (code, why) = project.json(&["explain", name]);
        assert_eq!((code, &why["offered"]), (Some(0), &Value::from(true)), "{why}");
        let (code, why) = project.json(&["explain", name, "--as", "ann"]);
        assert_eq!((code, &why["offered"]), (Some(0), &Value::from(false)), "{why}");
        let denied = why["chain"].as_array().unwrap().last().unwrap();
        assert!(denied["text"].as_str().unwrap().ends_with("denies it: Members only."), "{why}");
        let change = why["change"]["text"].as_str().unwrap();
        assert_eq!(change, "to offer it: a principal without role `guest`");
    }
    let outcome = project.toolcrib(&["explain", "mcp__f__two"]);
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
}
