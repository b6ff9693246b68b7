//! Secrets for a call: only those that its tool declares, and added to the redactor before the body
//! has them.

use std::{error::Error, sync::Arc};

use futures_util::{FutureExt as _, future::BoxFuture};
use toolcrib_core::{Secret, SecretError, Secrets, Tool};

use crate::{parts::EngineParts, secrets::Redactor};

/// The secrets that one call may have.
pub(crate) struct DeclaredSecrets {
    tool: Tool,
    source: Option<Arc<dyn Secrets>>,
    redactor: Redactor,
}

impl DeclaredSecrets {
    /// The secrets for a call of this tool; `None` for a tool that declares none.
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
                return Err(unreadable("the engine has no source of secrets".into()));
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
