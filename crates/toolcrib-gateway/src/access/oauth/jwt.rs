//! Signed tokens, verified by `jsonwebtoken` with `ring`. Algorithms, types of tokens and types of
//! claims are checked here in addition.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode, decode_header,
    errors::{Error, ErrorKind},
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::time::Instant;

use super::settings::TokenAlgorithm;

/// A longer token is not read.
const MAX_BYTES: usize = 16 * 1024;
/// The permitted difference between two clocks, in seconds.
const LEEWAY: u64 = 60;

/// The moment from which a verified token with these claims is refused; `None` if it is too far away
/// for this process's clock.
pub(crate) fn expiry(claims: &Map<String, Value>) -> Option<Instant> {
    let expires = Duration::try_from_secs_f64(claims.get("exp")?.as_f64()?).ok()?;
    let refused = expires.checked_add(Duration::from_secs(LEEWAY))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Instant::now().checked_add(refused.saturating_sub(now))
}

/// Why a token is not valid, for the operator. It quotes nothing of the token.
#[derive(Debug)]
pub(crate) struct TokenError(pub(crate) String);

fn invalid<T>(problem: &str) -> Result<T, TokenError> {
    Err(TokenError(problem.to_owned()))
}

/// The part of a header that `jsonwebtoken` does not read.
#[derive(Deserialize)]
struct Extensions {
    #[serde(default)]
    crit: Option<Value>,
}

/// A token whose signature is not verified yet.
pub(crate) struct Unverified<'a> {
    token: &'a str,
    algorithm: TokenAlgorithm,
    key_id: Option<String>,
}

impl<'a> Unverified<'a> {
    /// Reads the header of a token with one of these algorithms.
    pub(crate) fn parse(token: &'a str, allowed: &[TokenAlgorithm]) -> Result<Self, TokenError> {
        if token.len() > MAX_BYTES {
            return invalid("it is too long");
        }
        if token.split('.').count() != 3 {
            return invalid("it is not a JWT");
        }
        // An unknown algorithm, such as `none`, is an error here already.
        let Ok(header) = decode_header(token) else {
            return invalid("its header cannot be read, or its algorithm is unknown");
        };
        let is_its = |algorithm: &&TokenAlgorithm| algorithm.in_header() == header.alg;
        let Some(&algorithm) = allowed.iter().find(is_its) else {
            return invalid("its algorithm is not accepted");
        };
        let bytes = token.split('.').next().and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let extensions = bytes.and_then(|bytes| serde_json::from_slice::<Extensions>(&bytes).ok());
        match extensions {
            Some(Extensions { crit: None }) => {}
            _ => return invalid("its header has critical extensions"),
        }
        let kind = header.typ.as_deref().unwrap_or("JWT").to_ascii_lowercase();
        let kind = kind.strip_prefix("application/").unwrap_or(&kind);
        if !matches!(kind, "jwt" | "at+jwt") {
            return invalid("its type is not that of an access token");
        }
        Ok(Self { token, algorithm, key_id: header.kid })
    }

    pub(crate) fn key_id(&self) -> Option<&str> {
        self.key_id.as_deref()
    }

    /// The claims, if one of the keys has signed them and they are for this audience.
    pub(crate) fn verify(
        &self,
        keys: &[Jwk],
        issuer: &str,
        audience: &str,
    ) -> Result<Map<String, Value>, TokenError> {
        let mut validation = Validation::new(self.algorithm.in_header());
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud"]);
        validation.validate_nbf = true;
        validation.leeway = LEEWAY;
        let mut problem = "the issuer has no key for it";
        for key in keys.iter().filter(|key| fits(key, self.algorithm)) {
            let Ok(key) = DecodingKey::from_jwk(key) else { continue };
            match decode::<Map<String, Value>>(self.token, &key, &validation) {
                Ok(verified) => return checked(verified.claims, issuer),
                Err(error) if *error.kind() == ErrorKind::InvalidSignature => {
                    problem = "its signature is not valid";
                }
                Err(error) => return invalid(why(&error)),
            }
        }
        invalid(problem)
    }
}

impl TokenAlgorithm {
    fn in_header(self) -> Algorithm {
        match self {
            Self::Rs256 => Algorithm::RS256,
            Self::Ps256 => Algorithm::PS256,
            Self::Es256 => Algorithm::ES256,
            Self::Es384 => Algorithm::ES384,
            Self::EdDsa => Algorithm::EdDSA,
        }
    }
}

/// Whether a key is one for signatures by this algorithm.
fn fits(key: &Jwk, algorithm: TokenAlgorithm) -> bool {
    let is_of_kind = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), TokenAlgorithm::Rs256 | TokenAlgorithm::Ps256) => true,
        (AlgorithmParameters::EllipticCurve(key), TokenAlgorithm::Es256) => {
            key.curve == EllipticCurve::P256
        }
        (AlgorithmParameters::EllipticCurve(key), TokenAlgorithm::Es384) => {
            key.curve == EllipticCurve::P384
        }
        (AlgorithmParameters::OctetKeyPair(key), TokenAlgorithm::EdDsa) => {
            key.curve == EllipticCurve::Ed25519
        }
        _ => false,
    };
    let common = &key.common;
    let is_of_algorithm =
        common.key_algorithm.is_none_or(|named| named.to_string() == algorithm.name());
    let is_for_signatures = match &common.public_key_use {
        None | Some(PublicKeyUse::Signature) => true,
        Some(_) => false,
    };
    is_of_kind && is_of_algorithm && is_for_signatures
}

fn why(error: &Error) -> &'static str {
    match error.kind() {
        ErrorKind::ExpiredSignature => "it has expired",
        ErrorKind::ImmatureSignature => "it is not valid yet",
        ErrorKind::InvalidIssuer => "it is of another issuer",
        ErrorKind::InvalidAudience => "it is for another audience",
        ErrorKind::MissingRequiredClaim(_) => "it lacks `iss`, `aud` or `exp`",
        _ => "its claims cannot be read",
    }
}

/// `jsonwebtoken` treats a time of a wrong type as absent, and an `iss` that is a list as several.
fn checked(claims: Map<String, Value>, issuer: &str) -> Result<Map<String, Value>, TokenError> {
    if claims.get("iss").and_then(Value::as_str) != Some(issuer) {
        return invalid("it is of another issuer");
    }
    if !claims.get("exp").is_some_and(Value::is_number) {
        return invalid("its `exp` is not a number");
    }
    if claims.get("nbf").is_some_and(|nbf| !nbf.is_number()) {
        return invalid("its `nbf` is not a number");
    }
    if claims.contains_key("cnf") {
        return invalid("it is bound to a key, which is not supported");
    }
    Ok(claims)
}
