//! The search for all forms in one pass.
//!
//! A byte of the text costs one step: the classes of the last three bytes are an index into a table that
//! says whether some form may begin with them. Only there, and at what may be an escape or a line
//! break, the forms themselves are held against the text.

use super::{
    escapes::{begins_escape, escapes},
    forms::Form,
    known::Found,
    walk::{Break, fit, line_break},
};

/// Finds the forms that it was made of.
pub(super) struct Search {
    /// The forms that begin with each byte.
    by_first: Vec<Vec<usize>>,
    classes: [u8; 256],
    beginnings: [bool; TABLE],
    /// Which bytes are among the first three of some form.
    used: [bool; 256],
}

/// Classes are five bits, and the table is indexed by three of them.
const TABLE: usize = 1 << 15;
/// An index that nothing is known of: it counts as marked.
const UNKNOWN: usize = usize::MAX;
/// The class of what begins no form.
const OTHER: u8 = 0;
/// The class of what may begin an escape.
const ESCAPE: u8 = 30;
/// The class of what breaks a line.
const BREAK: u8 = 31;

impl Search {
    pub(super) fn of(forms: &[Form]) -> Self {
        let mut this = Self {
            by_first: vec![Vec::new(); 256],
            classes: [OTHER; 256],
            beginnings: [false; TABLE],
            used: [false; 256],
        };
        for (position, form) in forms.iter().enumerate() {
            for byte in form.bytes.iter().take(3) {
                if let (Some(class), Some(used)) = (
                    this.classes.get_mut(usize::from(*byte)),
                    this.used.get_mut(usize::from(*byte)),
                ) {
                    (*class, *used) = (1 + byte % 29, true);
                }
            }
            let first = form.bytes.first().map_or(0, |byte| usize::from(*byte));
            this.by_first.get_mut(first).into_iter().for_each(|of_first| of_first.push(position));
        }
        for byte in 0..=u8::MAX {
            let special = match byte {
                b'\n' | b'\r' => BREAK,
                byte if begins_escape(byte) => ESCAPE,
                _ => continue,
            };
            if let Some(class) = this.classes.get_mut(usize::from(byte)) {
                *class = special;
            }
        }
        for form in forms {
            let index = form.bytes.iter().take(3).fold(0, |index, byte| this.next(index, *byte));
            this.mark(index);
        }
        for before in 0..TABLE >> 5 {
            this.mark(before << 5 | usize::from(ESCAPE));
            this.mark(before << 5 | usize::from(BREAK));
        }
        this
    }

    fn mark(&mut self, index: usize) {
        self.beginnings.get_mut(index).into_iter().for_each(|marked| *marked = true);
    }

    /// The index of the last three bytes, one byte further.
    #[inline]
    fn next(&self, index: usize, byte: u8) -> usize {
        (index << 5 | self.class(byte)) & (TABLE - 1)
    }

    /// The same where the next byte may stand for something else, unless it was decoded: behind an
    /// escape, a break or the text's end everything fits.
    fn next_of(&self, index: usize, byte: Option<(u8, bool)>) -> usize {
        match byte {
            Some((byte, decoded))
                if index != UNKNOWN
                    && (decoded || !(begins_escape(byte) || byte.is_ascii_whitespace())) =>
            {
                self.next(index, byte)
            }
            _ => UNKNOWN,
        }
    }

    #[inline]
    fn class(&self, byte: u8) -> usize {
        self.classes.get(usize::from(byte)).copied().map_or(0, usize::from)
    }

    #[inline]
    fn is_marked(&self, index: usize) -> bool {
        self.beginnings.get(index).copied().unwrap_or(true)
    }

    /// The index of the two bytes before a position.
    fn before(&self, text: &[u8], at: usize) -> usize {
        let before = text.get(at.saturating_sub(2)..at).unwrap_or_default();
        before.iter().fold(0, |index, byte| self.next(index, *byte))
    }

    fn is_used(&self, byte: u8) -> bool {
        self.used.get(usize::from(byte)).copied().unwrap_or(true)
    }

    pub(super) fn scan(&self, forms: &[Form], text: &[u8], found: &mut Found) {
        let mut scan = Scan { search: self, forms, text, found };
        let (mut index, mut from) = (0, 0);
        while let Some(at) = self.next_marked(text, from, &mut index) {
            scan.look(at, index);
            from = at + 1;
        }
        // Too little is left for the table.
        for at in text.len().saturating_sub(2)..text.len() {
            scan.begins(at);
        }
    }

    /// The next byte at which the table says that some form may begin. Its index goes along.
    #[inline]
    fn next_marked(&self, text: &[u8], from: usize, index: &mut usize) -> Option<usize> {
        let mut last = *index;
        let distance = text.get(from..)?.iter().position(|byte| {
            last = self.next(last, *byte);
            self.is_marked(last)
        })?;
        *index = last;
        Some(from + distance)
    }

    /// Whether what may be an escape can be one within the first three bytes of a form; cheaper than
    /// to read it.
    fn may_matter(&self, text: &[u8], at: usize) -> bool {
        let Some((sign, next)) = text.get(at).zip(text.get(at + 1)) else { return true };
        match (sign, next) {
            (b'\\', b'u' | b'U' | b'x' | b'n' | b'r' | b'b' | b'f' | b'\\' | b'\n' | b'\r') => true,
            (b'\\', b't') => self.is_used(b'\t'),
            (b'\\', next) => self.is_used(*next),
            (b'%' | b'=', b'\n' | b'\r') => true,
            (b'%' | b'=', high) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let Some(low) = text.get(at + 2) else { return true };
                let byte = digit(high).zip(digit(low)).map(|(high, low)| high << 4 | low);
                byte.and_then(|byte| u8::try_from(byte).ok()).is_some_and(|byte| {
                    self.is_used(byte) || begins_escape(byte) || byte.is_ascii_whitespace()
                })
            }
            _ => true,
        }
    }
}

struct Scan<'a> {
    search: &'a Search,
    forms: &'a [Form],
    text: &'a [u8],
    found: &'a mut Found,
}

impl Scan<'_> {
    /// Looks at a position whose last three bytes may begin a form.
    fn look(&mut self, at: usize, index: usize) {
        match u8::try_from(index & 31) {
            Ok(ESCAPE) => self.at_escape(at),
            Ok(BREAK) => self.at_break(at),
            _ => self.begins(at.saturating_sub(2)),
        }
    }

    /// An escape within the first three bytes of a form: the table is asked as if what it stands for
    /// were in its place.
    fn at_escape(&mut self, at: usize) {
        let (search, text) = (self.search, self.text);
        // The sign may be the third byte of a form itself.
        let mut fits = [text.get(at).is_some_and(|sign| search.is_used(*sign)), false, false];
        if !fits.contains(&true) && !search.may_matter(text, at) {
            return;
        }
        let (mut is_cut, mut breaks) = (false, false);
        escapes(text, at, &mut |escape| {
            let Some((bytes, end)) = escape.parts() else {
                is_cut = true;
                return;
            };
            breaks |= matches!(bytes, [b'\n' | b'\r']);
            if !bytes.first().is_some_and(|byte| search.is_used(*byte)) {
                return;
            }
            let mut index = search.before(text, at);
            let decoded = bytes.iter().map(|byte| (*byte, true));
            let rest = text.get(end..).unwrap_or_default();
            let mut following = decoded.chain(rest.iter().map(|byte| (*byte, false)));
            for fits in &mut fits {
                index = search.next_of(index, following.next());
                *fits |= search.is_marked(index);
            }
        });
        for (distance, fits) in [2, 1, 0].into_iter().zip(fits) {
            if fits || is_cut {
                at.checked_sub(distance).into_iter().for_each(|start| self.begins(start));
            }
        }
        if breaks || is_cut || matches!(text.get(at + 1), Some(b'\n' | b'\r')) {
            self.at_break(at);
        }
    }

    /// A line break within the first three bytes of a form: the table is asked as if it were not there.
    fn at_break(&mut self, at: usize) {
        let (search, text) = (self.search, self.text);
        let is_blank = |byte: &&u8| matches!(byte, b' ' | b'\t');
        let before = text.get(..at).unwrap_or_default();
        let from = at - before.iter().rev().take_while(is_blank).count();
        let before = text.get(..from).unwrap_or_default();
        if [&b"\n"[..], b"\r", b"\\n", b"\\r"].iter().any(|ends| before.ends_with(ends)) {
            // It has been looked at from where it begins.
            return;
        }
        let end = match line_break(text, from) {
            Break::Ends(end) => end,
            Break::Cut => text.len(),
            Break::None => return,
        };
        let mut index = search.before(text, from);
        for distance in [2, 1] {
            let byte = text.get(end + 2 - distance).map(|byte| (*byte, false));
            index = search.next_of(index, byte);
            if search.is_marked(index) {
                from.checked_sub(distance).into_iter().for_each(|start| self.begins(start));
            }
        }
    }

    /// Holds the forms that may begin at a position against the text there.
    fn begins(&mut self, at: usize) {
        let Some(&byte) = self.text.get(at) else { return };
        self.hold(byte, at);
        let mut firsts = Vec::new();
        escapes(self.text, at, &mut |escape| match escape.parts() {
            Some(([first, ..], _)) if *first != byte => firsts.push(*first),
            Some(_) => {}
            None => firsts.extend(0..=u8::MAX),
        });
        firsts.sort_unstable();
        firsts.dedup();
        firsts.into_iter().for_each(|first| self.hold(first, at));
    }

    fn hold(&mut self, first: u8, at: usize) {
        let forms = self.search.by_first.get(usize::from(first));
        let second = self.text.get(at + 1).filter(|byte| {
            // What cannot be the sign of an escape or a break is the form's second byte, or none.
            self.text.get(at) == Some(&first)
                && !begins_escape(**byte)
                && !begins_escape(first)
                && !byte.is_ascii_whitespace()
        });
        for position in forms.into_iter().flatten() {
            let Some(form) = self.forms.get(*position) else { continue };
            if second.is_some_and(|second| form.bytes.get(1) != Some(second)) {
                continue;
            }
            let fit = fit(form, self.text, at);
            if fit.is_open {
                let open = self.found.open_from.get_or_insert(at);
                *open = at.min(*open);
            }
            if let Some(end) = fit.end {
                self.found.places.push((at..end, form.secret));
            }
        }
    }
}
