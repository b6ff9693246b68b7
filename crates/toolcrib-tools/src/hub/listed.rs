//! What a catalogue lists, made into tools.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    BoxFuture, Capabilities, Catalog, Digest, Identity, InvalidTool, Reason, Tool, ToolBody,
    ToolBuilder, ToolContext, ToolError, ToolName, ToolOutput,
};

use crate::{Declaration, http::run::Body};

/// The largest definition that is offered, in bytes of what the model reads.
const LARGEST: usize = 64 * 1024;

/// A tool as the catalogue describes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RemoteTool {
    /// Its own name; none where the catalogue has no text there.
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) schema: Option<Value>,
}

/// One catalogue, sorted by the tools' own names.
#[derive(Debug)]
pub(super) struct Listed(Vec<Known>);

#[derive(Debug)]
struct Known {
    remote: RemoteTool,
    tool: Tool,
    /// Why the tool is held back, whatever else is listed.
    flaw: Option<Arc<str>>,
    /// Whether another of its name stands before it.
    is_twin: bool,
    origin: Arc<str>,
}

impl Listed {
    pub(super) fn catalog(&self) -> Catalog {
        let mut catalog = Catalog::new();
        for known in &self.0 {
            let reason: Option<Reason> = match (&known.flaw, known.is_twin) {
                (Some(flaw), _) => Some(Arc::clone(flaw).into()),
                (None, true) => Some("the catalogue lists another tool of the same name".into()),
                (None, false) => None,
            };
            match reason {
                None => catalog.offer(known.tool.clone()),
                Some(reason) => {
                    catalog.hold_back(known.tool.clone(), Arc::clone(&known.origin), reason);
                }
            }
        }
        catalog
    }

    /// What was made of the same description before.
    fn find(&self, remote: &RemoteTool) -> Option<&Known> {
        let first = self.0.partition_point(|known| known.remote.name < remote.name);
        let of_that_name =
            self.0.get(first..)?.iter().take_while(|known| known.remote.name == remote.name);
        of_that_name.into_iter().find(|known| known.remote == *remote)
    }
}

/// Makes tools of what a catalogue lists.
pub(super) struct Definitions {
    /// `hub:crm`: where all its tools come from, and what holds some of them back.
    origin: Arc<str>,
    name: Arc<str>,
    prefix: String,
    declaration: Declaration,
    capabilities: Capabilities,
    call: Arc<CallParts>,
    /// Whether they are available, all of them.
    check: Arc<Check>,
}

type Check = dyn Fn() -> Result<(), Arc<str>> + Send + Sync;

impl Definitions {
    pub(super) fn new(
        name: &str,
        prefix: String,
        declaration: Declaration,
        capabilities: Capabilities,
        call: CallParts,
    ) -> Self {
        Self {
            origin: format!("hub:{name}").into(),
            name: name.into(),
            prefix,
            declaration,
            capabilities,
            call: Arc::new(call),
            check: Arc::new(|| Ok(())),
        }
    }

    /// Offered only while a check says that they are available.
    pub(super) fn available_if(
        mut self,
        check: impl Fn() -> Result<(), Arc<str>> + Send + Sync + 'static,
    ) -> Self {
        self.check = Arc::new(check);
        self
    }

    pub(super) fn origin(&self) -> &Arc<str> {
        &self.origin
    }

    /// The pattern of all names, where they have a prefix.
    pub(super) fn covers(&self) -> Option<String> {
        (!self.prefix.is_empty()).then(|| format!("{}*", self.prefix))
    }

    /// All that is listed. A tool whose description did not change is the very one that it was in
    /// `before`.
    pub(super) fn make(&self, mut remotes: Vec<RemoteTool>, before: Option<&Listed>) -> Listed {
        // By content where names are equal: the order of a server's list decides nothing.
        remotes.sort_by(|a, b| a.name.cmp(&b.name));
        for twins in remotes.chunk_by_mut(|a, b| a.name == b.name).filter(|twins| twins.len() > 1) {
            twins.sort_by_cached_key(content);
        }
        let mut known: Vec<Known> = Vec::with_capacity(remotes.len());
        for remote in remotes {
            let same = before.and_then(|before| before.find(&remote));
            let same = same.map(|known| (known.tool.clone(), known.flaw.clone()));
            let Some((tool, flaw)) = same.or_else(|| self.tool(&remote)) else { continue };
            let is_twin = known
                .last()
                .is_some_and(|last| last.remote.name.is_some() && last.remote.name == remote.name);
            known.push(Known { remote, tool, flaw, is_twin, origin: Arc::clone(&self.origin) });
        }
        Listed(known)
    }

    /// The tool, and why it is held back if it is. What cannot be a tool is shown by one of the same
    /// name that is never offered.
    fn tool(&self, remote: &RemoteTool) -> Option<(Tool, Option<Arc<str>>)> {
        let raw = remote.name.as_deref().unwrap_or("unnamed");
        let name = ToolName::fitted(&self.prefix, &self.name, raw).ok()?;
        let flaw = match self.offerable(&name, raw, remote) {
            Ok(tool) => return Some((tool, None)),
            Err(flaw) => flaw,
        };
        let stand_in = self.builder(&name).description("A tool.");
        Some((self.finish(stand_in, raw).ok()?, Some(flaw.into())))
    }

    fn offerable(&self, name: &ToolName, raw: &str, remote: &RemoteTool) -> Result<Tool, String> {
        if remote.name.is_none() {
            return Err("the catalogue gives it no name".to_owned());
        }
        let description = remote.description.as_deref().map(str::trim);
        let description = description.filter(|text| !text.is_empty()).unwrap_or(raw);
        let any_object = || json!({ "type": "object" });
        let schema = remote.schema.clone().unwrap_or_else(any_object);
        let builder = self.builder(name).description(description).input_schema(schema);
        let tool = self.finish(builder, raw).map_err(|invalid| invalid.to_string())?;
        let bytes = tool.rendering().len();
        if bytes > LARGEST {
            return Err(format!("its definition has {bytes} bytes; {LARGEST} are the most"));
        }
        Ok(tool)
    }

    /// What holds for all tools.
    fn builder(&self, name: &ToolName) -> ToolBuilder {
        let Declaration { toolset, annotations, max_result_chars, timeout, .. } = &self.declaration;
        let mut builder = Tool::builder(name.as_str())
            .toolset(Arc::clone(toolset.as_ref().unwrap_or(&self.name)))
            .origin(Arc::clone(&self.origin))
            .annotations(*annotations)
            .capabilities(self.capabilities.clone())
            .available_if({
                let check = Arc::clone(&self.check);
                move || check()
            })
            .untrusted();
        if let Some(chars) = max_result_chars {
            builder = builder.max_result_chars(*chars);
        }
        if let Some(timeout) = timeout {
            builder = builder.timeout(*timeout);
        }
        builder
    }

    fn finish(&self, builder: ToolBuilder, raw: &str) -> Result<Tool, InvalidTool> {
        builder.body(HubCall { parts: Arc::clone(&self.call), tool: raw.into() })
    }
}

fn content(remote: &RemoteTool) -> Digest {
    Digest::of_json(&json!([remote.description, remote.schema]))
}

/// How the tools of a hub are called.
pub(super) struct CallParts {
    body: Arc<Body>,
    needs_tenant: bool,
    needs_principal: bool,
}

impl CallParts {
    pub(super) fn new(body: Body, used: &[String]) -> Self {
        let uses = |place: &str| used.iter().any(|used| used == place);
        Self {
            needs_tenant: uses("tenant"),
            needs_principal: uses("principal"),
            body: Arc::new(body),
        }
    }

    fn places(&self, tool: &str, args: &Value, identity: &Identity) -> Result<Value, ToolError> {
        let needs = |needed: bool, named: &Option<Arc<str>>, what: &str| match named {
            None if needed => Err(ToolError::not_set_up(what)
                .caused_by(format!("the call needs a {what}, and the run names none"))),
            named => Ok(named.clone()),
        };
        let tenant = needs(self.needs_tenant, &identity.tenant, "tenant")?;
        let principal = needs(self.needs_principal, &identity.principal, "principal")?;
        Ok(json!({ "tool": tool, "arguments": args, "tenant": tenant, "principal": principal }))
    }
}

/// The body of one tool.
struct HubCall {
    parts: Arc<CallParts>,
    /// Its own name in the catalogue.
    tool: Arc<str>,
}

impl ToolBody for HubCall {
    fn call(
        self: Arc<Self>,
        args: Value,
        cx: ToolContext,
    ) -> BoxFuture<'static, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let places = self.parts.places(&self.tool, &args, cx.identity())?;
            Arc::clone(&self.parts.body).call(places, cx).await
        })
    }
}
