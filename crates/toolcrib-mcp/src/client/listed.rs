//! What a server lists, made into tools.

use std::sync::Arc;

use serde_json::json;
use toolcrib_core::{Annotations, Catalog, Digest, HeldBack, Reason, Tool, ToolBody, ToolBuilder};

use super::{builder::Settings, name::ServerName};
use crate::connection::{Hints, RemoteTool};

/// The largest definition that is offered, in bytes of what the model reads.
const LARGEST: usize = 64 * 1024;

/// One listing, sorted by the server's own names.
#[derive(Debug)]
pub(super) struct Listed {
    offered: Vec<Tool>,
    held_back: Vec<HeldBack>,
    known: Vec<Known>,
}

/// A tool as the server described it, and what was made of it.
#[derive(Debug)]
struct Known {
    remote: RemoteTool,
    tool: Tool,
    /// Why the tool is held back, whatever else is listed.
    withheld: Option<Reason>,
}

impl Listed {
    pub(super) fn offered(&self) -> &[Tool] {
        &self.offered
    }

    pub(super) fn held_back(&self) -> &[HeldBack] {
        &self.held_back
    }

    /// Puts what is offered and what is held back into a list; texts are shared, not copied.
    pub(super) fn fill(&self, catalog: &mut Catalog) {
        catalog.offer_all(&self.offered);
        for held in &self.held_back {
            catalog.hold_back(held.tool.clone(), Arc::clone(&held.gate), held.reason.clone());
        }
    }

    /// Whether both hold the very same tools.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.known.len() == other.known.len()
            && self.known.iter().zip(&other.known).all(|(a, b)| a.tool.same(&b.tool))
    }

    /// What was made of the same description before.
    fn find(&self, remote: &RemoteTool) -> Option<&Known> {
        let first = self.known.partition_point(|known| known.remote.name < remote.name);
        let of_that_name = self.known.get(first..)?.iter();
        of_that_name
            .take_while(|known| known.remote.name == remote.name)
            .find(|known| known.remote == *remote)
    }
}

/// Makes tools of what a server lists.
pub(super) struct Definitions<'a> {
    pub(super) server: &'a ServerName,
    /// `mcp:git`: where all its tools come from, and what holds some of them back.
    pub(super) origin: &'a Arc<str>,
    pub(super) settings: &'a Settings,
}

impl Definitions<'_> {
    /// All that is listed. A tool whose description did not change is the very one that it was in
    /// `before`, so that an unchanged menu stays the same to the byte.
    pub(super) fn make<B: ToolBody>(
        &self,
        mut remotes: Vec<RemoteTool>,
        before: Option<&Listed>,
        body: impl Fn(&RemoteTool, Annotations) -> B,
    ) -> Listed {
        // By content where names are equal: the order of a server's list decides nothing.
        remotes.sort_by(|a, b| a.name.cmp(&b.name));
        for twins in remotes.chunk_by_mut(|a, b| a.name == b.name).filter(|twins| twins.len() > 1) {
            twins.sort_by_cached_key(content);
        }
        let mut listed = Listed { offered: Vec::new(), held_back: Vec::new(), known: Vec::new() };
        for remote in remotes {
            let before = before.and_then(|before| before.find(&remote));
            let before = before.map(|known| (known.tool.clone(), known.withheld.clone()));
            let Some((tool, withheld)) = before.or_else(|| self.tool(&remote, &body)) else {
                continue;
            };
            let twice = listed.known.last().is_some_and(|last| last.remote.name == remote.name);
            let reason = if twice {
                Some("the server lists another tool of the same name".into())
            } else {
                withheld.clone()
            };
            match reason {
                None => listed.offered.push(tool.clone()),
                Some(reason) => listed.held_back.push(HeldBack {
                    tool: tool.clone(),
                    gate: Arc::clone(self.origin),
                    reason,
                }),
            }
            listed.known.push(Known { remote, tool, withheld });
        }
        listed
    }

    /// The tool, and why it is held back if it is.
    fn tool<B: ToolBody>(
        &self,
        remote: &RemoteTool,
        body: &impl Fn(&RemoteTool, Annotations) -> B,
    ) -> Option<(Tool, Option<Reason>)> {
        let annotations = self.annotations(remote.hints);
        let name = self.server.tool_name(&remote.name);
        let made = self.define(&name, remote, annotations).body(body(remote, annotations));
        Some(match made {
            Ok(tool) if tool.rendering().len() > LARGEST => {
                let bytes = tool.rendering().len();
                let flaw = format!("its definition has {bytes} bytes; {LARGEST} are the most");
                (tool, Some(Arc::<str>::from(flaw).into()))
            }
            Ok(tool) => (tool, self.unwanted(&remote.name)),
            Err(invalid) => {
                // What cannot be a tool is shown by one of the same name that is never offered.
                let stand_in = self.common(Tool::builder(name).description("A tool."));
                let flaw = Arc::<str>::from(invalid.to_string());
                (stand_in.body(body(remote, annotations)).ok()?, Some(flaw.into()))
            }
        })
    }

    fn define(&self, name: &str, remote: &RemoteTool, annotations: Annotations) -> ToolBuilder {
        let said = [&remote.description, &remote.title].into_iter().flatten();
        let description = said.map(|text| text.trim()).find(|text| !text.is_empty());
        let mut builder = Tool::builder(name)
            .description(description.unwrap_or(&remote.name))
            .input_schema(remote.input_schema.clone())
            .annotations(annotations);
        if let Some(title) = &remote.title {
            builder = builder.title(title);
        }
        if let Some(schema) = &remote.output_schema {
            builder = builder.output_schema(schema.clone());
        }
        self.common(builder)
    }

    /// What holds for all tools of the server.
    fn common(&self, mut builder: ToolBuilder) -> ToolBuilder {
        if let Some(timeout) = self.settings.call_timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(chars) = self.settings.max_result_chars {
            builder = builder.max_result_chars(chars);
        }
        let server = self.server.as_str();
        builder.toolset("mcp").origin(Arc::clone(self.origin)).mcp_server(server).untrusted()
    }

    /// What a trusted server says of a tool's effects, with the protocol's defaults. Of any other,
    /// the worst is assumed.
    fn annotations(&self, hints: Hints) -> Annotations {
        let hints = if self.settings.trusted { hints } else { Hints::default() };
        let read_only = hints.read_only.unwrap_or(false);
        Annotations {
            read_only,
            // Of a tool that changes nothing the protocol does not ask it.
            destructive: hints.destructive.unwrap_or(!read_only) && !read_only,
            idempotent: hints.idempotent.unwrap_or(false),
        }
    }

    /// Why the operator does not want a tool of that name, if so.
    fn unwanted(&self, tool: &str) -> Option<Reason> {
        let Settings { include, exclude, .. } = self.settings;
        if include.as_ref().is_some_and(|globs| !globs.iter().any(|glob| glob.matches(tool))) {
            return Some("not in `include`".into());
        }
        exclude.iter().any(|glob| glob.matches(tool)).then(|| "in `exclude`".into())
    }
}

fn content(remote: &RemoteTool) -> Digest {
    let RemoteTool { name: _, title, description, input_schema, output_schema, hints } = remote;
    let Hints { read_only, destructive, idempotent } = hints;
    Digest::of_json(&json!([
        title,
        description,
        input_schema,
        output_schema,
        read_only,
        destructive,
        idempotent
    ]))
}
