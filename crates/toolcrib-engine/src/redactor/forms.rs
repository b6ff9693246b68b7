//! What a secret looks like where it may stand.

use std::fmt::Write as _;

use super::SHORTEST_SECRET;

/// How a writer of JSON puts text between quotes, beside what every one has to escape.
struct Writer {
    /// The characters of ASCII that it writes by their numbers.
    numbered: &'static str,
    /// Whether it writes all others beyond ASCII so.
    only_ascii: bool,
    /// Whether these numbers have capital letters.
    capital: bool,
    /// Whether it puts a backslash before a slash.
    slashes: bool,
}

const PLAIN: Writer = Writer { numbered: "", only_ascii: false, capital: false, slashes: false };

/// The defaults of what programs and servers are mostly written in.
const WRITERS: [Writer; 7] = [
    // serde_json, JavaScript, Jackson.
    PLAIN,
    // Python.
    Writer { only_ascii: true, ..PLAIN },
    // PHP, and with `JSON_UNESCAPED_UNICODE`.
    Writer { only_ascii: true, slashes: true, ..PLAIN },
    Writer { slashes: true, ..PLAIN },
    // Go and Rails.
    Writer { numbered: "<>&\u{2028}\u{2029}", ..PLAIN },
    // Gson.
    Writer { numbered: "<>&='\u{2028}\u{2029}", ..PLAIN },
    // .NET.
    Writer { numbered: "<>&'\"+`\u{7f}", only_ascii: true, capital: true, ..PLAIN },
];

/// A secret as it stands in text, without white space around it, and line by line where it has
/// several; each of these as it stands inside JSON too.
pub(super) fn forms(secret: &str) -> Vec<String> {
    let trimmed = secret.trim();
    let lines = trimmed.lines().map(str::trim);
    let lines = lines.filter(|line| line.chars().count() >= SHORTEST_SECRET);
    let mut forms = vec![trimmed.to_owned()];
    forms.extend(lines.map(str::to_owned));
    let in_json = |form: &String| WRITERS.map(|writer| writer.write(form));
    let written: Vec<_> = forms.iter().flat_map(in_json).collect();
    forms.extend(written);
    forms.sort_unstable();
    forms.dedup();
    forms
}

impl Writer {
    /// A text as it stands between the quotes.
    fn write(&self, text: &str) -> String {
        let mut json = String::with_capacity(text.len());
        for char in text.chars() {
            match char {
                char if self.numbered.contains(char) => self.number(char, &mut json),
                char if self.only_ascii && !char.is_ascii() => self.number(char, &mut json),
                '/' if self.slashes => json.push_str("\\/"),
                '"' | '\\' => json.extend(['\\', char]),
                '\n' => json.push_str("\\n"),
                '\r' => json.push_str("\\r"),
                '\t' => json.push_str("\\t"),
                '\u{8}' => json.push_str("\\b"),
                '\u{c}' => json.push_str("\\f"),
                '\0'..' ' => self.number(char, &mut json),
                char => json.push(char),
            }
        }
        json
    }

    fn number(&self, char: char, json: &mut String) {
        for unit in char.encode_utf16(&mut [0; 2]) {
            // Writing into a string does not fail.
            let _ = match self.capital {
                true => write!(json, "\\u{unit:04X}"),
                false => write!(json, "\\u{unit:04x}"),
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_letters_and_digits_has_one_form() {
        assert_eq!(forms(" 0123abcDEF_-.~ \n"), ["0123abcDEF_-.~"]);
    }

    #[test]
    fn every_usual_writer_of_json_is_known() {
        let known = forms("wJalr/bPx&9=+ä😀");
        for written in [
            r"wJalr/bPx&9=+ä😀",
            r"wJalr/bPx&9=+\u00e4\ud83d\ude00",
            r"wJalr\/bPx&9=+\u00e4\ud83d\ude00",
            r"wJalr\/bPx&9=+ä😀",
            r"wJalr/bPx\u00269=+ä😀",
            r"wJalr/bPx\u00269\u003d+ä😀",
            r"wJalr/bPx\u00269=\u002B\u00E4\uD83D\uDE00",
        ] {
            assert!(known.iter().any(|form| form == written), "{written} in {known:?}");
        }
    }

    proptest! {
        #[test]
        fn what_a_writer_writes_is_that_text_in_json(text in "(\\PC|[\\x00-\\x1f\"/\\\\]){0,20}") {
            for writer in WRITERS {
                let json = format!("\"{}\"", writer.write(&text));
                prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text.as_str());
            }
        }

        #[test]
        fn the_plain_writer_writes_what_this_process_does(text in "(\\PC|[\\x00-\\x1f\"/\\\\]){0,20}") {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(format!("\"{}\"", PLAIN.write(&text)), json);
        }
    }
}
