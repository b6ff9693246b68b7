//! Who has which role.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::identity::Identity;

/// Who has which role. A turn's roles are worked out once, when it begins.
#[derive(Debug, Clone, Default)]
pub struct Roles(IndexMap<Arc<str>, RoleHolders>);

/// Who has one role: whoever is named in one of these ways.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleHolders {
    /// These principals.
    pub principals: Vec<Arc<str>>,
    /// Everybody in these tenants.
    pub tenants: Vec<Arc<str>>,
    /// Everybody who has all of these claims. Of each, one of the given values is enough. Without
    /// any, nobody has the role by claims.
    pub claims: IndexMap<Arc<str>, Vec<Arc<str>>>,
}

/// A claim that a role depends on, of a form in which it cannot be told who has the role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the claim `{}` must be a text or a list of texts, because role `{role}` depends on it; this is \
     {found}",
    claim.escape_debug()
)]
pub struct UnreadableClaim {
    /// The claim.
    pub claim: Arc<str>,
    /// A role that depends on it.
    pub role: Arc<str>,
    /// What it is instead.
    pub found: &'static str,
}

impl Roles {
    /// Gives a principal a role.
    pub fn grant(&mut self, principal: impl Into<Arc<str>>, role: impl Into<Arc<str>>) {
        add(&mut self.holders_mut(role).principals, principal.into());
    }

    /// Gives everybody in a tenant a role.
    pub fn grant_to_tenant(&mut self, tenant: impl Into<Arc<str>>, role: impl Into<Arc<str>>) {
        add(&mut self.holders_mut(role).tenants, tenant.into());
    }

    /// Gives everybody a role who has this claim with one of these values, beside other claims that
    /// the role asks for.
    pub fn grant_to_claim<V: Into<Arc<str>>>(
        &mut self,
        claim: impl Into<Arc<str>>,
        values: impl IntoIterator<Item = V>,
        role: impl Into<Arc<str>>,
    ) {
        let wanted = self.holders_mut(role).claims.entry(claim.into()).or_default();
        values.into_iter().for_each(|value| add(wanted, value.into()));
    }

    /// Declares a role, also one that nobody has.
    pub fn holders_mut(&mut self, role: impl Into<Arc<str>>) -> &mut RoleHolders {
        self.0.entry(role.into()).or_default()
    }

    /// Who has a role.
    pub fn holders(&self, role: &str) -> Option<&RoleHolders> {
        self.0.get(role)
    }

    /// The roles, in the order in which they were declared.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// The roles of whoever the identity and the claims name, in the order in which they were
    /// declared. `claims` are those of a token that the caller has verified.
    ///
    /// # Errors
    /// [`UnreadableClaim`] when a role depends on a claim that is neither a text nor a list of texts:
    /// leaving the role out would be wrong for a rule that denies it something. A claim that is
    /// absent gives no role.
    pub fn of(
        &self,
        identity: &Identity,
        claims: &Map<String, Value>,
    ) -> Result<Vec<Arc<str>>, UnreadableClaim> {
        let mut roles = Vec::new();
        for (role, holders) in &self.0 {
            let has_claims = holders.has_claims(role, claims)?;
            if has_claims
                || holders.has_principal(identity.principal.as_deref())
                || holders.has_tenant(identity.tenant.as_deref())
            {
                roles.push(Arc::clone(role));
            }
        }
        Ok(roles)
    }
}

impl Roles {
    /// Those of the roles that claims give.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn by_claims(&self, claims: &Map<String, Value>) -> Result<Vec<Arc<str>>, UnreadableClaim> {
        let mut roles = Vec::new();
        for (role, holders) in &self.0 {
            if holders.has_claims(role, claims)? {
                roles.push(Arc::clone(role));
            }
        }
        Ok(roles)
    }
}

impl RoleHolders {
    /// Whether this principal has the role, as one.
    pub fn has_principal(&self, principal: Option<&str>) -> bool {
        principal.is_some_and(|name| self.principals.iter().any(|held| **held == *name))
    }

    /// Whether everybody in this tenant has the role.
    pub fn has_tenant(&self, tenant: Option<&str>) -> bool {
        tenant.is_some_and(|name| self.tenants.iter().any(|held| **held == *name))
    }

    fn has_claims(
        &self,
        role: &Arc<str>,
        claims: &Map<String, Value>,
    ) -> Result<bool, UnreadableClaim> {
        let mut all = !self.claims.is_empty();
        // All of them are read, so that one that cannot be read is never hidden by another.
        for (claim, wanted) in &self.claims {
            let has = match claims.get(&**claim) {
                None => false,
                Some(value) => has_one_of(value, wanted).map_err(|found| UnreadableClaim {
                    claim: Arc::clone(claim),
                    role: Arc::clone(role),
                    found,
                })?,
            };
            all &= has;
        }
        Ok(all)
    }
}

fn add(list: &mut Vec<Arc<str>>, name: Arc<str>) {
    if !list.contains(&name) {
        list.push(name);
    }
}

/// Whether a claim has one of these values; what it is, if that cannot be told.
fn has_one_of(claim: &Value, wanted: &[Arc<str>]) -> Result<bool, &'static str> {
    let is_wanted = |text: &str| wanted.iter().any(|wanted| **wanted == *text);
    match claim {
        Value::String(text) => Ok(is_wanted(text)),
        Value::Array(items) => {
            let mut has = false;
            for item in items {
                has |= is_wanted(item.as_str().ok_or("a list with something else in it")?);
            }
            Ok(has)
        }
        Value::Null => Err("null"),
        Value::Bool(_) => Err("a boolean"),
        Value::Number(_) => Err("a number"),
        Value::Object(_) => Err("an object"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(roles: &Roles, principal: Option<&str>, tenant: Option<&str>, claims: &Value) -> String {
        let mut identity = Identity::conversation("c");
        identity.principal = principal.map(Into::into);
        identity.tenant = tenant.map(Into::into);
        match roles.of(&identity, claims.as_object().unwrap()) {
            Ok(roles) => roles.join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_role_is_had_by_principal_or_tenant_or_all_of_its_claims() {
        let mut roles = Roles::default();
        roles.grant("ann", "admin");
        roles.grant("ann", "admin");
        roles.grant_to_tenant("acme", "member");
        roles.grant_to_tenant("acme", "admin");
        roles.grant_to_claim("groups", ["ops", "sre"], "operator");
        roles.grant_to_claim("region", ["eu"], "operator");
        roles.holders_mut("nobody");
        assert_eq!(roles.holders("admin").unwrap().principals.len(), 1);
        assert_eq!(
            roles.names().map(|name| &**name).collect::<Vec<_>>().join(" "),
            "admin member operator nobody"
        );
        let by_claims =
            |claims: &Value| roles.by_claims(claims.as_object().unwrap()).unwrap().join(" ");
        let none = json!({});
        assert_eq!(by_claims(&none), "");
        assert_eq!(by_claims(&json!({"groups": "ops", "region": "eu"})), "operator");
        assert_eq!(of(&roles, None, None, &none), "");
        assert_eq!(of(&roles, Some("ann"), None, &none), "admin");
        assert_eq!(of(&roles, Some("Ann"), Some("Acme"), &none), "");
        assert_eq!(of(&roles, Some("bob"), Some("acme"), &none), "admin member");
        assert_eq!(of(&roles, Some("acme"), Some("ann"), &none), "");
        assert_eq!(
            of(&roles, None, None, &json!({"groups": "sre", "region": ["us", "eu"]})),
            "operator"
        );
        assert_eq!(of(&roles, None, None, &json!({"groups": ["ops"]})), "");
        assert_eq!(of(&roles, None, None, &json!({"groups": ["Ops"], "region": "eu"})), "");
        assert_eq!(of(&roles, None, None, &json!({"groups": [], "region": "eu"})), "");
    }

    #[test]
    fn a_claim_that_a_role_depends_on_must_be_readable_and_others_may_be_anything() {
        let mut roles = Roles::default();
        roles.grant_to_claim("groups", ["ops"], "operator");
        for (claim, found) in [
            (json!(null), "null"),
            (json!(true), "a boolean"),
            (json!(7), "a number"),
            (json!({"ops": true}), "an object"),
            (json!(["ops", 7]), "a list with something else in it"),
        ] {
            let said = of(&roles, None, None, &json!({"groups": claim}));
            assert!(
                said.starts_with("the claim `groups` must be a text or a list of texts"),
                "{said}"
            );
            assert!(said.ends_with(&format!("this is {found}")), "{said}");
            assert_eq!(
                of(&roles, None, None, &json!({"other": claim, "groups": "ops"})),
                "operator"
            );
        }
        roles.grant("ann", "operator");
        assert!(of(&roles, Some("ann"), None, &json!({"groups": 7})).contains("a number"));
    }
}
