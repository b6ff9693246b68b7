//! Roles and their holders.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::names::identity::Identity;

/// The holders of each role. A turn's roles are resolved once, when it begins.
#[derive(Debug, Clone, Default)]
pub struct Roles(IndexMap<Arc<str>, RoleHolders>);

/// The holders of one role, given by principals, tenants or claims.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleHolders {
    /// The principals that have the role.
    pub principals: Vec<Arc<str>>,
    /// All principals of these tenants.
    pub tenants: Vec<Arc<str>>,
    /// Principals who have all of these claims, each with at least one of the given values. If
    /// empty, claims do not give the role.
    pub claims: IndexMap<Arc<str>, Vec<Arc<str>>>,
}

/// A claim whose value cannot be evaluated for a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the claim `{}` must be a string or a list of strings, because role `{role}` depends on it; \
     this is {found}",
    claim.escape_debug()
)]
pub struct InvalidClaimError {
    /// The claim.
    pub claim: Arc<str>,
    /// A role that depends on it.
    pub role: Arc<str>,
    /// The type found.
    pub found: &'static str,
}

impl Roles {
    /// Gives a principal a role.
    pub fn grant(&mut self, principal: impl Into<Arc<str>>, role: impl Into<Arc<str>>) {
        add(&mut self.holders_mut(role).principals, principal.into());
    }

    /// Gives all principals of a tenant a role.
    pub fn grant_to_tenant(&mut self, tenant: impl Into<Arc<str>>, role: impl Into<Arc<str>>) {
        add(&mut self.holders_mut(role).tenants, tenant.into());
    }

    /// Adds a required claim to a role, with its accepted values. Principals with all required
    /// claims have the role.
    pub fn grant_to_claim<V: Into<Arc<str>>>(
        &mut self,
        claim: impl Into<Arc<str>>,
        values: impl IntoIterator<Item = V>,
        role: impl Into<Arc<str>>,
    ) {
        let wanted = self.holders_mut(role).claims.entry(claim.into()).or_default();
        values.into_iter().for_each(|value| add(wanted, value.into()));
    }

    /// Declares a role, which may have no holders.
    pub fn holders_mut(&mut self, role: impl Into<Arc<str>>) -> &mut RoleHolders {
        self.0.entry(role.into()).or_default()
    }

    /// The holders of a role.
    pub fn holders(&self, role: &str) -> Option<&RoleHolders> {
        self.0.get(role)
    }

    /// The roles, in the order in which they were declared.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.0.keys()
    }

    /// The roles of an identity and claims, in order of declaration. `claims` are those of a token
    /// that the caller has verified.
    ///
    /// # Errors
    /// [`InvalidClaimError`] if a role depends on a claim that is neither a string nor a list of
    /// strings: omitting the role would be wrong for a rule that denies the role something. A
    /// missing claim gives no role.
    pub fn of(
        &self,
        identity: &Identity,
        claims: &Map<String, Value>,
    ) -> Result<Vec<Arc<str>>, InvalidClaimError> {
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
    /// The roles that claims give.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn by_claims(
        &self,
        claims: &Map<String, Value>,
    ) -> Result<Vec<Arc<str>>, InvalidClaimError> {
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
    /// Whether this principal is listed as a holder.
    pub fn has_principal(&self, principal: Option<&str>) -> bool {
        principal.is_some_and(|name| self.principals.iter().any(|held| **held == *name))
    }

    /// Whether this tenant is listed as a holder.
    pub fn has_tenant(&self, tenant: Option<&str>) -> bool {
        tenant.is_some_and(|name| self.tenants.iter().any(|held| **held == *name))
    }

    fn has_claims(
        &self,
        role: &Arc<str>,
        claims: &Map<String, Value>,
    ) -> Result<bool, InvalidClaimError> {
        let mut all = !self.claims.is_empty();
        // All claims are read, so that a match does not hide an invalid claim.
        for (claim, wanted) in &self.claims {
            let has = match claims.get(&**claim) {
                None => false,
                Some(value) => has_one_of(value, wanted).map_err(|found| InvalidClaimError {
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

/// Whether a claim has one of these values; otherwise its type, if it cannot be evaluated.
fn has_one_of(claim: &Value, wanted: &[Arc<str>]) -> Result<bool, &'static str> {
    let is_wanted = |text: &str| wanted.iter().any(|wanted| **wanted == *text);
    match claim {
        Value::String(text) => Ok(is_wanted(text)),
        Value::Array(items) => {
            let mut has = false;
            for item in items {
                has |= is_wanted(item.as_str().ok_or("a list with other items")?);
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
        roles.holders_mut("empty");
        assert_eq!(roles.holders("admin").unwrap().principals.len(), 1);
        assert_eq!(
            roles.names().map(|name| &**name).collect::<Vec<_>>().join(" "),
            "admin member operator empty"
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
            (json!(["ops", 7]), "a list with other items"),
        ] {
            let said = of(&roles, None, None, &json!({"groups": claim}));
            assert!(
                said.starts_with("the claim `groups` must be a string or a list of strings"),
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
