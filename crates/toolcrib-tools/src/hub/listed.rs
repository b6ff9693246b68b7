//! The tools of a catalog.

use std::sync::Arc;

use serde_json::{Value, json};
use toolcrib_core::{
    BoxFuture, Capabilities, DefinitionCheck, Identity, InvalidToolError, ListOrder, Reason,
    RemoteDefinition, RemoteListing, Tool, ToolBody, ToolBuilder, ToolContext, ToolError, ToolName,
    ToolOutput,
};

use crate::{Declaration, http::run::Body};

/// A tool as the catalog describes it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RemoteTool {
    /// Its own name; none where the catalog has no text there.
    pub(super) name: Option<String>,
    pub(super) description: Option<String>,
    pub(super) schema: Option<Value>,
}

/// One catalog.
pub(super) type RemoteCatalog = RemoteListing<RemoteTool>;

/// Makes tools of what a catalog lists.
pub(super) struct Definitions {
    /// `hub:crm`: the origin of all its tools, and of withheld ones.
    origin: Arc<str>,
    name: Arc<str>,
    prefix: String,
    order: ListOrder,
    declaration: Declaration,
    capabilities: Capabilities,
    call: Arc<CallParts>,
    /// Whether they are available, all of them.
    check: Arc<Check>,
    definition_check: Option<DefinitionCheck>,
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
            order: ListOrder::default(),
            declaration,
            capabilities,
            call: Arc::new(call),
            check: Arc::new(|| Ok(())),
            definition_check: None,
        }
    }

    /// Offered in that order.
    pub(super) fn in_order(mut self, order: ListOrder) -> Self {
        self.order = order;
        self
    }

    /// Offered only while a check says that they are available.
    pub(super) fn available_if(
        mut self,
        check: impl Fn() -> Result<(), Arc<str>> + Send + Sync + 'static,
    ) -> Self {
        self.check = Arc::new(check);
        self
    }

    /// Holds back tools whose definitions a check refuses.
    pub(super) fn definition_check(mut self, check: Option<DefinitionCheck>) -> Self {
        self.definition_check = check;
        self
    }

    /// Whether definitions are compared with pinned ones, which may change without the catalog.
    pub(super) fn has_pins(&self) -> bool {
        self.definition_check.as_ref().is_some_and(|check| check.pins().is_some())
    }

    pub(super) fn origin(&self) -> &Arc<str> {
        &self.origin
    }

    /// The pattern of all names, where they have a prefix.
    pub(super) fn covers(&self) -> Option<String> {
        (!self.prefix.is_empty()).then(|| format!("{}*", self.prefix))
    }

    /// All that is listed.
    ///
    /// # Errors
    /// Why the pinned definitions forbid to use the hub.
    pub(super) fn make(
        &self,
        remotes: Vec<RemoteTool>,
        before: Option<&RemoteCatalog>,
    ) -> Result<RemoteCatalog, Arc<str>> {
        let check = self.definition_check.as_ref();
        RemoteCatalog::new(remotes, self.order, before, &self.origin, check, |remote| {
            self.tool(remote)
        })
    }

    /// The tool, and the reason if it is withheld. An invalid tool is shown by a placeholder of the same
    /// name that is never offered.
    fn tool(&self, remote: &RemoteTool) -> Option<(Tool, Option<Reason>)> {
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
            return Err("the catalog gives it no name".to_owned());
        }
        let description = remote.description.as_deref().map(str::trim);
        let description = description.filter(|text| !text.is_empty()).unwrap_or(raw);
        let any_object = || json!({ "type": "object" });
        let schema = remote.schema.clone().unwrap_or_else(any_object);
        let builder = self.builder(name).description(description).input_schema(schema);
        self.finish(builder, raw).map_err(|invalid| invalid.to_string())
    }

    /// The builder with everything that is the same for all tools.
    fn builder(&self, name: &ToolName) -> ToolBuilder {
        let Declaration { toolset, annotations, max_result_chars, timeout, .. } = &self.declaration;
        let mut builder = Tool::builder(name.as_str())
            .toolset(Arc::clone(toolset.as_ref().unwrap_or(&self.name)))
            .origin(Arc::clone(&self.origin))
            .annotations(*annotations)
            .capabilities(self.capabilities.clone())
            .open_world()
            .available_if({
                let check = Arc::clone(&self.check);
                move || check()
            })
            .untrusted()
            .foreign_definition();
        if let Some(chars) = max_result_chars {
            builder = builder.max_result_chars(*chars);
        }
        if let Some(timeout) = timeout {
            builder = builder.timeout(*timeout);
        }
        builder
    }

    fn finish(&self, builder: ToolBuilder, raw: &str) -> Result<Tool, InvalidToolError> {
        builder.body(HubCall { parts: Arc::clone(&self.call), tool: raw.into() })
    }
}

impl RemoteDefinition for RemoteTool {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn definition(&self) -> Value {
        json!({ "description": self.description, "inputSchema": self.schema })
    }
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
    /// Its own name in the catalog.
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
