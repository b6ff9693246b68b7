//! Each fault, and the outcome of calls to the faulty server.

use toolcrib_core::ErrorCode::{self, NotAvailable, OutcomeUnknown};
use toolcrib_mcp::McpClientBuilder;

use super::crib::{Crib, Log, Made, SOON};

/// The expected outcome of a fault.
struct Expected {
    /// The outcomes of calls of the first iteration.
    first: &'static [Option<ErrorCode>],
    /// The outcomes of later ones.
    later: &'static [Option<ErrorCode>],
    set: fn(McpClientBuilder) -> McpClientBuilder,
}

const OK: &[Option<ErrorCode>] = &[None];
/// The server is omitted.
const OMITTED: &[Option<ErrorCode>] = &[Some(NotAvailable)];
const UNKNOWN: &[Option<ErrorCode>] = &[Some(OutcomeUnknown)];
/// It exits at each call, so sometimes it is not retried yet.
const BROKEN: &[Option<ErrorCode>] = &[Some(OutcomeUnknown), Some(NotAvailable)];

fn always(codes: &'static [Option<ErrorCode>]) -> Expected {
    Expected { first: codes, later: codes, set: |client| client }
}

fn broken() -> Expected {
    Expected { first: UNKNOWN, later: BROKEN, set: |client| client }
}

/// Runs a fault twice, once closed and once dropped; checks the calls and the log.
async fn check(fault: &str, expected: Expected, look: impl Fn(&[Made], &Log)) {
    for by_close in [true, false] {
        let mut crib = Crib::new(fault, expected.set);
        let mut made = Vec::new();
        for _ in 0..3 {
            made.extend(crib.iterate().await);
        }
        let log = crib.end(by_close).await;
        let executed = log.executed();
        for call in &made {
            let codes = if call.iteration == 1 { expected.first } else { expected.later };
            assert!(
                codes.contains(&call.code),
                "{fault}, iteration {}, call {}: {:?}, not one of {codes:?}: {}",
                call.iteration,
                call.id,
                call.code,
                call.value
            );
            let times = executed.get(&*call.id).copied().unwrap_or_default();
            assert!(times <= 1, "{fault}: call {} was executed {times} times", call.id);
            if call.code.is_none() {
                assert_eq!(times, 1, "{fault}: call {} went well and was not made", call.id);
            }
            if call.code == Some(NotAvailable) {
                assert_eq!(
                    times, 0,
                    "{fault}: call {} was made, and its answer denies it",
                    call.id
                );
            }
        }
        look(&made, &log);
    }
}

fn nothing_more(_: &[Made], _: &Log) {}

fn its_own_id(made: &[Made], _: &Log) {
    for call in made {
        assert_eq!(*call.value, *call.id);
    }
}

/// One test per fault, so that the failing one is named.
macro_rules! faults {
    ($($name:ident: $fault:literal, $expected:expr, $look:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                check($fault, $expected, $look).await;
            }
        )*
    };
}

faults! {
    an_orderly_server: "none", always(OK), its_own_id;
    exits_at_start: "exit-at-start", always(OMITTED), nothing_more;
    hangs_at_start: "hang-at-start",
        Expected { set: |client| client.start_timeout(SOON), ..always(OMITTED) }, nothing_more;
    hangs_when_it_is_listed: "hang-at-list",
        Expected { set: |client| client.list_timeout(SOON), ..always(OMITTED) }, nothing_more;
    hangs_when_it_is_called: "hang-at-call",
        Expected { set: |client| client.call_timeout(SOON), ..always(UNKNOWN) },
        // Those of the last iteration may come after the end.
        |made, log| assert!(log.count("cancelled ") >= made.len() - 2);
    crashes_on_the_first_call: "crash-on-call=1", broken(), nothing_more;
    crashes_on_the_third_call: "crash-on-call=3",
        Expected {
            later: &[None, Some(OutcomeUnknown), Some(NotAvailable)], ..always(OK)
        },
        |_, log| assert!(log.count("call ") >= 3);
    dies_with_half_an_answer_written: "die-mid-call", broken(), nothing_more;
    floods_changes: "flood-changes", always(OK), its_own_id;
    floods_answers: "flood-answers", always(OK), its_own_id;
    writes_garbage_between_answers: "garbage", always(OK), its_own_id;
    writes_nothing_but_garbage: "garbage-only", broken(), nothing_more;
    answers_under_wrong_ids: "wrong-ids",
        Expected { set: |client| client.call_timeout(SOON), ..always(UNKNOWN) },
        nothing_more;
    writes_a_line_of_a_gigabyte: "long-line", broken(), nothing_more;
    has_endless_pages: "endless-pages", always(OMITTED), nothing_more;
    has_a_cursor_that_does_not_advance: "cursor-loop", always(OK),
        |_, log| assert!(log.count("list ") <= 6, "it is asked in a circle");
    shouts_on_standard_error: "loud-stderr", always(OK), its_own_id;
    leaves_daemons_behind: "grandchildren", always(OK),
        |_, log| assert_eq!(log.count("start "), 3, "it has no daemons");
    goes_on_after_its_input_has_ended: "stay", always(OK), its_own_id;
    answers_twice: "answers-twice", always(OK), its_own_id;
    answers_with_what_is_no_result: "bad-result", always(UNKNOWN), nothing_more;
    answers_with_a_broken_image: "bad-base64", always(UNKNOWN), nothing_more;
    answers_with_a_large_text: "huge-result=8000000", always(OK),
        |made, _| assert!(made.iter().all(|call| call.value.len() < 1_000_000));
    answers_with_more_than_a_line_may_have: "huge-result=20000000", broken(), nothing_more;
}
