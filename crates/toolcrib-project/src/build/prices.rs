//! The prices of models.

use std::{collections::BTreeMap, sync::Arc};

use toolcrib_config::{Diagnostic, Document, Located, Problems, Spot};
use toolcrib_core::{Model, Price, PricedModel};

use crate::{
    file::PricesSection,
    read::{root::Root, text_file::MAX_TEXT},
};

/// Prices, by the names of models in events: `openai:gpt-5`.
#[derive(Debug, Clone, Default)]
pub struct Prices(BTreeMap<Arc<str>, Price>);

impl Prices {
    /// Reads the prices of a project. Problems are recorded.
    pub(crate) fn read(section: &PricesSection, root: &Root, problems: &Problems) -> Self {
        let of_file = section.file.as_ref().and_then(|file| {
            let text = root.named_text(file, MAX_TEXT, problems)?;
            Document::new(&*file.value, text).read(problems, PricesSection::read_all)
        });
        let mut prices = BTreeMap::new();
        for of_one in [of_file.as_deref().unwrap_or_default(), &section.prices] {
            let new =
                of_one.iter().map(|(Located { value, .. }, price)| (Arc::clone(value), *price));
            prices.extend(new);
        }
        Self(prices)
    }

    /// The price of a model.
    pub fn get(&self, model: &str) -> Option<&Price> {
        self.0.get(model)
    }

    /// All prices, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&Arc<str>, &Price)> {
        self.0.iter()
    }

    /// Gives a model its price, if there is one.
    pub fn of(&self, model: Arc<dyn Model>) -> Arc<dyn Model> {
        match self.get(model.name()) {
            Some(price) => Arc::new(PricedModel::new(model, *price)),
            None => model,
        }
    }
}

/// Records that limits and budgets of money cannot be kept for models that do not report their cost.
pub(crate) fn refuse_unknown_costs<'a>(
    money: impl IntoIterator<Item = &'a Spot>,
    models: &[&Arc<dyn Model>],
    problems: &Problems,
) {
    let Some(unpriced) = models.iter().find(|model| !model.reports_cost()) else { return };
    let name = unpriced.name();
    for at in money {
        let message = format!("`max_cost_usd` cannot be kept: the model `{name}` has no price");
        let help = format!(
            "write [price.\"{name}\"] with input and output in US dollars per million tokens, or \
             limit `max_tokens` instead"
        );
        problems.push(Diagnostic::error(at, message).help(help));
    }
}
