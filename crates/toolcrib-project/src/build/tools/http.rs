//! Tools of the kind `http`.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_core::Tool;
use toolcrib_scope::http::{
    AllowedAddress, DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_REDIRECTS, HttpClient, IpNet, parse_url,
};
use toolcrib_tools::http::{HttpToolError, HttpToolPart, HttpToolProblem, HttpToolSpec};

use super::Source;
use crate::{
    build::names::Names,
    config::{HttpSection, Text},
};

/// One client for all tools that may dial the same addresses, so that they share connections.
#[derive(Debug, Default)]
pub(super) struct Clients(Vec<(Vec<AllowedAddress>, HttpClient)>);

impl Clients {
    fn client(&mut self, allowed: Vec<AllowedAddress>) -> HttpClient {
        if let Some((_, client)) = self.0.iter().find(|(known, _)| *known == allowed) {
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
    let allowed = allowed_addresses(&http.allow_addresses, source.names, source.problems);
    let client = clients.client(allowed.clone());
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
        Ok(tool) => {
            warn_of_private_host(http, &allowed, source);
            Some(tool)
        }
        Err(errors) => {
            for error in errors.errors {
                if let Some(at) = place(&error, http, source) {
                    let (message, help) = told(&error, http, source);
                    source.refuse(&at, message, help);
                }
            }
            None
        }
    }
}

/// What is wrong, and what to write instead where more can be said of it here.
fn told(
    error: &HttpToolError,
    http: &HttpSection,
    source: &Source<'_>,
) -> (String, Option<String>) {
    match &error.problem {
        HttpToolProblem::Definition(invalid) => (invalid.to_string(), None),
        HttpToolProblem::UnknownParameter { parameter, .. } if source.is_secret(parameter) => {
            let help = match &error.part {
                HttpToolPart::Header { .. } => format!("write `{{secret:{parameter}}}`"),
                _ => "no secret may stand here; give it in a header".to_owned(),
            };
            (format!("{}: `{parameter}` is a secret", error.part), Some(help))
        }
        HttpToolProblem::Pointer => {
            let meant = http.pointer.as_ref().and_then(|pointer| as_pointer(&pointer.value));
            (error.to_string(), meant.map(|meant| format!("did you mean `{meant}`?")))
        }
        _ => (error.to_string(), None),
    }
}

/// The JSON pointer that was meant by a path in another notation: `data.days[0]`, `$.data`,
/// `data/days`.
fn as_pointer(path: &str) -> Option<String> {
    let path = path.strip_prefix('$').unwrap_or(path);
    let is_step = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ' ');
    let steps = path.split(['.', '/', '[', ']']).map(|step| step.trim_matches(['"', '\'']));
    let steps: Vec<_> = steps.filter(|step| !step.is_empty()).collect();
    let is_plain = !steps.is_empty() && steps.iter().all(|step| step.chars().all(is_step));
    is_plain.then(|| format!("/{}", steps.join("/")))
}

/// A host that stands in the URL as an address, or is this machine by its name, is known before any
/// call. What a name leads to is not.
fn warn_of_private_host(http: &HttpSection, allowed: &[AllowedAddress], source: &Source<'_>) {
    let Some((host, port, at)) = http.url.as_ref().and_then(host) else { return };
    let addresses: Vec<IpAddr> = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => vec![address.to_canonical()],
        Err(_) if host == "localhost" => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Err(_) => return,
    };
    let is_allowed = |address| {
        let address = SocketAddr::new(address, port);
        allowed.iter().any(|one| one.allows(address))
    };
    if addresses.iter().any(|address| is_allowed(*address) || !is_private(*address)) {
        return;
    }
    let nets: Vec<_> =
        addresses.iter().map(|address| format!("\"{}\"", IpNet::from(*address))).collect();
    let nets = nets.join(", ");
    let help = if http.allow_addresses.is_empty() {
        format!("if it is meant, write allow_addresses = [{nets}]")
    } else {
        format!("if it is meant, add {nets} to `allow_addresses`")
    };
    let message = format!(
        "`{host}` is not on the public internet, and `allow_addresses` does not allow it: every \
         call will be `not_available`"
    );
    source.problems.push(Diagnostic::warning(&at, message).help(help));
}

/// The host that a tool asks, as it is dialled; `None` where its URL cannot be read.
pub(in crate::build) fn host_of(http: &HttpSection) -> Option<String> {
    host(http.url.as_ref()?).map(|(host, ..)| host)
}

/// The host of a URL without places in it, as it is dialled, its port, and where it stands.
fn host(url: &Text) -> Option<(String, u16, Spot)> {
    let start = url.value.find("://")? + "://".len();
    let rest = url.value.get(start..)?;
    let end = rest.find(['/', '?', '#']).map_or(url.value.len(), |end| start + end);
    let read = parse_url(url.value.get(..end)?).ok()?;
    let (host, port) = (read.host_str()?.to_owned(), read.port_or_known_default()?);
    Some((host, port, url.place(Some(start))))
}

/// Whether an address is certainly one of a machine or of a network of its own.
fn is_private(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            v4.is_loopback() || v4.is_private() || v4.is_link_local() || v4.is_unspecified()
        }
        IpAddr::V6(v6) => {
            v6.is_loopback()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || v6.is_unspecified()
        }
    }
}

/// The addresses that may be dialled though they are not public; what is none is recorded.
pub(in crate::build) fn allowed_addresses(
    addresses: &[Located<Arc<str>>],
    names: &Names,
    problems: &Problems,
) -> Vec<AllowedAddress> {
    let allowed = |text: &Located<Arc<str>>| {
        let address = parse_address(text, problems)?;
        if let Some(grant) = names.grant.as_ref().filter(|grant| !grant.may_allow(&address)) {
            let does = format!("dials `{}`", text.value);
            let write = format!("allow_addresses = [\"{}\"]", text.value);
            grant.refuse(&text.at, &does, &write, problems);
        }
        Some(address)
    };
    addresses.iter().filter_map(allowed).collect()
}

/// What is neither an address nor a net is recorded.
pub(in crate::build) fn parse_address(
    text: &Located<Arc<str>>,
    problems: &Problems,
) -> Option<AllowedAddress> {
    let address = text.value.parse();
    if address.is_err() {
        let message = format!("`{}` is neither an address nor a net", text.value.escape_debug());
        let help = "write an address such as \"127.0.0.1\" or a net such as \"10.1.0.0/16\", with a \
                    port if it is not that of the URL: \"127.0.0.1:8080\"";
        problems.push(Diagnostic::error(&text.at, message).help(help));
    }
    address.ok()
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
