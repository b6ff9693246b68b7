//! Results as Markdown, which is also readable on a terminal, or as JSON.

use std::fmt;

use serde::Serialize;

/// The results of a bench.
#[derive(Debug, Serialize)]
pub struct Table {
    /// The measurement.
    pub title: &'static str,
    /// The command that repeats it.
    pub command: &'static str,
    /// The titles of the columns, with units; the first names the rows.
    pub columns: Vec<&'static str>,
    /// The figures.
    pub rows: Vec<Vec<Cell>>,
}

/// One field of a table.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Cell {
    /// A text.
    Text(String),
    /// A figure, shown with three significant digits: more would be noise.
    Figure(f64),
    /// An exact figure.
    Count(u64),
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<f64> for Cell {
    fn from(figure: f64) -> Self {
        Self::Figure(figure)
    }
}

impl From<u64> for Cell {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Figure(figure) => {
                let decimals = match figure.abs() {
                    0.0 => 0,
                    ..10.0 => 2,
                    ..100.0 => 1,
                    _ => 0,
                };
                f.pad(&format!("{figure:.decimals$}"))
            }
            Self::Count(count) => f.pad(&count.to_string()),
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "### {}\n\n`{}`\n", self.title, self.command)?;
        let cells: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(Cell::to_string).collect()).collect();
        let widths: Vec<usize> = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| {
                let below = cells.iter().filter_map(|row| row.get(at));
                below.map(|cell| cell.chars().count()).fold(column.chars().count(), usize::max)
            })
            .collect();
        let header: Vec<String> = self.columns.iter().map(|&column| column.to_owned()).collect();
        let rule = widths.iter().enumerate().map(|(at, width)| {
            if at == 0 { "-".repeat(*width) } else { format!("{}:", "-".repeat(width - 1)) }
        });
        for row in [header, rule.collect()].iter().chain(&cells) {
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if at == 0 {
                    write!(f, "| {cell:<width$} |")
                } else {
                    write!(f, " {cell:>width$} |")
                }?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// The result of a bench, or of a part of one.
pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Prints tables to standard output: as JSON if the program was started with `--json`, otherwise as
/// Markdown.
///
/// # Errors
/// Only for tables that cannot be serialized, and all of these can.
pub fn print(tables: &[Table]) -> Outcome {
    if std::env::args().any(|arg| arg == "--json") {
        println!("{}", serde_json::to_string(tables)?);
    } else {
        let sections: Vec<String> = tables.iter().map(Table::to_string).collect();
        print!("{}", sections.join("\n"));
    }
    Ok(())
}
