//! The conversations, in our terms.
//!
//! ```text
//! about        what the case is there for
//! system       the system text; may be empty
//! tools        [{name, description, input_schema}]
//! deferred     more tools; those that a result of `search_tools` names are loaded where the vendor
//!              can do that, instead of being called with `call_tool`
//! tool_choice  "auto", "none", "required" or {"tool": NAME}; left out: nothing is said
//! settings     {temperature}, {reasoning} or {result_blocks}, where one is set
//! replies      the recorded answers, one for each request; ["text"] where left out
//! messages     {role: "user", text}
//!              {role: "assistant", text, calls: [{id, name, arguments}]}  said before
//!              {role: "assistant", heard: true}  asks here, and takes what comes
//!              {role: "tool", of, text, is_error, images: [{media_type, data}]}  `of` counts the
//!                                                     calls of the assistant's message before it
//! ```
//!
//! After the last message the model is asked once more. A case without `system`, `tools` or `messages` has
//! those of `plain`.

use std::{fs, path::PathBuf};

use serde_json::{Map, Value};

/// A folder beside this file.
pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/oracle").join(name)
}

/// The names of the files in a folder, without their ending, sorted.
pub(crate) fn names(folder: &PathBuf, ending: &str) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(ending)?.to_owned()))
        .collect();
    assert!(!names.is_empty(), "{} is empty", folder.display());
    names.sort();
    names
}

/// A conversation: what it begins with, and whose turn it is when.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) json: Value,
}

impl Case {
    pub(crate) fn all() -> Vec<Self> {
        names(&folder("cases"), ".json").iter().map(|name| Self::read(name)).collect()
    }

    pub(crate) fn read(name: &str) -> Self {
        let mut keys = Self::keys("plain");
        keys.extend(Self::keys(name));
        Self { name: name.to_owned(), json: keys.into() }
    }

    fn keys(name: &str) -> Map<String, Value> {
        let text = fs::read_to_string(folder("cases").join(format!("{name}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    /// The answers that it gets, by the names of their files.
    pub(crate) fn replies(&self) -> Vec<String> {
        match self.json.get("replies") {
            Some(names) => serde_json::from_value(names.clone()).unwrap(),
            None => vec!["text".to_owned()],
        }
    }
}
