//! What was counted, as the repository keeps it: a line for each row of the table, so that one row can
//! be measured again.

use std::fs;

use crate::{
    problem::Problem,
    workspace::{Workspace, output, unreadable},
};

const FILE: &str = "benches/crash-table/results.tsv";

/// The columns after the name of the row and the date.
pub(super) const COLUMNS: [&str; 12] = [
    "kills",
    "runs",
    "effects",
    "repeated",
    "most",
    "lost",
    "unknown",
    "undone",
    "unapproved",
    "stuck",
    "paid_twice",
    "seconds",
];

/// The counts of one row.
#[derive(Debug, Default, Clone)]
pub(super) struct Counts {
    /// Processes that were killed while a run had not ended.
    pub(super) kills: u64,
    pub(super) runs: u64,
    /// The effects that the model wanted, of runs that ended.
    pub(super) effects: u64,
    /// Effects that happened more than once.
    pub(super) repeated: u64,
    /// How often the most repeated effect happened.
    pub(super) most: u64,
    /// Effects of ended runs that never happened, and of which the model was told a success.
    pub(super) lost: u64,
    /// Effects of which the model was told that the outcome is unknown.
    pub(super) unknown: u64,
    /// Those of them that had not happened.
    pub(super) undone: u64,
    /// Runs in which the second effect happened before its approval.
    pub(super) unapproved: u64,
    /// Runs that did not end.
    pub(super) stuck: u64,
    /// Responses of the model that were requested again.
    pub(super) paid_twice: u64,
    pub(super) seconds: u64,
}

impl Counts {
    fn figures(&mut self) -> [&mut u64; COLUMNS.len()] {
        [
            &mut self.kills,
            &mut self.runs,
            &mut self.effects,
            &mut self.repeated,
            &mut self.most,
            &mut self.lost,
            &mut self.unknown,
            &mut self.undone,
            &mut self.unapproved,
            &mut self.stuck,
            &mut self.paid_twice,
            &mut self.seconds,
        ]
    }
}

/// The rows by their names, each with the date.
#[derive(Default)]
pub(super) struct Results(Vec<(String, String, Counts)>);

impl Results {
    pub(super) fn read(workspace: &Workspace) -> Result<Self, Problem> {
        let text = workspace.read(FILE)?;
        let row = |line: &str| {
            let mut cells = line.split('\t');
            let (name, date) = (cells.next()?.to_owned(), cells.next()?.to_owned());
            let mut counts = Counts::default();
            for figure in counts.figures() {
                *figure = cells.next()?.parse().ok()?;
            }
            Some((name, date, counts))
        };
        let rows = text.lines().skip(1).map(|line| {
            row(line).ok_or_else(|| {
                let problem = format!("{FILE} has an invalid line: {line}");
                Problem::new(problem, "delete it, and measure the row again")
            })
        });
        rows.collect::<Result<_, _>>().map(Self)
    }

    /// The date and the counts of a row, if it has been measured.
    pub(super) fn of(&self, name: &str) -> Option<(&str, &Counts)> {
        let row = self.0.iter().find(|(own, ..)| own == name)?;
        Some((&row.1, &row.2))
    }

    pub(super) fn replace(
        &mut self,
        workspace: &Workspace,
        name: &str,
        counts: Counts,
    ) -> Result<(), Problem> {
        let date = output(workspace.program("date").args(["-u", "+%F"]), "put it on the PATH")?;
        self.0.retain(|(own, ..)| own != name);
        self.0.push((name.to_owned(), date, counts));
        self.0.sort_by(|one, other| one.0.cmp(&other.0));
        let mut text = format!("row\tdate\t{}\n", COLUMNS.join("\t"));
        for (name, date, counts) in &self.0 {
            let figures = counts.clone().figures().map(|figure| figure.to_string());
            text.push_str(&format!("{name}\t{date}\t{}\n", figures.join("\t")));
        }
        let path = workspace.root().join(FILE);
        fs::write(&path, text).map_err(|error| unreadable(&path, &error))
    }
}

/// A share in percent, with one digit: `0 %` only for nothing.
pub(super) fn percentage(part: u64, whole: u64) -> String {
    match part {
        0 => "0 %".to_owned(),
        _ => format!("{:.1} %", part as f64 * 100.0 / whole as f64),
    }
}
