//! Seals: texts that only processes with the same key can write and read.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ring::{
    aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    digest::{Context, SHA256},
    rand::{SecureRandom as _, SystemRandom},
};

/// The least length of a secret that a key is made of, in bytes.
const SECRET_BYTES: usize = 32;

/// A key that seals texts with ChaCha20-Poly1305 (RFC 8439): others can neither read nor change them. Each
/// nonce is random, so a key seals up to 2³² texts.
#[derive(Clone)]
pub struct SealingKey(LessSafeKey);

impl SealingKey {
    /// The key that all processes make of one secret; `None` if it has less than 32 bytes.
    pub fn of(secret: &str) -> Option<Self> {
        if secret.len() < SECRET_BYTES {
            return None;
        }
        let mut digest = Context::new(&SHA256);
        // The key of approvals is another one, made of the same secret.
        digest.update(b"toolcrib-sealing-key-1 ");
        digest.update(secret.as_bytes());
        let key = UnboundKey::new(&CHACHA20_POLY1305, digest.finish().as_ref()).ok()?;
        Some(Self(LessSafeKey::new(key)))
    }

    /// Seals a text for one purpose, in letters, digits, `-` and `_`. `None` if the system has no randomness.
    pub fn seal(&self, purpose: &str, text: &str) -> Option<String> {
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut sealed = text.as_bytes().to_vec();
        let with = (Nonce::assume_unique_for_key(nonce), Aad::from(purpose.as_bytes()));
        self.0.seal_in_place_append_tag(with.0, with.1, &mut sealed).ok()?;
        Some(URL_SAFE_NO_PAD.encode([&nonce[..], &sealed].concat()))
    }

    /// The text of a seal of the same purpose; `None` if another key or nothing sealed it.
    pub fn open(&self, purpose: &str, sealed: &str) -> Option<String> {
        let mut bytes = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = bytes.split_first_chunk_mut::<NONCE_LEN>()?;
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let text = self.0.open_in_place(nonce, Aad::from(purpose.as_bytes()), sealed).ok()?;
        String::from_utf8(text.to_vec()).ok()
    }
}

impl fmt::Debug for SealingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SealingKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_for_its_key_and_its_purpose_and_cannot_be_changed() {
        let key = |with: &str| SealingKey::of(&with.repeat(32)).unwrap();
        let sealed = key("a").seal("session", "text").unwrap();
        assert_eq!(key("a").open("session", &sealed).as_deref(), Some("text"));
        assert_ne!(key("a").seal("session", "text").unwrap(), sealed);
        assert_eq!(key("a").open("login", &sealed), None);
        assert_eq!(key("b").open("session", &sealed), None);
        for at in 0..sealed.len() {
            let other = if sealed.as_bytes()[at] == b'A' { "B" } else { "A" };
            let changed = format!("{}{other}{}", &sealed[..at], &sealed[at + 1..]);
            assert_eq!(key("a").open("session", &changed), None, "{changed}");
        }
        for not_sealed in ["", "A", "AAAA", "!", &sealed[..20]] {
            assert_eq!(key("a").open("session", not_sealed), None);
        }
        assert!(SealingKey::of("short").is_none());
    }
}
