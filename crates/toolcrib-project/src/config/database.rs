//! `[database.NAME]`.

use std::{
    path::{Component, Path},
    sync::Arc,
};

use toolcrib_config::{Located, Table, Value};

/// A declared database.
#[derive(Debug)]
pub(crate) struct DatabaseSection {
    pub(crate) name: Located<Arc<str>>,
    /// The file's name in the state folder.
    pub(crate) file: Option<Located<Arc<str>>>,
    /// The seed script, in the project.
    pub(crate) seed: Option<Located<Arc<str>>>,
}

impl DatabaseSection {
    pub(super) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(databases) =
            file.value("database").and_then(|value| value.entries("`[database]`"))
        else {
            return Vec::new();
        };
        databases.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[database.NAME]`, with a name of your choice, and below it `file` \
                        and `seed`";
            value.refuse(format!("`{}` is not a database", name.value), help);
            return None;
        }
        let what = format!("`[database.{}]`", name.value);
        value.table(&what, |table| Self {
            file: table.required("file", "\"desk.db\"").and_then(|file| file_name(&file)),
            seed: table.required("seed", "\"seed.sql\"").and_then(|seed| seed.text()),
            name,
        })
    }
}

/// A plain file name: databases lie directly in the state folder. Names that begin with a dot
/// are the state folder's own.
fn file_name(value: &Value<'_>) -> Option<Located<Arc<str>>> {
    let file = value.text()?;
    let mut components = Path::new(&*file.value).components();
    let plain = matches!(components.next(), Some(Component::Normal(name)) if *name == *file.value)
        && components.next().is_none()
        && !file.value.starts_with('.');
    if !plain {
        value.refuse(
            format!("`{}` is not a plain file name", file.value),
            "the database lies in the state folder; write a name such as \"desk.db\"",
        );
    }
    plain.then_some(file)
}
