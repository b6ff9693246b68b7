//! The server of a URI, and the URIs under which clients know resources.

use std::sync::Arc;

use rmcp::{ErrorData, model::ErrorCode as Code};
use serde_json::{Map, Value, json};
use toolcrib_core::{__internal::shortened, ContentBlock};
use toolcrib_mcp::__internal::AssetKind;

use super::assets::{Items, Lists, lists};
use crate::{
    client::{
        request::{Era, RequestContext},
        request_servers::Servers,
        servers::{Server, reached},
        step::Step,
    },
    wire::message::no_method,
};

/// A resource of a server.
pub(crate) struct ServerResource<'a> {
    pub(crate) server: &'a Server,
    /// The server's own URI.
    pub(crate) uri: Arc<str>,
}

/// The server of a URI: the named one, one that lists it, the one whose result linked to it, one with a
/// template for it, or the only one with resources. A server that does not answer delays nothing that
/// the last lists decide.
pub(crate) async fn find<'a>(
    context: &RequestContext<'_>,
    servers: &'a Servers,
    requested: &str,
    method: &str,
) -> Result<ServerResource<'a>, ErrorData> {
    let found = |server, uri: &str| Ok(ServerResource { server, uri: uri.into() });
    if let Some((name, uri)) = requested.strip_prefix("mcp:").and_then(|rest| rest.split_once('/'))
        && let Some(server) = servers.by_name(name)
    {
        return found(server, uri);
    }
    let last = |kind| {
        let lists = servers.all.iter().map(|server| server.client.last_assets(kind));
        lists.map(Option::unwrap_or_default).collect::<Vec<_>>()
    };
    let (resources, templates) = (last(AssetKind::Resources), last(AssetKind::Templates));
    if let Some(server) = owner(context, servers, requested, &resources, &templates) {
        return found(server, requested);
    }
    let is_owner = |_: &Server, kind, items: &[Map<String, Value>]| match kind {
        AssetKind::Templates => has_template(items, requested),
        _ => has(items, "uri", &|uri| uri == requested),
    };
    let kinds = [AssetKind::Resources, AssetKind::Templates];
    let Lists { of_servers: mut resources, offers, .. } = lists(servers, &kinds, is_owner).await;
    let templates = resources.split_off(servers.all.len());
    if let Some(server) = owner(context, servers, requested, &resources, &templates) {
        return found(server, requested);
    }
    let offering = servers.all.iter().zip(&offers).filter(|(_, offers)| **offers);
    match offering.map(|(server, _)| server).collect::<Vec<_>>().as_slice() {
        [only] => found(only, requested),
        [] if !context.serving.gateway.has_skills(&context.caller.access) => Err(no_method(method)),
        _ => Err(not_found(context, requested)),
    }
}

/// The server of a URI by these lists of each server.
fn owner<'a>(
    context: &RequestContext<'_>,
    servers: &'a Servers,
    requested: &str,
    resources: &[Items],
    templates: &[Items],
) -> Option<&'a Server> {
    let first = |lists: &[Items], has: &dyn Fn(&Items) -> bool| {
        let mut all = servers.all.iter().zip(lists);
        all.find(|(_, items)| has(items)).map(|(server, _)| server)
    };
    first(resources, &|items| has(items, "uri", &|uri| uri == requested))
        .or_else(|| {
            servers
                .by_name(&context.serving.gateway.links.server(context.link_owner()?, requested)?)
        })
        .or_else(|| first(templates, &|items| has_template(items, requested)))
}

fn has_template(items: &[Map<String, Value>], requested: &str) -> bool {
    let fits = |template: &str| template == requested || fits_template(template, requested);
    has(items, "uriTemplate", &fits)
}

fn has(items: &[Map<String, Value>], key: &str, fits: &dyn Fn(&str) -> bool) -> bool {
    items.iter().any(|item| item.get(key).and_then(Value::as_str).is_some_and(fits))
}

/// Qualifies the links of a server's result whose URIs an earlier server lists, as lists do, and
/// remembers the others.
pub(crate) fn link(
    context: &RequestContext<'_>,
    step: &Step,
    server: &str,
    blocks: &mut Arc<[ContentBlock]>,
) {
    let gateway = &context.serving.gateway;
    if !blocks.iter().any(|block| matches!(block, ContentBlock::Link { .. })) {
        return;
    }
    let servers = reached(&step.iteration, &step.identity, &gateway.config.servers);
    let earlier = servers.iter().take_while(|earlier| *earlier.name != *server);
    let lists = earlier.filter_map(|earlier| earlier.client.last_assets(AssetKind::Resources));
    let lists: Vec<_> = lists.collect();
    for block in Arc::make_mut(blocks) {
        if let ContentBlock::Link { uri, .. } = block
            && lists.iter().any(|items| has(items, "uri", &|listed| *listed == **uri))
        {
            *uri = qualified(server, uri).into();
        }
    }
    if let Some(owner) = context.link_owner() {
        gateway.links.note(&owner, server, blocks);
    }
}

pub(crate) fn uri_of(params: &Map<String, Value>) -> Result<Arc<str>, ErrorData> {
    match params.get("uri") {
        Some(Value::String(uri)) => Ok(uri.as_str().into()),
        _ => Err(ErrorData::invalid_params("the parameters need `uri`, a string", None)),
    }
}

pub(crate) fn not_found(context: &RequestContext<'_>, uri: &str) -> ErrorData {
    let message = format!("there is no resource `{}`", shortened(uri));
    let data = Some(json!({ "uri": shortened(uri) }));
    match context.era {
        Era::Session(_) => ErrorData::new(Code::RESOURCE_NOT_FOUND, message, data),
        Era::Stateless(_) => ErrorData::invalid_params(message, data),
    }
}

/// A URI of a server whose own URI another server has.
pub(crate) fn qualified(server: &str, uri: &str) -> String {
    format!("mcp:{server}/{uri}")
}

/// Whether a URI may be an expansion of a template (RFC 6570): its literal parts occur in order. A
/// server decides whether it is one.
fn fits_template(template: &str, uri: &str) -> bool {
    let mut literals = Vec::new();
    let mut rest = template;
    while let Some((literal, after)) = rest.split_once('{') {
        literals.push(literal);
        rest = after.split_once('}').map_or("", |(_, after)| after);
    }
    if literals.is_empty() {
        return false;
    }
    let Some(mut at) = uri.strip_prefix(literals.remove(0)) else { return false };
    for literal in literals {
        match at.find(literal) {
            Some(found) => at = at.get(found + literal.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    at.ends_with(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uri_fits_a_template_by_its_literal_parts() {
        for (template, uri, fits) in [
            ("test://template/{id}/data", "test://template/123/data", true),
            ("test://template/{id}/data", "test://template/123", false),
            ("file:///{+path}", "file:///a/b.txt", true),
            ("file:///{+path}", "http://a", false),
            ("db://{table}/{row}{?q}", "db://a/1?q=2", true),
            ("db://{table}/{row}", "db://a", false),
            ("db://fixed", "db://fixed", false),
            ("{", "anything", true),
        ] {
            assert_eq!(fits_template(template, uri), fits, "{template} {uri}");
        }
    }
}
