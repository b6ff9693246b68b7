//! `policy_default`, `[[role]]` and `[[policy]]`.

use std::sync::Arc;

use toolcrib_config::{Located, Spot, Table, Value};
use toolcrib_core::{AnnotationMatch, Effect, IterationRange, PolicyDefault};

use super::ArgumentSection;

/// The permissions that the file declares.
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
    pub(crate) principals: Vec<Arc<str>>,
    pub(crate) tenants: Vec<Arc<str>>,
    /// Each with its values; one match is sufficient.
    pub(crate) claims: Vec<(Arc<str>, Vec<Arc<str>>)>,
}

/// `[[policy]]`. An empty list means that the condition is absent.
#[derive(Debug)]
pub(crate) struct RuleSection {
    pub(crate) at: Spot,
    pub(crate) effect: Option<Effect>,
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) model_message: Option<Located<Arc<str>>>,
    pub(crate) tools: Vec<Located<Arc<str>>>,
    pub(crate) toolsets: Vec<Located<Arc<str>>>,
    pub(crate) origins: Vec<Located<Arc<str>>>,
    pub(crate) mcp_servers: Vec<Located<Arc<str>>>,
    pub(crate) plugins: Vec<Located<Arc<str>>>,
    pub(crate) annotations: AnnotationMatch,
    pub(crate) skills: Vec<Located<Arc<str>>>,
    pub(crate) listed_by_active_skill: Option<bool>,
    pub(crate) roles: Vec<Located<Arc<str>>>,
    pub(crate) tenants: Vec<Arc<str>>,
    pub(crate) principals: Vec<Arc<str>>,
    pub(crate) personalities: Vec<Located<Arc<str>>>,
    pub(crate) teams: Vec<Located<Arc<str>>>,
    pub(crate) iteration: Option<IterationRange>,
    pub(crate) tainted: Option<bool>,
    pub(crate) arguments: Vec<ArgumentSection>,
}

impl PolicySection {
    pub(crate) fn read(file: &Table<'_>) -> Self {
        let stated = file.value("policy_default");
        let words = [("allow", PolicyDefault::Allow), ("deny", PolicyDefault::Deny)];
        let default = stated.as_ref().and_then(|stated| stated.word(&words));
        let roles = file.tables("role", RoleSection::read);
        let rules = file.tables("policy", RuleSection::read);
        if let (None, Some(first)) = (stated, rules.first()) {
            file.refuse_at(
                &first.at,
                "`policy_default` is missing: it decides on a tool that no `[[policy]]` matches",
                "write policy_default = \"allow\" or \"deny\" at the top of the file, before the \
                 first `[section]`",
            );
        }
        Self { default: default.map(|default| default.value).unwrap_or_default(), roles, rules }
    }
}

impl RoleSection {
    fn read(table: &Table<'_>) -> Self {
        let name = table.required("name", "\"trainee\"").and_then(|name| name.text());
        let principals = if table.has("tenants") || table.has("claims") {
            table.value("principals")
        } else {
            table.required("principals", "[\"intern\"]")
        };
        Self {
            name,
            principals: principals.map(|names| values(names.texts())).unwrap_or_default(),
            tenants: values(table.texts("tenants")),
            claims: claims(table),
        }
    }
}

impl RuleSection {
    fn read(table: &Table<'_>) -> Self {
        table.explain("tell_model", "the key is now `model_message`");
        Self {
            at: table.at().clone(),
            effect: table
                .required("effect", "\"deny\"")
                .and_then(|effect| effect.word(&EFFECTS))
                .map(|effect| effect.value),
            reason: table.text("reason").map(|reason| reason.value),
            model_message: table.text("model_message"),
            tools: table.texts("tool"),
            toolsets: table.texts("toolset"),
            origins: table.texts("origin"),
            mcp_servers: table.texts("mcp_server"),
            plugins: table.texts("plugin"),
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
            tenants: values(table.texts("tenant")),
            principals: values(table.texts("principal")),
            personalities: table.texts("personality"),
            teams: table.texts("team"),
            iteration: table.value("iteration").and_then(|value| iterations(&value)),
            tainted: table.boolean("tainted"),
            arguments: ArgumentSection::read_all(table),
        }
    }
}

const EFFECTS: [(&str, Effect); 4] = [
    ("allow", Effect::Allow),
    ("deny", Effect::Deny),
    ("ask", Effect::Ask),
    ("halt", Effect::Halt),
];

fn values(texts: Vec<Located<Arc<str>>>) -> Vec<Arc<str>> {
    texts.into_iter().map(|text| text.value).collect()
}

fn claims(role: &Table<'_>) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
    let Some(value) = role.value("claims") else { return Vec::new() };
    let Some(table) = value.entries("`claims`") else { return Vec::new() };
    let claims: Vec<_> =
        table.rest().map(|(claim, wanted)| (claim.value, values(wanted.texts()))).collect();
    if claims.is_empty() {
        value.refuse("`claims` is empty", "write for example groups = [\"trainees\"]");
    }
    claims
}

/// `{ at_least = 3, at_most = 5 }`, or one of the two.
fn iterations(value: &Value<'_>) -> Option<IterationRange> {
    let range = value.table("`iteration`", |table| IterationRange {
        at_least: table.integer("at_least", 1_u32..),
        at_most: table.integer("at_most", 1_u32..),
    })?;
    match (range.at_least, range.at_most) {
        (None, None) => {
            value.refuse("`iteration` has no effect", "write for example { at_least = 3 }");
        }
        (Some(first), Some(last)) if first > last => {
            value.refuse(format!("no iteration is from {first} to {last}"), None);
        }
        _ => {}
    }
    Some(range)
}
