/// Why an archive is refused.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct RefusedArchiveError(String);

impl RefusedArchiveError {
    /// For a problem of one file.
    pub(super) fn of(path: &str, problem: impl AsRef<str>) -> Self {
        let shown: String = path.chars().take(200).collect();
        Self(format!("`{}` {}", shown.escape_debug(), problem.as_ref()))
    }

    /// For a problem of the whole archive.
    pub(super) fn whole(problem: impl Into<String>) -> Self {
        Self(problem.into())
    }

    pub(super) fn corrupt(error: impl std::fmt::Display) -> Self {
        Self(format!("it is damaged: {error}"))
    }
}
