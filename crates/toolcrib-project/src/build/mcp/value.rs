//! Values in declarations of servers: with environment variables and secrets.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_mcp::server::expand;

use crate::{
    bind::names::Names,
    build::secrets::report_undeclared,
    file::{SECRET, Text, is_secret_name},
    user::secrets::ProjectSecrets,
};

/// The sources of values, and the collected secrets.
pub(crate) struct Values<'a> {
    secrets: &'a ProjectSecrets,
    names: &'a Names,
    problems: &'a Problems,
    /// The secret texts.
    pub(crate) learned: Vec<String>,
    /// The first declared secret without a value.
    pub(crate) missing: Option<WrittenSecret>,
}

/// A secret without a value, and the position of the reference.
pub(crate) struct WrittenSecret {
    pub(crate) reason: Arc<str>,
    pub(crate) at: Spot,
}

/// A piece of a text.
enum Piece<'a> {
    Plain(&'a str),
    Secret(&'a str),
    Place(Place),
}

/// A placeholder for the caller of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Principal,
    Tenant,
}

impl Place {
    const ALL: [(&str, Self); 2] = [("principal}", Self::Principal), ("tenant}", Self::Tenant)];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Principal => "principal",
            Self::Tenant => "tenant",
        }
    }
}

/// A text with placeholders, and variables and secrets inserted. It may contain secrets.
#[derive(Clone)]
pub(crate) struct Template(pub(crate) Vec<Part>);

#[derive(Clone)]
pub(crate) enum Part {
    Text(String),
    Place(Place),
}

impl Template {
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> {
        self.0.iter().filter_map(|part| match part {
            Part::Place(place) => Some(*place),
            Part::Text(_) => None,
        })
    }

    /// The text with these values; without a value, a placeholder is replaced by nothing.
    pub(crate) fn render(&self, value: impl Fn(Place) -> Option<String>) -> String {
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Place(place) => value(*place).unwrap_or_default(),
        };
        self.0.iter().map(part).collect()
    }

    /// The text, if it has no placeholders.
    pub(crate) fn plain(&self) -> Option<String> {
        self.places().next().is_none().then(|| self.render(|_| None))
    }

    /// The text with placeholders as written.
    pub(crate) fn written(&self) -> String {
        self.render(|place| Some(format!("{{{}}}", place.name())))
    }
}

impl<'a> Values<'a> {
    pub(crate) fn new(
        secrets: &'a ProjectSecrets,
        names: &'a Names,
        problems: &'a Problems,
    ) -> Self {
        Self { secrets, names, problems, learned: Vec::new(), missing: None }
    }

    /// A text with variables. Problems are recorded.
    pub(crate) fn plain(&mut self, text: &Text) -> Option<String> {
        let template = self.without_secrets(text)?;
        self.without_places(text, &template)
    }

    /// A text with variables and secrets, as in [`template`](Self::template).
    pub(crate) fn with_secrets(&mut self, text: &Text) -> Option<String> {
        let template = self.template(text)?;
        self.without_places(text, &template)
    }

    fn without_places(&self, text: &Text, template: &Template) -> Option<String> {
        let plain = template.plain();
        if plain.is_none() {
            let at = pieces(&text.value)
                .into_iter()
                .find_map(|(at, piece)| matches!(piece, Piece::Place(_)).then_some(at));
            let message = "no placeholder of the caller is allowed here";
            let help = "a program's `env`, an endpoint's `headers` and the path of its `url` can \
                        contain it";
            self.problems.push(Diagnostic::error(&text.place(at), message).help(help));
        }
        plain
    }

    /// A text with variables and placeholders. Problems are recorded.
    pub(crate) fn without_secrets(&mut self, text: &Text) -> Option<Template> {
        if let Some(at) = pieces(&text.value).iter().find_map(|(at, piece)| match piece {
            Piece::Secret(_) => Some(*at),
            Piece::Plain(_) | Piece::Place(_) => None,
        }) {
            let message = "no secret is allowed here: other programs of this machine can read it";
            let help = "pass it to a program in its `env`, to an endpoint in its `headers`";
            self.problems.push(Diagnostic::error(&text.place(Some(at)), message).help(help));
            return None;
        }
        self.template(text)
    }

    /// A text with variables, placeholders and secrets. Problems are recorded; a declared secret
    /// without a value is replaced by nothing.
    pub(crate) fn template(&mut self, text: &Text) -> Option<Template> {
        let mut all = Some(Vec::new());
        for (at, piece) in pieces(&text.value) {
            let value = match piece {
                Piece::Plain(plain) => self.expanded(text, at, plain).map(Part::Text),
                Piece::Secret(name) => self.secret(name, text.place(Some(at))).map(Part::Text),
                Piece::Place(place) => Some(Part::Place(place)),
            };
            match (&mut all, value) {
                (Some(all), Some(value)) => all.push(value),
                _ => all = None,
            }
        }
        all.map(Template)
    }

    fn expanded(&mut self, text: &Text, start: usize, plain: &str) -> Option<String> {
        if let Some(grant) = &self.names.grant
            && let Some(variable) = plain.find("${")
        {
            grant.refuse_variable(&text.place(Some(start + variable)), self.problems);
            return None;
        }
        match expand(plain, |name| std::env::var(name).ok()) {
            Ok(expanded) => {
                self.learned.extend(expanded.secrets);
                Some(expanded.text)
            }
            Err(error) => {
                let at = text.place(Some(start + error.offset));
                self.problems.push(Diagnostic::error(&at, error.to_string()));
                None
            }
        }
    }

    fn secret(&mut self, name: &str, at: Spot) -> Option<String> {
        if !self.names.secrets.iter().any(|declared| **declared == *name) {
            let name = Located { value: name.into(), at };
            report_undeclared(&name, self.names, self.problems);
            return None;
        }
        match self.secrets.get(name) {
            Ok(secret) => {
                let value = secret.expose().to_owned();
                self.learned.push(value.clone());
                Some(value)
            }
            Err(error) => {
                let reason: Arc<str> = error.to_string().into();
                self.missing.get_or_insert(WrittenSecret { reason, at });
                Some(String::new())
            }
        }
    }
}

/// The pieces of a text, each with its offset: `secret:NAME` alone; `{secret:NAME}`, `{principal}`
/// and `{tenant}` inside.
fn pieces(text: &str) -> Vec<(usize, Piece<'_>)> {
    if let Some(name) = text.strip_prefix(SECRET).filter(|name| is_secret_name(name)) {
        return vec![(SECRET.len(), Piece::Secret(name))];
    }
    let (mut pieces, mut start) = (Vec::new(), 0);
    for (open, _) in text.match_indices('{') {
        let before = text.get(start..open).unwrap_or_default();
        // After a `$`, it is meant as a variable.
        if open < start || before.ends_with('$') {
            continue;
        }
        let inside = text.get(open + 1..).unwrap_or_default();
        let Some((piece, at, length)) = placed(inside) else { continue };
        pieces.push((start, Piece::Plain(before)));
        pieces.push((open + 1 + at, piece));
        start = open + 1 + length;
    }
    pieces.push((start, Piece::Plain(text.get(start..).unwrap_or_default())));
    pieces
}

/// The piece that a text after a `{` begins with, the offset of its name, and its length.
fn placed(inside: &str) -> Option<(Piece<'_>, usize, usize)> {
    if let Some((name, _)) = inside.strip_prefix(SECRET).and_then(|name| name.split_once('}')) {
        let is_secret = is_secret_name(name);
        let length = SECRET.len() + name.len() + 1;
        return is_secret.then_some((Piece::Secret(name), SECRET.len(), length));
    }
    let found = Place::ALL.iter().find(|(written, _)| inside.starts_with(written));
    found.map(|(written, place)| (Piece::Place(*place), 0, written.len()))
}
