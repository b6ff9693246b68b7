//! What is wrong with a tool that is declared part by part.

/// One thing that is wrong with a declared tool, and where.
#[derive(Debug, thiserror::Error)]
#[error("{part}: {problem}")]
pub struct PartError<Part, Problem> {
    /// Where it is wrong.
    pub part: Part,
    /// The byte in that part's text where it is wrong, from 0, where that is known.
    pub offset: Option<usize>,
    /// What is wrong with it.
    pub problem: Problem,
}
