//! The folders of configuration files.

use std::{env, path::PathBuf};

use toolcrib_project::folder_of_user;

/// The user has no home folder.
#[derive(Debug, thiserror::Error)]
#[error("there is no folder for configuration files: HOME is not set to an absolute path")]
pub(crate) struct NoHomeError;

/// The place of a client's configuration file: the first of its names that exists, else the first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    base: Base,
    names: &'static [&'static str],
    /// A variable with another folder, and the name in it.
    moved: Option<(&'static str, &'static str)>,
}

#[derive(Debug, Clone, Copy)]
enum Base {
    Home,
    /// `$XDG_CONFIG_HOME` or `~/.config`, on every system.
    Config,
    /// The same, but on macOS `~/Library/Application Support`.
    Application,
}

impl Place {
    pub(super) const fn home(names: &'static [&'static str]) -> Self {
        Self { base: Base::Home, names, moved: None }
    }

    pub(super) const fn config(names: &'static [&'static str]) -> Self {
        Self { base: Base::Config, names, moved: None }
    }

    pub(super) const fn application(names: &'static [&'static str]) -> Self {
        Self { base: Base::Application, names, moved: None }
    }

    pub(super) const fn or_in(mut self, variable: &'static str, name: &'static str) -> Self {
        self.moved = Some((variable, name));
        self
    }

    pub(super) fn file(self) -> Result<PathBuf, NoHomeError> {
        if let Some((variable, name)) = self.moved
            && let Some(folder) = folder(variable)
        {
            return Ok(folder.join(name));
        }
        let base = match self.base {
            Base::Home => folder("HOME"),
            Base::Application if cfg!(target_os = "macos") => {
                folder("HOME").map(|home| home.join("Library/Application Support"))
            }
            Base::Config | Base::Application => folder_of_user("XDG_CONFIG_HOME", ".config"),
        };
        let base = base.ok_or(NoHomeError)?;
        let mut files = self.names.iter().map(|name| base.join(name));
        let existing = files.clone().find(|file| file.symlink_metadata().is_ok());
        existing.or_else(|| files.next()).ok_or(NoHomeError)
    }
}

/// The user's state folder of Toolcrib.
pub(crate) fn folder_of_state() -> Result<PathBuf, NoHomeError> {
    let states = folder_of_user("XDG_STATE_HOME", ".local/state").ok_or(NoHomeError)?;
    Ok(states.join("toolcrib"))
}

fn folder(variable: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env::var_os(variable)?);
    path.is_absolute().then_some(path)
}
