//! Regular expressions that come from a model: linear in time, bounded in size, and never across the
//! end of a line.

use regex_automata::{Input, meta, nfa::thompson};
use regex_syntax::{
    ParserBuilder,
    hir::{
        Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
        Repetition,
    },
};

/// How long a pattern may be, in characters.
pub(crate) const LONGEST_PATTERN: usize = 1_000;

/// How deep a pattern may nest.
const DEEPEST_PATTERN: u32 = 50;

/// How large a compiled pattern may be, in bytes.
const LARGEST_PATTERN: usize = 1024 * 1024;

/// What is kept while it runs, in bytes.
const LARGEST_CACHE: usize = 2 * 1024 * 1024;

/// How much is searched at once, in bytes, by the smallest patterns and by the largest.
const LARGEST_WINDOW: usize = 1024 * 1024;
const SMALLEST_WINDOW: usize = 2 * 1024;

/// A window has room for this many of the shortest match, up to so many bytes.
const MATCHES_IN_WINDOW: usize = 8;
const LARGEST_FOR_MATCHES: usize = 16 * 1024;

/// How many states are held against how many bytes at once. A search cannot be stopped, and each state
/// may take 5 ns for each byte.
const MOST_WORK: usize = 10_000_000;

/// A pattern that matches within lines.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: meta::Regex,
    window: usize,
}

/// A pattern that cannot be searched for. The texts are the model's.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("`flags` may have the letters i, m, s and u; `{0}` is none of them")]
    Flag(char),
    #[error("`pattern` is longer than {LONGEST_PATTERN} characters; search for less at once")]
    TooLong,
    #[error("`pattern` does not compile: {0}")]
    Syntax(String),
    #[error(
        "`pattern` becomes too large when compiled; use smaller counts in `{{…}}` and fewer \
         alternatives"
    )]
    TooLarge,
}

impl Pattern {
    /// Compiles a pattern. Each line is searched for itself, so `m` and `s` change nothing, and `u` is
    /// always on.
    pub(crate) fn new(pattern: &str, flags: &str) -> Result<Self, PatternError> {
        if let Some(flag) = flags.chars().find(|flag| !"imsu".contains(*flag)) {
            return Err(PatternError::Flag(flag));
        }
        if pattern.chars().nth(LONGEST_PATTERN).is_some() {
            return Err(PatternError::TooLong);
        }
        let parsed = ParserBuilder::new()
            .utf8(false)
            .case_insensitive(flags.contains('i'))
            .nest_limit(DEEPEST_PATTERN)
            .build()
            .parse(pattern)
            .map_err(|error| PatternError::Syntax(in_one_line(&error.to_string())))?;
        let config = meta::Config::new()
            .utf8_empty(false)
            .nfa_size_limit(Some(LARGEST_PATTERN))
            .onepass_size_limit(Some(LARGEST_CACHE))
            .hybrid_cache_capacity(LARGEST_CACHE);
        let hir = within_lines(&parsed)?;
        let regex = meta::Builder::new()
            .configure(config)
            .build_from_hir(&hir)
            .map_err(|_| PatternError::TooLarge)?;
        let nfa = thompson::NFA::compiler()
            .configure(thompson::Config::new().which_captures(thompson::WhichCaptures::None))
            .build_from_hir(&hir)
            .map_err(|_| PatternError::TooLarge)?;
        let shortest = hir.properties().minimum_len().unwrap_or(0);
        let for_matches = shortest.saturating_mul(MATCHES_IN_WINDOW).min(LARGEST_FOR_MATCHES);
        let affordable = MOST_WORK / nfa.states().len().max(1);
        let window = affordable.max(for_matches).clamp(SMALLEST_WINDOW, LARGEST_WINDOW);
        Ok(Self { regex, window })
    }

    /// How many bytes may be searched at once.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// The first match in a part of some text, which stands in the whole of it.
    pub(crate) fn find(&self, input: &Input<'_>) -> Option<std::ops::Range<usize>> {
        self.regex.search(input).map(|found| found.range())
    }
}

/// The last line of what the parser says; those before it draw an arrow to the place.
fn in_one_line(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The same expression, which matches no LF and takes the ends of a line for those of its text. So a
/// whole buffer of lines can be searched in one go, and what is found is what is found line by line,
/// with and without the CR that may stand in front of the LF.
fn within_lines(hir: &Hir) -> Result<Hir, PatternError> {
    let all = |parts: &[Hir]| parts.iter().map(within_lines).collect::<Result<Vec<_>, _>>();
    Ok(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => Hir::fail(),
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(class) => Hir::class(without_feed(class)),
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End | Look::EndLF) => {
            let carriage = Hir::concat(vec![Hir::literal(*b"\r"), Hir::look(Look::EndLF)]);
            Hir::alternation(vec![Hir::look(Look::EndLF), carriage])
        }
        HirKind::Look(Look::StartCRLF | Look::EndCRLF) => {
            return Err(PatternError::Syntax(
                "the flag R is not supported, nor needed: `$` matches in front of a CR LF, too"
                    .into(),
            ));
        }
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(within_lines(&repetition.sub)?),
            ..repetition.clone()
        }),
        // What is captured is of no interest.
        HirKind::Capture(capture) => within_lines(&capture.sub)?,
        HirKind::Concat(parts) => Hir::concat(all(parts)?),
        HirKind::Alternation(parts) => Hir::alternation(all(parts)?),
    })
}

fn without_feed(class: &Class) -> Class {
    match class {
        Class::Unicode(class) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Class::Unicode(class)
        }
        Class::Bytes(class) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Class::Bytes(class)
        }
    }
}
