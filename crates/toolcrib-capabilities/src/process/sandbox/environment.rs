//! The environment variables that a sandbox sets: its temporary folder and its proxy.

use std::ffi::{OsStr, OsString};

use super::prepare::{PROXY, PreparedSandbox};

/// Variables with the address of the proxy. Programs read one of the spellings, and Node reads them
/// only on request.
const PROXIES: [&str; 6] =
    ["ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "all_proxy", "https_proxy", "http_proxy"];

/// Variables that would send requests past the proxy.
const PAST_PROXY: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// The environment of a program in a prepared sandbox: the sandbox's variables replace declared ones
/// of the same name.
pub(crate) fn environment(
    declared: &[(OsString, OsString)],
    prepared: &PreparedSandbox,
) -> Vec<(OsString, OsString)> {
    let mut own: Vec<(&str, &OsStr)> = vec![("TMPDIR", prepared.tmp())];
    if prepared.has_proxy() {
        own.extend(PROXIES.map(|name| (name, OsStr::new(PROXY))));
        own.push(("NODE_USE_ENV_PROXY", OsStr::new("1")));
    }
    let replaced = |name: &OsString| {
        own.iter().any(|(own, _)| name == own)
            || prepared.is_isolated() && PAST_PROXY.iter().any(|past| name == past)
    };
    let kept = declared.iter().filter(|(name, _)| !replaced(name)).cloned();
    kept.chain(own.iter().map(|(name, value)| ((*name).into(), (*value).into()))).collect()
}
