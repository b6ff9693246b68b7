//! The security schemes of a document, and the secrets that satisfy them.

use std::sync::Arc;

use serde_json::{Map, Value};
use toolcrib_capabilities::http::{HeaderName, is_set_by_client};

use super::document::{OpenApi, Version};

/// `auth`: the secrets for security schemes.
#[derive(Debug, Clone, Default)]
pub struct Auth {
    /// The secret for any scheme.
    pub any: Option<Arc<str>>,
    /// The secrets by the name of their scheme, or of a parameter that is a credential: one in a header, the
    /// query or a cookie, which some documents declare in place of a scheme.
    pub by_scheme: Vec<(Arc<str>, Arc<str>)>,
}

/// A secret, and its place in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Credential {
    pub(super) secret: Arc<str>,
    pub(super) place: Place,
    /// Whether the operation can also be called without it.
    pub(super) is_optional: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Bearer,
    /// The secret is `user:password`.
    Basic,
    Header(HeaderName),
    Query(String),
    Cookie(String),
}

impl Place {
    /// Whether a project means this place, of a parameter called `name`, by `named`. Names of headers ignore case.
    pub(super) fn is_named(&self, name: &str, named: &str) -> bool {
        name == named || matches!(self, Self::Header(_)) && name.eq_ignore_ascii_case(named)
    }

    /// Whether a parameter is this place.
    pub(super) fn is(&self, place: &str, name: &str) -> bool {
        match self {
            Self::Bearer | Self::Basic => false,
            Self::Header(header) => place == "header" && header.as_str().eq_ignore_ascii_case(name),
            Self::Query(known) => place == "query" && known == name,
            Self::Cookie(known) => place == "cookie" && known == name,
        }
    }
}

/// The place of a parameter that may be a credential: one in a header, the query or a cookie.
pub(super) fn parameter_place(parameter: &Map<String, Value>) -> Option<(&str, Place)> {
    let said = |key: &str| parameter.get(key).and_then(Value::as_str);
    let name = said("name")?;
    let place = match said("in")? {
        "header" => {
            let header = HeaderName::try_from(name).ok();
            Place::Header(header.filter(|header| !is_set_by_client(header))?)
        }
        "query" => Place::Query(name.to_owned()),
        "cookie" => Place::Cookie(name.to_owned()),
        _ => return None,
    };
    Some((name, place))
}

impl Auth {
    /// The credentials among the parameters of an operation.
    fn of_parameters(&self, parameters: &[&Map<String, Value>]) -> Vec<Credential> {
        let credential = |parameter: &&Map<String, Value>| {
            let (name, place) = parameter_place(parameter)?;
            let (_, secret) =
                self.by_scheme.iter().find(|(named, _)| place.is_named(name, named))?;
            Some(Credential { secret: Arc::clone(secret), place, is_optional: false })
        };
        parameters.iter().filter_map(credential).collect()
    }

    fn is_empty(&self) -> bool {
        self.any.is_none() && self.by_scheme.is_empty()
    }

    fn secret(&self, scheme: &str) -> Option<&Arc<str>> {
        let named = self.by_scheme.iter().find(|(name, _)| **name == *scheme);
        named.map(|(_, secret)| secret).or(self.any.as_ref())
    }
}

/// The credentials of an operation: those of its parameters, and those of its security schemes.
///
/// # Errors
/// Why it cannot be called with these secrets.
pub(super) fn credentials(
    document: &OpenApi,
    operation: &Map<String, Value>,
    parameters: &[&Map<String, Value>],
    auth: &Auth,
    has_headers: bool,
) -> Result<Vec<Credential>, String> {
    let mut found = auth.of_parameters(parameters);
    // The author of `headers` sends the credential with them, and so does that of a parameter.
    let is_sent = has_headers && auth.is_empty() || !found.is_empty();
    for credential in of_schemes(document, operation, auth, is_sent)? {
        // A scheme may be the parameter.
        if found.iter().all(|known| known.place != credential.place) {
            found.push(credential);
        }
    }
    Ok(found)
}

/// The credentials of the security schemes. If the credential is sent otherwise, none is required.
fn of_schemes(
    document: &OpenApi,
    operation: &Map<String, Value>,
    auth: &Auth,
    is_sent: bool,
) -> Result<Vec<Credential>, String> {
    let required = operation.get("security").or_else(|| document.root().get("security"));
    let alternatives = required.and_then(Value::as_array);
    let Some(alternatives) = alternatives else {
        // Many documents leave out how their servers know a caller.
        let place = Place::Bearer;
        let secret = auth.any.as_ref().filter(|_| schemes(document).is_none_or(Map::is_empty));
        return Ok(secret
            .map(|secret| vec![Credential { secret: secret.clone(), place, is_optional: false }])
            .unwrap_or_default());
    };
    let alternatives = alternatives.iter().filter_map(Value::as_object);
    let (needed, free): (Vec<_>, Vec<_>) = alternatives.partition(|one| !one.is_empty());
    let is_optional = needed.is_empty() || !free.is_empty();
    let mut problems = Vec::new();
    for alternative in needed {
        match of_alternative(document, alternative, auth) {
            Ok(mut found) => {
                found.iter_mut().for_each(|credential| credential.is_optional = is_optional);
                return Ok(found);
            }
            Err(problem) => problems.push(problem),
        }
    }
    if is_optional || is_sent {
        return Ok(Vec::new());
    }
    // One that a secret solves is the more useful one.
    let problem =
        problems.into_iter().min_by_key(|problem| matches!(problem, UnmetRequirement::Scheme(_)));
    match problem {
        Some(UnmetRequirement::Scheme(problem) | UnmetRequirement::Secret(problem)) => Err(problem),
        None => Ok(Vec::new()),
    }
}

/// Why an alternative cannot be used.
enum UnmetRequirement {
    /// A scheme of it cannot be sent.
    Scheme(String),
    /// A secret is missing.
    Secret(String),
}

fn of_alternative(
    document: &OpenApi,
    alternative: &Map<String, Value>,
    auth: &Auth,
) -> Result<Vec<Credential>, UnmetRequirement> {
    let placed = alternative.keys().map(|name| Ok((name, place(document, name)?)));
    let placed: Vec<_> = placed.collect::<Result<_, _>>().map_err(UnmetRequirement::Scheme)?;
    if placed.len() > 1
        && placed.iter().any(|(name, _)| !auth.by_scheme.iter().any(|(one, _)| **one == ***name))
    {
        let names: Vec<_> =
            placed.iter().map(|(name, _)| format!("`{}`", name.escape_debug())).collect();
        return Err(UnmetRequirement::Secret(format!(
            "it needs the security schemes {} together; write a secret for each in `auth`",
            names.join(" and ")
        )));
    }
    let credential = |(name, place): (&String, Place)| {
        let secret = auth.secret(name).cloned().ok_or_else(|| {
            UnmetRequirement::Secret(format!(
                "it needs the security scheme `{0}`; write auth = {{ \"{0}\" = \"secret:NAME\" }}",
                name.escape_debug()
            ))
        })?;
        Ok(Credential { secret, place, is_optional: false })
    };
    placed.into_iter().map(credential).collect()
}

/// The security schemes that a document declares, by name.
pub(super) fn schemes(document: &OpenApi) -> Option<&Map<String, Value>> {
    let pointer = match document.version {
        Version::Swagger2 => "/securityDefinitions",
        Version::V3_0 | Version::V3_1 => "/components/securitySchemes",
    };
    document.root().pointer(pointer)?.as_object()
}

fn place(document: &OpenApi, name: &str) -> Result<Place, String> {
    let shown = name.escape_debug();
    let scheme = schemes(document).and_then(|schemes| schemes.get(name));
    let scheme = scheme.ok_or_else(|| format!("the security scheme `{shown}` is not declared"))?;
    let scheme = document.resolved(scheme)?;
    let said = |key: &str| scheme.get(key).and_then(Value::as_str).unwrap_or_default();
    let unknown =
        || format!("the security scheme `{shown}` is of a type that Toolcrib cannot send");
    match (said("type"), said("scheme").to_ascii_lowercase().as_str(), said("in")) {
        ("oauth2" | "openIdConnect", ..) | ("http", "bearer", _) => Ok(Place::Bearer),
        ("basic", ..) | ("http", "basic", _) => Ok(Place::Basic),
        ("apiKey", _, "header") => match HeaderName::try_from(said("name")) {
            Ok(name) if !is_set_by_client(&name) => Ok(Place::Header(name)),
            _ => Err(unknown()),
        },
        ("apiKey", _, "query") => Ok(Place::Query(said("name").to_owned())),
        ("apiKey", _, "cookie") => Ok(Place::Cookie(said("name").to_owned())),
        _ => Err(unknown()),
    }
}
