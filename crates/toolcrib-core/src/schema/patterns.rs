//! Estimates the compiled size of a pattern without compiling it: 15 characters can produce a
//! million states.

use regex_syntax::{
    ParserBuilder,
    hir::{Class, Hir, HirKind},
};

/// The states of one non-ASCII character, of up to four bytes.
const OF_CHARACTER: u64 = 12;

/// Assumed for a pattern that cannot be parsed here: the compiler accepts a few more spellings.
const UNKNOWN: u64 = 5_000;

/// The size of a pattern.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Size {
    /// The number of states.
    pub(super) states: u64,
    /// The number of states in one round of each count in `{…}`.
    width: u64,
    /// The nesting depth of the counts.
    depth: u32,
    /// Whether the pattern is certainly not linear.
    pub(super) backtracks: bool,
}

impl Size {
    /// The approximate size of a pattern.
    pub(super) fn of(pattern: &str) -> Self {
        // `\d`, `\w` and `\s` are ASCII in JSON Schema.
        let parsed = |pattern: &str| {
            let parsed = |unicode| {
                ParserBuilder::new().utf8(false).unicode(unicode).build().parse(pattern).ok()
            };
            parsed(false).or_else(|| parsed(true)).map(|hir| of(&hir))
        };
        parsed(pattern).unwrap_or_else(|| {
            let size = parsed(&without_looks(pattern)).unwrap_or(Self::simple(UNKNOWN));
            Self { backtracks: true, ..size }
        })
    }

    fn simple(states: u64) -> Self {
        Self { states, width: states, depth: 0, backtracks: false }
    }

    /// The size of both patterns together.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            states: self.states.saturating_add(other.states),
            width: self.width.saturating_add(other.width),
            depth: self.depth.max(other.depth),
            backtracks: self.backtracks || other.backtracks,
        }
    }

    /// The maximum number of states that are active at one byte of a text: a text of ten characters
    /// gets no further than the tenth round.
    pub(super) fn at_once(self, bytes: u64) -> u64 {
        let rounds = (bytes + 1).saturating_pow(self.depth);
        self.states.min(self.width.saturating_mul(rounds))
    }
}

/// A pattern of about the same size without look-around, atomic groups and back references.
fn without_looks(pattern: &str) -> String {
    let mut plain = pattern.to_owned();
    for look in ["(?=", "(?!", "(?<=", "(?<!", "(?>"] {
        plain = plain.replace(look, "(?:");
    }
    for digit in '1'..='9' {
        plain = plain.replace(&format!("\\{digit}"), "(?:)");
    }
    plain
}

/// Recursive; the parser limits the depth.
fn of(hir: &Hir) -> Size {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => Size::simple(1),
        HirKind::Literal(literal) => Size::simple(literal.0.len() as u64),
        HirKind::Class(Class::Bytes(class)) if class.is_ascii() => Size::simple(1),
        HirKind::Class(Class::Bytes(_)) => Size::simple(OF_CHARACTER),
        HirKind::Class(Class::Unicode(class)) if class.is_ascii() => Size::simple(1),
        HirKind::Class(Class::Unicode(class)) => {
            Size::simple(OF_CHARACTER.max(2 * class.ranges().len() as u64))
        }
        HirKind::Repetition(repetition) => {
            let rounds = repetition.max.unwrap_or(repetition.min).max(repetition.min).max(1);
            let rounds = u64::from(rounds);
            let one = of(&repetition.sub).and(Size::simple(1));
            let states = rounds.saturating_mul(one.states);
            // Rounds that may be empty are all traversed at once.
            let may_be_empty = repetition.sub.properties().minimum_len().unwrap_or(0) == 0;
            if rounds == 1 || may_be_empty {
                Size { states, width: rounds.saturating_mul(one.width), ..one }
            } else {
                Size { states, depth: one.depth + 1, ..one }
            }
        }
        HirKind::Capture(capture) => of(&capture.sub),
        HirKind::Concat(parts) | HirKind::Alternation(parts) => {
            parts.iter().map(of).fold(Size::simple(1), Size::and)
        }
    }
}
