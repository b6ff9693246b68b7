//! Outputs of real programs, and of documented formats where no program is at hand.

use super::{Report, cargo, go, node, pytest};

fn shown(report: &Report) -> Vec<String> {
    report.problems.iter().map(ToString::to_string).collect()
}

#[test]
fn failures_of_rust_tests_have_their_places() {
    let report = cargo::read(include_str!("outputs/rs-test.txt"));
    assert_eq!((report.passed, report.failed, report.has_counts), (1, 2, true));
    assert_eq!(
        shown(&report),
        [
            "src/lib.rs:2:9: warning: unused variable: `unused`: help: if this is intentional, \
             prefix it with an underscore: `_unused`",
            "test tests::parses failed: Error: ParseIntError { kind: InvalidDigit }",
            "src/lib.rs:12:9: test tests::adds failed: assertion `left == right` failed: one and \
             two left: -1 right: 3",
        ]
    );
}

#[test]
fn errors_of_the_rust_compiler_are_not_repeated_by_its_summary() {
    let report = cargo::read(include_str!("outputs/rs-check.txt"));
    assert_eq!(
        shown(&report),
        ["src/lib.rs:3:7: error: cannot subtract `&str` from `i32`: no implementation for `i32 - \
          &str`"]
    );
    let manifest = cargo::read("error: failed to parse manifest at `/a/Cargo.toml`\n");
    assert_eq!(shown(&manifest), ["error: failed to parse manifest at `/a/Cargo.toml`"]);
}

#[test]
fn failures_of_pytest_have_the_place_where_they_were_raised() {
    let report = pytest::read(include_str!("outputs/pytest.txt"));
    assert_eq!((report.passed, report.failed), (1, 2));
    assert_eq!(
        shown(&report),
        [
            "tests/test_calc.py:7: test test_add failed: assert -1 == 3",
            "tests/test_calc.py:17: test TestHalf::test_text failed: AssertionError: assert 2.0 =...",
        ]
    );
}

#[test]
fn failures_of_unittest_have_the_place_where_they_were_raised() {
    let report = pytest::read(include_str!("outputs/unittest.txt"));
    assert_eq!((report.passed, report.failed), (1, 2));
    let shown = shown(&report);
    assert!(
        shown[0]
            .starts_with("/home/ana/app/test_words.py:8: test test_case failed: AssertionError: {"),
        "{shown:?}"
    );
    assert_eq!(shown.len(), 2);
}

#[test]
fn findings_of_ruff_and_mypy_are_problems() {
    let ruff = pytest::read(include_str!("outputs/ruff.txt"));
    assert_eq!(ruff.problems.len(), 4);
    assert_eq!(shown(&ruff)[1], "calc.py:1:8: error: F401 [*] `os` imported but unused");
    let mypy = pytest::read(include_str!("outputs/mypy.txt"));
    assert_eq!(
        shown(&mypy),
        ["calc.py:5: error: Incompatible return value type (got \"float\", expected \"str\")  \
          [return-value]"]
    );
}

#[test]
fn findings_of_pyright_are_problems() {
    let pyright = "/app/words.py\n  /app/words.py:3:14 - error: \"lower\" is not a known attribute of \
        \"None\" (reportOptionalMemberAccess)\n1 error, 0 warnings, 0 informations\n";
    let report = pytest::read(pyright);
    assert_eq!(
        shown(&report),
        ["/app/words.py:3:14: error: \"lower\" is not a known attribute of \"None\" \
         (reportOptionalMemberAccess)"]
    );
}

#[test]
fn failures_of_tests_in_node_have_their_places() {
    let report = node::read(include_str!("outputs/node.txt"));
    assert_eq!((report.passed, report.failed), (1, 2));
    assert_eq!(
        shown(&report),
        [
            "/home/ana/app/sum.test.js:4:1: test adds two numbers failed: Expected values to be \
             strictly equal:  -1 !== 3",
            "/home/ana/app/sum.test.js:6:1: test throws failed: undefinedName is not defined",
        ]
    );
    let jest = node::read(include_str!("outputs/jest.txt"));
    assert_eq!((jest.passed, jest.failed), (1, 1));
    assert!(
        shown(&jest).iter().any(|line| line
            .starts_with("/home/ana/app/src/sum.test.js:4:21: test adds numbers failed: expect(")),
        "{:?}",
        shown(&jest)
    );
}

#[test]
fn findings_of_tsc_and_eslint_are_problems() {
    let tsc = node::read(include_str!("outputs/tsc.txt"));
    let first = "src/a.ts:3:5: error: TS2322: Type 'string' is not assignable to type 'number'.";
    assert_eq!(shown(&tsc)[0], first);
    let eslint = node::read(include_str!("outputs/eslint.txt"));
    assert_eq!(
        shown(&eslint),
        [
            "/home/ana/app/src/a.js:1:7: error: 'x' is assigned a value but never used no-unused-vars",
            "/home/ana/app/src/a.js:3:10: warning: Unexpected console statement no-console",
        ]
    );
}

#[test]
fn failures_of_go_have_their_places() {
    let report = go::read(include_str!("outputs/go-test.txt"));
    assert_eq!((report.passed, report.failed), (1, 2));
    assert_eq!(
        shown(&report),
        [
            "calc_test.go:7: test TestAdd failed: want 3, got -1",
            "calc_test.go:20: test TestTable/one failed: one: want 1 got 2",
        ]
    );
    let vet = go::read(include_str!("outputs/go-vet.txt"));
    assert_eq!(shown(&vet)[0], "calc.go:4:9: error: undefined: b");
    assert_eq!(vet.problems.len(), 2);
}
