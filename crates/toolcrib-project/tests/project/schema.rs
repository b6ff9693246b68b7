//! `toolcrib.schema.json`, for editors: the keys of the reference, which the reader of project files lists
//! itself, and the types of their values, which it is asked for with a value of each.

use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};

use jsonschema::Validator;
use serde_json::{Map, Value as Json, json};
use tempfile::TempDir;
use toolcrib_config::{Document, Problems};
use toolcrib_project::{PROJECT_FILE_SCHEMA, init, init_from};

use crate::{folder::Folder, keys};

/// A value of each type.
const VALUES: [(&str, &str); 6] = [
    ("boolean", "true"),
    ("integer", "7"),
    ("number", "1.5"),
    ("string", "\"0zqx\""),
    ("array", "[]"),
    ("object", "{}"),
];

/// A section of the reference: a table and its keys.
struct Section<'a> {
    title: &'a str,
    /// The first lines of such a table in a file; `None` if it is within a value.
    header: Option<String>,
    /// Where its schema is.
    path: Vec<String>,
    /// Each key and its schema.
    keys: Vec<(String, Map<String, Json>)>,
}

impl<'a> Section<'a> {
    fn read(title: &'a str, rows: &str) -> Self {
        let (header, path) = place(title);
        let keys = rows.lines().filter(|row| row.starts_with("| `")).map(|row| {
            let row = row.replace("\\|", "¦");
            let (key, rest) = row[3..].split_once('`').unwrap();
            let text = rest.trim_end_matches('|').rsplit(" | ").next().unwrap().trim();
            let text = text.replace('¦', "|");
            let text = text.strip_prefix("required; ").unwrap_or(&text);
            let example = rest.split(" | ").nth(1).unwrap_or_default().trim_matches(['`', ' ']);
            let mut schema = Map::new();
            // On the page, the example stands before these words.
            let follows = ["or ", "the default;"].iter().any(|words| text.starts_with(words));
            let description = match text {
                "" | "required" | "a section of its own" => None,
                text if follows => Some(format!("{}, {text}", example.replace('¦', "|"))),
                text => Some(text.to_owned()),
            };
            schema.extend(description.map(|text| ("description".to_owned(), json!(text))));
            (key.to_owned(), schema)
        });
        Self { title, header, path, keys: keys.collect() }
    }

    fn schema(&self) -> Json {
        let kind =
            self.title.split_once("kind = \"").map(|(_, kind)| kind.trim_matches(['"', '`']));
        let mut properties: Map<_, _> =
            self.keys.iter().map(|(key, schema)| (key.clone(), json!(schema))).collect();
        let mut schema = json!({});
        // A table below a name; that of another key has its type from the reader.
        if self.path.last().is_some_and(|last| last == "additionalProperties") {
            schema["type"] = json!("object");
        }
        if let Some(kind) = kind {
            properties.insert("kind".to_owned(), json!({ "const": kind }));
            schema["required"] = json!(["kind"]);
        }
        schema["properties"] = json!(properties);
        schema["additionalProperties"] = json!(false);
        schema
    }
}

/// The header of a table with a title of the reference, and the path of its schema.
fn place(title: &str) -> (Option<String>, Vec<String>) {
    let quoted: Vec<_> = title.split('`').skip(1).step_by(2).collect();
    let path_of = |name: &str| -> Vec<String> {
        let keys = name.trim_matches(['[', ']']).split('.');
        let mut path: Vec<_> = keys
            .flat_map(|key| match key {
                "NAME" => vec!["additionalProperties"],
                key => vec!["properties", key],
            })
            .map(str::to_owned)
            .collect();
        if name.starts_with("[[") {
            path.push("items".to_owned());
        }
        path
    };
    match &*quoted {
        [] => (Some(String::new()), Vec::new()),
        ["[secrets] NAME"] => (Some("[secrets.NAME]\n".to_owned()), path_of("[secrets.NAME]")),
        [table, kind] if kind.starts_with("kind = ") => {
            (Some(format!("{table}\n{kind}\n")), path_of(table))
        }
        [key, table] => {
            let mut path = path_of(table);
            path.extend(["properties", key].map(str::to_owned));
            match *key {
                "statements" => path.push("items".to_owned()),
                "args" => path.push("additionalProperties".to_owned()),
                _ => {}
            }
            (None, path)
        }
        [table] => (Some(format!("{table}\n")), path_of(table)),
        _ => panic!("{title}"),
    }
}

/// Adds the types and words that the reader accepts. It refuses other types with "must be …; this is …".
fn add_types(sections: &mut [Section<'_>]) {
    let tables: Vec<_> = sections.iter().filter_map(|section| section.header.clone()).collect();
    let has_header = |section: &Section<'_>, key: &str| {
        let header = section.header.as_deref().unwrap_or_default();
        let inner = format!("{}.{key}", header.trim().trim_matches(['[', ']']));
        let is_inner = |table: &String| {
            let rest = table.trim_matches(['[', '\n']).strip_prefix(&inner);
            rest.is_some_and(|rest| rest.starts_with([']', '.']))
        };
        header.contains("kind = ") && key == "kind" || tables.iter().any(is_inner)
    };
    let mut accepted: Vec<Vec<Vec<&str>>> =
        sections.iter().map(|section| vec![Vec::new(); section.keys.len()]).collect();
    for (name, value) in VALUES {
        let (mut text, mut places) = (String::new(), Vec::new());
        for (at, section) in sections.iter().enumerate() {
            let Some(header) = &section.header else { continue };
            text += header;
            for (position, (key, _)) in section.keys.iter().enumerate() {
                if !has_header(section, key) {
                    places.push((text.lines().count() + 1, at, position));
                    text += &format!("{key} = {value}\n");
                }
            }
        }
        let problems = Folder::with(&text).probed();
        let first = problems.errors().next().map(ToString::to_string).unwrap_or_default();
        assert!(!first.contains("this is not TOML"), "{first}\n{text}");
        for (line, at, position) in places {
            let (key, schema) = &mut sections[at].keys[position];
            let own = problems
                .errors()
                .filter(|problem| &*problem.file == "toolcrib.toml" && problem.line == line);
            let mut is_refused = false;
            for problem in own {
                let (message, help) = (&problem.message, problem.help.as_deref());
                is_refused |= message.starts_with(&format!("`{key}` must be "))
                    && message.contains("; this is ");
                if message.contains("cannot be `0zqx`")
                    && let Some(words) = help.and_then(|help| help.strip_prefix("the values are "))
                    && !words.ends_with('…')
                {
                    let words: Vec<_> = words.split('`').skip(1).step_by(2).collect();
                    schema.insert("enum".to_owned(), json!(words));
                }
            }
            if !is_refused {
                accepted[at][position].push(name);
            }
        }
    }
    for (section, accepted) in sections.iter_mut().zip(accepted) {
        for ((_, schema), mut types) in section.keys.iter_mut().zip(accepted) {
            let is_any = types.len() == VALUES.len();
            if types.contains(&"number") {
                types.retain(|name| *name != "integer");
            }
            // Of a key with other types, words are not all values.
            if types != ["string"] {
                schema.remove("enum");
            }
            match &*types {
                [] => {}
                _ if is_any => {}
                [one] => drop(schema.insert("type".to_owned(), json!(one))),
                several => drop(schema.insert("type".to_owned(), json!(several))),
            }
        }
    }
}

fn at<'a>(schema: &'a mut Json, path: &[String]) -> &'a mut Json {
    path.iter().fold(schema, |schema, key| &mut schema[key])
}

/// Adds a kind of `[[tool]]`. Of a `oneOf`, an editor would mark the whole table for one wrong key. For
/// completion, which does not read conditions, the keys of all kinds are listed too.
fn add_kind(tool: &mut Json, section: &Section<'_>) {
    let schema = section.schema();
    let kind = schema["properties"]["kind"]["const"].clone();
    if tool["allOf"].is_null() {
        *tool = json!({ "type": "object", "required": ["kind"], "allOf": [],
            "properties": { "kind": { "enum": [] } } });
    }
    tool["properties"]["kind"]["enum"].as_array_mut().unwrap().push(kind.clone());
    for (key, of_kind) in schema["properties"].as_object().unwrap() {
        let known = tool["properties"].as_object_mut().unwrap();
        if let Some(text) = of_kind.get("description") {
            known.entry(key).or_insert_with(|| json!({ "description": text }));
        } else {
            known.entry(key).or_insert_with(|| json!({}));
        }
    }
    let is_kind = json!({ "required": ["kind"], "properties": { "kind": { "const": kind } } });
    tool["allOf"].as_array_mut().unwrap().push(json!({ "if": is_kind, "then": schema }));
}

fn generated() -> Json {
    let page = keys::reference();
    let sections = page.split("\n## ").skip(1);
    let mut sections: Vec<_> = sections
        .map(|section| section.split_once('\n').unwrap())
        .map(|(title, rows)| Section::read(title, rows))
        .collect();
    let (top, tables) = sections.split_first_mut().unwrap();
    add_types(std::slice::from_mut(top));
    add_types(tables);
    let mut schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "toolcrib.toml",
        "description": "A project of Toolcrib. A test generates this from the reader of project files.",
        "type": "object",
    });
    // The schemas within others come later.
    sections.sort_by_key(|section| section.path.len());
    for section in &sections {
        let is_of_tool = section.path.starts_with(&["properties".to_owned(), "tool".to_owned()]);
        match section.header {
            Some(_) if is_of_tool => add_kind(at(&mut schema, &section.path), section),
            None if is_of_tool => {
                let kinds = schema["properties"]["tool"]["items"]["allOf"].as_array_mut().unwrap();
                for kind in kinds {
                    if let Some(key) = kind["then"]["properties"].get_mut("statements") {
                        key["items"] = section.schema();
                    }
                }
            }
            _ => {
                let place = at(&mut schema, &section.path);
                for (keyword, value) in section.schema().as_object().unwrap() {
                    place[keyword] = value.clone();
                }
            }
        }
    }
    schema
}

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = fs::read_to_string(file()).unwrap();
    jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap()
});

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("toolcrib.schema.json")
}

/// The file as JSON; `None` if it is not TOML, or has values that JSON lacks.
fn json_of(text: &str) -> Option<Json> {
    let problems = Problems::new("toolcrib.toml");
    let entries = Document::new("toolcrib.toml", text).read(&problems, |file| {
        let entries = file.rest().map(|(key, value)| Some((key.value.to_string(), value.json()?)));
        entries.collect::<Option<Map<_, _>>>()
    });
    entries.flatten().map(Json::Object)
}

/// Asserts that the schema accepts a project file that loads.
pub(crate) fn assert_accepted(text: &str) {
    let Some(file) = json_of(text) else { return };
    let refused: Vec<_> = SCHEMA
        .iter_errors(&file)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        refused.is_empty(),
        "toolcrib.schema.json refuses a project that loads: {refused:?}. If a key is new, INSTA_UPDATE=always with \
         the tests of keys and schema writes it anew.\n{text}"
    );
}

/// JSON with each value on one line that has room there, `used` columns of which are taken.
fn lines(value: &Json, indent: usize, used: usize) -> String {
    let whole = value.to_string();
    let (open, close, values): (_, _, Vec<_>) = match value {
        _ if indent + used + whole.len() <= 120 => return whole,
        Json::Object(entries) => (
            '{',
            '}',
            entries
                .iter()
                .map(|(key, value)| (format!("{}: ", Json::from(&**key)), value))
                .collect(),
        ),
        Json::Array(items) => ('[', ']', items.iter().map(|item| (String::new(), item)).collect()),
        _ => return whole,
    };
    let inner = indent + 2;
    let values = values
        .into_iter()
        .map(|(key, value)| format!("\n{:inner$}{key}{}", "", lines(value, inner, key.len() + 1)));
    format!("{open}{}\n{:indent$}{close}", values.collect::<Vec<_>>().join(","), "")
}

#[test]
fn the_schema_is_current() {
    let text = format!("{}\n", lines(&generated(), 0, 0));
    if env::var("INSTA_UPDATE").is_ok_and(|update| update == "always") {
        fs::write(file(), &text).unwrap();
    }
    let current = fs::read_to_string(file()).unwrap();
    assert!(current == text, "INSTA_UPDATE=always writes toolcrib.schema.json anew");
}

#[test]
fn the_schema_accepts_every_example() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let examples = fs::read_dir(root.join("../../examples")).unwrap();
    let folders = examples.map(|entry| entry.unwrap().path()).chain([root.join("template")]);
    let files: Vec<_> =
        folders.map(|dir| dir.join("toolcrib.toml")).filter(|file| file.exists()).collect();
    assert!(files.len() >= 7, "{files:?}");
    files.iter().for_each(|file| assert_accepted(&fs::read_to_string(file).unwrap()));
}

#[test]
fn the_schema_refuses_misspelt_keys_and_wrong_types_in_every_table() {
    for (text, problem) in [
        ("nmae = \"x\"", "a key"),
        ("agent = 5", "a table"),
        ("[agent]\nmax_iterations = \"10\"", "a text instead of a number"),
        ("[sandbox]\ntier = \"fulll\"", "a word"),
        ("[mcp.git]\ncommand = \"x\"\ncomand = \"y\"", "a key of a server"),
        ("[[tool]]\nkind = \"sqll\"\nname = \"x\"", "a kind"),
        ("[[tool]]\nname = \"x\"", "no kind"),
        (
            "[[tool]]\nkind = \"sql\"\nname = \"x\"\ndescription = \"d\"\nstatements = [{ sqk = \"\" }]",
            "a key of a statement",
        ),
        (
            "[[tool]]\nkind = \"http\"\nname = \"x\"\ndescription = \"d\"\nurl = \"https://x\"\nmax_rows = 1",
            "a key of another kind",
        ),
        (
            "[[policy]]\neffect = \"deny\"\nargs = { \"/a\" = { equal = 1 } }",
            "a test of an argument",
        ),
        ("[[policy]]\neffect = \"deny\"\nannotation = { read_onyl = true }", "an annotation"),
        ("[secrets]\nA = 3", "a secret without its source"),
    ] {
        let text = format!("{text}\n");
        assert!(!SCHEMA.is_valid(&json_of(&text).unwrap()), "{problem} is accepted:\n{text}");
        assert!(Folder::with(&text).problems().errors().count() > 0, "{problem} is no error");
    }
}

#[test]
fn one_wrong_key_of_a_tool_is_one_problem_that_names_it() {
    let text = "[[tool]]\nkind = \"sql\"\nname = \"x\"\ndescription = \"d\"\nstatement = \"x\"\n";
    let file = json_of(text).unwrap();
    let problems: Vec<_> = SCHEMA.iter_errors(&file).map(|error| error.to_string()).collect();
    assert!(matches!(&*problems, [one] if one.contains("'statement'")), "{problems:?}");
}

#[test]
fn a_new_project_names_a_schema_that_is_in_its_folder_and_accepts_it() {
    let dir = TempDir::new().unwrap();
    let servers = dir.path().join("servers.json");
    fs::write(&servers, r#"{ "mcpServers": { "clock": { "command": "clock" } } }"#).unwrap();
    let [notes, begun] = ["notes", "begun"].map(|name| dir.path().join(name));
    init(&notes).unwrap();
    init_from(&begun, &servers).unwrap();
    for project in [notes, begun] {
        let text = fs::read_to_string(project.join("toolcrib.toml")).unwrap();
        let named = text.lines().next().unwrap().strip_prefix("#:schema ").unwrap();
        assert_eq!(fs::read_to_string(project.join(named)).unwrap(), PROJECT_FILE_SCHEMA);
        assert!(SCHEMA.is_valid(&json_of(&text).unwrap()), "{text}");
    }
}
