//! The output of `serve`, all of it on standard error: standard output carries the protocol.

use std::{net::SocketAddr, path::Path};

use serde_json::{Value, json};
use toolcrib_engine::{Iteration, Redactor};
use toolcrib_gateway::{Access, AccessEntry};
use toolcrib_mcp::{ServerState, ServerStatus};
use toolcrib_project::{Project, ServeEndpoint};

use super::{
    mcp::{QueriedServer, deviation, slips},
    print::note,
    terminal::verbatim,
    text::{BAD, DIM, GOOD, STRONG, WARN, count, safe, shell_word, shown},
};
use crate::args::{Claim, GlobalArgs, ServeArgs};

/// The HTTP endpoint.
pub(crate) struct HttpEndpoint<'a> {
    pub(crate) address: SocketAddr,
    /// The host that requests may name, with the port.
    pub(crate) host: String,
    /// The file of the token, unless the project declares its own tokens.
    pub(crate) token: Option<&'a Path>,
    /// Whether other machines can reach it.
    pub(crate) is_exposed: bool,
    /// Whether it has a certificate.
    pub(crate) is_tls: bool,
    /// The endpoints beside `/mcp`.
    pub(crate) more: &'a [ServeEndpoint],
}

/// Explains to a user at a terminal how an MCP client starts the server.
pub(crate) fn how_to_start(global: &GlobalArgs, args: &ServeArgs, project: &Project) {
    let entry = json!({ "mcpServers": { "toolcrib": start(global, args, project.root()) } });
    note!(
        "{DIM}serving on standard input and output; an MCP client starts it with this \
        command:{DIM:#}"
    );
    let entry = serde_json::to_string_pretty(&entry).unwrap_or_default();
    entry.lines().for_each(|line| note!("  {}", safe(line)));
}

/// The command line that does the same in any folder, for the configuration of MCP clients.
fn start(global: &GlobalArgs, args: &ServeArgs, root: &Path) -> Value {
    let mut words = vec!["serve".to_owned()];
    let mut flag = |name: &str, value: &str| words.push(format!("--{name}={value}"));
    let path = |path: &Path| {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        path.to_string_lossy().into_owned()
    };
    if global.has_project() {
        flag("project", &root.to_string_lossy());
    }
    global.imports.iter().for_each(|import| flag("import", &path(import)));
    let paths =
        [("state", &global.state), ("events", &args.events), ("access-log", &args.access_log)];
    for (name, given) in paths {
        if let Some(given) = given {
            let is_stderr = given == Path::new("-");
            flag(name, &if is_stderr { "-".to_owned() } else { path(given) });
        }
    }
    let who =
        [("as", &args.principal), ("tenant", &args.tenant), ("personality", &args.personality)];
    for (name, given) in who {
        if let Some(given) = given {
            flag(name, given);
        }
    }
    if let Some(timeout) = args.timeout {
        flag("timeout", &format!("{}ms", timeout.as_millis()));
    }
    for Claim { name, value } in &args.claims {
        flag("claim", &format!("{name}={value}"));
    }
    args.skills.iter().for_each(|skill| flag("skill", skill));
    global.trusted.iter().for_each(|server| flag("trust", server));
    for (server, rule) in &global.lint_allow {
        flag("lint-allow", &format!("{server}={rule}"));
    }
    let switches = [
        ("--no-project", !global.has_project()),
        ("--allow-stray-children", global.allow_stray_children),
        ("--locked", global.locked),
        ("--quiet", global.quiet),
    ];
    words.extend(switches.iter().filter(|(_, on)| *on).map(|(name, _)| (*name).to_owned()));
    let mut entry = json!({ "command": "toolcrib", "args": words });
    // Imported programs run in the current folder.
    if let (false, Some(entry)) = (global.imports.is_empty(), entry.as_object_mut()) {
        entry.insert("cwd".to_owned(), path(Path::new(".")).into());
    }
    entry
}

/// Prints the endpoint, and how to connect.
pub(crate) fn at(served: &HttpEndpoint<'_>) {
    let HttpEndpoint { address, host, token, is_exposed, is_tls, more } = served;
    let scheme = if *is_tls { "https" } else { "http" };
    let host = safe(host);
    note!(
        "{GOOD}serving{GOOD:#} {scheme}://{host}/mcp {DIM}(with a skill: /mcp/skill/NAME){DIM:#}"
    );
    for ServeEndpoint { name, personality, .. } in *more {
        let (name, personality) = (safe(name), safe(personality));
        note!("  {scheme}://{host}/mcp/{name} {DIM}as{DIM:#} {personality}");
    }
    match token {
        Some(path) => {
            let word = safe(&shell_word(path));
            note!("  {DIM}token{DIM:#} in {}, which only you can read", shown(path));
            note!("  claude mcp add --transport http toolcrib {scheme}://{host}/mcp \\");
            // A break within the quotes would be a part of the header.
            verbatim(&format!("    --header \"Authorization: Bearer $(cat {word})\""));
        }
        None => note!("  {DIM}tokens{DIM:#} are those of the project's [[serve.token]]"),
    }
    if *is_exposed && !is_tls {
        note!(
            "{WARN}warning{WARN:#}: other machines can reach {address}, and without TLS anyone on \
             the network path can read tokens and results; set `[serve.tls]`, or put a TLS proxy \
             in front of it, and name its host with `--allow-host`"
        );
    }
}

/// Prints that other replicas cannot pass requests on to this one.
pub(crate) fn not_reached(is_tls: bool) {
    let next = match is_tls {
        true => "end TLS at the load balancer instead of `[serve.tls]`",
        false => "name the address at which they reach it with `--replica-address IP:PORT`",
    };
    note!(
        "{WARN}warning{WARN:#}: other replicas cannot reach this one, so a call that waits for its client's \
         input continues only if the load balancer sends the answer here; {next}"
    );
}

/// Prints that the configuration was replaced, with the number of servers.
pub(crate) fn reloaded(servers: usize) {
    note!("{GOOD}reloaded{GOOD:#} the configuration, with {}", count(servers, "MCP server"));
}

/// Prints that a changed configuration cannot be used.
pub(crate) fn not_reloaded() {
    note!(
        "{BAD}the changed configuration cannot be used{BAD:#}: the previous one stays in use until \
         its files change again"
    );
}

/// Prints a token on request.
pub(crate) fn token(token: &str) {
    note!("  token {}", safe(token));
}

/// Prints the menu of one identity, and the command that explains it.
pub(crate) fn served(
    project: &Project,
    access: &Access,
    iteration: Result<&Iteration, String>,
    redactor: &Redactor,
    why: &str,
) {
    let said = |word: &str, name: Option<&str>| {
        name.map(|name| format!(" {word} {}", safe(name))).unwrap_or_default()
    };
    let whose = said("for", access.principal.as_deref());
    let whose = whose + &said("as", access.personality.as_deref());
    match iteration {
        Ok(iteration) => note!(
            "{STRONG}{}{STRONG:#}: {} offered, {} withheld{whose} {DIM}(`{}` says why){DIM:#}",
            safe(project.name()),
            count(iteration.menu().len(), "tool"),
            iteration.withheld().len(),
            safe(why)
        ),
        Err(error) => {
            note!(
                "{BAD}nothing can be offered{whose} now{BAD:#}: {}",
                safe(&redactor.text(&error))
            );
        }
    }
}

/// Prints for how many identities servers start only on request.
pub(crate) fn served_later(later: usize) {
    if later > 0 {
        let tokens = count(later, "further token");
        note!("  {DIM}servers for {tokens} start with the first request{DIM:#}");
    }
}

/// Prints the results of querying the servers for their tools.
pub(crate) fn asked(servers: &[QueriedServer<'_>], redactor: &Redactor) {
    for QueriedServer { server, status, listed, unmatched, .. } in servers {
        match listed {
            Ok(offer) => {
                let tools = count(offer.offered.len(), "tool");
                note!("  {GOOD}✓{GOOD:#} {} {DIM}{tools}{DIM:#}", server.name());
                slips(server, unmatched);
                deviation(server, status.as_ref());
            }
            Err(reason) => {
                note!("  {BAD}✗{BAD:#} {} {}", server.name(), safe(&redactor.text(reason)));
            }
        }
    }
}

/// Prints the state of a client's connection.
pub(crate) fn server_state(status: &ServerStatus, redactor: &Redactor) {
    let error = status.last_error.as_deref().filter(|_| status.state != ServerState::Ready);
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    note!("MCP server {}: {}{}", status.name, status.state, safe(&redactor.text(&error)));
}

/// One request as a text line of the access log.
pub(crate) fn request(entry: &AccessEntry) {
    // A request without a class was refused before there was a call.
    let uncoded = if entry.error.is_some() { "failed" } else { "ok" };
    let code = entry.code.map_or(uncoded, |code| code.as_str());
    let who = entry.principal.as_deref().unwrap_or("-");
    let tool = entry.tool.as_deref().unwrap_or_default();
    let origin = entry.origin.as_deref().map(|origin| format!(" ({origin})"));
    let listed = entry.offered.map(|offered| {
        format!(" {offered} offered, {} withheld", entry.withheld.unwrap_or_default())
    });
    let status = entry.status.map(|status| format!(" {status}"));
    let error = entry.error.as_deref().map(|error| format!(": {error}"));
    note!(
        "{DIM}{who}{DIM:#} {}{} {}{}{} {code} {} ms{}",
        entry.method,
        status.unwrap_or_default(),
        safe(tool),
        safe(&origin.unwrap_or_default()),
        listed.unwrap_or_default(),
        entry.duration_ms,
        safe(&error.unwrap_or_default())
    );
}

/// Says that calls of a gateway are not stored.
pub(crate) fn calls_not_stored(error: &dyn std::error::Error) {
    note!(
        "{BAD}error{BAD:#}: calls are not stored for `trace --gateway`: {}; each further one is tried",
        safe(&error.to_string())
    );
}

/// Prints at once that a log cannot be written.
pub(crate) fn log_failed(place: &str, error: &std::io::Error) {
    note!(
        "{BAD}error{BAD:#}: {} cannot be written: {error}; it is tried again with each line",
        safe(place)
    );
}

/// Prints that a log is written again.
pub(crate) fn log_recovered(place: &str, lost: u64) {
    note!("{}: written again, after {} that could not be", safe(place), count(lost, "line"));
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Cli, Command};

    fn read(words: &[&str]) -> (GlobalArgs, ServeArgs) {
        let Cli { global, command } =
            Cli::try_parse_from(["toolcrib"].iter().chain(words)).unwrap();
        let Command::Serve(args) = command else { panic!("{words:?}") };
        (global, args)
    }

    #[test]
    fn what_a_client_is_told_to_start_is_what_was_started() {
        let started = read(&[
            "serve",
            "--import",
            "a.json",
            "--as=-intern",
            "--tenant",
            "acme",
            "--claim",
            "groups=a=b",
            "--skill",
            "one",
            "--skill",
            "two",
            "--state",
            "s",
            "--access-log",
            "-",
            "--allow-stray-children",
        ]);
        let entry = start(&started.0, &started.1, Path::new("/project"));
        let words: Vec<_> =
            entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect();
        let (global, args) = read(&words);
        let here = std::path::absolute(".").unwrap();
        assert_eq!(global.imports, [here.join("a.json")]);
        assert_eq!(global.state, Some(here.join("s")));
        assert!(global.no_project && global.allow_stray_children);
        assert_eq!((args.principal, args.tenant), (started.1.principal, started.1.tenant));
        assert_eq!(args.claims, started.1.claims);
        assert_eq!(args.skills, ["one", "two"]);
        assert_eq!(args.access_log.as_deref(), Some(Path::new("-")));
        assert_eq!(entry["cwd"].as_str().map(Path::new), Some(&*here));

        let (global, args) = read(&["serve"]);
        let entry = start(&global, &args, Path::new("/project"));
        assert_eq!(entry["args"], json!(["serve", "--project=/project"]));
    }
}
