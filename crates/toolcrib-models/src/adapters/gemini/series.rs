//! Differences between the series of Gemini's models.

/// The series of a model, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Series {
    /// Gemini 2.5 and before.
    UpTo2,
    /// Gemini 3 and later, and the names that always refer to the newest.
    From3,
    /// Another family, or a name of another server.
    Unknown,
}

impl Series {
    pub(super) fn of(model: &str) -> Self {
        let name = model.rsplit('/').next().unwrap_or_default();
        let Some(rest) = name.strip_prefix("gemini-") else { return Self::Unknown };
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        match rest.get(..digits).unwrap_or_default().parse::<u32>() {
            Ok(number) if number < 3 => Self::UpTo2,
            Ok(_) => Self::From3,
            Err(_) if rest.ends_with("-latest") => Self::From3,
            Err(_) => Self::Unknown,
        }
    }

    /// Whether thinking is measured in tokens; later series use a level, and refuse both at once.
    pub(super) fn thinks_by_budget(self) -> bool {
        self == Self::UpTo2
    }

    /// Whether a past call without a signature is refused.
    pub(super) fn requires_signatures(self) -> bool {
        self == Self::From3
    }

    /// Whether a tool's result may contain images.
    pub(super) fn takes_media_in_results(self) -> bool {
        self != Self::UpTo2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_read_from_the_name() {
        let names = [
            ("gemini-2.5-flash", Series::UpTo2),
            ("models/gemini-2.0-flash-001", Series::UpTo2),
            ("gemini-3.8-flash", Series::From3),
            ("gemini-3-pro-preview", Series::From3),
            ("gemini-10-pro", Series::From3),
            ("gemini-flash-latest", Series::From3),
            ("gemini-oracle", Series::Unknown),
            ("gemma-4-27b", Series::Unknown),
            ("", Series::Unknown),
        ];
        for (name, series) in names {
            assert_eq!(Series::of(name), series, "{name}");
        }
    }
}
