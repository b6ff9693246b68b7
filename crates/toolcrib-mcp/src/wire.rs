//! Tools, parts of results, and what servers offer beside tools, in the protocol's format.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use rmcp::model::{
    ContentBlock as Wire, JsonObject, Resource, ResourceContents, Tool as WireTool, ToolAnnotations,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use toolcrib_core::{ClientAbilities, ContentBlock, Tool, ToolError, harmless};

use crate::{
    connection::{self, RESOURCE, types::RequestError},
    server::name::ServerName,
};

/// The key of a tool's metadata with the fields of its server's definition that models do not need.
pub(crate) const FIELDS: &str = "mcp";

/// The key of a tool's own name on its server, if it has another one here.
pub(crate) use toolcrib_core::__internal::MCP_OWN_NAME as OWN_NAME;

/// The key of the text by which a tool is described that its server does not describe.
pub(crate) const STAND_IN: &str = "mcp_stand_in_description";

/// The key of a failed call's metadata with the server's protocol error.
pub(crate) const PROTOCOL_ERROR: &str = "toolcrib/protocol-error";

/// A tool's own name on its server, if it was changed to be valid here, and not by the operator.
pub fn unfitted_name(tool: &Tool) -> Option<&str> {
    let own = tool.meta().get(OWN_NAME)?.as_str()?;
    let server = ServerName::new(tool.mcp_server()?).ok()?;
    (server.tool_name(own) == tool.name().as_str()).then_some(own)
}

/// Whether the protocol permits a name for a tool: 1 to 128 of its characters.
pub fn is_permitted_name(name: &str) -> bool {
    let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(is_permitted)
}

/// A tool, with the output schema to validate its results against. The annotations of a remote tool
/// are those of its server: clients treat them as hints.
pub fn tool(tool: &Tool, output_schema: Option<&JsonObject>) -> WireTool {
    // What the server does not describe has no description for clients either.
    let stand_in = tool.meta().get(STAND_IN).and_then(Value::as_str);
    let description = Some(tool.description()).filter(|text| stand_in != Some(*text));
    let mut wire = WireTool::new_with_raw(
        tool.name().to_string(),
        description.map(|text| text.to_owned().into()),
        // A schema of arguments is an object in every definition.
        tool.input_schema().as_object().cloned().unwrap_or_default(),
    );
    let fields = tool.meta().get(FIELDS).and_then(Value::as_object);
    wire.annotations = match tool.mcp_server() {
        Some(_) => field(fields, "annotations"),
        None => {
            let says = tool.annotations();
            let hints = ToolAnnotations::new()
                .read_only(says.read_only)
                .destructive(says.destructive)
                .idempotent(says.idempotent);
            Some(hints)
        }
    };
    wire.icons = field(fields, "icons");
    wire.meta = field(fields, "_meta");
    wire.title = tool.title().map(str::to_owned);
    wire.output_schema = output_schema.cloned().map(Arc::new);
    wire
}

/// A field, unless it is absent or invalid.
fn field<T: DeserializeOwned>(fields: Option<&Map<String, Value>>, name: &str) -> Option<T> {
    T::deserialize(fields?.get(name)?).ok()
}

/// A complete block in the protocol's format. An unknown kind has no form in the protocol.
pub fn block(block: &ContentBlock) -> Option<Wire> {
    let fields = block.fields();
    let mut wire = match block {
        ContentBlock::Paragraph { text, .. } => Wire::text(&**text),
        ContentBlock::Image { media_type, data, .. } => {
            Wire::image(BASE64.encode(data), &**media_type)
        }
        ContentBlock::Audio { media_type, data, .. } => {
            Wire::audio(BASE64.encode(data), &**media_type)
        }
        ContentBlock::Text { .. } | ContentBlock::Binary { .. } => Wire::resource(contents(block)?),
        ContentBlock::Link { uri, name, media_type, .. } => {
            let mut link = Resource::new(&**uri, &**name);
            link.mime_type = media_type.as_deref().map(str::to_owned);
            link.title = field(fields, "title");
            link.description = field(fields, "description");
            link.size = field(fields, "size");
            link.icons = field(fields, "icons");
            Wire::resource_link(link)
        }
        _ => return None,
    };
    if fields.is_some() {
        let (annotations, meta) = match &mut wire {
            Wire::Text(block) => (&mut block.annotations, &mut block.meta),
            Wire::Image(block) => (&mut block.annotations, &mut block.meta),
            Wire::Audio(block) => (&mut block.annotations, &mut block.meta),
            Wire::Resource(block) => (&mut block.annotations, &mut block.meta),
            Wire::ResourceLink(block) => (&mut block.annotations, &mut block.meta),
            _ => return Some(wire),
        };
        *annotations = field(fields, "annotations");
        *meta = field(fields, "_meta");
    }
    Some(wire)
}

/// The contents of an embedded resource.
pub fn contents(block: &ContentBlock) -> Option<ResourceContents> {
    let inner = block.fields().and_then(|fields| fields.get(RESOURCE)?.as_object());
    let meta = field(inner, "_meta");
    match block {
        ContentBlock::Text { uri, media_type, text, .. } => {
            Some(ResourceContents::TextResourceContents {
                uri: uri.to_string(),
                mime_type: media_type.as_deref().map(str::to_owned),
                text: text.to_string(),
                meta,
            })
        }
        ContentBlock::Binary { uri, media_type, data, .. } => {
            Some(ResourceContents::BlobResourceContents {
                uri: uri.to_string(),
                mime_type: media_type.as_deref().map(str::to_owned),
                blob: BASE64.encode(data),
                meta,
            })
        }
        _ => None,
    }
}

/// Reads the block of a prompt's message.
///
/// # Errors
/// If the server's block is invalid.
pub fn content_block(server: &str, block: Value) -> Result<ContentBlock, ToolError> {
    connection::block(block).map_err(|error| unusable(server, error))
}

/// Reads the contents of a resource.
///
/// # Errors
/// If the server's contents are invalid.
pub fn resource_block(server: &str, contents: Value) -> Result<ContentBlock, ToolError> {
    let Value::Object(contents) = contents else {
        let problem = "the contents of the resource are not an object".to_owned();
        return Err(unusable(server, RequestError::Malformed(problem)));
    };
    connection::resource(contents).map_err(|error| unusable(server, error))
}

fn unusable(server: &str, error: RequestError) -> ToolError {
    ToolError::failed(format!("MCP server `{server}` gave an answer that cannot be used"))
        .caused_by(error)
}

/// Data with harmless texts.
pub fn harmless_json(data: Value) -> Value {
    match data {
        Value::String(text) => match harmless(&text) {
            std::borrow::Cow::Owned(clean) => Value::String(clean),
            std::borrow::Cow::Borrowed(_) => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(harmless_json).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (harmless(&key).into_owned(), harmless_json(value)))
            .collect(),
        other => other,
    }
}

/// The code and the data of the protocol error in a failed call's metadata.
pub fn protocol_error(meta: &Map<String, Value>) -> Option<(i32, Option<Value>)> {
    let error = meta.get(PROTOCOL_ERROR)?;
    let code = i32::try_from(error.get("code")?.as_i64()?).ok()?;
    let data = error.get("data").filter(|data| !data.is_null());
    Some((code, data.cloned()))
}

/// Client capabilities, as the abilities that servers may use.
pub fn abilities(capabilities: &Value) -> ClientAbilities {
    let capability = |name: &str| capabilities.get(name).and_then(Value::as_object);
    let mut can = ClientAbilities::default();
    if let Some(elicitation) = capability("elicitation") {
        can.elicitation_url = elicitation.contains_key("url");
        // Before 2025-11-25 there were only forms, and no modes.
        can.elicitation_form = elicitation.contains_key("form") || !can.elicitation_url;
    }
    if let Some(sampling) = capability("sampling") {
        let has = |name: &str| sampling.get(name).is_some_and(Value::is_object);
        can.sampling = true;
        can.sampling_tools = has("tools");
        can.sampling_context = has("context");
    }
    if let Some(roots) = capability("roots") {
        can.roots = true;
        can.roots_changes = roots.get("listChanged") == Some(&Value::Bool(true));
    }
    can
}
