//! Tool names as clients see them.
//!
//! Rules, events and models know a tool of a server as `mcp__SERVER__TOOL`. A client may list it under another prefix,
//! and cut to a length that leaves room for the client's own prefix. The known name stays callable.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use toolcrib_core::{__internal::is_mcp_name, Digest, Menu, Tool};
use toolcrib_engine::MissingTool;
use toolcrib_mcp::{__internal as mcp, ServerName};

/// The beginning of the origin of an MCP server's tools, which is the id of their source.
pub(crate) const ORIGIN_OF_SERVER: &str = "mcp:";

/// The hexadecimal digits at the end of a name that was cut.
pub(crate) const DIGITS: usize = 8;

/// The prefixes of servers whose tools clients see under other names, in the order of the servers.
#[derive(Debug, Default)]
pub(crate) struct ShownNames(Vec<(Arc<str>, Arc<str>)>);

impl ShownNames {
    pub(crate) fn add(&mut self, server: Arc<str>, prefix: Arc<str>) {
        self.0.retain(|(known, _)| *known != server);
        self.0.push((server, prefix));
    }

    /// The names of a menu's tools, in its order. If two tools would have one name, the later keeps
    /// its known name.
    pub(crate) fn of<'a>(&self, menu: &'a Menu, longest: Option<usize>) -> Vec<Cow<'a, str>> {
        let known = menu.tools().iter().map(|tool| Cow::Borrowed(tool.name().as_str()));
        if self.0.is_empty() && longest.is_none() {
            return known.collect();
        }
        let mut taken: HashSet<Cow<'a, str>> = known.collect();
        let mut names = Vec::with_capacity(menu.len());
        for tool in menu.tools() {
            let wanted = self.of_tool(tool, longest);
            let is_free = *wanted == **tool.name() || taken.insert(wanted.clone());
            names.push(if is_free { wanted } else { Cow::Borrowed(tool.name().as_str()) });
        }
        names
    }

    fn of_tool<'a>(&self, tool: &'a Tool, longest: Option<usize>) -> Cow<'a, str> {
        let known = tool.name().as_str();
        let name = match tool.mcp_server() {
            Some(server) => self.of_server(server, known, mcp::unfitted_name(tool)),
            None => Cow::Borrowed(known),
        };
        fitted(name, known, longest)
    }

    /// The name of a server's tool or prompt with the server's prefix for clients. Without a prefix, it
    /// is the `own` name on the server, if the protocol permits that.
    pub(crate) fn of_server<'a>(
        &self,
        server: &str,
        known: &'a str,
        own: Option<&str>,
    ) -> Cow<'a, str> {
        let shown = self.0.iter().find(|(named, _)| **named == *server);
        let name = shown.and_then(|(server, prefix)| {
            let name = match own.filter(|own| prefix.is_empty() && mcp::is_permitted_name(own)) {
                Some(own) => own.to_owned(),
                None => format!("{prefix}{}", known.strip_prefix(&*prefix_of(server))?),
            };
            // A name may not say that the tool is another server's.
            (!is_mcp_name(&name)).then_some(Cow::Owned(name))
        });
        name.unwrap_or(Cow::Borrowed(known))
    }

    /// The name of a missing tool for clients.
    pub(crate) fn of_missing<'a>(
        &self,
        tool: &'a MissingTool,
        longest: Option<usize>,
    ) -> Cow<'a, str> {
        let server =
            tool.origin.rsplit(" > ").next().and_then(|leaf| leaf.strip_prefix(ORIGIN_OF_SERVER));
        let name = match server {
            Some(server) => self.of_server(server, &tool.name, None),
            None => (&*tool.name).into(),
        };
        fitted(name, &tool.name, longest)
    }

    /// The known names that a client's name may have.
    pub(crate) fn candidates<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Arc<str>> + 'a {
        self.0.iter().filter_map(move |(server, prefix)| {
            let rest = name.strip_prefix(&**prefix)?;
            let fitted = || Some(ServerName::new(Arc::clone(server)).ok()?.tool_name(rest));
            let (known, own) = match prefix.is_empty() && mcp::is_permitted_name(name) {
                true => (fitted()?, Some(name)),
                false => (format!("{}{rest}", prefix_of(server)), None),
            };
            (self.of_server(server, &known, own) == name).then(|| known.into())
        })
    }
}

/// The prefix of the known names of a server's tools.
fn prefix_of(server: &str) -> String {
    format!("mcp__{server}__")
}

/// A name for clients, cut if it has more characters than they take.
fn fitted<'a>(name: Cow<'a, str>, known: &str, longest: Option<usize>) -> Cow<'a, str> {
    match longest.filter(|longest| name.len() > *longest) {
        Some(longest) => Cow::Owned(cut(&name, known, longest)),
        None => name,
    }
}

/// A name of `longest` characters that ends in digits of the known name's digest.
fn cut(name: &str, known: &str, longest: usize) -> String {
    let digest = Digest::of(known).to_string();
    let digits = digest.get(..DIGITS).unwrap_or(&digest);
    // Names are ASCII.
    let kept = name.get(..longest.saturating_sub(DIGITS + 1)).unwrap_or_default();
    format!("{kept}_{digits}")
}
