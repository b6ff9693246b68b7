//! Values in declarations of servers: with environment variables and secrets.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, Spot};
use toolcrib_mcp::server::expand;

use crate::{
    config::{Text, is_secret_name},
    resolve::{names::Names, secrets::report_undeclared},
    secrets::EnvironmentSecrets,
};

/// The prefix of a reference to a secret.
const SECRET: &str = "secret:";

/// The sources of values, and the collected secrets.
pub(super) struct Values<'a> {
    secrets: &'a EnvironmentSecrets,
    names: &'a Names,
    problems: &'a Problems,
    /// The secret texts.
    pub(super) learned: Vec<String>,
    /// The first declared secret without a value.
    pub(super) missing: Option<WrittenSecret>,
}

/// A secret without a value, and the position of the reference.
pub(super) struct WrittenSecret {
    pub(super) reason: Arc<str>,
    pub(super) at: Spot,
}

/// A piece of a text.
enum Piece<'a> {
    Plain(&'a str),
    Secret(&'a str),
}

impl<'a> Values<'a> {
    pub(super) fn new(
        secrets: &'a EnvironmentSecrets,
        names: &'a Names,
        problems: &'a Problems,
    ) -> Self {
        Self { secrets, names, problems, learned: Vec::new(), missing: None }
    }

    /// A text with variables. Problems are recorded.
    pub(super) fn plain(&mut self, text: &Text) -> Option<String> {
        if let Some(at) = pieces(&text.value).iter().find_map(|(at, piece)| match piece {
            Piece::Secret(_) => Some(*at),
            Piece::Plain(_) => None,
        }) {
            let message = "no secret is allowed here: other programs of this machine can read it";
            let help = "pass it to a program in its `env`, to an endpoint in its `headers`";
            self.problems.push(Diagnostic::error(&text.place(Some(at)), message).help(help));
            return None;
        }
        self.expanded(text, 0, &text.value)
    }

    /// A text with variables and secrets. Problems are recorded; a declared secret without a value
    /// is replaced by nothing.
    pub(super) fn with_secrets(&mut self, text: &Text) -> Option<String> {
        let mut all = Some(String::with_capacity(text.value.len()));
        for (at, piece) in pieces(&text.value) {
            let value = match piece {
                Piece::Plain(plain) => self.expanded(text, at, plain),
                Piece::Secret(name) => self.secret(name, text.place(Some(at))),
            };
            match (&mut all, value) {
                (Some(all), Some(value)) => all.push_str(&value),
                _ => all = None,
            }
        }
        all
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

/// The pieces of a text, each with its offset: `secret:NAME` alone, or `{secret:NAME}` inside.
fn pieces(text: &str) -> Vec<(usize, Piece<'_>)> {
    if let Some(name) = text.strip_prefix(SECRET).filter(|name| is_secret_name(name)) {
        return vec![(SECRET.len(), Piece::Secret(name))];
    }
    let (mut pieces, mut rest, mut start) = (Vec::new(), text, 0);
    let mut seen = 0;
    while let Some((before, after)) =
        rest.get(seen..).and_then(|unseen| unseen.split_once("{secret:"))
    {
        let open = seen + before.len();
        // After a `$`, it is meant as a variable.
        let is_secret = |(name, _): &(&str, &str)| !before.ends_with('$') && is_secret_name(name);
        match after.split_once('}').filter(is_secret) {
            Some((name, behind)) => {
                let plain = rest.get(..open).unwrap_or_default();
                pieces.push((start, Piece::Plain(plain)));
                pieces.push((start + open + 1 + SECRET.len(), Piece::Secret(name)));
                start += rest.len() - behind.len();
                (rest, seen) = (behind, 0);
            }
            None => seen = open + 1,
        }
    }
    pieces.push((start, Piece::Plain(rest)));
    pieces
}
