//! The search for all forms in one pass.
//!
//! A byte of the text costs one step: the classes of the last three bytes are an index into a table
//! that says whether some form may begin with them. An escape or a line break is read only if the
//! table says that some form may contain it within its first three bytes. The forms themselves are
//! compared with the text only if all three match.

use std::ops::Range;

use super::{
    escapes::{
        Escape, Ways, begins_escape, escapes, last_backslash, named, only_escape, usual_escape,
    },
    forms::Form,
    walk::{LONGEST_BREAK, LineBreak, fit, line_break},
};

/// The result of searching a text.
#[derive(Debug, Default)]
pub(crate) struct ScanResult {
    /// Each match, with the index of its secret.
    pub(crate) places: Vec<(Range<usize>, usize)>,
    /// Start of a possible incomplete secret at the end.
    pub(crate) open_from: Option<usize>,
    /// Start of the part that was not searched because it takes too much work. It counts as a
    /// secret.
    pub(crate) unsearched_from: Option<usize>,
}

impl ScanResult {
    /// The matches in a text of `bytes` bytes, in order; overlapping ones are merged.
    pub(crate) fn ranges(&self, bytes: usize) -> Vec<Range<usize>> {
        let unsearched = self.unsearched_from.map(|from| from..bytes);
        let known = self.places.iter().map(|(place, _)| place.clone());
        let mut places: Vec<_> = known.chain(unsearched).collect();
        places.sort_unstable_by_key(|place| place.start);
        let mut merged: Vec<Range<usize>> = Vec::with_capacity(places.len());
        for place in places {
            match merged.last_mut() {
                Some(last) if place.start < last.end => last.end = last.end.max(place.end),
                _ => merged.push(place),
            }
        }
        merged
    }
}

/// Finds the forms that it was built from.
pub(crate) struct Search {
    /// The classes of the first three bytes of each form with its position, in order.
    starts: Vec<(usize, usize)>,
    classes: [u8; 256],
    table: [u8; TABLE],
    /// Whether some form has a backslash among its first three bytes.
    has_backslash: bool,
    has_beyond_ascii: bool,
    /// For each byte, its possible places in an escape that matters.
    escapes: [u8; 256],
}

/// The number of bytes of the text for which the search may do one more unit of work.
const BYTES_OF_UNIT: usize = 4;

/// Maximum work of one search, besides that for its length. One unit is one form compared with one
/// position, or one escape read: tens to hundreds of nanoseconds.
const MOST_WORK: usize = 1024 * 1024;

/// Bytes of a line break per unit of work.
const BREAK_UNIT: usize = 4;

/// Classes are five bits, and the table is indexed by three of them.
const TABLE: usize = 1 << (3 * BITS);
const BITS: usize = 5;
const CLASSES: usize = 1 << BITS;
/// The class of bytes that no form has among its first three.
const OTHER: u8 = 0;
/// The class of `%`, `=` and `&`, which may begin an escape.
const SIGN: u8 = 29;
/// The class of a backslash.
const BACKSLASH: u8 = 30;
/// The class of bytes that break a line.
const BREAK: u8 = 31;

/// In the table: some form begins with these three classes.
const FORM: u8 = 1;
/// In the table: the second byte may begin an escape that matters, or a line break.
const SPECIAL: u8 = 2;
/// In the table, if only zeros follow: some form begins with the classes before them.
const PREFIX: u8 = 4;

/// After a backslash, the byte may begin an escape that matters.
const ESCAPED: u8 = 1;
/// The same for the byte after an ampersand.
const ENTITY: u8 = 2;
/// The same for the byte after a percent or equals sign.
const HIGH_DIGIT: u8 = 4;
/// After a line break, the byte may be one of the first three of a form.
const BROKEN: u8 = 8;

impl Search {
    pub(crate) fn of(forms: &[Form]) -> Self {
        let mut this = Self {
            starts: Vec::with_capacity(forms.len()),
            classes: [OTHER; 256],
            table: [0; TABLE],
            has_backslash: false,
            has_beyond_ascii: false,
            escapes: [0; 256],
        };
        let mut used = [false; 256];
        for byte in forms.iter().flat_map(|form| form.bytes.iter().take(3)) {
            this.has_backslash |= *byte == b'\\';
            this.has_beyond_ascii |= !byte.is_ascii();
            for byte in [byte.to_ascii_lowercase(), byte.to_ascii_uppercase()] {
                used.get_mut(usize::from(byte)).into_iter().for_each(|used| *used = true);
            }
        }
        for (byte, (class, used)) in (0..=u8::MAX).zip(this.classes.iter_mut().zip(used)) {
            *class = class_of(byte, used);
        }
        for byte in 0..=u8::MAX {
            let marks = marks_of(byte, |byte| used.get(usize::from(byte)).is_none_or(|used| *used));
            this.escapes.get_mut(usize::from(byte)).into_iter().for_each(|place| *place = marks);
            for (special, mark) in
                [(SIGN, ENTITY | HIGH_DIGIT), (BACKSLASH, ESCAPED), (BREAK, BROKEN)]
            {
                for before in (0..CLASSES).filter(|_| marks & mark != 0) {
                    let index = before << BITS | usize::from(special);
                    this.mark(index << BITS | this.class(byte), SPECIAL);
                }
            }
        }
        for (position, form) in forms.iter().enumerate() {
            let starts = this.indexes(form);
            this.starts.extend(starts.into_iter().map(|index| (index, position)));
        }
        this.starts.sort_unstable();
        for at in 0..this.starts.len() {
            let Some((index, _)) = this.starts.get(at).copied() else { break };
            this.mark(index, FORM);
            this.mark(index >> BITS << BITS, PREFIX);
            this.mark(index >> (2 * BITS) << (2 * BITS), PREFIX);
        }
        this
    }

    fn mark(&mut self, index: usize, mark: u8) {
        self.table.get_mut(index).into_iter().for_each(|marks| *marks |= mark);
    }

    /// The classes that a form may begin with: any class may follow a shorter form.
    fn indexes(&self, form: &Form) -> Vec<usize> {
        (0..3).fold(vec![0], |indexes, at| {
            let classes = match form.bytes.get(at) {
                Some(byte) => self.class(*byte)..self.class(*byte) + 1,
                None => 0..CLASSES,
            };
            let longer = |index: usize| classes.clone().map(move |class| index << BITS | class);
            indexes.into_iter().flat_map(longer).collect()
        })
    }

    /// The index of the last three bytes, advanced by one byte.
    #[inline]
    fn next(&self, index: usize, byte: u8) -> usize {
        (index << BITS | self.class(byte)) & (TABLE - 1)
    }

    #[inline]
    fn class(&self, byte: u8) -> usize {
        self.classes.get(usize::from(byte)).copied().map_or(0, usize::from)
    }

    #[inline]
    fn has(&self, index: usize, mark: u8) -> bool {
        self.table.get(index).is_none_or(|marks| marks & mark != 0)
    }

    /// Whether some form begins with `count` classes, which are at the end of the index.
    #[inline]
    fn may_begin(&self, index: usize, count: usize) -> bool {
        match count {
            1 => self.has((index << (2 * BITS)) & (TABLE - 1), PREFIX),
            2 => self.has((index << BITS) & (TABLE - 1), PREFIX),
            _ => self.has(index, FORM),
        }
    }

    /// Whether a byte that an escape at this position decodes to may be one of the first three of a
    /// form, after the two bytes before it or without them.
    #[inline]
    fn may_contain(&self, text: &[u8], at: usize, byte: u8) -> bool {
        if self.class(byte) == usize::from(OTHER) {
            return false;
        }
        let index = self.next(self.before(text, at), byte);
        self.may_begin(index, 3) || self.may_begin(index, 2) || self.may_begin(index, 1)
    }

    /// The index of the two bytes before a position.
    fn before(&self, text: &[u8], at: usize) -> usize {
        let class = |back: usize| {
            let byte = at.checked_sub(back).and_then(|at| text.get(at));
            byte.map_or(0, |byte| self.class(*byte))
        };
        class(2) << BITS | class(1)
    }

    pub(crate) fn scan(&self, forms: &[Form], text: &[u8], found: &mut ScanResult) {
        let left = MOST_WORK + text.len() / BYTES_OF_UNIT;
        let mut scan = Scan { search: self, forms, text, found, skip_to: 0, white_end: None, left };
        let mut index = 0;
        for (at, byte) in text.iter().enumerate() {
            index = self.next(index, *byte);
            if self.has(index, FORM | SPECIAL) {
                scan.look(at, index);
                if scan.left == 0 {
                    // A form may begin two bytes before the line break at this position.
                    scan.found.unsearched_from = Some(at.saturating_sub(LONGEST_BREAK + 2));
                    return;
                }
            }
        }
        if let Some(last) = text.len().checked_sub(1) {
            scan.look_at_special(last);
        }
        // A possible beginning at the end.
        scan.at_break(text.len(), text.len());
    }

    /// Whether an escape or a line break that begins with these two bytes may matter.
    #[inline]
    fn may_be_special(&self, first: u8, next: Option<&u8>) -> bool {
        let mark = match first {
            b'\\' => ESCAPED,
            b'&' => ENTITY,
            b'%' | b'=' => HIGH_DIGIT,
            _ => BROKEN,
        };
        next.is_none_or(|next| self.marked(*next, mark))
    }

    /// Whether an escape may matter after the two bytes before it: less precise than reading it,
    /// and cheaper.
    #[inline]
    fn may_matter(&self, text: &[u8], at: usize, from: usize) -> bool {
        let Some(first) = text.get(at) else { return true };
        if !self.may_be_special(*first, text.get(at + 1)) {
            return false;
        }
        let Some((number, end)) = usual_escape(text, at) else { return true };
        match u8::try_from(number) {
            Ok(sign) if begins_escape(sign) => {
                self.may_contain(text, from, sign) || self.may_be_special(sign, text.get(end))
            }
            Ok(byte) if byte.is_ascii() => {
                byte.is_ascii_whitespace() || self.may_contain(text, from, byte)
            }
            _ => self.has_beyond_ascii,
        }
    }

    #[inline]
    fn marked(&self, byte: u8, mark: u8) -> bool {
        self.escapes.get(usize::from(byte)).is_none_or(|marks| marks & mark != 0)
    }
}

/// The [marks](Search::marked) of a byte, for forms that have these bytes among their first three.
fn marks_of(next: u8, is_used: impl Fn(u8) -> bool) -> u8 {
    let matters = |byte: u8| is_used(byte) || byte.is_ascii_whitespace() || begins_escape(byte);
    let is_break = matches!(next, b'\n' | b'\r');
    let escaped = match only_escape(&[b'\\', next], 0) {
        Ways::One(escape) => match escape.parts() {
            Some((bytes, _)) => bytes.iter().any(|byte| matters(*byte)),
            None => true,
        },
        Ways::None => is_break,
        Ways::Many => true,
    };
    let entity = matches!(next, b'#' | b'%') || named(next).any(matters);
    let high = char::from(next).to_digit(16).and_then(|high| u8::try_from(high << 4).ok());
    let digit = high.map_or(is_break, |high| (high..=high | 15).any(matters));
    let marks =
        [(escaped, ESCAPED), (entity, ENTITY), (digit, HIGH_DIGIT), (matters(next), BROKEN)];
    marks.iter().filter(|(is_so, _)| *is_so).fold(0, |marks, (_, mark)| marks | mark)
}

/// The class of a byte that forms may have among their first three. A digit shares that of a rare
/// letter.
fn class_of(byte: u8, is_used: bool) -> u8 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' => byte & 31,
        b'0'..=b'9' => b"jqxzvkwypb".get(usize::from(byte - b'0')).map_or(1, |letter| letter & 31),
        b'\n' | b'\r' => BREAK,
        b'\\' => BACKSLASH,
        sign if begins_escape(sign) => SIGN,
        blank if blank.is_ascii_whitespace() => 28,
        b'#' => 27,
        other if is_used => 27 + other % 2,
        _ => OTHER,
    }
}

struct Scan<'a> {
    search: &'a Search,
    forms: &'a [Form],
    text: &'a [u8],
    found: &'a mut ScanResult,
    /// Escapes before this position have been read.
    skip_to: usize,
    /// The end of the last whitespace that may be part of a line break.
    white_end: Option<usize>,
    /// Remaining units of work.
    left: usize,
}

impl Scan<'_> {
    #[inline]
    fn spend(&mut self, units: usize) {
        self.left = self.left.saturating_sub(units);
    }

    /// Examines three bytes that may begin a form, or the second of which is special.
    #[inline(never)]
    fn look(&mut self, at: usize, index: usize) {
        if self.search.has(index, SPECIAL) {
            self.look_at_special(at.saturating_sub(1));
        }
        if self.search.has(index, FORM) {
            self.compare(at.saturating_sub(2), index, 3);
        }
    }

    fn look_at_special(&mut self, at: usize) {
        let Some(&byte) = self.text.get(at) else { return };
        match byte {
            b'\n' | b'\r' => self.at_break(at, at + 1),
            byte if begins_escape(byte)
                && at >= self.skip_to
                && self.search.may_matter(self.text, at, at) =>
            {
                self.at_escape(at);
            }
            _ => {}
        }
    }

    /// An escape within the first three bytes of a form.
    #[inline(never)]
    fn at_escape(&mut self, at: usize) {
        let (search, text) = (self.search, self.text);
        self.spend(1);
        // Each of several backslashes decodes to another one, or to the same as the last one.
        let (last, end) = match search.has_backslash {
            false => last_backslash(text, at),
            true => (at, at + 1),
        };
        self.skip_to = end;
        if last > at && !search.may_matter(text, last, at) {
            return;
        }
        let (mut matters, mut white) = (false, None);
        let mut each = |escape: Escape| match escape.parts() {
            Some((bytes, end)) => {
                let first = bytes.first().copied().unwrap_or_default();
                matters |= search.may_contain(text, at, first);
                if first.is_ascii_whitespace() {
                    white = Some(end);
                }
            }
            None => (matters, white) = (true, Some(text.len())),
        };
        let ways = only_escape(text, last);
        match ways {
            Ways::None => {}
            Ways::One(escape) => each(escape),
            Ways::Many => escapes(text, last, &mut each),
        }
        if matches!(text.get(last + 1), Some(b'\n' | b'\r')) {
            white = Some(last + 2);
        }
        white.into_iter().for_each(|end| self.at_break(at, end));
        if !matters {
            return;
        }
        self.skip_to = at + 1;
        match ways {
            Ways::One(escape) if last == at => self.follow_escape(at, escape),
            _ => escapes(text, at, &mut |escape| self.follow_escape(at, escape)),
        }
    }

    /// Follows a decoded escape as the third, second and first byte of a form.
    fn follow_escape(&mut self, at: usize, escape: Escape) {
        let before = self.search.before(self.text, at);
        for (count, index) in [(2, before), (1, before & (CLASSES - 1)), (0, 0)] {
            let Some(start) = at.checked_sub(count) else { continue };
            match escape.parts() {
                Some((bytes, end)) => self.follow_bytes(start, (index, count), bytes, end),
                None => self.compare(start, index, count),
            }
        }
    }

    /// Whitespace, which may be part of a line break within the first three bytes of a form.
    #[inline(never)]
    fn at_break(&mut self, at: usize, end: usize) {
        let (search, text) = (self.search, self.text);
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut from = at;
        while at - from < LONGEST_BREAK
            && let Some(last) = from.checked_sub(1)
            && text.get(last).is_some_and(is_blank)
        {
            from = last;
        }
        self.spend((at - from) / BREAK_UNIT);
        if self.white_end.replace(end) == Some(from) {
            // It was already read from its start.
            return;
        }
        let two = search.before(text, from);
        let one = two & (CLASSES - 1);
        if !search.may_begin(two, 2) && !search.may_begin(one, 1) {
            return;
        }
        // Usually the next byte is not whitespace and no escape, and begins nothing.
        let after = text.get(end..).unwrap_or_default();
        if let Some(byte) =
            after.iter().take(LONGEST_BREAK).find(|byte| !byte.is_ascii_whitespace())
            && !begins_escape(*byte)
            && !search.may_begin(search.next(two, *byte), 3)
            && !search.may_begin(search.next(one, *byte), 2)
        {
            return;
        }
        let line_break = line_break(text, from);
        self.spend(match line_break {
            LineBreak::Ends(end) => (end - from) / BREAK_UNIT,
            LineBreak::Cut | LineBreak::None => LONGEST_BREAK / BREAK_UNIT,
        });
        for (index, count) in [(two, 2), (one, 1)] {
            let Some(start) = from.checked_sub(count) else { continue };
            match line_break {
                LineBreak::Ends(end) => self.follow(start, (index, count), end),
                LineBreak::Cut => self.compare(start, index, count),
                LineBreak::None => {}
            }
        }
    }

    /// Follows each reading of the first three bytes from a start, of which `count` were read.
    fn follow(&mut self, start: usize, (index, count): (usize, usize), at: usize) {
        if !self.search.may_begin(index, count) {
            return;
        }
        self.spend(1);
        let text = self.text;
        let Some(&byte) = text.get(at).filter(|_| count < 3) else {
            return self.compare(start, index, count);
        };
        self.follow(start, (self.search.next(index, byte), count + 1), at + 1);
        if begins_escape(byte) {
            escapes(text, at, &mut |escape| match escape.parts() {
                Some((bytes, end)) => self.follow_bytes(start, (index, count), bytes, end),
                None => self.compare(start, index, count),
            });
        } else if !byte.is_ascii_whitespace() {
            return;
        }
        match line_break(text, at) {
            LineBreak::Ends(end) => self.follow(start, (index, count), end),
            LineBreak::Cut => self.compare(start, index, count),
            LineBreak::None => {}
        }
    }

    /// The same after an escape that decodes to these bytes.
    fn follow_bytes(
        &mut self,
        start: usize,
        (index, count): (usize, usize),
        bytes: &[u8],
        end: usize,
    ) {
        let bytes = bytes.iter().take(3 - count);
        let read = bytes.fold((index, count), |(index, count), byte| {
            (self.search.next(index, *byte), count + 1)
        });
        self.follow(start, read, end);
    }

    /// Compares the text with the forms that begin with these `count` classes.
    #[inline(never)]
    fn compare(&mut self, start: usize, index: usize, count: usize) {
        let shift = BITS * (3_usize.saturating_sub(count));
        let (low, high) = (index << shift, (index + 1) << shift);
        let starts = &self.search.starts;
        let first = starts.partition_point(|(index, _)| *index < low);
        let forms = starts.iter().skip(first).take_while(|(index, _)| *index < high);
        for (_, position) in forms {
            let Some(form) = self.forms.get(*position) else { continue };
            let fit = fit(form, self.text, start);
            self.spend(1 + fit.steps);
            if fit.is_open {
                let open = self.found.open_from.get_or_insert(start);
                *open = start.min(*open);
            }
            if let Some(end) = fit.end {
                self.found.places.push((start..end, form.secret));
            }
        }
    }
}
