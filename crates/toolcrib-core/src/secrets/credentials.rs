//! Texts that look like credentials.

use std::sync::LazyLock;

use regex::RegexSet;

/// The forms of well-known credentials, and of a named one.
static FORMS: LazyLock<Option<RegexSet>> = LazyLock::new(|| {
    let forms = [
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
        r"\bglpat-[A-Za-z0-9_-]{20,}",
        r"\bsk-[A-Za-z0-9_-]{20,}",
        r"\bgsk_[A-Za-z0-9]{20,}",
        r"\b[rs]k_(live|test)_[A-Za-z0-9]{16,}",
        r"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
        r"\bAIza[0-9A-Za-z_-]{35}",
        r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
        r"\bnpm_[A-Za-z0-9]{30,}",
        r"\bsbp_[A-Za-z0-9]{20,}",
        r"\bhf_[A-Za-z0-9]{20,}",
        r"\b(figd|ntn|lin_api|dop_v1|pat)_[A-Za-z0-9_-]{20,}",
        r"\b(tvly|pplx)-[A-Za-z0-9_-]{20,}",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
        r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}",
        r"[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@",
        r#"(?i)\b(api[_ -]?key|access[_ -]?key|auth[_ -]?token|token|passwor[dt]|passwd|passphrase|secret)["']?\s*(=|:|\bis\b)\s*["']?[^\s"']{8,}"#,
    ];
    RegexSet::new(forms).ok()
});

/// Whether a text contains what looks like a credential.
pub fn may_contain_credential(text: &str) -> bool {
    // Forms that cannot be compiled find everything.
    FORMS.as_ref().is_none_or(|forms| forms.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_found_and_ordinary_notes_are_not() {
        let key = "a1B2c3D4e5F6g7H8i9J0k1L2";
        for text in [
            format!("use ghp_{key}"),
            format!("OPENAI: sk-proj-{key}"),
            format!("AKIA{}", "ABCDEFGH12345678"),
            format!("sbp_{key}"),
            format!("tvly-{key}"),
            "xoxb-12345678901-abc".to_owned(),
            "-----BEGIN OPENSSH PRIVATE KEY-----".to_owned(),
            format!("eyJ{key}.eyJ{key}.{key}"),
            "postgres://ann:hunter2@db/shop".to_owned(),
            "password: correct-horse".to_owned(),
            "API_KEY='0123456789'".to_owned(),
            "the token is abcdefgh123".to_owned(),
        ] {
            assert!(may_contain_credential(&text), "{text}");
        }
        for text in [
            "The password is asked for at login.",
            "Tokens are counted per model; the secret is good tea.",
            "See https://example.com/a:b@c and mail ann@example.com.",
            "Deploy with `make deploy` at 10:30, key people: Ann, Ben.",
            "sk-learn is a library",
        ] {
            assert!(!may_contain_credential(text), "{text}");
        }
    }
}
