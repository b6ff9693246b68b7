use std::{fmt, str::FromStr};

/// How much a program is confined. Each tier includes the ones before it; the limits of
/// [`ProcessLimits`](crate::process::ProcessLimits) apply in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum SandboxTier {
    /// Not confined: the program keeps the host's capabilities, set-user-ID programs work, and
    /// processes that leave its group outlive it.
    None,
    /// All its processes end with it, and it has no capabilities.
    #[default]
    Tree,
    /// Also a Landlock domain: it reads the system's folders, its working folder and declared
    /// folders, and writes declared folders and a private temporary folder.
    Files,
    /// Also a network namespace, whose only way out is a proxy to the declared hosts, and a seccomp
    /// filter of system calls.
    Full,
}

impl SandboxTier {
    /// All tiers, from the weakest.
    pub const ALL: [Self; 4] = [Self::None, Self::Tree, Self::Files, Self::Full];

    /// The name, as in a project file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tree => "tree",
            Self::Files => "files",
            Self::Full => "full",
        }
    }
}

impl fmt::Display for SandboxTier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SandboxTier {
    type Err = UnknownTierError;

    fn from_str(text: &str) -> Result<Self, UnknownTierError> {
        let tier = Self::ALL.into_iter().find(|tier| tier.as_str() == text);
        tier.ok_or_else(|| UnknownTierError { text: text.to_owned() })
    }
}

/// A text that is not the name of a tier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a sandbox; write `none`, `tree`, `files` or `full`", text.escape_debug())]
pub struct UnknownTierError {
    /// The text.
    pub text: String,
}
