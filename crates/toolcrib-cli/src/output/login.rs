//! Logins to MCP servers.

use std::time::Duration;

use serde::Serialize;
use toolcrib_mcp::oauth::Login;

use super::{
    print::{note, say},
    text::{DIM, GOOD, STRONG, WARN, safe},
};

/// Prints the address of a login, for the person who consents.
pub(crate) fn login_address(address: &str, is_open: bool) {
    match is_open {
        true => note!("a browser was opened; if it shows nothing, open this address in it:"),
        false => note!("open this address in a browser on this machine:"),
    }
    note!("{}", safe(address));
    note!("{DIM}waiting for the consent; Ctrl-C ends it{DIM:#}");
}

/// Prints the result of a login.
pub(crate) fn logged_in(server: &str, granted: &Login) {
    say!("{GOOD}✓{GOOD:#} logged in to {STRONG}{}{STRONG:#}", safe(server));
    details(granted);
}

/// Prints the result of a logout.
pub(crate) fn logged_out(server: &str, had: bool, error: Option<&str>, json: bool) {
    let server = safe(server);
    if !json {
        match had {
            true => say!("{GOOD}✓{GOOD:#} logged out of {STRONG}{server}{STRONG:#}"),
            false => say!("there was no login to {STRONG}{server}{STRONG:#}"),
        }
    }
    if let Some(error) = error {
        note!(
            "{WARN}warning{WARN:#}: the tokens are removed here, but were not revoked: {}",
            safe(error)
        );
    }
}

/// Prints all logins.
pub(crate) fn logins(logins: &[(&str, Option<Login>)]) {
    if logins.is_empty() {
        say!("there are no MCP servers at a URL that may use a login");
    }
    for (server, login) in logins {
        match login {
            Some(granted) => {
                say!("{GOOD}✓{GOOD:#} {STRONG}{}{STRONG:#}", safe(server));
                details(granted);
            }
            None => say!("{DIM}–{DIM:#} {STRONG}{}{STRONG:#} no login", safe(server)),
        }
    }
}

fn details(granted: &Login) {
    say!("  by {}", safe(&granted.issuer));
    match granted.scopes.as_slice() {
        [] => say!("  scopes: not stated"),
        scopes => say!("  scopes: {}", safe(&scopes.join(" "))),
    }
    let renewed = if granted.renewable { ", renewed without another login" } else { "" };
    match granted.valid_for {
        None => say!("  valid: not stated{renewed}"),
        Some(Duration::ZERO) if granted.renewable => say!("  valid: expired, renewed when used"),
        Some(Duration::ZERO) => say!("  {WARN}expired{WARN:#}: log in again"),
        Some(life) => say!("  valid: {}{renewed}", lasts(life)),
    }
    if !granted.demanded.is_empty() {
        let demanded = safe(&granted.demanded.join(" "));
        say!("  {WARN}the server has demanded since:{WARN:#} {demanded}; log in again");
    }
}

/// A time in its largest whole units.
fn lasts(time: Duration) -> String {
    let minutes = time.as_secs() / 60;
    match (minutes / (24 * 60), minutes / 60, minutes) {
        (0, 0, 0) => format!("{} s", time.as_secs()),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {} min", minutes % 60),
        (days, hours, _) => format!("{days} d {} h", hours % 24),
    }
}

/// A login.
#[derive(Serialize)]
pub(crate) struct LoginJson<'a> {
    server: &'a str,
    logged_in: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    issuer: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<&'a [String]>,
    /// Absent if it is not stated.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_for_seconds: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    renewable: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    demanded: Option<&'a [String]>,
}

impl<'a> LoginJson<'a> {
    pub(crate) fn new(server: &'a str, login: Option<&'a Login>) -> Self {
        Self {
            server,
            logged_in: login.is_some(),
            issuer: login.map(|login| &*login.issuer),
            scopes: login.map(|login| &*login.scopes),
            valid_for_seconds: login.and_then(|login| Some(login.valid_for?.as_secs())),
            renewable: login.map(|login| login.renewable),
            demanded: login.map(|login| &*login.demanded),
        }
    }
}

/// All logins.
#[derive(Serialize)]
pub(crate) struct LoginsJson<'a> {
    logins: Vec<LoginJson<'a>>,
}

impl<'a> LoginsJson<'a> {
    pub(crate) fn new(logins: &'a [(&'a str, Option<Login>)]) -> Self {
        let logins = logins.iter().map(|(server, login)| LoginJson::new(server, login.as_ref()));
        Self { logins: logins.collect() }
    }
}
