//! The catalogs of widely used servers, unchanged (git 2026.10.19, fetch 2026.10.24, filesystem
//! 2026.8.31 of the Model Context Protocol's reference servers, MIT): the rules find problems that
//! a reader would agree with, and no others.

use toolcrib_lint::{Format, Linter, lint, parse};

fn found(catalog: &str) -> String {
    let parsed = parse(&serde_json::from_str(catalog).unwrap()).unwrap();
    assert_eq!(parsed.format, Format::Mcp);
    let report = lint(&parsed.tools);
    let findings = report.findings.iter().map(|f| format!("[{}] {}\n", f.rule, f.message));
    findings.collect::<String>() + &format!("~{} tokens", report.totals.tokens)
}

#[test]
fn the_git_server() {
    insta::assert_snapshot!(found(include_str!("real/git.json")), @r#"
    [vague-description] the description of `git_status` has only 29 characters: "Shows the working tree status"
    [undescribed-parameter] `git_status` has a parameter without a description: `repo_path`
    [says-what-not-when] the description of `git_diff_unstaged` says what it does and not when to use it
    [undescribed-parameter] `git_diff_unstaged` has parameters without a description: `repo_path`, `context_lines`
    [says-what-not-when] the description of `git_diff_staged` says what it does and not when to use it
    [undescribed-parameter] `git_diff_staged` has parameters without a description: `repo_path`, `context_lines`
    [undescribed-parameter] `git_diff` has parameters without a description: `repo_path`, `target`, `context_lines`
    [vague-description] the description of `git_commit` has only 33 characters: "Records changes to the repository"
    [undescribed-parameter] `git_commit` has parameters without a description: `repo_path`, `message`
    [vague-description] the description of `git_add` has only 38 characters: "Adds file contents to the staging area"
    [undescribed-parameter] `git_add` has parameters without a description: `repo_path`, `files`
    [vague-description] the description of `git_reset` has only 27 characters: "Unstages all staged changes"
    [undescribed-parameter] `git_reset` has a parameter without a description: `repo_path`
    [vague-description] the description of `git_log` has only 21 characters: "Shows the commit logs"
    [undescribed-parameter] `git_log` has parameters without a description: `repo_path`, `max_count`
    [says-what-not-when] the description of `git_create_branch` says what it does and not when to use it
    [undescribed-parameter] `git_create_branch` has parameters without a description: `repo_path`, `branch_name`, `base_branch`
    [vague-description] the description of `git_checkout` has only 17 characters: "Switches branches"
    [undescribed-parameter] `git_checkout` has parameters without a description: `repo_path`, `branch_name`
    [says-what-not-when] the description of `git_show` says what it does and not when to use it
    [undescribed-parameter] `git_show` has parameters without a description: `repo_path`, `revision`
    [vague-description] the description of `git_branch` has only 17 characters: "List Git branches"
    ~1201 tokens
    "#);
}

#[test]
fn the_filesystem_server() {
    insta::assert_snapshot!(found(include_str!("real/filesystem.json")), @r#"
    [undescribed-parameter] `read_file` has a parameter without a description: `path`
    [undescribed-parameter] `read_text_file` has a parameter without a description: `path`
    [undescribed-parameter] `read_media_file` has a parameter without a description: `path`
    [undescribed-parameter] `write_file` has parameters without a description: `path`, `content`
    [undescribed-parameter] `edit_file` has parameters without a description: `path`, `edits`
    [undescribed-parameter] `create_directory` has a parameter without a description: `path`
    [undescribed-parameter] `list_directory` has a parameter without a description: `path`
    [confusable-description] the descriptions of `list_directory_with_sizes` and `list_directory` have 84 % of their words in common; only `list_directory_with_sizes` says "including", "size", "useful", only `list_directory` says "essential"
    [undescribed-parameter] `list_directory_with_sizes` has a parameter without a description: `path`
    [undescribed-parameter] `directory_tree` has parameters without a description: `path`, `excludePatterns`
    [undescribed-parameter] `move_file` has parameters without a description: `source`, `destination`
    [undescribed-parameter] `search_files` has parameters without a description: `path`, `pattern`, `excludePatterns`
    [undescribed-parameter] `get_file_info` has a parameter without a description: `path`
    ~2004 tokens
    "#);
}

#[test]
fn the_fetch_server() {
    insta::assert_snapshot!(found(include_str!("real/fetch.json")), @r#"
    [says-what-not-when] the description of `fetch` says what it does and not when to use it
    ~262 tokens
    "#);
}

#[test]
fn no_definition_of_published_servers_is_an_attack() {
    let catalogs = [
        include_str!("../../../../examples/five-hundred/servers/atlassian.json"),
        include_str!("../../../../examples/five-hundred/servers/browser.json"),
        include_str!("../../../../examples/five-hundred/servers/datadog.json"),
        include_str!("../../../../examples/five-hundred/servers/devtools.json"),
        include_str!("../../../../examples/five-hundred/servers/git.json"),
        include_str!("../../../../examples/five-hundred/servers/github.json"),
        include_str!("../../../../examples/five-hundred/servers/gitlab.json"),
        include_str!("../../../../examples/five-hundred/servers/maps.json"),
        include_str!("../../../../examples/five-hundred/servers/slack.json"),
        include_str!("../../../../examples/five-hundred/servers/workspace.json"),
    ];
    let mut tools = 0;
    for catalog in catalogs {
        let parsed = parse(&serde_json::from_str(catalog).unwrap()).unwrap();
        tools += parsed.tools.len();
        let report = Linter::new().attacks_only().lint(&parsed.tools);
        assert_eq!(report.findings, []);
    }
    assert!(tools >= 500, "{tools}");
}
