//! Invisible and look-alike characters.

use std::{fmt, iter, sync::LazyLock};

use regex_syntax::hir::{Class, HirKind};

/// Whether a character is invisible to a reader but read by a model or interpreted by a terminal:
/// controls other than line feed and tab, zero-width and bidirectional characters, the tag block,
/// variation selectors.
pub fn is_invisible(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(
            c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
                | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        )
}

/// Whether a character, given its neighbors, is [invisible](is_invisible) and no part of an emoji,
/// such as a joiner between two or a selector after one. For names, hosts and approvals: unlike in
/// [texts](is_needed), joiners and marks of scripts count as hidden there.
pub fn is_hidden(last: Option<char>, c: char, next: Option<char>) -> bool {
    is_invisible(c) && !belongs_to_emoji(last, c, next)
}

/// The characters of a text, each with whether it [is hidden](is_hidden).
pub fn marked(text: &str) -> impl Iterator<Item = (char, bool)> {
    let mut last = None;
    let mut chars = text.chars().peekable();
    iter::from_fn(move || {
        let c = chars.next()?;
        let hidden = is_hidden(last, c, chars.peek().copied());
        last = Some(c);
        Some((c, hidden))
    })
}

/// Writes a name in one line: hidden characters are left out, and joiners and marks, which are not
/// hidden in a [text](is_needed), are escaped, since names that differ in them look alike.
pub(crate) fn write_name(name: &str, into: &mut impl fmt::Write) -> fmt::Result {
    let mut last = None;
    let mut chars = name.chars().peekable();
    while let Some(c) = chars.next() {
        let next = chars.peek().copied();
        if matches!(c, '\n' | '\t') {
            into.write_char(' ')?;
        } else if !is_hidden(last, c, next) {
            into.write_char(c)?;
        } else if is_needed(last, c, next) {
            write!(into, "{}", c.escape_unicode())?;
        }
        last = Some(c);
    }
    Ok(())
}

/// Whether readers of a text need an invisible character between these neighbors: a joiner at a
/// letter of a script that has them, a mark of the direction or a filler outside of other words, a
/// break between words of a script without spaces, a variation selector at a character that has
/// variants. A neighbor that is invisible too makes a run, which none needs.
pub fn is_needed(last: Option<char>, c: char, next: Option<char>) -> bool {
    if [last, next].into_iter().flatten().any(is_invisible) {
        return false;
    }
    let either = |class: &CharClass| [last, next].into_iter().flatten().any(|c| class.has(c));
    let follows = |class: &CharClass| last.is_some_and(|last| class.has(last));
    match c {
        '\u{200c}' | '\u{200d}' => either(&JOINING),
        '\u{200b}' => either(&WITHOUT_SPACES),
        '\u{34f}' => next.is_some_and(|next| MARKS.has(next)),
        // The fillers of Hangul, most of which take the place of a letter.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{115f}' | '\u{1160}' | '\u{3164}' | '\u{ffa0}' => {
            let is_of_word =
                |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !RIGHT_TO_LEFT.has(c));
            !(is_of_word(last) && is_of_word(next))
        }
        '\u{180b}'..='\u{180f}' => follows(&MONGOLIAN),
        '\u{fe00}'..='\u{fe0f}' => follows(&WITH_VARIANTS),
        '\u{e0100}'..='\u{e01ef}' => follows(&HAN),
        _ => false,
    }
}

/// Whether the run of invisible characters at the beginning of a text may be meant as it is in code, such
/// as in a string: one or two, not within a word. None that turns the direction, that carries data,
/// such as a tag, or on which a terminal acts.
pub(crate) fn is_run_of_code(last: Option<char>, text: &str) -> bool {
    /// More can be a text.
    const LONGEST: usize = 2;
    let is_meant = |c: char| match c {
        '\u{7}'..='\u{f}' | '\u{1b}' | '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}' => false,
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'
        | '\u{2029}'
        | '\u{2060}'..='\u{2064}'
        | '\u{fe0e}'
        | '\u{fe0f}'
        | '\u{feff}' => true,
        c => c.is_control(),
    };
    let is_of_run = |c: &char| is_invisible(*c) && *c != '\r';
    let run = text.chars().take(LONGEST + 1).take_while(is_of_run).count();
    let is_of_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    run <= LONGEST
        && text.chars().take(run).all(is_meant)
        && !(is_of_word(last) && is_of_word(text.chars().nth(run)))
}

/// The flag at the beginning of a text that consists of a black flag and the tags of a part of a
/// country. Of these flags, Unicode recommends three for general interchange; other tags could
/// spell any hidden word.
pub(crate) fn flag_of_tags(text: &str) -> Option<&str> {
    const BLACK_FLAG: char = '\u{1f3f4}';
    const ENGLAND: &str = "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";
    const SCOTLAND: &str = "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}";
    const WALES: &str = "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}";
    let tags = text.strip_prefix(BLACK_FLAG)?;
    let known = [ENGLAND, SCOTLAND, WALES].into_iter().find(|known| tags.starts_with(known))?;
    text.get(..BLACK_FLAG.len_utf8() + known.len())
}

fn belongs_to_emoji(last: Option<char>, c: char, next: Option<char>) -> bool {
    let is_keycap = |c: char| matches!(c, '0'..='9' | '#' | '*');
    let is_emoji = |c: char| EMOJI.has(c);
    match c {
        '\u{fe0e}' | '\u{fe0f}' => {
            last.is_some_and(is_emoji) || (next == Some('\u{20e3}') && last.is_some_and(is_keycap))
        }
        '\u{200d}' => {
            last.is_some_and(|c| is_emoji(c) || c == '\u{fe0f}') && next.is_some_and(is_emoji)
        }
        _ => false,
    }
}

/// The characters of a class in the syntax of regular expressions, in the tables that `regex` has.
struct CharClass(Vec<(char, char)>);

impl CharClass {
    /// Without characters if the class is not valid, so that all that it would admit is hidden.
    fn of(pattern: &str) -> Self {
        let parsed = regex_syntax::parse(pattern);
        let class = parsed.map(regex_syntax::hir::Hir::into_kind);
        let Ok(HirKind::Class(Class::Unicode(class))) = class else { return Self(Vec::new()) };
        Self(class.iter().map(|range| (range.start(), range.end())).collect())
    }

    fn has(&self, c: char) -> bool {
        let after = self.0.partition_point(|(start, _)| *start <= c);
        let range = after.checked_sub(1).and_then(|at| self.0.get(at));
        range.is_some_and(|(_, end)| c <= *end)
    }
}

static EMOJI: LazyLock<CharClass> =
    LazyLock::new(|| CharClass::of(r"[\p{Extended_Pictographic}\p{Emoji_Modifier}]"));

static MARKS: LazyLock<CharClass> = LazyLock::new(|| CharClass::of(r"[\p{M}]"));

static HAN: LazyLock<CharClass> = LazyLock::new(|| CharClass::of(r"[\p{Han}]"));

static MONGOLIAN: LazyLock<CharClass> = LazyLock::new(|| CharClass::of(r"[\p{Mongolian}&&\p{L}]"));

/// Letters and marks of scripts whose letters join, or form conjuncts.
static JOINING: LazyLock<CharClass> = LazyLock::new(|| {
    CharClass::of(
        r"[[\p{scx:Arabic}\p{scx:Syriac}\p{scx:Mandaic}\p{scx:Nko}\p{scx:Adlam}\p{scx:Hanifi_Rohingya}
            \p{scx:Manichaean}\p{scx:Sogdian}\p{scx:Mongolian}\p{scx:Phags_Pa}\p{scx:Devanagari}
            \p{scx:Bengali}\p{scx:Gurmukhi}\p{scx:Gujarati}\p{scx:Oriya}\p{scx:Tamil}\p{scx:Telugu}
            \p{scx:Kannada}\p{scx:Malayalam}\p{scx:Sinhala}\p{scx:Grantha}\p{scx:Newa}\p{scx:Tirhuta}
            \p{scx:Modi}\p{scx:Kaithi}\p{scx:Sharada}\p{scx:Chakma}\p{scx:Brahmi}\p{scx:Meetei_Mayek}
            \p{scx:Khmer}\p{scx:Myanmar}\p{scx:Tibetan}\p{scx:Tai_Tham}\p{scx:Balinese}\p{scx:Javanese}
            \p{scx:Sundanese}\p{scx:Batak}\p{scx:Buginese}\p{scx:Egyptian_Hieroglyphs}]&&[\p{L}\p{M}]]"
            .replace(char::is_whitespace, "")
            .as_str(),
    )
});

/// Letters and marks of scripts that have no spaces between words.
static WITHOUT_SPACES: LazyLock<CharClass> = LazyLock::new(|| {
    CharClass::of(
        r"[[\p{scx:Khmer}\p{scx:Thai}\p{scx:Lao}\p{scx:Myanmar}\p{scx:Tibetan}\p{scx:Tai_Le}
            \p{scx:New_Tai_Lue}\p{scx:Tai_Tham}\p{scx:Tai_Viet}\p{scx:Javanese}\p{scx:Balinese}]
            &&[\p{L}\p{M}]]"
            .replace(char::is_whitespace, "")
            .as_str(),
    )
});

static RIGHT_TO_LEFT: LazyLock<CharClass> = LazyLock::new(|| {
    CharClass::of(
        r"[\p{scx:Arabic}\p{Hebrew}\p{scx:Syriac}\p{scx:Thaana}\p{scx:Nko}\p{Samaritan}
            \p{scx:Mandaic}\p{scx:Adlam}\p{scx:Hanifi_Rohingya}\p{Mende_Kikakui}]"
            .replace(char::is_whitespace, "")
            .as_str(),
    )
});

/// Characters with standardized variants, besides emoji.
static WITH_VARIANTS: LazyLock<CharClass> = LazyLock::new(|| {
    CharClass::of(
        r"[\p{Han}[\p{Sm}--[\x00-\x7f\x{ff00}-\x{ffef}]]\p{Phags_Pa}\p{Manichaean}\p{Egyptian_Hieroglyphs}\x{3001}\x{3002}\x{ff01}
            \x{ff0c}\x{ff0e}\x{ff1a}\x{ff1b}\x{ff1f}[\p{Myanmar}&&\p{L}]]"
            .replace(char::is_whitespace, "")
            .as_str(),
    )
});

/// The ASCII lower-case letter that a character of another script looks like; otherwise the
/// character itself.
pub fn plain_letter(c: char) -> char {
    match c {
        _ if c.is_ascii() => c,
        // Full-width forms.
        '\u{ff01}'..='\u{ff5e}' => {
            u32::from(c).checked_sub(0xfee0).and_then(char::from_u32).unwrap_or(c)
        }
        // Mathematical and enclosed letters.
        '\u{1d400}'..='\u{1d6a3}' => letter((u32::from(c) - 0x1d400) % 26),
        '\u{24b6}'..='\u{24e9}' => letter((u32::from(c) - 0x24b6) % 26),
        'а' | 'А' | 'α' | 'Α' => 'a',
        'В' | 'в' | 'Β' => 'b',
        'с' | 'С' | 'ϲ' => 'c',
        'ԁ' => 'd',
        'е' | 'Е' | 'Ε' => 'e',
        'һ' | 'Н' | 'н' | 'Η' => 'h',
        'і' | 'І' | 'ι' | 'Ι' | 'ı' => 'i',
        'ј' | 'Ј' => 'j',
        'К' | 'к' | '\u{212a}' | 'κ' | 'Κ' => 'k',
        'М' | 'м' | 'Μ' => 'm',
        'Ν' | 'ո' => 'n',
        'о' | 'О' | 'ο' | 'Ο' => 'o',
        'р' | 'Р' | 'ρ' | 'Ρ' => 'p',
        'ԛ' => 'q',
        'ѕ' | 'Ѕ' | 'ſ' => 's',
        'Т' | 'т' | 'Τ' | 'τ' => 't',
        'υ' | 'ս' => 'u',
        'ν' => 'v',
        'ԝ' => 'w',
        'х' | 'Х' | 'Χ' => 'x',
        'у' | 'У' | 'Υ' => 'y',
        'Ζ' => 'z',
        _ => c,
    }
}

fn letter(position: u32) -> char {
    u32::from('a').checked_add(position).and_then(char::from_u32).unwrap_or('a')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visible(text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let at = |position: Option<usize>| position.and_then(|p| chars.get(p).copied());
        let seen = chars.iter().enumerate().filter(|(position, c)| {
            !is_hidden(at(position.checked_sub(1)), **c, at(Some(position + 1)))
        });
        seen.map(|(_, c)| *c).collect()
    }

    #[test]
    fn what_nobody_sees_goes_and_emoji_stay() {
        for text in ["plain\n\ttext", "👩‍👩‍👧", "❤️‍🔥", "1️⃣", "naïve 中文"]
        {
            assert_eq!(visible(text), text);
        }
        assert_eq!(visible("a\u{202e}b\u{e0041}c\u{200d}d\u{fe0f}\u{7}"), "abcd");
        assert_eq!(visible("❤\u{fe0f}\u{fe0f}\u{fe01}"), "❤\u{fe0f}");
    }

    #[test]
    fn each_class_of_characters_is_valid() {
        for (class, member) in [
            (&EMOJI, '👩'),
            (&MARKS, '\u{301}'),
            (&HAN, '葛'),
            (&MONGOLIAN, 'ᠠ'),
            (&JOINING, 'ی'),
            (&JOINING, '\u{94d}'),
            (&JOINING, '\u{650}'),
            (&WITHOUT_SPACES, 'ក'),
            (&RIGHT_TO_LEFT, 'ש'),
            (&WITH_VARIANTS, '∩'),
        ] {
            assert!(class.has(member), "{member:?}");
            assert!(!class.has('a') && !class.has('5') && !class.has(' '));
        }
    }
}
