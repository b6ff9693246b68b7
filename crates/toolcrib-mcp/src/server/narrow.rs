//! What narrows a server in a file: some of its tools only, or the server not at all.
//!
//! A key that may narrow and is not understood makes the server unusable: its owner has forbidden
//! something that would otherwise be offered.

use std::sync::Arc;

use super::json::{Object, Value, quoted};

/// Lists of the only tools that are offered.
const ONLY: [&str; 6] = [
    "includeTools",
    "include_tools",
    "enabledTools",
    "enabled_tools",
    "allowedTools",
    "allowed_tools",
];

/// Lists of tools that are not offered.
const EXCEPT: [&str; 8] = [
    "excludeTools",
    "exclude_tools",
    "disabledTools",
    "disabled_tools",
    "disallowedTools",
    "disallowed_tools",
    "blockedTools",
    "deniedTools",
];

/// A list of the only tools, or an object that says of each whether it is offered.
const TOOLS: &str = "tools";

/// Keys that say by `false` that a server is not used.
const ENABLED: [&str; 3] = ["enabled", "isActive", "active"];

/// Lists of servers beside those of a file: those that are not used, and the only ones that are.
const EXCEPT_SERVERS: [&str; 3] =
    ["excludeMCPServers", "disabledMcpServers", "disabledMcpjsonServers"];
const ONLY_SERVERS: [&str; 1] = ["allowMCPServers"];

/// Parts of keys, in lower case, of which any may narrow what a server may do.
const MAY_NARROW: [&str; 18] = [
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
];

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
            if ONLY.contains(&key) {
                tools.keep_only(names(&value));
            } else if EXCEPT.contains(&key) {
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

/// Whether a key of an entry is read here.
pub(super) fn is_known(key: &str) -> bool {
    key == TOOLS || ONLY.contains(&key) || EXCEPT.contains(&key) || ENABLED.contains(&key)
}

fn may_narrow(key: &str) -> bool {
    let key = key.to_lowercase();
    key != "disabled"
        && !key.contains("timeout")
        && !WIDENS.iter().any(|word| key.starts_with(word))
        && MAY_NARROW.iter().any(|word| key.contains(word))
}

/// Whether an entry says that its server is not used. What is neither `true` nor `false` is recorded.
pub(super) fn is_disabled(entry: &Object<'_>) -> bool {
    let says = |key: &str| entry.value(key)?.boolean();
    // All are looked at, so that all that is wrong is told.
    let enabled = ENABLED.map(says);
    says("disabled") == Some(true) || enabled.contains(&Some(false))
}

/// Which servers a file uses, by the names that it has for them.
#[derive(Default)]
pub(super) struct Servers<'a> {
    only: Option<Vec<&'a str>>,
    except: Vec<&'a str>,
}

impl<'a> Servers<'a> {
    /// Reads the lists beside a file's servers, and those of its `mcp`.
    pub(super) fn read(file: &Object<'a>) -> Self {
        let mut servers = Self::default();
        let settings = file.value("mcp").filter(Value::is_object).and_then(|mcp| mcp.object());
        let of_settings = |key: &str| settings.as_ref()?.value(key);
        let except = EXCEPT_SERVERS.iter().map(|key| file.value(key));
        for list in except.chain([of_settings("excluded")]).flatten() {
            servers.except.extend(texts(&list));
        }
        let only = ONLY_SERVERS.iter().map(|key| file.value(key));
        for list in only.chain([of_settings("allowed")]).flatten() {
            let names = texts(&list);
            match &mut servers.only {
                Some(only) => only.retain(|name| names.contains(name)),
                None => servers.only = Some(names),
            }
        }
        servers
    }

    /// Whether a server is used.
    pub(super) fn uses(&self, name: &str) -> bool {
        !self.except.contains(&name) && self.only.as_ref().is_none_or(|only| only.contains(&name))
    }
}

fn texts<'a>(list: &Value<'a>) -> Vec<&'a str> {
    list.items().iter().flatten().filter_map(Value::text).collect()
}
