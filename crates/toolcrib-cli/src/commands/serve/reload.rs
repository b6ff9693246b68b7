//! Loads the project again when its files change, and replaces the gateway's configuration.

use std::{
    convert::Infallible, fs, net::SocketAddr, path::PathBuf, sync::OnceLock, time::Duration,
};

use futures_util::future::join_all;
use tokio::task::JoinSet;
use toolcrib_capabilities::__internal::FileStamp;
use toolcrib_core::CancellationToken;
use toolcrib_gateway::{Gateway, ReplacedConfig};
use toolcrib_mcp::McpClient;
use toolcrib_project::Project;

use super::{Lasting, ServedProject, accesses, configured, http, warmed};
use crate::{
    args::{FreshArgs, GlobalArgs, ServeArgs},
    host::servers::ask_all,
    output,
    problem::{Form, Problem},
    project::load::{ChosenModel, Purpose, load},
};

/// The interval between two looks at the files.
const EVERY: Duration = Duration::from_millis(500);

/// How long requests may continue with a replaced configuration. Then its servers are shut down.
const REQUESTS_END_WITHIN: Duration = Duration::from_secs(15 * 60);

/// Follows the files of a served project.
pub(super) struct Reload<'a> {
    global: &'a GlobalArgs,
    args: &'a ServeArgs,
    /// The project at the start, which its owner closes.
    first: &'a Project,
    gateway: &'a Gateway,
    logs: &'a Lasting,
    /// The served address over HTTP.
    address: &'a OnceLock<SocketAddr>,
    /// The present project, after the first reload.
    present: Option<Project>,
    /// Replaced projects whose requests have not ended.
    ending: JoinSet<()>,
    ended: CancellationToken,
}

/// The state of the files of a project.
type Stamps = Vec<(PathBuf, Option<FileStamp>)>;

impl<'a> Reload<'a> {
    pub(super) fn new(
        global: &'a GlobalArgs,
        args: &'a ServeArgs,
        first: &'a Project,
        gateway: &'a Gateway,
        logs: &'a Lasting,
        address: &'a OnceLock<SocketAddr>,
    ) -> Self {
        let (ending, ended) = (JoinSet::new(), CancellationToken::new());
        Self { global, args, first, gateway, logs, address, present: None, ending, ended }
    }

    fn project(&self) -> &Project {
        self.present.as_ref().unwrap_or(self.first)
    }

    /// Follows the files until it is dropped.
    pub(super) async fn follow(&mut self, cancellation: &CancellationToken) -> Infallible {
        let mut known = stamps(self.project().watched_files().to_vec()).await;
        loop {
            tokio::time::sleep(EVERY).await;
            if cancellation.is_cancelled() {
                return std::future::pending().await;
            }
            self.follow_lock().await;
            let now = stamps(self.project().watched_files().to_vec()).await;
            if now == known {
                continue;
            }
            // A file that is being written is awaited.
            tokio::time::sleep(EVERY / 5).await;
            let settled = stamps(self.project().watched_files().to_vec()).await;
            if settled != now {
                continue;
            }
            known = settled;
            match self.reload(cancellation).await {
                Ok(()) => known = of_same(known, self.project()).await,
                Err(problem) if problem.is_cancelled() => {}
                Err(problem) => {
                    self.gateway.replacement_failed();
                    output::not_reloaded();
                    problem.report(Form::Text);
                }
            }
        }
    }

    /// Lists the servers again when another process has changed the pinned definitions.
    async fn follow_lock(&self) {
        let lock = self.project().lock().clone();
        let has_changed = tokio::task::spawn_blocking(move || lock.has_changed()).await;
        if has_changed.is_ok_and(|changed| changed) {
            let servers = self.project().mcp_servers().iter();
            servers.filter_map(|server| server.client().ok()).for_each(McpClient::recheck);
        }
    }

    async fn reload(&mut self, cancellation: &CancellationToken) -> Result<(), Problem> {
        let purpose = Purpose::Run(FreshArgs::default());
        let model = ChosenModel::default();
        let next = load(self.global, purpose, model, cancellation).await?;
        match self.replace(&next).await {
            Ok(replaced) => {
                self.end(replaced, next);
                Ok(())
            }
            Err(problem) => {
                next.close().await;
                Err(problem)
            }
        }
    }

    async fn replace(&self, next: &Project) -> Result<ReplacedConfig, Problem> {
        let ServedProject { engine, gateway, access } =
            configured(self.global, self.args, next, self.logs).await?;
        // A call does not wait for a server that is only being started.
        let identities = warmed(&accesses(self.args, next, &access));
        join_all(identities.iter().map(|identity| ask_all(next, identity))).await;
        let replaced = match self.address.get() {
            None => self.gateway.replace(gateway, None).map_err(|error| super::problem(&error)),
            Some(at) => {
                let (access, tokens) = http::access(self.args, next, &engine, access, *at)?;
                let replaced = self.gateway.replace(gateway, Some(&access));
                replaced.map_err(|error| http::problem(&error, &tokens))
            }
        }?;
        if !self.global.quiet {
            output::reloaded(next.mcp_servers().len());
        }
        Ok(replaced)
    }

    /// Uses the next project; the previous one is shut down when its requests have ended.
    fn end(&mut self, replaced: ReplacedConfig, next: Project) {
        let before = self.present.replace(next).unwrap_or_else(|| self.first.clone());
        let ended = self.ended.clone();
        while self.ending.try_join_next().is_some() {}
        self.ending.spawn(async move {
            tokio::select! {
                _ = replaced.ended(REQUESTS_END_WITHIN) => {}
                () = ended.cancelled() => {}
            }
            before.close().await;
        });
    }

    /// Shuts down all projects except the first.
    pub(super) async fn close(mut self) {
        self.ended.cancel();
        while self.ending.join_next().await.is_some() {}
        if let Some(present) = &self.present {
            present.close().await;
        }
    }
}

/// The stamps after a reload: the files that were watched before keep theirs, so that a change
/// during the load is noticed.
async fn of_same(known: Stamps, project: &Project) -> Stamps {
    let mut all = stamps(project.watched_files().to_vec()).await;
    for (path, stamp) in &mut all {
        if let Some((_, before)) = known.iter().find(|(other, _)| other == path) {
            *stamp = *before;
        }
    }
    all
}

async fn stamps(files: Vec<PathBuf>) -> Stamps {
    let stamp = |path: PathBuf| {
        let stamp = fs::metadata(&path).ok().map(|found| FileStamp::of(&found));
        (path, stamp)
    };
    let all = tokio::task::spawn_blocking(move || files.into_iter().map(stamp).collect()).await;
    all.unwrap_or_default()
}
