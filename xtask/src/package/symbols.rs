//! What a program for Linux needs of the system: its tag must be true.

use std::path::Path;

use super::target::{GLIBC, Target};
use crate::{
    problem::Problem,
    workspace::{Workspace, output},
};

/// The libraries that each system of the tag has (PEP 599).
const LIBRARIES: [&str; 9] = [
    "libc.so.6",
    "libm.so.6",
    "libdl.so.2",
    "librt.so.1",
    "libpthread.so.0",
    "libutil.so.1",
    "libgcc_s.so.1",
    "ld-linux-x86-64.so.2",
    "ld-linux-aarch64.so.1",
];

const HELP: &str = "install binutils for `readelf`";

/// Checks the libraries and the versions of their symbols that a program needs.
pub(super) fn check(workspace: &Workspace, target: &Target, program: &Path) -> Result<(), Problem> {
    if !target.is_linux() {
        return Ok(());
    }
    let read = |option: &str| {
        output(
            workspace.program("readelf").args([option, "--wide"]).arg(program).env("LC_ALL", "C"),
            HELP,
        )
    };
    let needed = needed(&read("--dynamic")?);
    let allowed = |name: &&String| !target.is_musl() && LIBRARIES.contains(&name.as_str());
    if let Some(other) = needed.iter().find(|name| !allowed(name)) {
        return Err(Problem::new(
            format!("{} needs {other}, which not every system of its tag has", program.display()),
            "link the library statically, or do without the crate that needs it",
        ));
    }
    let versions = glibc_versions(&read("--version-info")?);
    let newest = versions.iter().max().copied();
    if let Some((major, minor)) = newest.filter(|newest| *newest > GLIBC) {
        return Err(Problem::new(
            format!("{} needs glibc {major}.{minor}", program.display()),
            format!(
                "its tag says {}.{}: build with zig, or find the crate with the newer symbol",
                GLIBC.0, GLIBC.1
            ),
        ));
    }
    let newest = newest.map_or("none".to_owned(), |(major, minor)| format!("{major}.{minor}"));
    eprintln!("libraries: {}; newest symbol of glibc: {newest}", needed.join(", "));
    Ok(())
}

/// The names in `readelf --dynamic`.
fn needed(listing: &str) -> Vec<String> {
    let lines = listing.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0.to_owned())).collect()
}

/// The versions in `readelf --version-info`.
fn glibc_versions(listing: &str) -> Vec<(u32, u32)> {
    let words = listing.split_whitespace().filter_map(|word| word.strip_prefix("GLIBC_"));
    words
        .filter_map(|version| {
            let mut numbers = version.split('.').map(|number| number.parse().ok());
            Some((numbers.next()??, numbers.next()??))
        })
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn the_listings_of_readelf_are_understood() {
        let dynamic = " 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]\n \
                       0x000000000000000e (SONAME)             Library soname: [x.so]\n";
        assert_eq!(needed(dynamic), ["libm.so.6"]);
        let versions = "  0x0010:   Name: GLIBC_2.9  Flags: none  Version: 5\n  \
                        0x0020:   Name: GLIBC_2.2.5  Flags: none  Version: 4\n  \
                        0x0030:   Name: GLIBC_2.17  Flags: none  Version: 3\n";
        assert_eq!(glibc_versions(versions).into_iter().max(), Some((2, 17)));
    }
}
