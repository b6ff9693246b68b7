//! The page of tokens and money.

use minijinja::{
    Error, context,
    value::{Serde, Value},
};

use super::super::usage::UsageJson;

/// The most bars of a chart on the page.
const MOST_ROWS: usize = 400;

/// The page: the same bars as in the terminal, of each grouping. The first one has the budgets.
pub(crate) fn usage_page(groupings: &[UsageJson]) -> Result<String, Error> {
    let environment = {
        let mut environment = super::environment()?;
        environment.add_template("usage.html", include_str!("usage.html"))?;
        environment
    };
    let charts: Vec<_> = groupings.iter().map(|one| Value::from(Serde(one.chart()))).collect();
    let first = groupings.first();
    let since = first.map_or("", |first| &first.since);
    let budgets = first.into_iter().flat_map(|first| &first.budget);
    let budgets: Vec<_> = budgets.map(|line| (line.of().to_owned(), line.words())).collect();
    environment.get_template("usage.html")?.render(context! {
        head => super::head(&environment, &format!("Usage since {since}"))?,
        total => first.map(|first| Value::from(Serde(first.total.clone()))),
        rows => MOST_ROWS,
        since, charts, budgets,
    })
}
