//! A new project from a file that its user already has.

use std::{
    fs::File,
    io::{self, Read as _},
    iter,
    path::{Component, Path, PathBuf, absolute},
};

use toolcrib_capabilities::http::Url;
use toolcrib_models::Vendor;
use toolcrib_tools::openapi::{MAX_DOCUMENT, OpenApi, SERVER_PLACEHOLDER};

use super::{
    InitError, SERVERS_FILE, check_dir,
    servers::{ImportedServers, imported},
    write_all,
};
use crate::{build::private_addresses, file::PROJECT_FILE, read::text_file::read_text};

/// The first bytes of every SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// The number of tools above which their definitions are deferred.
const DEFER_ABOVE: usize = 40;

/// A project that has begun from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct InitReport {
    /// The written files.
    pub files: Vec<PathBuf>,
    /// Facts that its user should know, such as parts of the file that are left out.
    pub notices: Vec<String>,
}

impl From<Vec<PathBuf>> for InitReport {
    fn from(files: Vec<PathBuf>) -> Self {
        Self { files, notices: Vec::new() }
    }
}

/// Writes a project over a file: a SQLite database, which stays where it is, an OpenAPI document,
/// which is copied, or an `mcpServers` file, whose usable servers are copied. Creates the folder if it
/// is missing.
///
/// # Errors
/// [`InitError`]. An existing file is never overwritten.
pub fn init_from(dir: &Path, source: &Path) -> Result<InitReport, InitError> {
    check_dir(dir)?;
    let unusable = |problem: String| InitError::Unusable { path: source.to_owned(), problem };
    let shown = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if is_database(source).map_err(|error| unusable(format!("cannot be read: {error}")))? {
        let real =
            source.canonicalize().map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let path = seen_from(dir, &real);
        let path =
            path.to_str().ok_or_else(|| unusable("has a path that is not UTF-8".to_owned()))?;
        let system =
            "You answer questions from a database. Look at its tables before you query them.";
        let text = head(&shown, "", system) + &database(&identifier(&shown), &shown, path);
        return write_all(dir, &[(PROJECT_FILE.to_owned(), text)]).map(InitReport::from);
    }
    let text = read_text(source, MAX_DOCUMENT).map_err(|error| unusable(error.to_string()))?;
    // First: a document in JSON has `servers`, as a list.
    let error = match OpenApi::parse(&text) {
        Ok(document) => return write_document(dir, &shown, &text, &document, None),
        Err(error) => error,
    };
    let Some(servers) = imported(source, &text, |folder| seen_from(dir, folder)) else {
        return Err(unusable(format!(
            "is neither a SQLite database nor an `mcpServers` file nor an OpenAPI document ({error})"
        )));
    };
    let project = of_servers(&shown, &servers);
    let files = [(PROJECT_FILE.to_owned(), project), (SERVERS_FILE.to_owned(), servers.text)];
    let left_out = servers
        .left_out
        .iter()
        .map(|(name, reason)| format!("the MCP server `{name}` is left out: {}", comment(reason)));
    let mut notices: Vec<_> = left_out.collect();
    if !servers.secrets.is_empty() {
        notices.push(format!(
            "{SERVERS_FILE} contains secrets ({}); write `${{VARIABLE}}` instead, or do not commit it",
            comment(&servers.secrets.join(", "))
        ));
    }
    Ok(InitReport { files: write_all(dir, &files)?, notices })
}

/// Whether a file is a SQLite database.
pub(super) fn is_database(file: &Path) -> io::Result<bool> {
    let mut first = Vec::new();
    File::open(file)?.take(SQLITE.len() as u64).read_to_end(&mut first)?;
    Ok(first == SQLITE)
}

/// Writes a project over an OpenAPI document that was fetched from a URL. A relative server of the
/// document is one of that URL. Creates the folder if it is missing.
///
/// # Errors
/// [`InitError`]. An existing file is never overwritten.
pub fn init_from_url(dir: &Path, url: &Url, text: &str) -> Result<InitReport, InitError> {
    check_dir(dir)?;
    let document = OpenApi::parse(text).map_err(|error| InitError::Unusable {
        path: PathBuf::from(url.as_str()),
        problem: format!("cannot be used: {error}"),
    })?;
    let shown = url.host_str().unwrap_or_default().to_owned();
    write_document(dir, &shown, text, &document, Some(url))
}

fn write_document(
    dir: &Path,
    shown: &str,
    text: &str,
    document: &OpenApi,
    url: Option<&Url>,
) -> Result<InitReport, InitError> {
    let is_json = text.trim_start().starts_with('{');
    let file = format!("openapi.{}", if is_json { "json" } else { "yaml" });
    let (project, notices) = of_document(shown, &file, document, url);
    let files = write_all(dir, &[(PROJECT_FILE.to_owned(), project), (file, text.to_owned())])?;
    Ok(InitReport { files, notices })
}

/// The path of an existing file or folder, as seen from a folder that may not exist yet: relative if
/// both are below one folder other than the root, so that they can be moved together.
fn seen_from(dir: &Path, real: &Path) -> PathBuf {
    let Ok(dir) = absolute(dir) else { return real.to_owned() };
    // A symlink in the path of the folder would lead `..` elsewhere.
    let canonical =
        |found: &Path| Some(found.canonicalize().ok()?.join(dir.strip_prefix(found).ok()?));
    let Some(dir) = dir.ancestors().find_map(canonical) else { return real.to_owned() };
    let common = dir.components().zip(real.components()).take_while(|(a, b)| a == b).count();
    // The root is a component too.
    if common < 2 || dir.components().any(|part| part == Component::ParentDir) {
        return real.to_owned();
    }
    if dir == real {
        return PathBuf::from(".");
    }
    let up = iter::repeat_n(Component::ParentDir, dir.components().count() - common);
    up.chain(real.components().skip(common)).collect()
}

/// The name of a file as a name in the project.
pub(super) fn identifier(file: &str) -> String {
    let stem = file.trim_start_matches('.').split('.').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = stem.chars().take(30).map(plain).collect();
    match name.trim_matches('_') {
        name if name.starts_with(|c: char| c.is_ascii_lowercase()) => name.to_owned(),
        name => format!("data{name}"),
    }
}

/// A text as a string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

/// A text for a comment: one line.
pub(super) fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// The beginning of a new project's file; `top` are more keys of the file itself.
fn head(shown: &str, top: &str, system: &str) -> String {
    format!(
        "#:schema ./toolcrib.schema.json\n# Begun from {}. Try\n#   toolcrib menu\n#   toolcrib check\n{}",
        comment(shown),
        agent(top, system)
    )
}

/// The part that all projects have.
pub(super) fn agent(top: &str, system: &str) -> String {
    format!(
        "{top}policy_default = \"allow\"\n\n\
         [agent]\n# By default your own: `toolcrib models`.\n\
         # model = \"anthropic:claude-sonnet-5-5\"\nsystem = {}\n\n\
         # A person approves each call that may change something; see docs/approvals.md.\n\
         [[policy]]\neffect = \"ask\"\nannotation = {{ read_only = false }}\n\
         reason = \"It may change something.\"\n",
        quoted(system)
    )
}

/// The tools of a database.
pub(super) fn database(name: &str, shown: &str, path: &str) -> String {
    format!(
        "\n# Read-only; see `writable` in docs/databases.md.\n[database.{name}]\nfile = {}\n\n\
         # Three tools that only read: list tables, describe one, run one query.\n[[tool]]\n\
         kind = \"sql_explore\"\nname = \"{name}\"\ndescription = {}\n",
        quoted(path),
        quoted(&format!("The tables of {}.", comment(shown))),
    )
}

fn of_servers(shown: &str, servers: &ImportedServers) -> String {
    let head = head(
        shown,
        &format!("mcp_files = [\"{SERVERS_FILE}\"]\n"),
        "You do what your user asks with the tools that you have.",
    );
    let sections = servers.names.iter().map(|name| format!("# [mcp.{}]\n", comment(name)));
    let left_out = servers.left_out.iter().map(|(name, reason)| {
        format!("\n# Left out: {}, because {}\n", comment(name), comment(reason))
    });
    let sections: String = sections.chain(left_out).collect();
    format!(
        "{head}\n[tool_search]\ndefer_above = {DEFER_ABOVE} # more tools are searched instead of listed\n\n\
         # Settings of its servers, such as include = [\"find_*\"]; see docs/mcp.md.\n{sections}"
    )
}

/// The project file of a document, and notices for its user.
fn of_document(
    shown: &str,
    file: &str,
    document: &OpenApi,
    url: Option<&Url>,
) -> (String, Vec<String>) {
    let title = document.title().unwrap_or(shown);
    let head =
        head(shown, "", &format!("You use {}. Ask before you change anything.", comment(title)));
    let (mut tools, mut notices) = document_tools(&identifier(shown), file, document, url);
    if document.needs_secret() {
        let variable = key_variable(&identifier(shown));
        tools.push_str(&format!(
            "auth = \"secret:API_KEY\"\n\n[secrets.API_KEY]\nenv = \"{variable}\" # the environment variable\n"
        ));
        notices.push(format!(
            "the API needs a key: set the environment variable {variable}, or name another one in \
             {PROJECT_FILE}"
        ));
    }
    let search = format!(
        "\n[tool_search]\ndefer_above = {DEFER_ABOVE} # more tools are searched instead of listed\n"
    );
    (format!("{head}{search}{tools}"), notices)
}

/// The variable for the key of an API. It is never one with the key of a model: a host such as
/// `openai.example` would get it.
fn key_variable(name: &str) -> String {
    let name = name.to_ascii_uppercase();
    let variable = format!("{name}_API_KEY");
    let is_of_vendor = |vendor: Vendor| vendor.key_variables().contains(&&*variable);
    match Vendor::ALL.into_iter().any(is_of_vendor) {
        true => format!("{name}_TOOLS_KEY"),
        false => variable,
    }
}

/// The tools of a document without its `auth`, and notices for its user. A document that was fetched
/// may name private addresses only of the host that its user named.
pub(super) fn document_tools(
    name: &str,
    file: &str,
    document: &OpenApi,
    url: Option<&Url>,
) -> (String, Vec<String>) {
    let mut text = format!(
        "\n# Each operation is a tool; see docs/openapi.md.\n[[tool]]\nkind = \"openapi\"\nfile = \"{file}\"\n\
         # name = \"{name}\"           # begins all names\n\
         # include = [\"tag:orders\", \"/v1/*\", \"GET\"]\n# exclude = [\"DELETE\"]\n# read_only = true\n"
    );
    let mut notices = Vec::new();
    let mut servers = document.servers();
    if servers.is_empty() {
        let base = url.and_then(|url| url.join(document.base_path()).ok());
        let base = base.map(|base| base.as_str().trim_end_matches('/').to_owned());
        let server = base.as_deref().unwrap_or(SERVER_PLACEHOLDER);
        text.push_str(&format!("server = {}", quoted(server)));
        text.push_str(match base {
            Some(_) => "\n",
            None => " # replace: the document has no absolute URL\n",
        });
        if base.is_none() {
            notices.push(format!(
                "the document has no absolute URL of a server; replace `server` in {PROJECT_FILE}"
            ));
        }
        servers.extend(base);
    }
    let mut local: Vec<_> = servers.iter().flat_map(|url| private_addresses(url)).collect();
    local.sort_unstable();
    local.dedup();
    let own = url.map(|url| private_addresses(url.as_str()));
    let is_foreign = own.is_some_and(|own| local.iter().any(|address| !own.contains(address)));
    if !local.is_empty() {
        let local: Vec<_> = local.iter().map(|address| format!("\"{address}\"")).collect();
        let local = local.join(", ");
        let off = if is_foreign { "# " } else { "" };
        text.push_str(&format!("{off}allow_addresses = [{local}] # not on the public internet\n"));
        notices.push(match is_foreign {
            true => format!(
                "the document names servers that are not on the public internet ({local}), which its \
                 tools do not call: in a project of `toolcrib init`, `allow_addresses` permits them"
            ),
            false => format!("the tools call {local}, which is not on the public internet"),
        });
    }
    (text, notices)
}
