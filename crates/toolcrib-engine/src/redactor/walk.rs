//! Holds one form against a text at one position, through escapes and line breaks.

use super::{
    escapes::{Escape, begins_escape, escapes, json_escapes},
    forms::{Form, is_base64},
};

/// How a form fits at a position.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fit {
    /// Where it ends, if all of it is there; the longest way to read it.
    pub(super) end: Option<usize>,
    /// Whether the text ends before it is certain.
    pub(super) is_open: bool,
}

/// The most white space of one line break, with the indentation after it.
const LONGEST_BREAK: usize = 256;

/// How a form fits at a position.
pub(super) fn fit(form: &Form, text: &[u8], at: usize) -> Fit {
    let mut walk = Walk { form, text, fit: Fit::default(), ways: Vec::new() };
    // Ways to read a text are few, but for a secret of signs that begin an escape.
    let mut steps = 64 + 8 * form.bytes.len();
    let mut way = Some((0, at));
    while let Some((next, at)) = way {
        walk.go(next, at, &mut steps);
        way = walk.ways.pop();
    }
    walk.fit
}

struct Walk<'a> {
    form: &'a Form,
    text: &'a [u8],
    fit: Fit,
    /// Where else to go on: with this byte of the form, at this position of the text.
    ways: Vec<(usize, usize)>,
}

impl Walk<'_> {
    fn go(&mut self, mut next: usize, mut at: usize, steps: &mut usize) {
        while let Some(&wanted) = self.form.bytes.get(next) {
            let Some(&byte) = self.text.get(at) else {
                self.fit.is_open = true;
                return;
            };
            if *steps > 0 && (begins_escape(byte) || (next > 0 && byte.is_ascii_whitespace())) {
                *steps -= 1;
                self.branch(next, at);
            }
            if byte != wanted {
                return;
            }
            (next, at) = (next + 1, at + 1);
        }
        if self.form.has_tail {
            match self.text.get(at) {
                Some(byte) => at += usize::from(is_base64(*byte)),
                None => self.fit.is_open = true,
            }
        }
        self.fit.end = self.fit.end.max(Some(at));
    }

    /// Notes where to go on behind each escape and line break that may be read here.
    fn branch(&mut self, next: usize, at: usize) {
        let rest = self.form.bytes.get(next..).unwrap_or_default();
        let (ways, is_open) = (&mut self.ways, &mut self.fit.is_open);
        let mut each = |escape: Escape| match escape.parts() {
            Some((bytes, end)) if rest.starts_with(bytes) => ways.push((next + bytes.len(), end)),
            Some(_) => {}
            None => *is_open = true,
        };
        if !self.form.in_all_escapes {
            return json_escapes(self.text, at, &mut each);
        }
        escapes(self.text, at, &mut each);
        if next > 0 {
            match line_break(self.text, at) {
                Break::Ends(end) => self.ways.push((next, end)),
                Break::Cut => self.fit.is_open = true,
                Break::None => {}
            }
        }
    }
}

/// A line break that somebody put into a long value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Break {
    /// Where the value goes on.
    Ends(usize),
    /// The text ends before the value goes on.
    Cut,
    None,
}

/// Reads a line break, with the white space around it and the sign before it that says that the line
/// goes on: `=` in mail, a backslash in programs.
pub(super) fn line_break(text: &[u8], start: usize) -> Break {
    let (mut at, mut breaks) = (start, false);
    while at - start <= LONGEST_BREAK {
        let Some(&byte) = text.get(at) else { return Break::Cut };
        let mut blank = byte.is_ascii_whitespace().then_some((byte, at + 1));
        if matches!(byte, b'=' | b'\\')
            && let Some(next) = text.get(at + 1)
        {
            blank = matches!(next, b'\r' | b'\n').then_some((*next, at + 2));
        }
        if blank.is_none() && begins_escape(byte) {
            let mut is_cut = false;
            escapes(text, at, &mut |escape| match escape.parts() {
                Some(([white], end)) if white.is_ascii_whitespace() => blank = Some((*white, end)),
                Some(_) => {}
                None => is_cut = true,
            });
            if is_cut && blank.is_none() {
                return Break::Cut;
            }
        }
        let Some((byte, end)) = blank else {
            return if breaks { Break::Ends(at) } else { Break::None };
        };
        breaks |= matches!(byte, b'\r' | b'\n');
        at = end;
    }
    Break::None
}
