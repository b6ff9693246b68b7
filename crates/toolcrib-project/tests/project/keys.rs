//! `docs/reference-keys.md` is what the reader of project files says of itself.

use std::{collections::BTreeMap, env, fs, path::Path};

use crate::{documented::PAGES, folder::Folder};

/// Each table with an unknown key: the reader answers with the keys that it knows. Keys that are only
/// read where they are present are there too.
const PROBE: &str = r#"
0 = 0
policy_default = "allow"
agent = { 0 = 0 }
limits = { 0 = 0 }
budget = { 0 = 0, day = { 0 = 0 }, principal = { 0 = 0 } }
skills = { 0 = 0 }
sandbox = { 0 = 0 }
artifacts = { 0 = 0 }
sessions = { 0 = 0 }
approvals = { 0 = 0 }
tool_search = { 0 = 0 }
breaker = { 0 = 0 }
retry_budget = { 0 = 0 }
secrets = { A = { 0 = 0 } }
[database.NAME]
0 = 0
[files.NAME]
0 = 0
[model.NAME]
0 = 0
[price.NAME]
0 = 0
[mcp.NAME]
0 = 0
command = "date"
include = ["a"]
auth = { 0 = 0 }
[[mcp.NAME.caller]]
0 = 0
[mcp.NAME.tool.NAME]
0 = 0
[hub.NAME]
0 = 0
call = { 0 = 0 }
[plugin.NAME]
0 = 0
[team.NAME]
0 = 0
[[serve.token]]
0 = 0
[[tool]]
kind = "sql"
0 = 0
statements = [{ 0 = 0 }]
[[tool]]
kind = "sql_explore"
0 = 0
[[tool]]
kind = "command"
0 = 0
[[tool]]
kind = "files"
0 = 0
[[tool]]
kind = "http"
0 = 0
[[tool]]
kind = "openapi"
0 = 0
[[tool]]
kind = "terminal"
0 = 0
[[tool]]
kind = "code"
0 = 0
[[tool]]
kind = "todo"
0 = 0
[[tool]]
kind = "memory"
0 = 0
[[tool]]
kind = "clarify"
0 = 0
[[tool]]
kind = "task"
0 = 0
[[tool]]
kind = "web"
0 = 0
[[hook]]
0 = 0
[[personality]]
0 = 0
network = { 0 = 0 }
[[role]]
0 = 0
[[policy]]
0 = 0
annotation = { 0 = 0 }
iteration = { 0 = 0 }
args = { "/a" = { 0 = 0 } }
[[reliability]]
0 = 0
when = { 0 = 0 }
[serve]
0 = 0
tls = { 0 = 0 }
oauth = { 0 = 0 }
[serve.endpoint.NAME]
0 = 0
"#;

/// The kinds of tools, in the order of the probe.
const KINDS: [&str; 13] = [
    "sql",
    "sql_explore",
    "command",
    "files",
    "http",
    "openapi",
    "terminal",
    "code",
    "todo",
    "memory",
    "clarify",
    "task",
    "web",
];

/// Keys of which one replaces another: the table, the key that the reader asks for, and the others.
const REPLACED_BY: [(&str, &str, &str); 3] = [
    ("secret `A`", "env", "`vault`"),
    ("`[database.NAME]`", "file", "`url`"),
    ("`[[role]]`", "principals", "`tenants` or `claims`"),
];

/// The name of a probed table, as an author writes it.
fn title(found: &str, position: usize) -> String {
    match found {
        "this file" => "The top of the file".to_owned(),
        "secret `A`" => "`[secrets] NAME`".to_owned(),
        "`call`" => "`[hub.NAME.call]`".to_owned(),
        "`auth`" => "`auth` of `[mcp.NAME]`".to_owned(),
        "`[day]`" | "`[principal]`" => {
            format!("`{}` of `[budget]`", found.trim_matches(['`', '[', ']']))
        }
        "this statement" => "`statements` of `[[tool]]`".to_owned(),
        "`network`" => "`network` of `[[personality]]`".to_owned(),
        "`annotation`" | "`iteration`" => format!("{found} of `[[policy]]`"),
        "the test of `/a`" => "a test in `args` of `[[policy]]`".to_owned(),
        "`when`" => "`when` of `[[reliability]]`".to_owned(),
        "`[[tool]]`" => format!("`[[tool]]` with `kind = \"{}\"`", KINDS[position]),
        _ => found.to_owned(),
    }
}

/// The table of a kind of tools, of which a page has a block.
fn of_kind(kind: &str) -> String {
    format!("`[[tool]]` {kind}")
}

/// The examples and comments of keys on the pages, by table and key. A block of one kind of tools counts for
/// this kind, the block of all kinds for `[[tool]]`.
fn documented() -> BTreeMap<(String, String), (String, String)> {
    let mut found = BTreeMap::<_, (String, String)>::new();
    for block in PAGES.iter().flat_map(|page| page.split("```toml\n").skip(1)) {
        let mut table = "this file".to_owned();
        for line in block.split("```").next().unwrap().lines() {
            if let Some(header) = line.strip_prefix('[') {
                let header = header.trim_start_matches('[').split(']').next().unwrap();
                let mut names: Vec<&str> = header.split('.').collect();
                if let [
                    "database" | "files" | "model" | "price" | "mcp" | "hub" | "plugin" | "team",
                    name,
                    ..,
                ] = &mut *names
                {
                    *name = "NAME";
                }
                if let ["mcp", _, "tool", name] | ["serve", "endpoint", name] = &mut *names {
                    *name = "NAME";
                }
                let name = names.join(".");
                let is_list = line.starts_with("[[");
                table = if is_list { format!("`[[{name}]]`") } else { format!("`[{name}]`") };
            } else if let Some((key, rest)) = line.split_once(" = ") {
                let (value, comment) = rest.split_once(" # ").unwrap_or((rest, ""));
                if table == "`[[tool]]`" && key == "kind" && comment.is_empty() {
                    table = of_kind(value.trim().trim_matches('"'));
                }
                let value = if value.trim() == "[" { "[…]" } else { value.trim() };
                let written = (value.to_owned(), comment.trim().to_owned());
                let entry = found.entry((table.clone(), key.to_owned()));
                let entry = entry.or_insert_with(|| written.clone());
                if entry.1.is_empty() && !written.1.is_empty() {
                    *entry = written;
                }
            }
        }
    }
    found
}

/// The meaning of a key by the tables of a text: `` | `key` | meaning | ``.
fn meaning(text: &str, key: &str) -> String {
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let mut rows = rows.filter_map(|line| line.trim_end_matches(" |").split_once(" | "));
    let is_key = |word: &str| word.split(' ').next() == Some(key);
    let row = rows.find(|(keys, _)| keys.split('`').skip(1).step_by(2).any(is_key));
    row.map(|(_, meaning)| meaning.to_owned()).unwrap_or_default()
}

#[test]
fn every_event_is_on_its_page() {
    let page = include_str!("../../../../docs/events.md");
    for name in toolcrib_core::EventKind::NAMES {
        assert!(page.contains(&format!("`{name}`")), "docs/events.md does not name {name}");
    }
}

/// The example and the comment of a key; `None` if no page explains it.
fn explained(
    documented: &BTreeMap<(String, String), (String, String)>,
    table: &str,
    kind: Option<&str>,
    key: &str,
) -> Option<(String, String)> {
    let place = match table {
        "`call`" => "`[hub.NAME.call]`",
        "`auth`" => "`[mcp.NAME.auth]`",
        _ => table,
    };
    // What a kind does not explain is as of all kinds, or as of the first other one.
    let others = KINDS.iter().filter(|_| place == "`[[tool]]`").map(|kind| of_kind(kind));
    let places = kind.map(of_kind).into_iter().chain([place.to_owned()]).chain(others);
    let known: Vec<_> =
        places.filter_map(|place| documented.get(&(place, key.to_owned()))).collect();
    let with_comment = known.iter().find(|(_, comment)| !comment.is_empty());
    let (value, comment) = with_comment.or(known.first()).map_or(("", ""), |(v, c)| (v, c));
    let (_, others) = PAGES[0].split_once("\n## Other keys\n").unwrap();
    let comment = match () {
        () if ["`when`", "the test of `/a`"].contains(&table) => meaning(&PAGES.concat(), key),
        () if !comment.is_empty() => comment.replace('|', "\\|"),
        () if table == "this file" => "a section of its own".to_owned(),
        () => meaning(others, key),
    };
    (!comment.is_empty()).then(|| (value.to_owned(), comment))
}

fn head(title: &str) -> String {
    format!("\n## {title}\n\n| key | example | |\n|---|---|---|\n")
}

fn row(key: &str, value: &str, comment: &str) -> String {
    let value = match value {
        "" => String::new(),
        value => format!("`{}`", value.replace('|', "\\|")),
    };
    format!("| `{key}` | {value} | {comment} |\n")
}

/// The reference, as the reader of project files says it.
pub(crate) fn reference() -> String {
    let problems = Folder::with(PROBE).problems().to_string();
    let lines: Vec<&str> = problems.lines().collect();
    let (documented, mut kinds) = (documented(), 0);
    let mut unexplained = Vec::new();
    let mut page = String::from(
        "# All keys\n\nEvery key that Toolcrib reads in a `toolcrib.toml`, from the code that reads it. An unknown key \
         is an error.\nExamples and comments are those of [the project file](project-file.md), \
         [files, terminal and code](files.md), [OpenAPI documents](openapi.md), [memory, tasks, questions and child agents](memory.md), \
         [the web](web.md), [hooks](approvals.md#hooks), [MCP servers](mcp.md), [logins](oauth.md) and \
         [reliability rules](reliability.md). A test rewrites this page with \
         `INSTA_UPDATE=always`.\n",
    );
    for (at, line) in lines.iter().enumerate() {
        let Some((_, table)) = line.split_once("unknown key `0` in ") else { continue };
        let help = lines[at + 1];
        assert!(!help.ends_with('…'), "{help}");
        let kind = (table == "`[[tool]]`").then(|| KINDS[kinds]);
        page += &head(&title(table, kinds));
        kinds += usize::from(kind.is_some());
        // The reader names what is missing in a table before its unknown keys.
        let before = lines[..at].iter().rev();
        let own: Vec<_> = before.take_while(|line| !line.contains("unknown key `0` in ")).collect();
        for key in help.split('`').skip(1).step_by(2) {
            let missing = format!("`{key}` is missing in {table}");
            let is_required = own.iter().any(|line| line.ends_with(&missing));
            let is_replaced = |(of, name, _): &&(&str, &str, &str)| *of == table && *name == key;
            let required = match REPLACED_BY.iter().find(is_replaced) {
                Some((_, _, others)) => format!("required without {others}; "),
                None if is_required => "required; ".to_owned(),
                None => String::new(),
            };
            let Some((value, comment)) = explained(&documented, table, kind, key) else {
                unexplained.push(format!("`{key}` in {table}"));
                continue;
            };
            page += &row(key, &value, &format!("{required}{comment}"));
        }
    }
    assert!(unexplained.is_empty(), "no page explains {}", unexplained.join(", "));
    page
}

/// The reference with the keys that all kinds of tools have in one table, before those of the kinds, which
/// have only the rows that differ from it.
fn page() -> String {
    let reference = reference();
    let sections: Vec<&str> = reference.split_inclusive("\n\n## ").collect();
    let is_kind = |section: &&str| section.starts_with("`[[tool]]` with `kind");
    let of_kinds: Vec<&str> = sections.iter().copied().filter(is_kind).collect();
    let key_of = |row: &str| row.strip_prefix("| `")?.split('`').next().map(str::to_owned);
    let documented = documented();
    let keys = of_kinds[0].lines().filter_map(key_of).filter(|key| {
        of_kinds.iter().all(|kind| kind.lines().any(|row| key_of(row).as_ref() == Some(key)))
    });
    let shared: Vec<String> = keys
        .map(|key| {
            let (value, comment) = explained(&documented, "`[[tool]]`", None, &key).unwrap();
            row(&key, &value, &comment)
        })
        .collect();
    let mut page = String::new();
    for section in sections {
        if section == of_kinds[0] {
            let table = head("`[[tool]]` of every kind");
            page += &format!("{}{}\n## ", table.trim_start_matches("\n## "), shared.concat());
        }
        let is_own = |line: &&str| !is_kind(&section) || !shared.iter().any(|row| row == line);
        page.extend(section.split_inclusive('\n').filter(is_own));
    }
    page
}

#[test]
fn the_reference_of_keys_is_current() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference-keys.md");
    if env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(&path, &page).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), page, "INSTA_UPDATE=always rewrites the page");
}
