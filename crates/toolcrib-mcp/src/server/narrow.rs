//! Restrictions of a server in a file: some of its tools only, or disabled.
//!
//! An unsupported key that may restrict makes the server unusable: otherwise a forbidden tool would
//! be offered.

use std::{path::Path, sync::Arc};

use toolcrib_config::Diagnostic;

use super::{
    denied::{Denial, DenyRules, off_in_projects},
    json::{Object, Value, quoted},
};

/// Lists of the only tools that are offered, [plain](plain).
const ONLY: [&str; 3] = ["includetools", "enabledtools", "allowedtools"];

/// Lists of tools that are not offered, [plain](plain).
const EXCEPT: [&str; 5] =
    ["excludetools", "disabledtools", "disallowedtools", "blockedtools", "deniedtools"];

/// A list of the only tools, or an object with a boolean for each.
const TOOLS: &str = "tools";

/// Keys that disable a server with `false`, [plain](plain).
const ENABLED: [&str; 4] = ["enabled", "isenabled", "active", "isactive"];

/// Lists of servers next to those of a file, [plain](plain): disabled ones, and the only enabled
/// ones.
const EXCEPT_SERVERS: [&str; 3] =
    ["excludemcpservers", "disabledmcpservers", "disabledmcpjsonservers"];
const ONLY_SERVERS: [&str; 3] = ["allowmcpservers", "enabledmcpservers", "enabledmcpjsonservers"];

/// Parts of keys, in lower case, that may restrict a server.
const MAY_NARROW: [&str; 22] = [
    "tool",
    "allow",
    "deny",
    "denied",
    "block",
    "disable",
    "enable",
    "exclude",
    "include",
    "restrict",
    "permission",
    "filter",
    "forbid",
    "hidden",
    "only",
    "except",
    "sandbox",
    "policy",
    "whitelist",
    "blacklist",
    "status",
    "inactive",
];

/// Parts of keys next to a file's servers, in lower case, that refer to the servers.
const OF_SERVERS: [&str; 3] = ["mcp", "server", "tool"];

/// Prefixes of keys, in lower case, that permit a model more, or without a question: they can be
/// ignored safely.
const WIDENS: [&str; 5] = ["alwaysallow", "autoallow", "autoapprov", "trust", "enableall"];

/// Parts of keys, in lower case, that may restrict a server from inside of an unknown object. There, the
/// other words have other meanings: `logEnabled`.
const MAY_NARROW_INSIDE: [&str; 10] = [
    "tool",
    "deny",
    "denied",
    "block",
    "exclude",
    "forbid",
    "permission",
    "filter",
    "whitelist",
    "blacklist",
];

/// Keys of the settings of a client's own tools, [plain](plain), that restrict nothing of a server.
const OF_OWN_TOOLS: [&str; 4] = ["sandbox", "shell", "callcommand", "discoverycommand"];

/// A filter of tools, as some proxies have it, and the key of the object that contains it.
const FILTER: &str = "toolFilter";
const OPTIONS: &str = "options";

/// Parts of [plain](plain) keys that may require a question before a call.
const ASKS: [&str; 9] = [
    "approv",
    "confirm",
    "consent",
    "alwaysask",
    "alwaysprompt",
    "askbefore",
    "askuser",
    "promptbefore",
    "promptuser",
];

/// Parts of [plain](plain) keys that do not, although they contain one of [`ASKS`].
const ASKS_LESS: [&str; 4] = ["autoapprov", "alwaysapprov", "autoconfirm", "preapprov"];

/// The tools of a server that a file allows, by the server's own names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTools {
    /// The only ones; all without such a list.
    pub only: Option<Vec<Arc<str>>>,
    /// The excluded ones, listed above or not.
    pub except: Vec<Arc<str>>,
}

impl FileTools {
    /// Reads an entry of a server called `name`. Unsupported keys are recorded.
    pub(super) fn read(entry: &Object<'_>, name: &str) -> Self {
        let mut tools = Self::default();
        for (key, _) in entry.entries() {
            let key = key.value;
            // `null` counts as absent.
            let Some(value) = entry.value(key) else { continue };
            if ONLY.contains(&&*plain(key)) {
                tools.keep_only(names(&value));
            } else if EXCEPT.contains(&&*plain(key)) {
                tools.leave_out(names(&value));
            } else if key == TOOLS {
                tools.tools(&value);
            } else if key == FILTER {
                tools.filter(&value);
            } else if key == OPTIONS && value.is_object() {
                let filter = value.object().and_then(|options| options.value(FILTER));
                filter.iter().for_each(|filter| tools.filter(filter));
            } else if may_narrow(key) && !is_known(key) {
                let message = format!(
                    "server {}: {} may keep tools from being offered, and is not supported here",
                    quoted(name),
                    quoted(key)
                );
                value.refuse(message, "write `includeTools` or `excludeTools` instead");
            } else if may_ask(&plain(key)) && !value.is_no() {
                let message = format!(
                    "server {}: {} may require approval of calls, and is not supported here",
                    quoted(name),
                    quoted(key)
                );
                let help = "remove it, and have a rule of the project ask: effect = \"ask\"";
                value.refuse(message, help);
            }
        }
        tools
    }

    /// A list, or an object of booleans. If one of them is `true`, tools that the object does not
    /// name may be forbidden, so they are not offered.
    fn tools(&mut self, value: &Value<'_>) {
        if !value.is_object() {
            return self.keep_only(names(value));
        }
        let (mut only, mut except) = (Vec::new(), Vec::new());
        for (name, value) in value.object().iter().flat_map(Object::entries) {
            match value.boolean() {
                Some(true) => only.push(name.value.into()),
                Some(false) => except.push(name.value.into()),
                None => {}
            }
        }
        if !only.is_empty() {
            self.keep_only(only);
        }
        self.leave_out(except);
    }

    /// A mode, and the tools that it allows or blocks.
    fn filter(&mut self, filter: &Value<'_>) {
        let Some(object) = filter.object() else { return };
        let list = object.value("list").map(|list| names(&list)).unwrap_or_default();
        let mode = object.value("mode");
        match mode.as_ref().and_then(Value::text_silently) {
            Some("allow") => self.keep_only(list),
            Some("block") => self.leave_out(list),
            _ => mode.as_ref().unwrap_or(filter).refuse(
                format!("{} has no known `mode`", quoted(FILTER)),
                r#"write "mode": "allow" or "mode": "block""#,
            ),
        }
    }

    /// Of several lists of the only ones, the intersection.
    fn keep_only(&mut self, names: Vec<Arc<str>>) {
        if names.iter().any(|name| **name == *"*") {
            return;
        }
        match &mut self.only {
            Some(only) => only.retain(|name| names.contains(name)),
            None => self.only = Some(names),
        }
    }

    fn leave_out(&mut self, names: Vec<Arc<str>>) {
        if names.iter().any(|name| **name == *"*") {
            self.only = Some(Vec::new());
        }
        self.except.extend(names);
    }
}

/// Names of tools, or `*` for all of them. Patterns differ between products.
fn names(list: &Value<'_>) -> Vec<Arc<str>> {
    let is_plain = |name: &str| {
        let odd = |c: char| c.is_whitespace() || c.is_control() || "*?[](){}!,".contains(c);
        name == "*" || !name.is_empty() && !name.contains(odd)
    };
    let name = |item: &Value<'_>| {
        let name = item.text()?;
        if !is_plain(name) {
            let message = format!("{} is not the name of a tool", quoted(name));
            item.refuse(message, "list the names of tools, without patterns and arguments");
        }
        Some(name.into())
    };
    list.items().iter().flatten().filter_map(name).collect()
}

/// A normalized key: products write one word in different ways.
fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Whether a key of an entry is supported.
pub(super) fn is_known(key: &str) -> bool {
    let plain = plain(key);
    let is_in = |keys: &[&str]| keys.contains(&&*plain);
    key == TOOLS || key == FILTER || is_in(&ONLY) || is_in(&EXCEPT) || is_in(&ENABLED)
}

/// The key inside of an unsupported object, at any depth, that may restrict the server.
pub(super) fn inside<'a>(key: &str, value: &Value<'a>) -> Option<&'a str> {
    let object = value.object_silently()?;
    object.entries().find_map(|(inner, value)| {
        let name = plain(inner.value);
        let is_supported = key == OPTIONS && inner.value == FILTER;
        let narrows = MAY_NARROW_INSIDE.iter().any(|word| name.contains(word));
        match narrows && !is_supported && !value.is_no() {
            true => Some(inner.value),
            false => inside(inner.value, &value),
        }
    })
}

fn may_narrow(key: &str) -> bool {
    let key = plain(key);
    key != "disabled"
        && !key.contains("timeout")
        && !WIDENS.iter().any(|word| key.starts_with(word))
        && (matches!(&*key, "off" | "state") || MAY_NARROW.iter().any(|word| key.contains(word)))
}

/// Whether a [plain](plain) key may require a question before a call.
fn may_ask(key: &str) -> bool {
    let contains = |words: &[&str]| words.iter().any(|word| key.contains(word));
    key == "ask" || contains(&ASKS) && !contains(&ASKS_LESS)
}

/// Whether an entry disables its server. A value that is neither `true` nor `false` is recorded.
pub(super) fn is_disabled(entry: &Object<'_>) -> bool {
    let mut disabled = false;
    // All are checked, so that all errors are reported.
    for (key, _) in entry.entries() {
        let says = || entry.value(key.value)?.boolean();
        disabled |= key.value == "disabled" && says() == Some(true);
        disabled |= ENABLED.contains(&&*plain(key.value)) && says() == Some(false);
    }
    disabled
}

/// The enabled servers of a file, by their names in it.
#[derive(Default)]
pub(super) struct Servers<'a> {
    only: Option<Vec<&'a str>>,
    except: Vec<&'a str>,
    denied: DenyRules<'a>,
    /// The unsupported keys that may restrict any server: none can be used then.
    unsupported: Vec<Diagnostic>,
    /// Whether it is a file of Zed.
    is_zed: bool,
}

impl<'a> Servers<'a> {
    /// Reads the lists next to a file's servers, those of its `mcp`, its `permissions`, and its
    /// `projects` for a folder.
    pub(super) fn read(file: &Object<'a>, folder: &Path) -> Self {
        let except = off_in_projects(file, folder);
        let denied = DenyRules::read(file);
        let is_zed = file.value("context_servers").is_some();
        let mut servers = Self { except, denied, is_zed, ..Self::default() };
        // Codex configures its own tools in `tools`.
        let is_codex = file.value("mcp_servers").is_some();
        for (key, _) in file.entries() {
            let Some(list) = file.value(key.value) else { continue };
            let plain = plain(key.value);
            if EXCEPT_SERVERS.contains(&&*plain) {
                servers.except.extend(texts(&list));
            } else if ONLY_SERVERS.contains(&&*plain) {
                servers.keep_only(texts(&list));
            } else if is_about_servers(&plain) || plain == TOOLS && !is_codex && may_limit(&list) {
                let message = format!(
                    "{} may keep servers or tools from being used, and is not supported here",
                    quoted(key.value)
                );
                let help = "write `disabled`, `includeTools` or `excludeTools` in each server";
                servers.unsupported.push(list.error(message, help));
            }
        }
        let settings = file.value("mcp").filter(Value::is_object).and_then(|mcp| mcp.object());
        let of_settings = |key: &str| settings.as_ref()?.value(key);
        servers.except.extend(of_settings("excluded").iter().flat_map(texts));
        if let Some(list) = of_settings("allowed") {
            servers.keep_only(texts(&list));
        }
        servers
    }

    pub(super) fn is_zed(&self) -> bool {
        self.is_zed
    }

    /// The unsupported keys that may restrict any server.
    pub(super) fn unsupported(&self) -> &[Diagnostic] {
        &self.unsupported
    }

    /// Of several lists of the only ones, the intersection.
    fn keep_only(&mut self, names: Vec<&'a str>) {
        match &mut self.only {
            Some(only) => only.retain(|name| names.contains(name)),
            None => self.only = Some(names),
        }
    }

    /// The denials for a server's tools.
    pub(super) fn denied(&self, name: &str) -> Denial<'a> {
        self.denied.of(name)
    }

    /// Whether a server is enabled.
    pub(super) fn uses(&self, name: &str) -> bool {
        !self.except.contains(&name) && self.only.as_ref().is_none_or(|only| only.contains(&name))
    }
}

pub(super) fn texts<'a>(list: &Value<'a>) -> Vec<&'a str> {
    list.items().iter().flatten().filter_map(Value::text).collect()
}

/// Whether a `tools` next to a file's servers may restrict their tools.
fn may_limit(tools: &Value<'_>) -> bool {
    match tools.object_silently() {
        Some(settings) => {
            settings.entries().any(|(key, _)| !OF_OWN_TOOLS.contains(&&*plain(key.value)))
        }
        None => tools.items().is_none_or(|items| !items.is_empty()),
    }
}

/// Whether a plain key next to a file's servers may restrict these. `mcpServers` and the like do
/// not.
fn is_about_servers(key: &str) -> bool {
    let narrows = MAY_NARROW.iter().filter(|word| **word != "tool").any(|word| key.contains(word));
    if WIDENS.iter().any(|word| key.starts_with(word)) {
        return false;
    }
    // `chat.mcp.access` of VS Code, `permission` of OpenCode.
    let is_limit = narrows || key.contains("access") || may_ask(key);
    is_limit && OF_SERVERS.iter().any(|word| key.contains(word)) || key == "permission"
}
