//! Runs the tests of the faults that were found from outside: one kind per module called
//! `harm::KIND`.

use std::collections::BTreeSet;

use crate::{
    problem::Problem,
    workspace::{Workspace, output, run},
};

/// Each kind of fault, and the prefixes of the names of its test modules.
const KINDS: [(&str, &[&str]); 39] = [
    ("a way to begin with a skill that bypasses policy", &["skill_door"]),
    ("arguments that policy and the tool's body read differently", &["one_json"]),
    ("a project that acts before it is trusted", &["trust"]),
    ("a name that claims an origin", &["origin_names"]),
    ("work that an outsider's text makes unbounded", &["bounded_work"]),
    ("progress of a remote that is neither cleaned nor paced", &["remote_progress"]),
    ("a program without limits", &["process_limits"]),
    ("a program that fails without a reason", &["silent_programs"]),
    ("a call that was answered and is made again", &["answered_calls"]),
    ("an upstream session that two identities share", &["upstream_sessions"]),
    ("one bad server that stops the others", &["one_bad_server"]),
    ("data that `--fresh` loses", &["fresh_data"]),
    ("definitions of untrusted tools that arrive raw", &["untrusted_definitions"]),
    ("a claim that is false", &["false_claims"]),
    (
        "an imported file that narrows, a browser that is allowed",
        &["narrowing_files", "allow_origin"],
    ),
    ("a secret that leaves in another spelling", &["secret_spellings"]),
    ("small holes in files, addresses, texts and ids", &["small_holes"]),
    ("words at the terminal that mislead", &["terminal_words", "null_arguments"]),
    ("a tool that an executor offers and cannot call", &["executor_offers"]),
    ("a file that is altered beyond an edit", &["line_ends", "read_only_files"]),
    ("a search or a read that misses silently", &["left_out"]),
    ("a change of a file that cannot be undone", &["undo"]),
    ("a statement without its values, a cell that is altered", &["database_values"]),
    ("a role that may do more than read", &["database_roles"]),
    ("a document of which a part is lost or refused", &["documents_read_in_part"]),
    ("an argument that a server reads as another path", &["path_segments"]),
    ("one unreadable skill that stops every command", &["unreadable_skills"]),
    ("a secret in a definition", &["definition_secrets"]),
    ("a program in a sandbox that changes what steers code", &["sandbox_steering"]),
    ("a document that is not treated as a third party's", &["documents"]),
    ("a host that is dialed and not shown", &["dialed_hosts"]),
    ("registries that deadlock, names that are not checked", &["registry_and_names"]),
    ("an approval that is used twice", &["one_use"]),
    ("a caller without a session that nothing restricts", &["without_session"]),
    ("a caller that is locked out, or loses what is in use", &["sessions_under_pressure"]),
    ("a log that ends silently with a full disk", &["full_disk"]),
    ("a new tool that enters a running gateway unasked", &["new_tools"]),
    ("a tool that vanishes without a word to the client", &["silent_tools"]),
    ("a list that is fetched again while it applies", &["cached_lists"]),
];

const TESTS: [&str; 4] = ["test", "--workspace", "--tests", "harm::"];

/// Fails if a kind of fault has no test.
pub(crate) fn check_listed(workspace: &Workspace) -> Result<(), Problem> {
    let listed = output(
        workspace.compile(TESTS).args(["--", "--list", "--format", "terse"]),
        "make the tests compile: `cargo test --workspace --no-run`",
    )?;
    let tests: BTreeSet<&str> =
        listed.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    for (kind, modules) in KINDS {
        let of_kind = |test: &&&str| {
            let module = test.split_once("harm::").map_or("", |(_, rest)| rest);
            modules.iter().any(|name| module.starts_with(name))
        };
        let count = tests.iter().filter(of_kind).count();
        if count == 0 {
            return Err(Problem::new(
                format!("no test for: {kind}"),
                format!(
                    "write one in a module `harm::{}` of a test binary",
                    modules.join("` or `")
                ),
            ));
        }
        eprintln!("{count:>4}  {kind}");
    }
    Ok(())
}

/// Runs only these tests.
pub(crate) fn test(workspace: &Workspace) -> Result<(), Problem> {
    run(
        &mut workspace.cargo(TESTS),
        "each test is named after the fault: fix the code that reintroduced it",
    )
}
