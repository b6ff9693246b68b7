//! A new project from a file that its user already has.

use std::{
    fs::File,
    io::Read as _,
    path::{Path, PathBuf},
};

use toolcrib_capabilities::http::Url;
use toolcrib_mcp::server::read_servers;
use toolcrib_tools::openapi::{MAX_DOCUMENT, OpenApi};

use super::{InitError, check_dir, write_all};
use crate::{PROJECT_FILE, text_file::read_text};

/// The first bytes of every SQLite database.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// The number of tools above which their definitions are deferred.
const DEFER_ABOVE: usize = 40;

/// Writes a project over a file: a SQLite database, which stays where it is, or an OpenAPI document
/// or an `mcpServers` file, which is copied. Creates the folder if it is missing. Returns the
/// written files.
///
/// # Errors
/// [`InitError`]. An existing file is never overwritten.
pub fn init_from(dir: &Path, source: &Path) -> Result<Vec<PathBuf>, InitError> {
    check_dir(dir)?;
    let unusable = |problem: String| InitError::Unusable { path: source.to_owned(), problem };
    let shown = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut first = Vec::new();
    let read = |file: File| file.take(SQLITE.len() as u64).read_to_end(&mut first);
    File::open(source)
        .and_then(read)
        .map_err(|error| unusable(format!("cannot be read: {error}")))?;
    if first == SQLITE {
        let real =
            source.canonicalize().map_err(|error| unusable(format!("cannot be read: {error}")))?;
        let path =
            real.to_str().ok_or_else(|| unusable("has a path that is not UTF-8".to_owned()))?;
        let text = of_database(&identifier(&shown), &shown, path);
        return write_all(dir, &[(PROJECT_FILE.to_owned(), text)]);
    }
    let text = read_text(source, MAX_DOCUMENT).map_err(|error| unusable(error.to_string()))?;
    // First: a document in JSON has `servers`, as a list.
    let error = match OpenApi::parse(&text) {
        Ok(document) => return write_document(dir, &shown, &text, &document, None),
        Err(error) => error,
    };
    // Only the names are used.
    let variables = |name: &str| std::env::var(name).ok();
    let servers = read_servers(&shown, &text, dir, &variables, &|_| Ok(String::new()));
    if servers.servers.is_empty() {
        return Err(unusable(format!(
            "is neither a SQLite database nor an `mcpServers` file nor an OpenAPI document ({error})"
        )));
    }
    let names: Vec<_> = servers.servers.iter().map(|server| server.name.to_string()).collect();
    // The end of its name says the format.
    let is_toml = source.extension().is_some_and(|end| end.eq_ignore_ascii_case("toml"));
    let copy = if is_toml { ".mcp.toml" } else { ".mcp.json" };
    let project = of_servers(&shown, copy, &names);
    write_all(dir, &[(PROJECT_FILE.to_owned(), project), (copy.to_owned(), text)])
}

/// Writes a project over an OpenAPI document that was fetched from a URL. A relative server of the
/// document is one of that URL.
///
/// # Errors
/// [`InitError`]. An existing file is never overwritten.
pub fn init_from_url(dir: &Path, url: &Url, text: &str) -> Result<Vec<PathBuf>, InitError> {
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
) -> Result<Vec<PathBuf>, InitError> {
    let is_json = text.trim_start().starts_with('{');
    let file = format!("openapi.{}", if is_json { "json" } else { "yaml" });
    let project = of_document(&identifier(shown), shown, &file, document, url);
    write_all(dir, &[(PROJECT_FILE.to_owned(), project), (file, text.to_owned())])
}

/// The name of a file as a name in the project.
fn identifier(file: &str) -> String {
    let stem = file.trim_start_matches('.').split('.').next().unwrap_or_default();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let name: String = stem.chars().take(30).map(plain).collect();
    match name.trim_matches('_') {
        name if name.starts_with(|c: char| c.is_ascii_lowercase()) => name.to_owned(),
        name => format!("data{name}"),
    }
}

/// A text as a string of TOML.
fn quoted(text: &str) -> String {
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
fn comment(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// The part that all have; `top` are more keys of the file itself.
fn head(shown: &str, top: &str, system: &str) -> String {
    format!(
        "#:schema ./toolcrib.schema.json\n# Begun from {}. Try\n#   toolcrib menu\n#   toolcrib check\n{top}policy_default = \"allow\"\n\n\
         [agent]\n# By default the model of the vendor whose API key is in the environment.\n\
         # model = \"anthropic:claude-sonnet-5-5\"\nsystem = {}\n",
        comment(shown),
        quoted(system)
    )
}

fn of_database(name: &str, shown: &str, path: &str) -> String {
    let head = head(
        shown,
        "",
        "You answer questions from a database. Look at its tables before you query them.",
    );
    format!(
        "{head}\n# Read-only; see `writable` in docs/databases.md.\n[database.{name}]\nfile = {}\n\n\
         # Three tools that only read: list tables, describe one, run one query.\n[[tool]]\n\
         kind = \"sql_explore\"\nname = \"{name}\"\ndescription = {}\n",
        quoted(path),
        quoted(&format!("The tables of {}.", comment(shown))),
    )
}

fn of_servers(shown: &str, copy: &str, names: &[String]) -> String {
    let head = head(
        shown,
        &format!("mcp_files = [\"{copy}\"]\n"),
        "You do what your user asks with the tools that you have.",
    );
    let sections: String =
        names.iter().map(|name| format!("# [mcp.{}]\n", comment(name))).collect();
    format!(
        "{head}\n[tool_search]\ndefer_above = {DEFER_ABOVE} # more tools are searched instead of listed\n\n\
         # Settings of its servers, such as include = [\"find_*\"]; see docs/mcp.md.\n{sections}"
    )
}

fn of_document(
    name: &str,
    shown: &str,
    file: &str,
    document: &OpenApi,
    url: Option<&Url>,
) -> String {
    let title = document.title().unwrap_or(shown);
    let head =
        head(shown, "", &format!("You use {}. Ask before you change anything.", comment(title)));
    let mut text = format!(
        "{head}\n[tool_search]\ndefer_above = {DEFER_ABOVE} # more tools are searched instead of listed\n\n\
         # Each operation is a tool; see docs/openapi.md.\n[[tool]]\nkind = \"openapi\"\nfile = \"{file}\"\n\
         # name = \"{name}\"           # begins all names\n\
         # include = [\"tag:orders\", \"/v1/*\", \"GET\"]\n# exclude = [\"DELETE\"]\n# read_only = true\n"
    );
    if !document.has_server() {
        let base = url.and_then(|url| url.join(document.base_path()).ok());
        text.push_str(&match &base {
            Some(base) => format!("server = {}\n", quoted(base.as_str().trim_end_matches('/'))),
            None => {
                "server = \"https://api.example.com\" # replace: the document has no absolute URL\n"
                    .to_owned()
            }
        });
        let local = match base.as_ref().and_then(Url::host_str) {
            Some("localhost") => "\"127.0.0.1\", \"::1\"",
            Some("127.0.0.1") => "\"127.0.0.1\"",
            Some("[::1]") => "\"::1\"",
            _ => "",
        };
        if !local.is_empty() {
            text.push_str(&format!("allow_addresses = [{local}] # this machine\n"));
        }
    }
    if document.needs_secret() {
        let variable = format!("{}_API_KEY", name.to_ascii_uppercase());
        text.push_str("auth = \"secret:API_KEY\"\n\n[secrets]\n");
        text.push_str(&format!(
            "API_KEY = {{ env = \"{variable}\" }} # the environment variable\n"
        ));
    }
    text
}
