//! What stands in `docs/project-file.md` loads.

use toolcrib_core::Annotations;

use crate::folder::Folder;

const PAGE: &str = include_str!("../../../../docs/project-file.md");

/// The first TOML block behind a heading.
pub(crate) fn block(heading: &str) -> &'static str {
    let section = PAGE.split_once(&format!("\n{heading}\n")).unwrap().1;
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
