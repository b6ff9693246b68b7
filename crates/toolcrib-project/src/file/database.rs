//! `[database.NAME]`.

use std::{
    path::{Component, Path},
    sync::Arc,
};

use toolcrib_config::{Located, Table, Value};

use super::secrets::secret_reference;

/// A declared database.
#[derive(Debug)]
pub(crate) struct DatabaseSection {
    pub(crate) name: Located<Arc<str>>,
    /// `None` if it cannot be read, which is recorded.
    pub(crate) source: Option<DatabaseSource>,
}

/// The source of a declared database.
#[derive(Debug)]
pub(crate) enum DatabaseSource {
    /// A seed script in the project, from which a file in the state folder is created.
    Seed { file: Option<Located<Arc<str>>>, seed: Option<Located<Arc<str>>> },
    /// An existing file, from the project's folder.
    File { file: Located<Arc<str>>, writable: bool },
    /// A PostgreSQL server, whose URL is a secret.
    Server { secret: Located<Arc<str>>, writable: bool },
}

impl DatabaseSection {
    pub(crate) fn read_all(file: &Table<'_>) -> Vec<Self> {
        let Some(databases) =
            file.value("database").and_then(|value| value.entries("`[database]`"))
        else {
            return Vec::new();
        };
        databases.rest().filter_map(|(name, value)| Self::read(name, &value)).collect()
    }

    /// The name of its file in the state folder, if it has a seed.
    pub(crate) fn state_file(&self) -> Option<&Located<Arc<str>>> {
        match &self.source {
            Some(DatabaseSource::Seed { file, .. }) => file.as_ref(),
            _ => None,
        }
    }

    fn read(name: Located<Arc<str>>, value: &Value<'_>) -> Option<Self> {
        if !value.is_table() {
            let help = "write `[database.NAME]`, with a name of your choice, and below it `file`";
            value.refuse(format!("`{}` is not a database", name.value), help);
            return None;
        }
        let what = format!("`[database.{}]`", name.value);
        value.table(&what, |table| Self { source: DatabaseSource::read(table), name })
    }
}

impl DatabaseSource {
    fn read(table: &Table<'_>) -> Option<Self> {
        if let Some(url) = table.value("url") {
            for key in ["file", "seed"] {
                table.explain(key, "a database has either a `file` or a `url`");
            }
            let writable = table.boolean("writable").unwrap_or_default();
            return Some(Self::Server { secret: secret_reference(&url, "url")?, writable });
        }
        let file = table.required("file", "\"../shop.db\"");
        if let Some(seed) = table.value("seed") {
            table.explain("writable", "a database that is created from a seed is always writable");
            let (file, seed) = (file.and_then(|file| file_name(&file)), seed.text());
            return Some(Self::Seed { file, seed });
        }
        let writable = table.boolean("writable").unwrap_or_default();
        Some(Self::File { file: file.and_then(|file| file.text())?, writable })
    }
}

/// A plain file name: databases with a seed are stored directly in the state folder. Names that
/// begin with a dot are reserved.
fn file_name(value: &Value<'_>) -> Option<Located<Arc<str>>> {
    let file = value.text()?;
    let mut components = Path::new(&*file.value).components();
    let plain = matches!(components.next(), Some(Component::Normal(name)) if *name == *file.value)
        && components.next().is_none()
        && !file.value.starts_with('.');
    if !plain {
        value.refuse(
            format!("`{}` is not a plain file name", file.value),
            "a database with a seed is stored in the state folder: write a name such as \
             \"desk.db\"; for an existing file of your own, remove `seed`",
        );
    }
    plain.then_some(file)
}
