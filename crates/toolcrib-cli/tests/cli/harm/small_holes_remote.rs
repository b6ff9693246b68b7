//! An answer whose id is the request's digits as a text was taken for the answer.

use super::faults::project;

#[test]
fn an_id_of_another_type_answered_a_numeric_request() {
    let (code, called) = project("timeout = '20s'").json(&["call", "mcp__f__ids"]);
    assert_eq!((code, called["value"].as_str()), (Some(0), Some("genuine")), "{called}");
}
