//! `toolcrib mcp login`, `logout` and `status`.

use toolcrib_core::CancellationToken;
use toolcrib_mcp::oauth::{Authorization, OAuthError};
use toolcrib_project::{McpServer, Project};

use crate::{
    args::{GlobalArgs, IdentityArgs},
    exit::{self, Exit},
    host::{catalog, servers::find},
    output::{self, LoginJson, LoginsJson},
    problem::Problem,
    project::load::{ChosenModel, Purpose, with_project},
};

/// The arguments of a login.
pub(super) struct LoginArgs {
    pub(super) server: String,
    pub(super) no_browser: bool,
    pub(super) scopes: Vec<String>,
    pub(super) whom: IdentityArgs,
}

pub(super) async fn login(
    global: &GlobalArgs,
    args: LoginArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let token = cancellation.clone();
    with_project(global, Purpose::Ask, ChosenModel::default(), &token, async |project| {
        let server = find(project, &args.server)?;
        let authorization = authorization(server, &args.whom)?;
        let show = |address: &str| {
            let is_open = !args.no_browser && open::that_detached(address).is_ok();
            output::login_address(address, is_open);
        };
        let granted = authorization.login(&args.scopes, show, &cancellation).await;
        let granted = granted.map_err(|error| problem(project, server, &error))?;
        if global.json {
            output::json(&LoginJson::new(server.name().as_str(), Some(&granted)));
        } else {
            output::logged_in(server.name().as_str(), &granted);
        }
        Ok(exit::FINE)
    })
    .await
}

pub(super) async fn logout(
    global: &GlobalArgs,
    server: &str,
    whom: &IdentityArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    let token = cancellation.clone();
    with_project(global, Purpose::Ask, ChosenModel::default(), &token, async |project| {
        let server = find(project, server)?;
        let done = authorization(server, whom)?.logout(&cancellation).await;
        let (had, error) = done.map_err(|error| problem(project, server, &error))?;
        let error = error.map(|error| project.redactor().text(&error.to_string()).into_owned());
        if global.json {
            output::json(&LoginJson::new(server.name().as_str(), None));
        }
        output::logged_out(server.name().as_str(), had, error.as_deref(), global.json);
        Ok(exit::FINE)
    })
    .await
}

pub(super) async fn status(
    global: &GlobalArgs,
    server: Option<&str>,
    whom: &IdentityArgs,
    cancellation: CancellationToken,
) -> Result<Exit, Problem> {
    with_project(global, Purpose::Ask, ChosenModel::default(), &cancellation, async |project| {
        let named = server.map(|name| find(project, name)).transpose()?;
        let servers: Vec<&McpServer> = match named {
            Some(server) => vec![server],
            None => project.mcp_servers().iter().collect(),
        };
        let mut logins = Vec::new();
        for server in servers {
            let authorization = match authorization(server, whom) {
                Ok(authorization) => authorization,
                Err(problem) if named.is_some() => return Err(problem),
                Err(_) => continue,
            };
            let login = authorization.status();
            let login = login.map_err(|error| problem(project, server, &error))?;
            logins.push((server.name().as_str(), login));
        }
        if global.json {
            output::json(&LoginsJson::new(&logins));
        } else {
            output::logins(&logins);
        }
        Ok(exit::FINE)
    })
    .await
}

fn authorization(server: &McpServer, whom: &IdentityArgs) -> Result<Authorization, Problem> {
    let identity = catalog::identity(whom);
    let name = server.name();
    let client = server.client().map_err(|reason| {
        Problem::failed("server_unusable", format!("MCP server `{name}` cannot be used: {reason}"))
    })?;
    client.on_behalf_of(&identity).authorization().ok_or_else(|| {
        Problem::usage(format!(
            "MCP server `{name}` has no login: it is a program, or its declaration has its own \
             `Authorization` header, or its `url` is neither https nor on this machine"
        ))
    })
}

fn problem(project: &Project, server: &McpServer, error: &OAuthError) -> Problem {
    if matches!(error, OAuthError::Cancelled) {
        return Problem::cancelled();
    }
    let text = format!("MCP server `{}`: {error}", server.name());
    Problem::failed("login_failed", project.redactor().text(&text).into_owned())
}
