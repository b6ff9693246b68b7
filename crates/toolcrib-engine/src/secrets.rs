//! Secrets on their way to a call: only what its tool declares, and known to the redactor before
//! the body has them.

use std::{error::Error, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use toolcrib_core::{Secret, SecretError, Secrets, Tool};

use crate::{parts::EngineParts, redactor::Redactor};

/// The secrets that one call may have.
pub(crate) struct DeclaredSecrets {
    tool: Tool,
    source: Option<Arc<dyn Secrets>>,
    redactor: Redactor,
}

impl DeclaredSecrets {
    /// Those of a call of this tool; nothing for a tool that declares none.
    pub(crate) fn of(tool: &Tool, engine: &EngineParts) -> Option<Arc<dyn Secrets>> {
        (!tool.capabilities().secrets.is_empty()).then(|| {
            Arc::new(Self {
                tool: tool.clone(),
                source: engine.secrets.clone(),
                redactor: engine.redactor.clone(),
            }) as _
        })
    }
}

impl Secrets for DeclaredSecrets {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Secret, SecretError>> {
        async move {
            let unreadable = |source: Box<dyn Error + Send + Sync>| SecretError::Unreadable {
                name: name.into(),
                source,
            };
            let declared = &self.tool.capabilities().secrets;
            if !declared.iter().any(|declared| **declared == *name) {
                return Err(SecretError::Undeclared { name: name.into() });
            }
            let Some(source) = &self.source else {
                return Err(unreadable("no source of secrets is set up".into()));
            };
            let secret = source.resolve(name).await?;
            self.redactor
                .learn_named(name, secret.expose())
                .map_err(|short| unreadable(short.into()))?;
            Ok(secret)
        }
        .boxed()
    }
}
