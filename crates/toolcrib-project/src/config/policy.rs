//! `policy_default`, `[[role]]` and `[[policy]]`.

use std::sync::Arc;

use toolcrib_config::{Located, Spot, Table};
use toolcrib_core::{AnnotationMatch, Effect, PolicyDefault};

/// What the file says of who may see and call what.
#[derive(Debug, Default)]
pub(crate) struct PolicySection {
    pub(crate) default: PolicyDefault,
    pub(crate) roles: Vec<RoleSection>,
    pub(crate) rules: Vec<RuleSection>,
}

/// `[[role]]`.
#[derive(Debug)]
pub(crate) struct RoleSection {
    pub(crate) name: Option<Located<Arc<str>>>,
    pub(crate) principals: Vec<Located<Arc<str>>>,
}

/// `[[policy]]`. An empty list is a condition that was left out.
#[derive(Debug)]
pub(crate) struct RuleSection {
    pub(crate) at: Spot,
    pub(crate) effect: Option<Effect>,
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) tools: Vec<Located<Arc<str>>>,
    pub(crate) toolsets: Vec<Located<Arc<str>>>,
    pub(crate) annotations: AnnotationMatch,
    pub(crate) skills: Vec<Located<Arc<str>>>,
    pub(crate) listed_by_active_skill: Option<bool>,
    pub(crate) roles: Vec<Located<Arc<str>>>,
    pub(crate) tenants: Vec<Arc<str>>,
}

impl PolicySection {
    pub(super) fn read(file: &Table<'_>) -> Self {
        let stated = file.value("policy_default");
        let words = [("allow", PolicyDefault::Allow), ("deny", PolicyDefault::Deny)];
        let default = stated.as_ref().and_then(|stated| stated.word(&words));
        let roles = file.tables("role", RoleSection::read);
        let rules = file.tables("policy", RuleSection::read);
        if let (None, Some(first)) = (stated, rules.first()) {
            file.refuse_at(
                &first.at,
                "`policy_default` is missing: what holds for a tool that no `[[policy]]` matches?",
                "write policy_default = \"allow\" or \"deny\" at the top of the file, before the \
                 first `[section]`",
            );
        }
        Self { default: default.map(|default| default.value).unwrap_or_default(), roles, rules }
    }
}

impl RoleSection {
    fn read(table: &Table<'_>) -> Self {
        Self {
            name: table.required("name", "\"trainee\"").and_then(|name| name.text()),
            principals: table
                .required("principals", "[\"intern\"]")
                .map(|principals| principals.texts())
                .unwrap_or_default(),
        }
    }
}

impl RuleSection {
    fn read(table: &Table<'_>) -> Self {
        Self {
            at: table.at().clone(),
            effect: table
                .required("effect", "\"deny\"")
                .and_then(|effect| effect.word(&[("allow", Effect::Allow), ("deny", Effect::Deny)]))
                .map(|effect| effect.value),
            reason: table.text("reason").map(|reason| reason.value),
            tools: table.texts("tool"),
            toolsets: table.texts("toolset"),
            annotations: table
                .value("annotation")
                .and_then(|value| {
                    value.table("`annotation`", |table| AnnotationMatch {
                        read_only: table.boolean("read_only"),
                        destructive: table.boolean("destructive"),
                        idempotent: table.boolean("idempotent"),
                    })
                })
                .unwrap_or_default(),
            skills: table.texts("skill"),
            listed_by_active_skill: table.boolean("listed_by_active_skill"),
            roles: table.texts("role"),
            tenants: table.texts("tenant").into_iter().map(|tenant| tenant.value).collect(),
        }
    }
}
