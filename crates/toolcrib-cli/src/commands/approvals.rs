//! `toolcrib approvals`, `approve` and `deny`: decides on calls that wait.

use toolcrib_approvals::{ApprovalError, Approvals, GrantScope};
use toolcrib_core::{ApprovalStoreError, CancellationToken};
use toolcrib_project::Project;

use crate::{
    args::{ApprovalsArgs, ApprovalsCommand, ApproveArgs, DenyArgs, GlobalArgs},
    exit::{self, Exit},
    host::stored::{existing, inspected, listed, on_approvals},
    output,
    problem::Problem,
    project::{
        consent::{can_ask, confirmed},
        turn::project_flags,
    },
};

pub(super) async fn approvals(
    global: &GlobalArgs,
    list: ApprovalsArgs,
    command: Option<ApprovalsCommand>,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let project = inspected(global, &cancellation).await?;
    match command.unwrap_or(ApprovalsCommand::List(list)) {
        ApprovalsCommand::List(ApprovalsArgs { all }) => {
            let (reviews, grants) = listed(&project, all).await?;
            if global.json {
                output::json(&output::approvals_json(&reviews, &grants, &project));
            } else {
                output::approvals(&reviews, &grants, &project_flags(global), global.quiet);
                tell_limits(global, &project);
            }
        }
        ApprovalsCommand::Show { id } => {
            let approvals = required(&project, &id).await?;
            let review = on_approvals(move || approvals.get(&id)).await?;
            if global.json {
                output::json(&output::approval_json(&review));
            } else {
                output::approval(&review);
                tell_limits(global, &project);
            }
        }
        ApprovalsCommand::Revoke { id } => {
            let approvals = required(&project, &id).await?;
            let revoked = on_approvals(move || approvals.revoke(&id)).await?;
            if global.json {
                output::json(&output::grant_json(&revoked));
            } else {
                output::revoked(&revoked, global.quiet);
            }
        }
    }
    Ok(exit::FINE)
}

pub(super) async fn approve(
    global: &GlobalArgs,
    args: ApproveArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let ApproveArgs { id, time, conditions, any_arguments, yes } = args;
    let project = inspected(global, &cancellation).await?;
    let approvals = required(&project, &id).await?;
    let (shown, of) = (approvals.clone(), id.clone());
    let review = on_approvals(move || shown.get(&of)).await?;
    let scope = match (time, &review.stored.call.arguments) {
        (Some(_), Some(arguments)) => {
            let scope = GrantScope::new(&arguments.value, conditions, any_arguments)
                .map_err(|error| Problem::usage(format!("`--where`: {error}")))?;
            let (checked, of, tried) = (approvals.clone(), id.clone(), scope.clone());
            on_approvals(move || checked.check_grant(&of, &tried)).await?;
            Some(scope)
        }
        _ => None,
    };
    let asks = &*review.state == "open" && !yes && !global.json && can_ask();
    if !global.json && (asks || !global.quiet) {
        output::approval_asked(&review, scope.as_ref().zip(time));
        tell_limits(global, &project);
    }
    if asks && !confirmed("Approve it?", &cancellation).await? {
        return Err(Problem::failed("not_approved", "not approved; the call still waits"));
    }
    let (settled, grant) = on_approvals(move || match scope.zip(time) {
        Some((scope, time)) => {
            let (stored, grant) = approvals.grant(&id, &scope, time)?;
            Ok((stored, Some(grant)))
        }
        None => Ok((approvals.approve(&id)?, None)),
    })
    .await?;
    if global.json {
        output::json(&output::decision_json(&settled, true, grant.as_ref()));
    } else {
        output::settled(&settled, true, &project_flags(global), global.quiet);
    }
    Ok(exit::FINE)
}

pub(super) async fn deny(
    global: &GlobalArgs,
    args: DenyArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let DenyArgs { id, reason } = args;
    let project = inspected(global, &cancellation).await?;
    let approvals = required(&project, &id).await?;
    let settled = on_approvals(move || approvals.deny(&id, reason.map(Into::into))).await?;
    if global.json {
        output::json(&output::decision_json(&settled, false, None));
    } else {
        output::settled(&settled, false, &project_flags(global), global.quiet);
    }
    Ok(exit::FINE)
}

fn tell_limits(global: &GlobalArgs, project: &Project) {
    if !global.quiet {
        output::advisory(project.approvals().advisory());
    }
}

async fn required(project: &Project, id: &str) -> Result<Approvals, Problem> {
    let unknown = || ApprovalError::Store(ApprovalStoreError::Unknown { id: id.into() });
    Ok(existing(project).await?.ok_or_else(unknown)?)
}
