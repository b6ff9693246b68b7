//! Light English stemming: the forms of one word become one term.
//!
//! After the first steps of M. F. Porter, "An algorithm for suffix stripping" (1980), without its
//! later steps, which merge words of different meanings (`general`, `generate`).

/// Endings of plurals, verbs and their nouns; the first that fits is replaced. With the number of
/// letters that must remain before it.
const ENDINGS: [(&str, &str, usize); 14] = [
    ("ization", "ize", 2),
    ("ational", "ate", 3),
    ("fulness", "ful", 2),
    ("ation", "ate", 3),
    ("ition", "it", 3),
    ("ction", "ct", 1),
    ("ement", "e", 3),
    ("ments", "", 4),
    ("ment", "", 4),
    ("ying", "y", 2),
    ("ing", "", 3),
    ("ied", "y", 2),
    ("ed", "", 3),
    ("ly", "", 4),
];

/// The term of a word in lower case.
pub(crate) fn stem(mut word: String) -> String {
    // The rules are for English.
    if !word.is_ascii() || word.len() <= 3 {
        return word;
    }
    make_singular(&mut word);
    for (ending, replacement, left) in ENDINGS {
        let Some(rest) = word.strip_suffix(ending).filter(|rest| rest.len() >= left) else {
            continue;
        };
        let is_verb = matches!(ending, "ing" | "ed");
        if is_verb && !rest.bytes().any(is_vowel) {
            break;
        }
        let length = if is_verb { single_end(rest.as_bytes()) } else { rest.len() };
        word.truncate(length);
        word.push_str(replacement);
        break;
    }
    if word.len() > 3 {
        if word.ends_with('e') {
            word.truncate(word.len() - 1);
        } else if word.ends_with('y') {
            word.truncate(word.len() - 1);
            word.push('i');
        }
    }
    word
}

fn make_singular(word: &mut String) {
    let ends = |endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    let gone = if ends(&["ies"]) && word.len() >= 5 {
        3
    } else if ends(&["sses", "xes", "ches", "shes", "zes"]) {
        2
    } else {
        usize::from(ends(&["s"]) && !ends(&["ss", "us", "is"]))
    };
    word.truncate(word.len() - gone);
    if gone == 3 {
        word.push('y');
    }
}

/// The length of `stopp` without its repeated end. `call`, `miss` and `buzz` keep both letters.
fn single_end(rest: &[u8]) -> usize {
    match rest {
        [.., before, last]
            if before == last && !is_vowel(*last) && !matches!(last, b'l' | b's' | b'z') =>
        {
            rest.len() - 1
        }
        _ => rest.len(),
    }
}

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u' | b'y')
}

#[cfg(test)]
mod tests {
    use super::stem;

    #[test]
    fn forms_of_one_word_are_one_term() {
        for forms in [
            &["create", "creates", "created", "creating", "creation"][..],
            &["query", "queries", "queried", "querying"],
            &["stop", "stops", "stopped", "stopping"],
            &["box", "boxes"],
            &["call", "calls", "called", "calling"],
            &["translate", "translation", "translations", "translating"],
            &["address", "addresses"],
            &["deploy", "deployment", "deploying"],
        ] {
            let terms: Vec<String> = forms.iter().map(|form| stem((*form).to_owned())).collect();
            assert!(terms.iter().all(|term| *term == terms[0]), "{forms:?}: {terms:?}");
        }
    }

    #[test]
    fn short_words_and_other_languages_stay() {
        for word in ["is", "bus", "status", "größe", "sing", "red"] {
            assert_eq!(stem(word.to_owned()), word);
        }
    }
}
