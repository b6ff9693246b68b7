//! Converts a server's list into tools.

use std::{collections::HashSet, sync::Arc};

use serde_json::{Value, json};
use toolcrib_core::{
    __internal::{Subschemas, leave_foreign_patterns, may_describe_elsewhere, subschemas},
    Annotations, Catalog, MissingReason, Reason, RemoteDefinition, RemoteListing, Tool, ToolBody,
    ToolBuilder,
};

use super::{settings::Settings, skills::SkillList};
use crate::{
    connection::types::{Hints, RemoteTool},
    server::name::ServerName,
    wire::{FIELDS, OWN_NAME, STAND_IN, harmless_json},
};

/// One listing: the server's tools, and the one that loads its skills.
pub(super) struct ServerListing {
    tools: RemoteListing<RemoteTool>,
    skills: Option<SkillList>,
    /// The tools of a conversation that has loaded no skill, without regard to gates.
    catalog: Catalog,
}

impl ServerListing {
    pub(super) fn new(
        tools: RemoteListing<RemoteTool>,
        skills: Option<SkillList>,
        definitions: &Definitions<'_>,
    ) -> Self {
        let catalog = match &skills {
            None => tools.catalog().clone(),
            Some(skills) => skills.merged(tools.catalog(), definitions.origin),
        };
        Self { tools, skills, catalog }
    }

    /// All tools.
    pub(super) fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    pub(super) fn skills(&self) -> Option<&SkillList> {
        self.skills.as_ref()
    }

    /// Whether some tools are offered only after a skill is loaded.
    pub(super) fn has_gates(&self) -> bool {
        self.skills.as_ref().is_some_and(SkillList::has_gates)
    }

    /// The tools of a conversation that has loaded these skills.
    pub(super) fn catalog_with(&self, loaded: &HashSet<Arc<str>>) -> Catalog {
        match &self.skills {
            None => self.catalog.clone(),
            Some(skills) => skills.gated(&self.catalog, loaded),
        }
    }

    /// Whether a URI is one of a file of a listed skill.
    pub(super) fn is_of_skill(&self, uri: &str) -> bool {
        self.skills.as_ref().is_some_and(|skills| skills.contains(uri))
    }

    /// The names in `allowed-tools` of its skills that are not tools of the server.
    pub(super) fn foreign_tools(&self) -> &[Arc<str>] {
        self.skills.as_ref().map_or(&[], SkillList::foreign)
    }

    /// Whether both contain the same tool instances and offer them in the same order.
    pub(super) fn same(&self, other: &Self) -> bool {
        self.tools.same(&other.tools) && self.catalog.same(&other.catalog)
    }

    /// The remote names of all listed tools, offered or withheld.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> + Clone {
        self.tools.names()
    }
}

/// Why a tool is withheld that a server runs as a task only.
const ONLY_AS_TASK: &str = "it can only run as a task, which is not supported here";

/// Converts a server's definitions into tools.
pub(super) struct Definitions<'a> {
    pub(super) server: &'a ServerName,
    /// `mcp:git`: the origin of its tools, and of the reasons why some are withheld.
    pub(super) origin: &'a Arc<str>,
    pub(super) settings: &'a Settings,
}

impl Definitions<'_> {
    /// All listed tools.
    pub(super) fn make<B: ToolBody>(
        &self,
        remotes: Vec<RemoteTool>,
        before: Option<&ServerListing>,
        body: impl Fn(&RemoteTool, Annotations) -> B,
    ) -> Result<RemoteListing<RemoteTool>, Arc<str>> {
        let Settings { order, definition_check, .. } = self.settings;
        let (before, check) = (before.map(|before| &before.tools), definition_check.as_ref());
        RemoteListing::new(remotes, *order, before, self.origin, check, |remote| {
            self.tool(remote, &body)
        })
    }

    /// The tool, and why it is withheld, if it is.
    fn tool<B: ToolBody>(
        &self,
        remote: &RemoteTool,
        body: &impl Fn(&RemoteTool, Annotations) -> B,
    ) -> Option<(Tool, Option<Reason>)> {
        let annotations = self.annotations(remote.hints);
        let raw = remote.name.as_deref().unwrap_or("unnamed");
        let name = self.tool_name(raw);
        let made = match (&remote.flaw, &remote.name) {
            (Some(flaw), _) => Err((MissingReason::Invalid, flaw.clone())),
            (None, Some(_)) if requires_task(remote) => {
                Err((MissingReason::OnlyAsTask, ONLY_AS_TASK.to_owned()))
            }
            (None, Some(_)) => self
                .define(&name, raw, remote, annotations)
                .body(body(remote, annotations))
                .map_err(|invalid| (MissingReason::Invalid, invalid.to_string())),
            (None, None) => Err((MissingReason::Invalid, "the server gives it no name".to_owned())),
        };
        Some(match made {
            Ok(tool) => (tool, self.unwanted(raw).or_else(|| self.taken(raw))),
            Err((of, flaw)) => {
                // An invalid definition is represented by a tool of the same name that is never
                // offered.
                let stand_in = Tool::builder(name).description("A tool.").annotations(annotations);
                let stand_in = self.common(stand_in).body(body(remote, annotations)).ok()?;
                let flaw = Reason::Definition(of, flaw.into());
                (stand_in, Some(self.unwanted(raw).unwrap_or(flaw)))
            }
        })
    }

    fn define(
        &self,
        name: &str,
        raw: &str,
        remote: &RemoteTool,
        annotations: Annotations,
    ) -> ToolBuilder {
        // The server validates again, so what cannot be checked here costs only itself.
        let without_foreign_patterns = |schema: &Value| {
            let mut schema = schema.clone();
            leave_foreign_patterns(&mut schema);
            without_null_properties(&mut schema);
            schema
        };
        let text = |said: &'_ Option<String>| {
            said.as_deref().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let texts = self.settings.tools.get(raw);
        let own = texts.and_then(|texts| texts.description.as_deref().map(str::to_owned));
        let described = own.or_else(|| text(&remote.description));
        let stand_in = || text(&remote.title).unwrap_or_else(|| raw.to_owned());
        let description = described.clone().unwrap_or_else(stand_in);
        let mut input_schema = without_foreign_patterns(&remote.input_schema);
        require_only_described(&mut input_schema);
        let mut builder = Tool::builder(name)
            .description(&*description)
            .input_schema(input_schema)
            .annotations(annotations);
        if let Some(title) = &remote.title {
            builder = builder.title(title);
        }
        if !remote.fields.is_empty() {
            builder = builder.meta(FIELDS, harmless_json(remote.fields.clone().into()));
        }
        if described.is_none() {
            builder = builder.meta(STAND_IN, description);
        }
        let is_renamed = self.settings.name_of(raw) != raw;
        if is_renamed || !name.ends_with(raw) {
            builder = builder.meta(OWN_NAME, raw);
        }
        if let Some(schema) = &remote.output_schema {
            builder = builder.output_schema(without_foreign_patterns(schema));
        }
        self.common(builder)
    }

    /// The properties of all tools of the server.
    pub(super) fn common(&self, mut builder: ToolBuilder) -> ToolBuilder {
        if let Some(timeout) = self.settings.call_timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(chars) = self.settings.max_result_chars {
            builder = builder.max_result_chars(chars);
        }
        let server = self.server.as_str();
        builder
            .toolset("mcp")
            .origin(Arc::clone(self.origin))
            .mcp_server(server)
            .untrusted()
            .foreign_definition()
    }

    /// A trusted server's annotations of a tool's effects, with the protocol's defaults. For any
    /// other, the worst is assumed.
    fn annotations(&self, hints: Hints) -> Annotations {
        let hints = if self.settings.trusted { hints } else { Hints::default() };
        let read_only = hints.read_only.unwrap_or(false);
        Annotations {
            read_only,
            // The protocol does not use it for a read-only tool.
            destructive: hints.destructive.unwrap_or(!read_only) && !read_only,
            idempotent: hints.idempotent.unwrap_or(false),
        }
    }

    /// The name of a tool here, by its own name on the server.
    pub(super) fn tool_name(&self, own: &str) -> String {
        self.server.tool_name(self.settings.name_of(own))
    }

    /// Why a tool's name belongs to another one, which the operator has called so.
    fn taken(&self, own: &str) -> Option<Reason> {
        let namesake = self.settings.namesake(own)?;
        let text = format!("here, this is the name of the server's tool `{namesake}`");
        Some(Reason::Definition(MissingReason::SameName, text.into()))
    }

    /// Why the operator excludes a tool of that name, if so.
    fn unwanted(&self, tool: &str) -> Option<Reason> {
        let Settings { include, exclude, .. } = self.settings;
        if include.as_ref().is_some_and(|globs| !globs.iter().any(|glob| glob.matches(tool))) {
            return Some("not in `include`".into());
        }
        exclude.iter().any(|glob| glob.matches(tool)).then(|| "in `exclude`".into())
    }
}

/// Reads `"properties": null` as absent, as servers mean it. Recursive: as deep as the schema.
fn without_null_properties(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    if schema.get("properties").is_some_and(Value::is_null) {
        schema.remove("properties");
    }
    for (key, value) in schema {
        match (subschemas(key), value) {
            (Some(Subschemas::Named), Value::Object(schemas)) => {
                schemas.values_mut().for_each(without_null_properties);
            }
            (Some(Subschemas::List | Subschemas::One), Value::Array(schemas)) => {
                schemas.iter_mut().for_each(without_null_properties);
            }
            (Some(Subschemas::One), schema) => without_null_properties(schema),
            _ => {}
        }
    }
}

/// Requires only arguments that the schema can describe: models cannot know the others, and the server
/// validates again.
fn require_only_described(schema: &mut Value) {
    let Value::Object(schema) = schema else { return };
    let Some(Value::Array(required)) = schema.get("required") else { return };
    if may_describe_elsewhere(schema) {
        return;
    }
    let is_described = |name: &&Value| {
        let name = name.as_str();
        let properties = schema.get("properties").map(Value::as_object);
        name.is_none_or(|name| match properties {
            Some(properties) => properties.is_none_or(|known| known.contains_key(name)),
            None => false,
        })
    };
    let described: Vec<Value> = required.iter().filter(is_described).cloned().collect();
    match (described.is_empty(), described.len() == required.len()) {
        (true, _) => drop(schema.remove("required")),
        (false, true) => {}
        (false, false) => drop(schema.insert("required".to_owned(), described.into())),
    }
}

fn requires_task(remote: &RemoteTool) -> bool {
    let execution = remote.fields.get("execution");
    execution.and_then(|execution| execution.get("taskSupport")) == Some(&json!("required"))
}

impl RemoteDefinition for RemoteTool {
    fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    fn definition(&self) -> Value {
        // The marked arguments are part of the schema.
        let Self {
            name: _,
            title,
            description,
            input_schema,
            output_schema,
            hints,
            fields,
            marked: _,
            flaw,
        } = self;
        let Hints { read_only, destructive, idempotent } = hints;
        json!({
            "title": title,
            "description": description,
            "inputSchema": input_schema,
            "outputSchema": output_schema,
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "fields": fields,
            "flaw": flaw,
        })
    }
}
