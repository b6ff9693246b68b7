//! What narrows a server in a file: some of its tools only, or the server not at all.
//!
//! A key that may narrow and is not understood makes the server unusable: its owner has forbidden
//! something that would otherwise be offered.

use std::sync::Arc;

use super::json::{Object, Value, quoted};

/// Lists of the only tools that are offered, [plain](plain).
const ONLY: [&str; 3] = ["includetools", "enabledtools", "allowedtools"];

/// Lists of tools that are not offered, [plain](plain).
const EXCEPT: [&str; 5] =
    ["excludetools", "disabledtools", "disallowedtools", "blockedtools", "deniedtools"];

/// A list of the only tools, or an object that says of each whether it is offered.
const TOOLS: &str = "tools";

/// Keys that say by `false` that a server is not used, [plain](plain).
const ENABLED: [&str; 4] = ["enabled", "isenabled", "active", "isactive"];

/// Lists of servers beside those of a file, [plain](plain): those that are not used, and the only ones
/// that are.
const EXCEPT_SERVERS: [&str; 3] =
    ["excludemcpservers", "disabledmcpservers", "disabledmcpjsonservers"];
const ONLY_SERVERS: [&str; 3] = ["allowmcpservers", "enabledmcpservers", "enabledmcpjsonservers"];

/// Parts of keys, in lower case, of which any may narrow what a server may do.
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

/// Parts of keys beside a file's servers, in lower case, that say that a key is about these.
const OF_SERVERS: [&str; 3] = ["mcp", "server", "tool"];

/// Beginnings of keys, in lower case, that let a model do more or do it unasked: nothing is lost where
/// they are ignored.
const WIDENS: [&str; 3] = ["always", "auto", "trust"];

/// Which tools a file leaves of a server, by the server's own names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileTools {
    /// The only ones; all where there is no such list.
    pub only: Option<Vec<Arc<str>>>,
    /// Those that are left out, listed above or not.
    pub except: Vec<Arc<str>>,
}

impl FileTools {
    /// Reads an entry of a server called `name`. What is not understood is recorded.
    pub(super) fn read(entry: &Object<'_>, name: &str) -> Self {
        let mut tools = Self::default();
        for (key, _) in entry.entries() {
            let key = key.value;
            // `null` is as if it were not there.
            let Some(value) = entry.value(key) else { continue };
            if ONLY.contains(&&*plain(key)) {
                tools.keep_only(names(&value));
            } else if EXCEPT.contains(&&*plain(key)) {
                tools.leave_out(names(&value));
            } else if key == TOOLS {
                tools.tools(&value);
            } else if may_narrow(key) && !is_known(key) {
                let message = format!(
                    "server {}: {} may keep tools from being offered, and is not understood here",
                    quoted(name),
                    quoted(key)
                );
                value.refuse(message, "write `includeTools` or `excludeTools` in its place");
            }
        }
        tools
    }

    /// A list, or an object of booleans. Where one of them is `true`, what the object does not name
    /// may be forbidden or not, so it is not offered.
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

    /// Of several lists of the only ones, what stands in all.
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

/// Names of tools, or `*` for all of them. A pattern means other things in other products.
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

/// A key as it is compared: products write one word in different ways.
fn plain(key: &str) -> String {
    key.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

/// Whether a key of an entry is read here.
pub(super) fn is_known(key: &str) -> bool {
    let plain = plain(key);
    let is_in = |keys: &[&str]| keys.contains(&&*plain);
    key == TOOLS || is_in(&ONLY) || is_in(&EXCEPT) || is_in(&ENABLED)
}

fn may_narrow(key: &str) -> bool {
    let key = plain(key);
    key != "disabled"
        && !key.contains("timeout")
        && !WIDENS.iter().any(|word| key.starts_with(word))
        && (matches!(&*key, "off" | "state") || MAY_NARROW.iter().any(|word| key.contains(word)))
}

/// Whether an entry says that its server is not used. What is neither `true` nor `false` is recorded.
pub(super) fn is_disabled(entry: &Object<'_>) -> bool {
    let mut disabled = false;
    // All are looked at, so that all that is wrong is told.
    for (key, _) in entry.entries() {
        let says = || entry.value(key.value)?.boolean();
        disabled |= key.value == "disabled" && says() == Some(true);
        disabled |= ENABLED.contains(&&*plain(key.value)) && says() == Some(false);
    }
    disabled
}

/// Which servers a file uses, by the names that it has for them.
#[derive(Default)]
pub(super) struct Servers<'a> {
    only: Option<Vec<&'a str>>,
    except: Vec<&'a str>,
}

impl<'a> Servers<'a> {
    /// Reads the lists beside a file's servers, and those of its `mcp`. What may narrow and is not
    /// understood is recorded.
    pub(super) fn read(file: &Object<'a>) -> Self {
        let mut servers = Self::default();
        for (key, _) in file.entries() {
            let Some(list) = file.value(key.value) else { continue };
            let plain = plain(key.value);
            if EXCEPT_SERVERS.contains(&&*plain) {
                servers.except.extend(texts(&list));
            } else if ONLY_SERVERS.contains(&&*plain) {
                servers.keep_only(texts(&list));
            } else if is_about_servers(&plain) {
                let message = format!(
                    "{} may keep servers or tools from being used, and is not understood here",
                    quoted(key.value)
                );
                list.refuse(
                    message,
                    "write `disabled`, `includeTools` or `excludeTools` in each server",
                );
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

    /// Of several lists of the only ones, what stands in all.
    fn keep_only(&mut self, names: Vec<&'a str>) {
        match &mut self.only {
            Some(only) => only.retain(|name| names.contains(name)),
            None => self.only = Some(names),
        }
    }

    /// Whether a server is used.
    pub(super) fn uses(&self, name: &str) -> bool {
        !self.except.contains(&name) && self.only.as_ref().is_none_or(|only| only.contains(&name))
    }
}

fn texts<'a>(list: &Value<'a>) -> Vec<&'a str> {
    list.items().iter().flatten().filter_map(Value::text).collect()
}

/// Whether a plain key beside a file's servers may narrow these. `mcpServers` and their like do not.
fn is_about_servers(key: &str) -> bool {
    let narrows = MAY_NARROW.iter().filter(|word| **word != "tool").any(|word| key.contains(word));
    narrows && OF_SERVERS.iter().any(|word| key.contains(word))
}
