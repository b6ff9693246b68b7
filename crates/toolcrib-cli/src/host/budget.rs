//! The use of a project's budgets.

use std::sync::Arc;

use toolcrib_core::{SessionOwner, SessionStoreError, UsageStore};
use toolcrib_project::Project;

use super::stored::on_store;
use crate::{output::BudgetLine, problem::Problem};

/// The use of the project's budgets today; none without a budget. Creates no store.
pub(crate) async fn budget(
    project: &Project,
    owner: &SessionOwner,
) -> Result<Vec<BudgetLine>, Problem> {
    let budget = project.budget().clone();
    if budget.is_empty() {
        return Ok(Vec::new());
    }
    let (sessions, owner) = (project.sessions().clone(), owner.clone());
    on_store(move || {
        let store = sessions.open_existing()?;
        let spent = |owner: Option<&SessionOwner>| match &store {
            Some(store) => store.spent_today(owner),
            None => Ok(toolcrib_core::BudgetUse::default()),
        };
        let of_owner = owner.principal.as_deref().unwrap_or("runs without a principal");
        let all = [
            ("all principals".to_owned(), &budget.day, None),
            (of_owner.to_owned(), &budget.principal, Some(&owner)),
        ];
        let limited = all.into_iter().filter(|(_, allowance, _)| !allowance.is_empty());
        limited
            .map(|(whose, allowance, owner)| Ok(BudgetLine::new(whose, allowance, &spent(owner)?)))
            .collect::<Result<Vec<_>, SessionStoreError>>()
    })
    .await
}

/// The store that counts the usage of a run without a session. None without a budget: then such a
/// run leaves nothing.
pub(crate) async fn store_without_session(
    project: &Project,
) -> Result<Option<Arc<dyn UsageStore>>, Problem> {
    if project.budget().is_empty() {
        return Ok(None);
    }
    let sessions = project.sessions().clone();
    let store = on_store(move || sessions.open()).await?;
    Ok(Some(store))
}
