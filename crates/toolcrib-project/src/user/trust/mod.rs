//! Decides whether a project may use its user's authority. The decision depends only on values: the
//! external accesses of the project, the tables that decide on calls, the owners of its files, and the
//! records of the user's consent.

pub(crate) mod consent;
pub(crate) mod facts;
pub(crate) mod power;
pub(crate) mod rules;
mod schema;
mod store;

use std::sync::Arc;

use toolcrib_config::Problems;

pub use self::store::{TrustError, TrustRecord, TrustState, TrustStore};
use self::{
    consent::{Consent, Review, TrustDecision, Verdict},
    power::Power,
};

/// Decides on a project. `offline` is why no source is queried in any case, if so; `main` is the file
/// whose warnings are shown first.
///
/// # Errors
/// Why the project is refused, for the user.
pub(crate) fn decide(
    review: &Review,
    consent: &dyn Consent,
    offline: Option<Arc<str>>,
    main: &str,
) -> Result<TrustDecision, String> {
    let warnings = Problems::new(main);
    review.powers.iter().flat_map(Power::warnings).for_each(|warning| warnings.push(warning));
    let (reason, untrusted) = match consent.review(review) {
        Verdict::Use => (offline, None),
        Verdict::LookOnly(reason) => (offline.or(Some(Arc::clone(&reason))), Some(reason)),
        Verdict::Refuse(message) => return Err(message),
    };
    Ok(TrustDecision { reason, untrusted, warnings: warnings.into_diagnostics() })
}
