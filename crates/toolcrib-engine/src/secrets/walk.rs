//! Compares one form with a text at one position, through escapes and line breaks.

use super::{
    escapes::{Escape, begins_escape, escapes, json_escapes},
    forms::{Form, is_base64},
};

/// The result of comparing a form at a position.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Fit {
    /// The end of a full match; the longest reading.
    pub(crate) end: Option<usize>,
    /// Whether the text ends before the match is certain.
    pub(crate) is_open: bool,
    /// Number of escapes and line breaks read.
    pub(crate) steps: usize,
}

/// Maximum whitespace of one line break, including the following indentation.
pub(crate) const LONGEST_BREAK: usize = 256;

/// Compares a form at a position.
pub(crate) fn fit(form: &Form, text: &[u8], at: usize) -> Fit {
    let mut walk = Walk { form, text, fit: Fit::default(), ways: Vec::new() };
    // Readings of a text are few, except for a secret of signs that begin an escape.
    let most = 64 + 8 * form.bytes.len();
    let mut steps = most;
    let mut way = Some((0, at));
    while let Some((next, at)) = way {
        walk.go(next, at, &mut steps);
        way = walk.ways.pop();
    }
    walk.fit.steps = most - steps;
    walk.fit
}

struct Walk<'a> {
    form: &'a Form,
    text: &'a [u8],
    fit: Fit,
    /// Positions to continue at: this byte of the form, at this position of the text.
    ways: Vec<(usize, usize)>,
}

impl Walk<'_> {
    fn go(&mut self, mut next: usize, mut at: usize, steps: &mut usize) {
        while next < self.form.bytes.len() {
            let Some(&byte) = self.text.get(at) else {
                self.fit.is_open = true;
                return;
            };
            if *steps > 0 && (begins_escape(byte) || (next > 0 && byte.is_ascii_whitespace())) {
                *steps -= 1;
                self.branch(next, at);
            }
            if !self.form.has(next, &[byte]) {
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

    /// Adds the positions after each escape and line break that may be read here.
    fn branch(&mut self, next: usize, at: usize) {
        let form = self.form;
        let (ways, is_open) = (&mut self.ways, &mut self.fit.is_open);
        let mut each = |escape: Escape| match escape.parts() {
            Some((bytes, end)) if form.has(next, bytes) => ways.push((next + bytes.len(), end)),
            Some(_) => {}
            None => *is_open = true,
        };
        if !self.form.in_all_escapes {
            return json_escapes(self.text, at, &mut each);
        }
        escapes(self.text, at, &mut each);
        if next > 0 {
            match line_break(self.text, at) {
                LineBreak::Ends(end) => self.ways.push((next, end)),
                LineBreak::Cut => self.fit.is_open = true,
                LineBreak::None => {}
            }
        }
    }
}

/// A line break that was inserted into a long value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineBreak {
    /// Where the value continues.
    Ends(usize),
    /// The text ends before the value continues.
    Cut,
    None,
}

/// Reads a line break, with the surrounding whitespace and the continuation sign before it: `=` in
/// mail, a backslash in programs.
pub(crate) fn line_break(text: &[u8], start: usize) -> LineBreak {
    let (mut at, mut breaks) = (start, false);
    while at - start <= LONGEST_BREAK {
        let Some(&byte) = text.get(at) else { return LineBreak::Cut };
        if byte.is_ascii_whitespace() {
            (breaks, at) = (breaks || matches!(byte, b'\r' | b'\n'), at + 1);
            continue;
        }
        let mut blank = None;
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
                return LineBreak::Cut;
            }
        }
        let Some((byte, end)) = blank else {
            return if breaks { LineBreak::Ends(at) } else { LineBreak::None };
        };
        breaks |= matches!(byte, b'\r' | b'\n');
        at = end;
    }
    LineBreak::None
}
