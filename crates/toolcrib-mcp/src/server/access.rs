use super::{Http, InvalidServerError, Stdio, Transport, http::checked};

/// The additions to a [`Transport`] for one caller: their credentials, and their path. They replace
/// declarations with the same names.
#[derive(Clone, Default)]
pub struct CallerAccess {
    pub(crate) url: Option<String>,
    pub(crate) pairs: Vec<(String, String)>,
}

impl CallerAccess {
    /// Creates an access without additions.
    pub fn new() -> Self {
        Self::default()
    }

    /// The caller's URL of an endpoint. It must differ from the declared one only within the path.
    #[must_use]
    pub fn url(mut self, url: impl Into<String>) -> Self {
        self.url = Some(url.into());
        self
    }

    /// A header of an endpoint, or a variable of a program's environment.
    #[must_use]
    pub fn pair(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.pairs.push((name.into(), value.into()));
        self
    }
}

// Without values, which may be secrets.
toolcrib_core::__internal::debug_fields!(
    CallerAccess,
    access,
    names = access.pairs.iter().map(|(name, _)| name).collect::<Vec<_>>(),
    ..
);

impl Transport {
    /// The transport of one caller.
    #[must_use]
    pub fn for_caller(&self, access: &CallerAccess) -> Self {
        match self {
            Self::Stdio(stdio) => stdio.for_caller(access).into(),
            Self::Http(http) => http.for_caller(access).into(),
        }
    }

    /// Checks the declaration, as [building](crate::McpClientBuilder::build) does.
    ///
    /// # Errors
    /// The first problem.
    pub fn check(&self, server: &str) -> Result<(), InvalidServerError> {
        match self {
            Self::Stdio(stdio) if stdio.command.is_empty() => {
                Err(InvalidServerError::Command { server: server.to_owned() })
            }
            Self::Stdio(_) => Ok(()),
            Self::Http(http) => checked(server, http).map(drop),
        }
    }
}

impl Stdio {
    /// The last of several values for one name is used.
    pub(crate) fn for_caller(&self, access: &CallerAccess) -> Self {
        let mut own = self.clone();
        own.env.extend(access.pairs.iter().cloned());
        own
    }
}

impl Http {
    pub(crate) fn for_caller(&self, access: &CallerAccess) -> Self {
        let mut own = self.clone();
        if let Some(url) = &access.url {
            own.url.clone_from(url);
        }
        let is_replaced = |name: &str| {
            access.pairs.iter().any(|(replaced, _)| replaced.eq_ignore_ascii_case(name))
        };
        own.headers.retain(|(name, _)| !is_replaced(name));
        own.headers.extend(access.pairs.iter().cloned());
        own
    }
}
