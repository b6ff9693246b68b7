//! An answer whose id only resembles the request's was taken for the answer.

use super::faults::project;

#[test]
fn an_id_that_only_resembles_the_request_s_answered_it() {
    let (code, called) = project("timeout = '20s'").json(&["call", "mcp__f__ids"]);
    assert_eq!((code, called["value"].as_str()), (Some(0), Some("genuine")), "{called}");
}
