//! The sources of tools.

use crate::{
    catalog::LintCatalog,
    report::{Finding, Findings},
    text::name,
};

pub(super) fn failed(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for source in catalog.sources() {
        let Some(reason) = &source.failure else { continue };
        let message = format!("{} could not be listed: {reason}", name(&source.name));
        let help = "its tools were not checked; make it reachable and try again";
        findings.push(Finding::error(message, help).of_source(&source.name));
    }
}

pub(super) fn endless_ttl(catalog: &LintCatalog<'_>, findings: &mut Findings) {
    for source in catalog.sources().iter().filter(|source| source.remote && source.ttl_forever) {
        let message = format!("the list of {} never expires", name(&source.name));
        let help = "set a time limit, such as `ttl = \"10m\"`: its operator may change or \
                    remove tools, which would go unnoticed until the next start";
        findings.push(Finding::warning(message, help).of_source(&source.name));
    }
}
