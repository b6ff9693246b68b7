//! `toolcrib install`: one entry in the configuration of an MCP client, and its undoing.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use toolcrib_capabilities::http::parse_url;
use toolcrib_core::{CancellationToken, Digest};
use toolcrib_mcp::{ServerName, server::Http};

use crate::{
    args::{GlobalArgs, InstallArgs, OfflineArgs},
    clients::{
        CurrentFile, EditError, InstalledEntry, InstalledError, NoHomeError, Records, Scope,
        WriteError, put, read, with_entry, without_entry,
    },
    exit::{self, Exit},
    output::{self, InstallJson},
    problem::Problem,
    project::{
        consent,
        load::{
            ChosenModel, Purpose, blocking, here, project_folder, unless_cancelled, with_project,
        },
        turn::personality,
    },
};

pub(super) async fn install(
    global: &GlobalArgs,
    args: InstallArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    ServerName::new(&*args.name).map_err(|error| Problem::usage(format!("`--name`: {error}")))?;
    let words = if args.uninstall {
        refuse_project(global, "`--uninstall` removes the entry as it is")?;
        Vec::new()
    } else if let Some(url) = &args.url {
        refuse_project(global, "the gateway at `--url` has its own project")?;
        check_url(url, args.token_variable.as_deref())?;
        Vec::new()
    } else {
        // A client shows little of the errors of a server that does not start.
        let look = Purpose::Look(OfflineArgs { offline: true });
        with_project(global, look, ChosenModel::default(), &cancellation, async |project| {
            personality(project, args.personality.as_deref()).map(drop)
        })
        .await?;
        serve_words(global, &args)?
    };
    let (json, quiet) = (global.json, global.quiet);
    let work = move || {
        let target = Target::of(&args)?;
        let change = if args.uninstall { target.removal()? } else { target.entry(&words)? };
        target.make(&change, json, quiet)
    };
    unless_cancelled(blocking(work), &cancellation).await??
}

/// Refuses the options of a project where none is installed.
fn refuse_project(global: &GlobalArgs, reason: &str) -> Result<(), Problem> {
    let options = [
        ("--project", global.project.is_some()),
        ("--state", global.state.is_some()),
        ("--import", !global.imports.is_empty()),
        ("--locked", global.locked),
    ];
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((flag, _)) => Err(Problem::usage(format!("{reason}; leave out `{flag}`"))),
        None => Ok(()),
    }
}

/// The arguments by which the client starts `serve`, with absolute paths and without secrets.
fn serve_words(global: &GlobalArgs, args: &InstallArgs) -> Result<Vec<String>, Problem> {
    let mut words = vec!["serve".to_owned()];
    let mut push = |flag: &str, path: &Path| -> Result<(), Problem> {
        let path = fs::canonicalize(path).or_else(|_| std::path::absolute(path));
        let path = path.map_err(|error| Problem::usage(format!("`{flag}`: {error}")))?;
        words.extend([flag.to_owned(), utf8(&path)?]);
        Ok(())
    };
    if let Some(dir) = project_folder(global)? {
        push("--project", &dir)?;
    }
    global.state.iter().try_for_each(|path| push("--state", path))?;
    global.imports.iter().try_for_each(|path| push("--import", path))?;
    if global.project.is_none() && !global.imports.is_empty() {
        words.push("--no-project".to_owned());
    }
    let flags =
        [("--allow-stray-children", global.allow_stray_children), ("--locked", global.locked)];
    words.extend(flags.into_iter().filter(|(_, given)| *given).map(|(flag, _)| flag.to_owned()));
    words.extend(global.trusted.iter().flat_map(|name| ["--trust".to_owned(), name.clone()]));
    let allowed = global.lint_allow.iter().map(|(name, rule)| format!("{name}={rule}"));
    words.extend(allowed.flat_map(|pair| ["--lint-allow".to_owned(), pair]));
    let identity = [
        ("--as", &args.whom.principal),
        ("--tenant", &args.whom.tenant),
        ("--personality", &args.personality),
    ];
    for (flag, value) in identity {
        words.extend(value.iter().flat_map(|value| [flag.to_owned(), value.clone()]));
    }
    Ok(words)
}

/// The file of a client.
struct Target<'a> {
    args: &'a InstallArgs,
    file: PathBuf,
    records: Records,
    now: Option<CurrentFile>,
}

impl<'a> Target<'a> {
    fn of(args: &'a InstallArgs) -> Result<Self, Problem> {
        let here = here()?;
        let client = args.client;
        let Some(file) = client.file(args.scope, &here)? else {
            return Err(Problem::usage(format!(
                "{} has no configuration of a project; leave out `--scope`",
                client.title()
            )));
        };
        let file = resolved(&file, &here, args)?;
        let now = read(&file)?;
        Ok(Self { args, file, records: Records::of_user()?, now })
    }

    fn text(&self) -> &str {
        self.now.as_ref().map_or("", |now| &now.text)
    }

    /// The file with the entry.
    fn entry(&self, words: &[String]) -> Result<Change, Problem> {
        let InstallArgs { client, name, url, token_variable, .. } = self.args;
        let file = utf8(&self.file)?;
        let entry = match url {
            Some(url) => client
                .remote_entry(url, token_variable.as_deref())
                .map_err(|error| Problem::usage(error.to_string()))?,
            None => {
                // Otherwise the gateway would start itself, without end.
                if words.contains(&file) {
                    return Err(Problem::usage(format!(
                        "{file} is imported and would contain Toolcrib itself; copy its servers to \
                         another file, and import that"
                    )));
                }
                client.entry(&this_program()?, words)
            }
        };
        let edited = with_entry(client.format(), self.text(), client.key(), name, &entry);
        let (text, known) = edited.map_err(|error| self.unfit(&error))?;
        let record = self.records.find(&self.file, name)?;
        let own = record.filter(|record| known.as_ref() == Some(&record.entry));
        let is_ours = own.is_some();
        if known.is_some() && known.as_ref() != Some(&entry) && !is_ours && !self.args.replace {
            let error = EditError::Exists { name: name.clone() };
            return Err(Problem::usage(format!(
                "{file} {error}, which `install` did not write; choose another `--name`, or add \
                 `--replace`"
            )));
        }
        let kind = match known {
            Some(known) if known == entry => Kind::Present,
            known => Kind::Install { entry, replaced: own.map_or(known, |own| own.replaced) },
        };
        Ok(Change { kind, text: Some(text) })
    }

    /// The file as it was, or without the entry.
    fn removal(&self) -> Result<Change, Problem> {
        let InstallArgs { client, name, .. } = self.args;
        let Some(record) = self.records.find(&self.file, name)? else {
            return Err(Problem::failed(
                "not_installed",
                format!("`install` has written no entry `{name}` to {}", self.file.display()),
            ));
        };
        if Digest::of(self.text()) == record.written && self.now.is_some() {
            let backup = read(&self.records.backup(&self.file, name))?;
            return match (record.mode, backup) {
                (Some(_), Some(backup)) => {
                    Ok(Change { kind: Kind::Restore, text: Some(backup.text) })
                }
                (None, _) => Ok(Change { kind: Kind::Restore, text: None }),
                (Some(_), None) => Err(Problem::failed(
                    "no_backup",
                    format!(
                        "the backup of {} is missing; remove the entry by hand",
                        self.file.display()
                    ),
                )),
            };
        }
        let removed = without_entry(client.format(), self.text(), client.key(), name);
        match removed.map_err(|error| self.unfit(&error))? {
            None => Ok(Change { kind: Kind::Gone, text: None }),
            Some((_, entry)) if entry != record.entry => Err(Problem::failed(
                "entry_changed",
                format!(
                    "the entry `{name}` of {} was changed since `install` wrote it; remove it by \
                     hand",
                    self.file.display()
                ),
            )),
            Some((text, _)) => match &record.replaced {
                None => Ok(Change { kind: Kind::Remove, text: Some(text) }),
                Some(before) => {
                    let put = with_entry(client.format(), &text, client.key(), name, before);
                    let (text, _) = put.map_err(|error| self.unfit(&error))?;
                    Ok(Change { kind: Kind::RestoreEntry, text: Some(text) })
                }
            },
        }
    }

    /// Shows the change, asks, and makes it.
    fn make(&self, change: &Change, json: bool, quiet: bool) -> Result<Exit, Problem> {
        let InstallArgs { client, name, .. } = self.args;
        let mut report = InstallJson {
            client: client.id(),
            file: self.file.clone(),
            name: name.clone(),
            outcome: change.kind.outcome(),
            backup: None,
        };
        let is_change = !matches!(change.kind, Kind::Present | Kind::Gone);
        if is_change && !json {
            let after = change.text.as_deref();
            output::client_change(
                *client,
                &self.file,
                name,
                self.now.as_ref().map(|now| &*now.text),
                after,
            );
        }
        if is_change && self.args.dry_run {
            report.outcome = "not_made";
            output::installed(&report, client.title(), json, quiet);
            return Ok(exit::FINE);
        }
        if is_change && !self.args.yes {
            if !consent::can_ask() {
                return Err(Problem::usage(
                    "the change was not made, because no person can be asked here; add `--yes`",
                ));
            }
            if !consent::ask("Make this change?") {
                return Err(Problem::usage("the change was not made"));
            }
        }
        match &change.kind {
            Kind::Present => {}
            Kind::Install { entry, replaced } => {
                report.backup = self.install(entry, replaced.as_ref(), change.text.as_deref())?;
            }
            Kind::Restore | Kind::Remove | Kind::RestoreEntry => {
                let mode = self.now.as_ref().map_or(0o600, |now| now.mode);
                put(&self.file, self.now.as_ref(), change.text.as_deref(), mode)?;
                self.records.remove(&self.file, name);
            }
            Kind::Gone => self.records.remove(&self.file, name),
        }
        output::installed(&report, client.title(), json, quiet);
        Ok(exit::FINE)
    }

    /// Writes the record, then the file. The backup of an earlier `install` is kept as long as the
    /// file is still as that wrote it.
    fn install(
        &self,
        entry: &serde_json::Value,
        replaced: Option<&serde_json::Value>,
        text: Option<&str>,
    ) -> Result<Option<PathBuf>, Problem> {
        let name = &self.args.name;
        let text = text.unwrap_or_default();
        let earlier = self.records.find(&self.file, name)?;
        let earlier = earlier.filter(|earlier| Digest::of(self.text()) == earlier.written);
        let (before, mode) = match &earlier {
            Some(earlier) => {
                let backup = read(&self.records.backup(&self.file, name))?;
                (backup.map(|backup| backup.text), earlier.mode)
            }
            None => (
                self.now.as_ref().map(|now| now.text.clone()),
                self.now.as_ref().map(|now| now.mode),
            ),
        };
        let record = InstalledEntry {
            file: self.file.clone(),
            name: name.clone(),
            entry: entry.clone(),
            replaced: replaced.cloned(),
            written: Digest::of(text),
            mode,
        };
        self.records.write(&record, before.as_deref())?;
        let new = if self.args.scope == Scope::Project { 0o644 } else { 0o600 };
        let mode = self.now.as_ref().map_or(new, |now| now.mode);
        put(&self.file, self.now.as_ref(), Some(text), mode)?;
        Ok(before.map(|_| self.records.backup(&self.file, name)))
    }

    fn unfit(&self, error: &EditError) -> Problem {
        Problem::failed(
            "file_invalid",
            format!("{} {error}; nothing was written", self.file.display()),
        )
    }
}

/// The absolute path of this program.
fn this_program() -> Result<String, Problem> {
    let this = env::current_exe().and_then(|program| program.canonicalize());
    let this = this.map_err(|error| {
        Problem::failed("no_program", format!("the path of this program is not known: {error}"))
    })?;
    refuse_cache(&this)?;
    utf8(&this)
}

/// Refuses what is not the URL of a gateway, contains a secret, which would be written, or would send the
/// token unencrypted.
fn check_url(url: &str, token_variable: Option<&str>) -> Result<(), Problem> {
    let refused = |problem: String| Err(Problem::usage(format!("`--url`: {problem}")));
    // Parsers drop or replace the others, each in its own way, and clients read the text as it is.
    let is_of_urls = |c: &char| c.is_ascii_alphanumeric() || "-._~:/?#[]@!$&'()*+,;=%".contains(*c);
    if let Some(other) = url.chars().find(|c| !is_of_urls(c)) {
        let shown = other.escape_debug();
        return refused(format!(
            "the character `{shown}` is not valid in a URL; write it percent-encoded"
        ));
    }
    let parsed = parse_url(url).map_err(|error| Problem::usage(format!("`--url`: {error}")))?;
    if url.contains('#') {
        return refused("it has a fragment (`#…`); give the part before it".to_owned());
    }
    if parsed.query().is_some() {
        return refused(
            "a parameter may be a secret, which `install` does not write; name the variable with the \
             token by `--token-variable`"
                .to_owned(),
        );
    }
    let is_private = parsed.scheme() == "https" || !Http::new(url).local_addresses().is_empty();
    if token_variable.is_some() && !is_private {
        return refused(format!(
            "it is http to `{}`, which would send the token unencrypted; use https, or leave out \
             `--token-variable`",
            parsed.host_str().unwrap_or_default()
        ));
    }
    Ok(())
}

/// The folders in which `uvx`, `npx` and the like keep the programs that they run once.
const CACHES: [&str; 5] = [".cache", "Caches", "archive-v0", "_npx", "dlx"];

/// A client would start a program of a cache until the cache is cleaned.
fn refuse_cache(program: &Path) -> Result<(), Problem> {
    let mut folders = program.ancestors().skip(1).filter_map(Path::file_name);
    if !folders.any(|folder| CACHES.iter().any(|cache| folder == *cache)) {
        return Ok(());
    }
    Err(Problem::usage(format!(
        "{} is in a cache, and the client cannot start it once the cache is cleaned; install \
         Toolcrib permanently (`uv tool install`, `pipx install` or `npm install -g` instead of \
         `uvx` or `npx`), and run that program",
        program.display()
    )))
}

/// A change of a file: its text afterwards; `None` without a file.
struct Change {
    kind: Kind,
    text: Option<String>,
}

enum Kind {
    /// The entry is there already.
    Present,
    Install {
        entry: serde_json::Value,
        /// The user's own entry of this name.
        replaced: Option<serde_json::Value>,
    },
    /// The file as it was before.
    Restore,
    /// The file without the entry.
    Remove,
    /// The file with the entry that was replaced.
    RestoreEntry,
    /// The entry is not there any more.
    Gone,
}

impl Kind {
    fn outcome(&self) -> &'static str {
        match self {
            Self::Present => "present",
            Self::Install { .. } => "installed",
            Self::Restore => "restored",
            Self::Remove => "removed",
            Self::RestoreEntry => "entry_restored",
            Self::Gone => "gone",
        }
    }
}

/// The file without symlinks: a link is followed only after a question.
fn resolved(file: &Path, here: &Path, args: &InstallArgs) -> Result<PathBuf, Problem> {
    let is_link = |path: &Path| path.symlink_metadata().is_ok_and(|found| found.is_symlink());
    let folder = file.parent().unwrap_or(here);
    let home = env::var_os("HOME").map(PathBuf::from);
    let is_own = folder != here && Some(folder) != home.as_deref();
    let is_linked = is_link(file) || is_own && is_link(folder);
    if !is_linked {
        return Ok(file.to_owned());
    }
    let shown = file.display();
    let real = file.canonicalize().map_err(|error| {
        Problem::usage(format!(
            "{shown} is reached through a symlink, and its target is missing: {error}"
        ))
    })?;
    let question = format!("{shown} is reached through a symlink; the file is {}", real.display());
    if args.follow_link {
        return Ok(real);
    }
    if !consent::can_ask() {
        return Err(Problem::usage(format!("{question}; add `--follow-link` to change it")));
    }
    output::notice(&question);
    if consent::ask("Change that file?") {
        Ok(real)
    } else {
        Err(Problem::usage("the change was not made"))
    }
}

fn utf8(path: &Path) -> Result<String, Problem> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        Problem::usage(format!(
            "{} is not UTF-8, and cannot be written to the file",
            path.display()
        ))
    })
}

impl From<NoHomeError> for Problem {
    fn from(error: NoHomeError) -> Self {
        Self::usage(error.to_string())
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        Self::failed("file_unusable", error.to_string())
    }
}

impl From<InstalledError> for Problem {
    fn from(error: InstalledError) -> Self {
        Self::failed("record_unusable", error.to_string())
    }
}
