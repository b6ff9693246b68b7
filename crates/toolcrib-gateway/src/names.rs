//! Tool names as clients see them.
//!
//! Rules, events and models know a tool of a server as `mcp__SERVER__TOOL`. A client may list it under another prefix,
//! and cut to a length that leaves room for the client's own prefix. The known name stays callable.

use std::{borrow::Cow, collections::HashSet, sync::Arc};

use toolcrib_core::{__internal::is_mcp_name, Digest, Menu, MissingReason, Tool};
use toolcrib_engine::{MissingTool, TurnError};
use toolcrib_mcp::{__internal as wire, ServerName};

use super::{
    ORIGIN_OF_SERVER,
    exchange::RequestContext,
    session::{Purpose, Step},
};

/// The hexadecimal digits at the end of a name that was cut.
const DIGITS: usize = 8;

/// The prefixes of servers whose tools clients see under other names, in the order of the servers.
#[derive(Debug, Default)]
pub(super) struct ShownNames(Vec<(Arc<str>, Arc<str>)>);

impl ShownNames {
    pub(super) fn add(&mut self, server: Arc<str>, prefix: Arc<str>) {
        self.0.retain(|(known, _)| *known != server);
        self.0.push((server, prefix));
    }

    /// The names of a menu's tools, in its order. If two tools would have one name, the later keeps
    /// its known name.
    pub(super) fn of<'a>(&self, menu: &'a Menu, longest: Option<usize>) -> Vec<Cow<'a, str>> {
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
            Some(server) => self.of_server(server, known, wire::renamed(tool)),
            None => Cow::Borrowed(known),
        };
        fitted(name, known, longest)
    }

    /// The name of a server's tool or prompt with the server's prefix for clients. Without a prefix, it
    /// is the `own` name on the server, if the protocol permits that.
    pub(super) fn of_server<'a>(
        &self,
        server: &str,
        known: &'a str,
        own: Option<&str>,
    ) -> Cow<'a, str> {
        let shown = self.0.iter().find(|(named, _)| **named == *server);
        let name = shown.and_then(|(server, prefix)| {
            let name = match own.filter(|own| prefix.is_empty() && wire::is_permitted_name(own)) {
                Some(own) => own.to_owned(),
                None => format!("{prefix}{}", known.strip_prefix(&*prefix_of(server))?),
            };
            // A name may not say that the tool is another server's.
            (!is_mcp_name(&name)).then_some(Cow::Owned(name))
        });
        name.unwrap_or(Cow::Borrowed(known))
    }

    /// The name of a missing tool for clients.
    pub(super) fn of_missing<'a>(
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

    /// The known name that a client means, if this iteration knows one.
    pub(super) fn meant(&self, step: &Step, name: &str) -> Option<Arc<str>> {
        if is_known(step, name) {
            return Some(name.into());
        }
        self.candidates(name).find(|candidate| is_known(step, candidate))
    }

    /// The known names that a client's name may have.
    fn candidates<'a>(&'a self, name: &'a str) -> impl Iterator<Item = Arc<str>> + 'a {
        self.0.iter().filter_map(move |(server, prefix)| {
            let rest = name.strip_prefix(&**prefix)?;
            let fitted = || Some(ServerName::new(Arc::clone(server)).ok()?.tool_name(rest));
            let (known, own) = match prefix.is_empty() && wire::is_permitted_name(name) {
                true => (fitted()?, Some(name)),
                false => (format!("{}{rest}", prefix_of(server)), None),
            };
            (self.of_server(server, &known, own) == name).then(|| known.into())
        })
    }
}

/// An iteration for the tool that a client calls by a name, and the tool's known name. Only the
/// servers that may have it are queried, except for a name that was cut.
pub(super) async fn find(
    context: &RequestContext<'_>,
    name: Arc<str>,
) -> Result<(Step, Arc<str>), TurnError> {
    let names = &context.serving.gateway.config.names;
    let step = context.step(Purpose::Call(&name)).await?;
    if is_known(&step, &name) {
        return Ok((step, name));
    }
    let longest = context.caller.access.max_name_chars;
    let may_be_cut = longest == Some(name.len()) && looks_cut(&name);
    for candidate in names.candidates(&name).filter(|_| !may_be_cut) {
        let step = context.step(Purpose::Call(&candidate)).await?;
        if is_known(&step, &candidate) {
            return Ok((step, candidate));
        }
    }
    if may_be_cut {
        let all = context.step(Purpose::Look).await?;
        let menu = all.iteration.menu();
        let position = names.of(menu, longest).iter().position(|shown| **shown == *name);
        let known = position.and_then(|position| menu.tools().get(position));
        let known = known.map(|tool| tool.name().as_str().into());
        let known = known.or_else(|| {
            let mut missing = all.iteration.withheld().missing().iter();
            let cut = missing.find(|tool| *names.of_missing(tool, longest) == *name);
            cut.map(|tool| Arc::clone(&tool.name))
        });
        if let Some(known) = known {
            return Ok((all, known));
        }
    }
    Ok((step, name))
}

/// Why a tool of this name is missing, as far as the caller may know it.
pub(super) fn missing(step: &Step, name: &str) -> Option<MissingReason> {
    let mut missing = step.iteration.withheld().missing().iter();
    missing.find(|tool| *tool.name == *name).map(|tool| tool.reason)
}

fn is_known(step: &Step, name: &str) -> bool {
    step.iteration.menu().get(name).is_some()
        || step.iteration.withheld().is_away(name)
        || missing(step, name).is_some()
}

/// Whether a name ends like those that were cut.
fn looks_cut(name: &str) -> bool {
    name.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == DIGITS && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
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
