//! Where tools come from.

use crate::{
    catalogue::Catalogue,
    report::{Finding, Findings},
    text::name,
};

pub(super) fn failed(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for source in catalogue.sources() {
        let Some(reason) = &source.failure else { continue };
        let message = format!("{} could not be listed: {reason}", name(&source.name));
        let help = "its tools were not looked over; make it reachable and try again";
        findings.push(Finding::error(message, help).of_source(&source.name));
    }
}

pub(super) fn endless_ttl(catalogue: &Catalogue<'_>, findings: &mut Findings) {
    for source in catalogue.sources().iter().filter(|source| source.remote && source.ttl_forever) {
        let message = format!("the list of {} is kept for ever", name(&source.name));
        let help = "say how long it holds, such as `ttl = \"10m\"`: whoever runs it changes tools and \
                    takes them back, and this would not be seen until the next start";
        findings.push(Finding::warning(message, help).of_source(&source.name));
    }
}
