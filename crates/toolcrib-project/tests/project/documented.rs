//! The TOML blocks of the pages load.

use toolcrib_core::Annotations;

use crate::folder::Folder;

/// The pages that say how a project file is written.
pub(crate) const PAGES: [&str; 9] = [
    include_str!("../../../../docs/project-file.md"),
    include_str!("../../../../docs/files.md"),
    include_str!("../../../../docs/openapi.md"),
    include_str!("../../../../docs/memory.md"),
    include_str!("../../../../docs/web.md"),
    include_str!("../../../../docs/approvals.md"),
    include_str!("../../../../docs/mcp.md"),
    include_str!("../../../../docs/reliability.md"),
    include_str!("../../../../docs/oauth.md"),
];

/// The first TOML block after a heading.
pub(crate) fn block(heading: &str) -> &'static str {
    let after = |page: &&'static str| page.split_once(&format!("\n{heading}\n"));
    let (_, section) = PAGES.iter().find_map(after).unwrap();
    section.split_once("```toml\n").unwrap().1.split_once("```").unwrap().0
}

#[test]
fn documented_command_and_http_tools_load_with_their_secret() {
    let blocks = ["## Secrets", "### `kind = \"command\"`", "### `kind = \"http\"`"].map(block);
    let project = Folder::with(&blocks.concat()).load();
    let [search, forecast] = project.tools() else { panic!("{:?}", project.tools()) };
    assert_eq!((&**search.name(), &**forecast.name()), ("search_notes", "forecast"));
    let reads = Annotations { read_only: true, ..Annotations::default() };
    assert_eq!((search.annotations(), forecast.annotations()), (reads, reads));
    assert_eq!(forecast.capabilities().secrets, ["WEATHER_KEY".into()]);
    assert!(search.untrusted() && forecast.untrusted());
}
