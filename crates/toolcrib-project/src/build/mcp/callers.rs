//! `{principal}`, `{tenant}` and `[[mcp.NAME.caller]]`: the differences between callers.

use std::{cell::Cell, sync::Arc};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use toolcrib_capabilities::http::parse_url;
use toolcrib_config::{Diagnostic, Problems, Spot};
use toolcrib_mcp::{
    SessionScope,
    server::{CallerAccess, Transport},
};

use super::value::{Place, Template};
use crate::file::McpSection;

/// The tenant and the principal of a caller, as each use names them.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CallerIdentity<'a> {
    tenant: Option<&'a str>,
    principal: Option<&'a str>,
}

/// Two identities to check templates.
const ANY: CallerIdentity<'static> = CallerIdentity { tenant: Some("x"), principal: Some("x") };
const OTHER: CallerIdentity<'static> = CallerIdentity { tenant: Some("y"), principal: Some("y") };

/// The differences between the callers of a server.
#[derive(Clone, Default)]
pub(crate) struct CallerOverrides {
    /// The URL, if it contains a placeholder.
    pub(crate) url: Option<Template>,
    /// The headers or variables of all callers that contain a placeholder.
    pub(crate) pairs: Vec<(String, Template)>,
    /// The declared callers. If there are any, no other caller may use the server.
    pub(crate) declared: Vec<DeclaredCaller>,
}

/// `[[mcp.NAME.caller]]`.
#[derive(Clone)]
pub(crate) struct DeclaredCaller {
    pub(crate) at: Spot,
    pub(crate) tenant: Option<Arc<str>>,
    pub(crate) principal: Option<Arc<str>>,
    /// The caller's headers or variables, else why they are incomplete.
    pub(crate) pairs: Result<Vec<(String, Template)>, Arc<str>>,
}

impl DeclaredCaller {
    fn who(&self) -> CallerIdentity<'_> {
        CallerIdentity { tenant: self.tenant.as_deref(), principal: self.principal.as_deref() }
    }
}

impl CallerOverrides {
    /// Whether all callers have the same.
    pub(crate) fn is_empty(&self) -> bool {
        self.url.is_none() && self.pairs.is_empty() && self.declared.is_empty()
    }

    /// The access of a caller, else why there is none.
    pub(crate) fn access(
        &self,
        tenant: Option<&str>,
        principal: Option<&str>,
    ) -> Result<CallerAccess, String> {
        self.access_of(CallerIdentity { tenant, principal })
    }

    fn access_of(&self, who: CallerIdentity<'_>) -> Result<CallerAccess, String> {
        let declared = self.declared.iter().find(|caller| caller.who() == who);
        if declared.is_none() && !self.declared.is_empty() {
            return Err(format!("no `caller` of it is {}", who.shown()));
        }
        self.with(declared, who)
    }

    fn with(
        &self,
        declared: Option<&DeclaredCaller>,
        who: CallerIdentity<'_>,
    ) -> Result<CallerAccess, String> {
        let own = match declared {
            Some(caller) => caller.pairs.as_deref().map_err(ToString::to_string)?,
            None => &[],
        };
        let mut access = CallerAccess::new();
        if let Some(url) = &self.url {
            access = access.url(who.in_url(url)?);
        }
        // Of two values for one name, the caller's own is used.
        let is_own = |name: &str| own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        let of_all = self.pairs.iter().filter(|(name, _)| !is_own(name));
        for (name, value) in of_all.chain(own) {
            access = access.pair(name, who.filled(value)?);
        }
        Ok(access)
    }

    /// Whether the server can be used like this. Problems are recorded.
    pub(crate) fn check(
        &self,
        section: &McpSection,
        transport: &Transport,
        problems: &Problems,
    ) -> bool {
        let is_usable = Cell::new(true);
        let refuse = |at: &Spot, message: String, help: &str| {
            is_usable.set(false);
            problems.push(Diagnostic::error(at, message).help(help));
        };
        let name = &section.name;
        if section.settings.session == Some(SessionScope::Shared) {
            let message = format!(
                "`[mcp.{}]` has `session = \"shared\"`, but its callers have separate credentials",
                name.value
            );
            let help = "remove `session`, or use the same credentials for all";
            refuse(&name.at, message, help);
        }
        if let Some(url) = &self.url {
            let of =
                |who: CallerIdentity<'_>| parse_url(&url.render(|place| who.value(place))).ok();
            let is_path = of(ANY).zip(of(OTHER)).is_some_and(|(one, other)| {
                one.origin() == other.origin()
                    && (one.query(), one.fragment()) == (other.query(), other.fragment())
            });
            if !is_path {
                let message = format!(
                    "the `url` of `[mcp.{}]` has a placeholder outside its path",
                    name.value
                );
                refuse(&name.at, message, "write it in a header, or between two `/`");
            }
        }
        for (index, caller) in self.declared.iter().enumerate() {
            let who = caller.who();
            if self.declared.iter().take(index).any(|earlier| earlier.who() == who) {
                let message = format!("another `caller` of `{}` is {}", name.value, who.shown());
                refuse(&caller.at, message, "remove one of them");
            } else if let (Ok(_), Err(problem)) = (&caller.pairs, self.with(Some(caller), who)) {
                refuse(&caller.at, problem, "change the `caller`, or remove the placeholder");
            }
        }
        let checked = self.declared.iter().map(|caller| (&caller.at, Some(caller)));
        for (at, caller) in checked.chain([(&name.at, None)]) {
            // A problem of the access itself is recorded already.
            let Ok(access) = self.with(caller, ANY) else { continue };
            if let Err(error) = transport.for_caller(&access).check(&name.value) {
                is_usable.set(false);
                problems.push(Diagnostic::error(at, error.to_string()));
                break;
            }
        }
        is_usable.get()
    }
}

impl<'a> CallerIdentity<'a> {
    fn shown(self) -> String {
        let part = |name: &str, value: Option<&str>| match value {
            Some(value) => format!("{name} {value:?}"),
            None => format!("no {name}"),
        };
        format!("{} and {}", part("principal", self.principal), part("tenant", self.tenant))
    }

    /// The value of a placeholder, in characters without a meaning in headers, URLs and variables.
    fn value(self, place: Place) -> Option<String> {
        let value = match place {
            Place::Principal => self.principal,
            Place::Tenant => self.tenant,
        };
        value.filter(|value| !value.is_empty()).map(encoded)
    }

    fn filled(self, template: &Template) -> Result<String, String> {
        let missing = template.places().find(|place| self.value(*place).is_none());
        if let Some(place) = missing {
            return Err(format!("it needs a {}, and the caller has none", place.name()));
        }
        Ok(template.render(|place| self.value(place)))
    }

    /// A value of dots only would be another folder.
    fn in_url(self, template: &Template) -> Result<String, String> {
        let is_dots = |value: String| value.chars().all(|c| c == '.');
        if let Some(place) = template.places().find(|place| self.value(*place).is_some_and(is_dots))
        {
            return Err(format!("the {} is not usable in a URL", place.name()));
        }
        self.filled(template)
    }
}

/// The characters that stay as they are, beside letters and digits.
const CODED: AsciiSet =
    NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@').remove(b'+');

/// A text without characters that have a meaning. Two texts never become equal.
fn encoded(text: &str) -> String {
    utf8_percent_encode(text, &CODED).to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::build::mcp::value::Part;

    fn in_path() -> Template {
        let text = |text: &str| Part::Text(text.into());
        Template(vec![
            text("https://a.example/of/"),
            Part::Place(Place::Tenant),
            text("/."),
            Part::Place(Place::Principal),
            text("/mcp?v=1"),
        ])
    }

    proptest! {
        /// No identity leaves its place in the URL, or gets the place of another.
        #[test]
        fn an_identity_stays_in_its_place(
            tenant in "\\PC*|[./%\\\\?#@:\r\n\t e2E]{0,8}",
            principal in "\\PC*|[./%\\\\?#@:\r\n\t e2E]{0,8}",
        ) {
            let who = CallerIdentity { tenant: Some(&tenant), principal: Some(&principal) };
            let Ok(url) = who.in_url(&in_path()) else {
                let is_dots = |text: &str| text.chars().all(|c| c == '.');
                prop_assert!(is_dots(&tenant) || is_dots(&principal));
                return Ok(());
            };
            let url = parse_url(&url).unwrap();
            prop_assert_eq!(url.host_str(), Some("a.example"));
            prop_assert_eq!(url.query(), Some("v=1"));
            prop_assert_eq!(url.fragment(), None);
            let expected = ["of", &encoded(&tenant), &format!(".{}", encoded(&principal)), "mcp"];
            prop_assert_eq!(url.path_segments().unwrap().collect::<Vec<_>>(), expected);
            let is_visible = |c: char| c.is_ascii_graphic();
            prop_assert!(encoded(&principal).chars().all(is_visible));
            prop_assert_eq!(encoded(&tenant) == encoded(&principal), tenant == principal);
        }
    }
}
