//! Tools of the kind `http`.

use std::net::IpAddr;

use toolcrib_config::Spot;
use toolcrib_core::Tool;
use toolcrib_scope::http::{DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS, HttpClient, IpNet};
use toolcrib_tools::http::{HttpToolError, HttpToolPart, HttpToolProblem, HttpToolSpec};

use super::Source;
use crate::config::{HttpSection, Text};

/// One client for all tools that may dial the same addresses, so that they share connections.
#[derive(Debug, Default)]
pub(super) struct Clients(Vec<(Vec<IpNet>, HttpClient)>);

impl Clients {
    fn client(&mut self, allowed: Vec<IpNet>) -> HttpClient {
        if let Some((_, client)) = self.0.iter().find(|(nets, _)| *nets == allowed) {
            return client.clone();
        }
        let client = HttpClient::builder().allow_addresses(allowed.iter().copied()).build();
        self.0.push((allowed, client.clone()));
        client
    }
}

pub(super) fn build(
    http: &HttpSection,
    source: &Source<'_>,
    clients: &mut Clients,
) -> Option<Tool> {
    let client = clients.client(allowed_addresses(http, source));
    let method = http.method.clone();
    let url = http.url.as_ref().map_or("", |url| &*url.value);
    let mut spec = HttpToolSpec {
        headers: http
            .headers
            .iter()
            .map(|header| (header.name.value.to_string(), header.value.value.to_string()))
            .collect(),
        body: http.body.as_ref().map(|body| body.json.clone()),
        pointer: http.pointer.as_ref().map(|pointer| pointer.value.to_string()),
        max_body_bytes: http.max_body_bytes.unwrap_or(DEFAULT_MAX_BODY_BYTES),
        max_redirects: http.max_redirects.unwrap_or(DEFAULT_MAX_REDIRECTS),
        ..HttpToolSpec::new(source.declaration.clone(), method, url)
    };
    // What the file says of a GET holds.
    spec.declaration.annotations = source.declaration.annotations;
    match spec.build(&client) {
        Ok(tool) => Some(tool),
        Err(errors) => {
            for error in errors.errors {
                if let Some(at) = place(&error, http, source) {
                    let message = match &error.problem {
                        HttpToolProblem::Definition(invalid) => invalid.to_string(),
                        _ => error.to_string(),
                    };
                    source.refuse(&at, message, None);
                }
            }
            None
        }
    }
}

/// The nets that the tool may dial though they are not public; what is none is recorded.
fn allowed_addresses(http: &HttpSection, source: &Source<'_>) -> Vec<IpNet> {
    let mut nets = Vec::with_capacity(http.allow_addresses.len());
    for text in &http.allow_addresses {
        let net = text.value.parse().or_else(|_| text.value.parse::<IpAddr>().map(IpNet::from));
        match net {
            Ok(net) => nets.push(net),
            Err(_) => source.refuse(
                &text.at,
                format!("`{}` is neither an address nor a net", text.value.escape_debug()),
                "write an address such as \"127.0.0.1\" or a net such as \"10.1.0.0/16\"",
            ),
        }
    }
    nets
}

/// Where it is wrong: at the very character if that can be told. `None` for what was recorded when
/// the section was read, and for what only follows from that.
fn place(error: &HttpToolError, http: &HttpSection, source: &Source<'_>) -> Option<Spot> {
    let section = source.section;
    let in_text = |text: Option<&Text>| text.map(|text| text.place(error.offset));
    match error.problem {
        HttpToolProblem::Definition(_) => return source.place_of_definition(),
        HttpToolProblem::UnusedParameter { .. } if http.is_broken => return None,
        HttpToolProblem::UnknownParameter { .. } | HttpToolProblem::UnusedParameter { .. }
            if !source.schema_is_sound =>
        {
            return None;
        }
        _ => {}
    }
    let known = match &error.part {
        HttpToolPart::Parameter(name) => Some(section.input.place_of(name, &section.at)),
        // Without one there is nothing more to say of it.
        HttpToolPart::Url => return in_text(http.url.as_ref()),
        HttpToolPart::Header { position, .. } => {
            let header = http.headers.get(*position);
            header.map(|header| match error.problem {
                HttpToolProblem::HeaderName
                | HttpToolProblem::HeaderOfClient
                | HttpToolProblem::HeaderTwice => header.name.at.clone(),
                _ => header.value.place(error.offset),
            })
        }
        HttpToolPart::Body(pointer) => http.body.as_ref().map(|body| match &error.problem {
            HttpToolProblem::PlaceInKey { key } => body.place_under(pointer, key),
            _ => body.place(pointer, error.offset),
        }),
        HttpToolPart::Pointer => in_text(http.pointer.as_ref()),
        _ => None,
    };
    Some(known.unwrap_or_else(|| section.at.clone()))
}
