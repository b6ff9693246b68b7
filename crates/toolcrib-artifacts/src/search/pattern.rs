//! Regular expressions from a model: linear in time, bounded in size, and never matching across
//! lines.

use regex_automata::{Input, meta, nfa::thompson};
use regex_syntax::{
    ParserBuilder,
    hir::{
        Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
        Repetition,
    },
};

/// The maximum length of a pattern, in characters.
pub(crate) const LONGEST_PATTERN: usize = 1_000;

/// The maximum nesting of a pattern.
const DEEPEST_PATTERN: u32 = 50;

/// The maximum size of a compiled pattern, in bytes.
const LARGEST_PATTERN: usize = 1024 * 1024;

/// The maximum size of the matcher's cache, in bytes.
const LARGEST_CACHE: usize = 2 * 1024 * 1024;

/// The number of bytes searched at once, for the smallest patterns and for the largest.
const LARGEST_WINDOW: usize = 1024 * 1024;
const SMALLEST_WINDOW: usize = 2 * 1024;

/// A window has room for this many of the shortest match, up to the largest window.
const MATCHES_IN_WINDOW: usize = 8;
const LARGEST_FOR_MATCHES: usize = 16 * 1024;

/// The maximum product of states and bytes searched at once. A search cannot be stopped, and each
/// state may take 5 ns for each byte.
const MOST_WORK: usize = 10_000_000;

/// A pattern that matches within lines.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    regex: meta::Regex,
    window: usize,
}

/// An invalid pattern. The texts are for the model.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PatternError {
    #[error("`flags` may contain only i, m, s and u, not `{0}`")]
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
    /// Compiles a pattern. Each line is searched separately, so `m` and `s` have no effect, and `u`
    /// is always on.
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

    /// The number of bytes that may be searched at once.
    pub(crate) fn window(&self) -> usize {
        self.window
    }

    /// The first match in a part of a text.
    pub(crate) fn find(&self, input: &Input<'_>) -> Option<std::ops::Range<usize>> {
        self.regex.search(input).map(|found| found.range())
    }
}

/// The last line of the parser's message; those before it mark the position.
fn in_one_line(error: &str) -> String {
    let last = error.lines().last().unwrap_or_default();
    last.strip_prefix("error: ").unwrap_or(last).to_owned()
}

/// The same expression, which matches no LF and treats line ends as text ends. A whole buffer of
/// lines can then be searched at once, with the same matches as line by line, with and without the
/// CR that may precede the LF.
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
                "the flag R is not supported; `$` matches before a CR LF anyway".into(),
            ));
        }
        HirKind::Look(look) => Hir::look(*look),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            sub: Box::new(within_lines(&repetition.sub)?),
            ..repetition.clone()
        }),
        // Captures are not used.
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
