use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::names::name::{InvalidToolNameError, MAX_TOOL_NAME, ToolName};

/// Number of hexadecimal digits at the end of a changed name.
const DIGITS: usize = 8;
/// The maximum length of a prefix, which leaves room for the tool's name.
const LONGEST_START: usize = 40;

impl ToolName {
    /// A valid name for an external tool with a prefix: `crm_` and `find` make `crm_find`.
    ///
    /// Characters that model APIs reject become `_`, and a changed or too long name is shortened to
    /// end in `_` and eight hexadecimal digits of the SHA-256 of `scope` and the original name. A
    /// name that already looks changed gets digits too, so that within a scope and prefix two tools
    /// never get the same name. `scope` is the owner of the names, such as a server's.
    ///
    /// # Errors
    /// [`InvalidToolNameError`] when the prefix contains an invalid character, or has more than 40
    /// characters.
    pub fn fitted(start: &str, scope: &str, raw: &str) -> Result<Self, InvalidToolNameError> {
        if start.len() > LONGEST_START {
            return Err(InvalidToolNameError::new(
                start,
                format!("it has more than {LONGEST_START} characters, too many for a prefix"),
            ));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        let fits = !raw.is_empty()
            && start.len() + raw.len() <= MAX_TOOL_NAME
            && raw.chars().all(plain)
            && !looks_changed(raw);
        if fits {
            return Self::new(format!("{start}{raw}"));
        }
        let room = MAX_TOOL_NAME.saturating_sub(start.len() + 1 + DIGITS);
        let mut name = start.to_owned();
        name.extend(raw.chars().take(room).map(|c| if plain(c) { c } else { '_' }));
        name.push('_');
        let digest = Sha256::new()
            .chain_update(scope.as_bytes())
            .chain_update([0])
            .chain_update(raw.as_bytes())
            .finalize();
        for byte in digest.iter().take(DIGITS / 2) {
            // Writing into a `String` cannot fail.
            let _ = write!(name, "{byte:02x}");
        }
        Self::new(name)
    }
}

/// Whether a name ends like a changed name.
fn looks_changed(raw: &str) -> bool {
    raw.rsplit_once('_').is_some_and(|(_, end)| {
        end.len() == DIGITS && end.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fitted(start: &str, raw: &str) -> String {
        ToolName::fitted(start, "crm", raw).unwrap().to_string()
    }

    #[test]
    fn what_fits_stays_and_what_does_not_is_told_apart_by_a_digest() {
        assert_eq!(fitted("crm_", "find"), "crm_find");
        assert_eq!(fitted("", "find"), "find");
        assert_eq!(fitted("crm_", "find.all"), "crm_find_all_345a6013");
        assert_ne!(fitted("crm_", "find.all"), fitted("crm_", "find all"));
        let long = "x".repeat(64);
        assert_eq!(fitted("crm_", &long).len(), 64);
        assert_ne!(fitted("crm_", &long), fitted("crm_", &format!("{long}y")));
        // A name that imitates a changed name does not collide with it.
        assert_ne!(fitted("crm_", "find_all_345a6013"), fitted("crm_", "find.all"));
        assert_eq!(fitted("", "").len(), 9);
    }

    #[test]
    fn a_start_that_no_name_can_have_is_refused() {
        assert!(ToolName::fitted("crm.", "crm", "find").is_err());
        let long = ToolName::fitted(&"x".repeat(41), "crm", "find").unwrap_err();
        assert!(long.to_string().contains("too many for a prefix"), "{long}");
    }
}
