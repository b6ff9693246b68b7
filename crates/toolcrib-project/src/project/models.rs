//! The models of a project, and the rules for their failures.

use std::sync::Arc;

use toolcrib_core::Model;

use super::{
    bound::Bound,
    parts::{ChosenModels, ProjectModels},
};
use crate::{
    bind::part::Part,
    build::{
        DeclaredPersonality, ModelSources, NamedModel, PersonalitySources, Prices, build_models,
        build_reliability, refuse_unknown_costs, warn_of_unknown_costs,
    },
    error::LoadError,
};

/// Creates the models, without a request. Problems are recorded.
///
/// # Errors
/// The model of the options cannot be used.
pub(super) fn plan_models(
    bound: &Bound,
) -> Result<(ProjectModels, Vec<DeclaredPersonality>), LoadError> {
    let (declared, names) = (&bound.declared, &bound.names);
    let (file, root, problems) = (&declared.file, &declared.root, &declared.problems);
    let declared_models = build_models(&file.models, &bound.secrets, names, problems);
    let prices = Prices::read(&file.prices, root, problems);
    let sources =
        ModelSources { root, names, declared: &declared_models, prices: &prices, problems };
    let chosen = choose(bound, &sources)?;
    let own = declared.options.model.is_none().then_some(&sources);
    let personalities = PersonalitySources { root, names, models: own, problems }
        .build(&file.personalities, &file.teams);
    check_costs(bound, &chosen, &personalities);
    Ok((ProjectModels { chosen, declared: declared_models, prices }, personalities))
}

/// An explicit model disables the project's fallback models.
fn choose(bound: &Bound, sources: &ModelSources<'_>) -> Result<ChosenModels, LoadError> {
    let (options, file) = (&bound.declared.options, &bound.declared.file);
    let model = match (&options.model, &file.agent.model) {
        (Some(name), _) => sources.load_chosen(name, options.base_url.as_deref())?,
        (None, Some(name)) => sources.load(name),
        (None, None) => None,
    };
    let named = options.model.as_deref().or(file.agent.model.as_ref().map(|name| &*name.value));
    let vendor_alone =
        named.filter(|_| options.base_url.is_none()).and_then(|name| sources.vendor_alone(name));
    let is_own = options.model.is_none();
    let first = file.agent.model.iter().map(|name| NamedModel {
        name: Arc::clone(&name.value),
        model: model.clone().filter(|_| is_own),
    });
    let others = file.agent.fallback_models.iter().map(|name| NamedModel {
        name: Arc::clone(&name.value),
        model: if is_own { sources.load(name) } else { None },
    });
    let named: Vec<_> = first.chain(others).collect();
    let reliability = build_reliability(&file.reliability, &named, sources.names, sources.problems);
    let others = named.into_iter().skip(usize::from(file.agent.model.is_some()));
    let fallback_models = others.filter_map(|named| named.model).collect();
    Ok(ChosenModels { model, vendor_alone, fallback_models, reliability })
}

/// Reports limits in money for models without known prices.
fn check_costs(bound: &Bound, chosen: &ChosenModels, personalities: &[DeclaredPersonality]) {
    let (file, problems) = (&bound.declared.file, &bound.declared.problems);
    let of_personalities = personalities.iter().filter_map(|one| one.model.as_ref());
    let models: Vec<&Arc<dyn Model>> =
        chosen.model.iter().chain(&chosen.fallback_models).chain(of_personalities).collect();
    let of_tasks = Part::tools(&bound.declared.parts);
    let of_tasks = of_tasks.filter_map(|tool| tool.kind.as_ref()?.cost_at());
    let money = file.limits.cost_at.iter().chain(&file.budget.money).chain(of_tasks);
    refuse_unknown_costs(money, &models, problems);
    warn_of_unknown_costs(&file.reliability, models, problems);
}
