//! The rules for failures.

use std::sync::Arc;

use toolcrib_config::{Diagnostic, Located, Problems, suggest};
use toolcrib_core::{BreakerConfig, Model, ReliabilityAction, ReliabilityRule, Stage};
use toolcrib_engine::{EngineBuilder, RetryBudget};

use crate::{
    bind::names::Names,
    file::{ReliabilityRuleSection, ReliabilitySection, Verb},
};

/// The rules of a project, its breakers and its budget of retries.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reliability {
    rules: Vec<ReliabilityRule>,
    breakers: Vec<(Stage, BreakerConfig)>,
    budget: Option<RetryBudget>,
}

impl Reliability {
    pub(crate) fn rules(&self) -> &[ReliabilityRule] {
        &self.rules
    }

    pub(crate) fn add_to(&self, engine: EngineBuilder) -> EngineBuilder {
        let engine = engine.reliability(self.rules.iter().cloned());
        let engine = self
            .breakers
            .iter()
            .fold(engine, |engine, (stage, config)| engine.breaker(*stage, *config));
        match self.budget {
            Some(budget) => engine.retry_budget(budget),
            None => engine,
        }
    }
}

/// A model of the project's agent, by its name in the file.
pub(crate) struct NamedModel {
    pub(crate) name: Arc<str>,
    /// `None` if it cannot be created, which is recorded, and if another model replaces the
    /// project's own.
    pub(crate) model: Option<Arc<dyn Model>>,
}

/// Builds the rules. Rules with an unavailable fallback model are left out.
pub(crate) fn build_reliability(
    section: &ReliabilitySection,
    models: &[NamedModel],
    names: &Names,
    problems: &Problems,
) -> Reliability {
    if names.alternatives.is_empty() {
        section.rules.iter().for_each(|rule| report_no_others(rule, problems));
    }
    let rules = section.rules.iter().enumerate();
    Reliability {
        rules: rules
            .filter_map(|(position, rule)| build_rule(position + 1, rule, models, problems))
            .collect(),
        breakers: section.breakers.clone(),
        budget: section.budget,
    }
}

/// `None` if it cannot be built, which is recorded, and without a fallback.
fn build_rule(
    number: usize,
    section: &ReliabilityRuleSection,
    models: &[NamedModel],
    problems: &Problems,
) -> Option<ReliabilityRule> {
    let then = match section.then.as_ref()?.value {
        Verb::Ok => ReliabilityAction::Ok,
        Verb::Continue => ReliabilityAction::Continue,
        Verb::Retry => ReliabilityAction::Retry(section.retry),
        Verb::RetryOther => ReliabilityAction::RetryOther,
        Verb::FailFast => ReliabilityAction::FailFast,
        Verb::Fallback => {
            let name = section.model.as_ref()?;
            ReliabilityAction::fallback_model(known_model(name, models, problems)?.name())
        }
    };
    let label = section.label.clone();
    let label =
        label.unwrap_or_else(|| format!("reliability rule {number} ({})", section.at).into());
    Some(ReliabilityRule {
        when: section.when.clone(),
        then,
        kind: section.kind.clone(),
        label: Some(label),
    })
}

/// Warns of rules on the cost of a run if no model of the project reports costs.
pub(crate) fn warn_of_unknown_costs<'a>(
    section: &ReliabilitySection,
    models: impl IntoIterator<Item = &'a Arc<dyn Model>>,
    problems: &Problems,
) {
    let mut models = models.into_iter().peekable();
    if models.peek().is_none() || models.any(Model::reports_cost) {
        return;
    }
    for at in section.rules.iter().filter_map(|rule| rule.cost_at.as_ref()) {
        let message = "`cost_usd_below` is never true after a model request: no model of this \
            project has a price or reports costs";
        problems.push(
            Diagnostic::warning(at, message)
                .help("give its model a [price.\"NAME\"], or write `tokens_below`"),
        );
    }
}

/// Records a rule that queries another source if no source declares one.
fn report_no_others(section: &ReliabilityRuleSection, problems: &Problems) {
    let of_sources = section.when.stage == Some(Stage::Discover);
    let Some(then) = section.then.as_ref().filter(|_| of_sources) else { return };
    if then.value == Verb::RetryOther {
        let message = "then = \"retry_other\" has no effect at the stage `discover`: no source \
            has `alternatives`";
        let help = "write below a [hub.NAME] or [mcp.NAME]: alternatives = [\"OTHER\"]";
        problems.push(Diagnostic::error(&then.at, message).help(help));
    }
}

fn known_model<'a>(
    name: &Located<Arc<str>>,
    models: &'a [NamedModel],
    problems: &Problems,
) -> Option<&'a Arc<dyn Model>> {
    let Some(named) = models.iter().find(|model| model.name == name.value) else {
        let message = format!("unknown model of the agent: {}", suggest::quoted([&*name.value]));
        let all = models.iter().map(|model| &*model.name);
        let help = match suggest::nearest(&name.value, all) {
            Some(near) => format!("did you mean {}?", suggest::quoted([near])),
            None => format!("add it to `fallback_models` of `[agent]`: [\"{}\"]", name.value),
        };
        problems.push(Diagnostic::error(&name.at, message).help(help));
        return None;
    };
    named.model.as_ref()
}
