//! The arguments of `usage`.

use std::{
    path::PathBuf,
    str::FromStr,
    time::{Duration, SystemTime},
};

use clap::{Args, ValueEnum};
use serde::Serialize;

use super::sessions::session_word;

#[derive(Debug, Args)]
pub(crate) struct UsageArgs {
    /// The subject of each line
    #[arg(long, value_name = "WHAT", default_value = "day")]
    pub(crate) by: UsageGrouping,
    /// Begin with this day, YYYY-MM-DD in UTC, or this time ago, such as 7d
    #[arg(long, value_name = "DAY", default_value = "30d")]
    pub(crate) since: Day,
    /// Only this session, by its id or name [default: all]
    #[arg(long, value_name = "SESSION", value_parser = session_word)]
    pub(crate) session: Option<String>,
    /// Only this principal [default: all]
    #[arg(long, value_name = "PRINCIPAL")]
    pub(crate) principal: Option<String>,
    /// Only this tenant [default: all]
    #[arg(long, value_name = "TENANT")]
    pub(crate) tenant: Option<String>,
    /// Only this model, by its name in `toolcrib runs`. Tools are left out [default: all]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Write one page with bars by day, model, tool and principal to this new file
    #[arg(long, value_name = "FILE", conflicts_with = "by")]
    pub(crate) html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UsageGrouping {
    /// Each day, in UTC
    Day,
    /// Each session
    Session,
    /// Each principal, with its tenant
    Principal,
    /// Each model
    Model,
    /// Each tool: calls, and the size of definitions and results
    Tool,
}

/// A day, as the number of days since 1970 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Day(pub(crate) u64);

const DAY: u64 = 86_400;

impl Day {
    fn of(time: SystemTime) -> Self {
        Self(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs() / DAY)
    }

    /// The day as text.
    pub(crate) fn date(self) -> String {
        // Later years cannot be written.
        let since = Duration::from_secs(self.0.min(2_932_896) * DAY);
        let time = SystemTime::UNIX_EPOCH.checked_add(since).unwrap_or(SystemTime::UNIX_EPOCH);
        humantime::format_rfc3339_seconds(time).to_string().chars().take(10).collect()
    }
}

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(time) = humantime::parse_rfc3339(&format!("{text}T00:00:00Z")) {
            return Ok(Self::of(time));
        }
        let ago = humantime::parse_duration(text).ok();
        let then = ago.and_then(|ago| SystemTime::now().checked_sub(ago));
        let then = then.filter(|then| *then >= SystemTime::UNIX_EPOCH);
        then.map(Self::of).ok_or_else(|| {
            "write a day, such as 2026-11-01, or a time ago, such as 7d or 2weeks".to_owned()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_a_date_or_a_time_ago() {
        let day: Day = "2026-11-01".parse().unwrap();
        assert_eq!(day.date(), "2026-11-01");
        let today = Day::of(SystemTime::now());
        assert_eq!("7d".parse(), Ok(Day(today.0 - 7)));
        for wrong in ["", "2026-13-01", "2026-11", "seven", "-7d", "99999999999years"] {
            assert!(wrong.parse::<Day>().is_err(), "{wrong}");
        }
        assert_eq!(Day(u64::MAX).date(), "9999-12-31");
    }
}
