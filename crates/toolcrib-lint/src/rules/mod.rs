//! The rules. Each has an id that does not change, by which it can be allowed.

mod descriptions;
mod hidden_text;
mod instructions;
mod names;
mod parameters;
mod prose_enums;
mod schemas;
mod similar;
mod sizes;
mod sources;

use std::{fmt, sync::Arc};

use crate::{catalogue::Catalogue, report::Findings};

type Check = dyn Fn(&Catalogue<'_>, &mut Findings) + Send + Sync;

/// One thing to look for.
#[derive(Clone)]
pub struct Rule {
    id: Arc<str>,
    about: Arc<str>,
    check: Arc<Check>,
}

impl Rule {
    /// A rule of one's own. The id is best in kebab case; `about` says in a line what it looks for.
    pub fn new(
        id: impl Into<Arc<str>>,
        about: impl Into<Arc<str>>,
        check: impl Fn(&Catalogue<'_>, &mut Findings) + Send + Sync + 'static,
    ) -> Self {
        Self { id: id.into(), about: about.into(), check: Arc::new(check) }
    }

    /// Its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What it looks for.
    pub fn about(&self) -> &str {
        &self.about
    }

    pub(crate) fn check(&self, catalogue: &Catalogue<'_>, findings: &mut Findings) {
        (self.check)(catalogue, findings);
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rule").field(&self.id).finish()
    }
}

/// All rules, in the order of `docs/lint.md`.
pub(crate) fn all() -> Vec<Rule> {
    vec![
        Rule::new("duplicate-name", "Two tools of one name", names::duplicate),
        Rule::new("invalid-name", "A name that model APIs refuse", names::invalid),
        Rule::new("confusable-name", "Names that are easily mixed up", names::confusable),
        Rule::new("missing-description", "No description", descriptions::missing),
        Rule::new(
            "vague-description",
            "A description that says next to nothing",
            descriptions::vague,
        ),
        Rule::new("long-description", "A description that is refused or cut", descriptions::long),
        Rule::new(
            "says-what-not-when",
            "A description that does not say when to use the tool",
            descriptions::what_not_when,
        ),
        Rule::new("confusable-description", "Descriptions that say the same", similar::confusable),
        Rule::new(
            "undescribed-parameter",
            "A parameter without a description",
            parameters::undescribed,
        ),
        Rule::new(
            "unclear-default",
            "An optional parameter of which nothing says what holds without it",
            parameters::unclear_default,
        ),
        Rule::new("enum-in-prose", "Values that stand in prose only", prose_enums::in_prose),
        Rule::new("invalid-schema", "A schema that nothing can be held against", schemas::invalid),
        Rule::new(
            "unknown-required",
            "A required parameter that is not described",
            schemas::unknown_required,
        ),
        Rule::new("large-tool", "A tool that costs much in every request", sizes::tool),
        Rule::new("large-catalogue", "All tools cost much in every request", sizes::catalogue),
        Rule::new("hidden-characters", "Characters that nobody sees", hidden_text::characters),
        Rule::new("hidden-markup", "Markup that nobody is shown", hidden_text::markup),
        Rule::new("padded-text", "Text pushed out of sight by blanks", hidden_text::padding),
        Rule::new(
            "instruction-to-model",
            "Text that talks the model into something",
            instructions::to_model,
        ),
        Rule::new(
            "claims-precedence",
            "Text that pushes other tools aside",
            instructions::precedence,
        ),
        Rule::new(
            "speaks-of-foreign-tool",
            "Text about a tool of another source",
            instructions::foreign_tool,
        ),
        Rule::new("source-failed", "A source that could not be listed", sources::failed),
        Rule::new("endless-ttl", "A remote list that is kept for ever", sources::endless_ttl),
    ]
}
