//! The systems that packages are built for.

use std::env::consts::{ARCH, OS};

use crate::problem::Problem;

/// The C library that a program for Linux needs at least: that of CentOS 7, Debian 8 and Ubuntu 14.04.
pub(super) const GLIBC: (u32, u32) = (2, 17);

/// A system, and the names that registries have for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Target {
    pub(super) triple: &'static str,
    /// The platform tag of a wheel.
    pub(super) wheel: &'static str,
    /// `os`, `cpu` and `libc` of an npm package. Its name ends in the first two, and in `musl`.
    pub(super) npm: (&'static str, &'static str, Option<&'static str>),
}

/// Those with packages. A wheel for an old glibc also has the older name of its tag.
pub(super) const ALL: [Target; 6] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        wheel: "manylinux2014_x86_64.manylinux_2_17_x86_64",
        npm: ("linux", "x64", Some("glibc")),
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        wheel: "manylinux2014_aarch64.manylinux_2_17_aarch64",
        npm: ("linux", "arm64", Some("glibc")),
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        wheel: "musllinux_1_1_x86_64",
        npm: ("linux", "x64", Some("musl")),
    },
    Target {
        triple: "aarch64-unknown-linux-musl",
        wheel: "musllinux_1_1_aarch64",
        npm: ("linux", "arm64", Some("musl")),
    },
    Target {
        triple: "x86_64-apple-darwin",
        wheel: "macosx_10_12_x86_64",
        npm: ("darwin", "x64", None),
    },
    Target {
        triple: "aarch64-apple-darwin",
        wheel: "macosx_11_0_arm64",
        npm: ("darwin", "arm64", None),
    },
];

impl Target {
    /// That of this machine.
    pub(crate) fn here() -> Result<Self, Problem> {
        let system = match OS {
            "linux" => "unknown-linux-gnu",
            "macos" => "apple-darwin",
            other => other,
        };
        Self::named(&format!("{ARCH}-{system}"))
    }

    /// The same machine without a C library.
    pub(crate) fn musl(&self) -> Result<Self, Problem> {
        Self::named(&self.triple.replace("-gnu", "-musl"))
    }

    fn named(triple: &str) -> Result<Self, Problem> {
        ALL.into_iter().find(|target| target.triple == triple).ok_or_else(|| {
            let known: Vec<_> = ALL.iter().map(|target| target.triple).collect();
            Problem::new(
                format!("there are no packages for {triple}"),
                format!("build them on one of {}", known.join(", ")),
            )
        })
    }

    pub(super) fn is_musl(&self) -> bool {
        self.npm.2 == Some("musl")
    }

    pub(super) fn is_linux(&self) -> bool {
        self.npm.0 == "linux"
    }

    pub(super) fn uses_zig(&self) -> bool {
        self.is_linux()
    }

    /// The triple, with the version of the C library where zig is the linker.
    pub(super) fn triple_of_build(&self) -> String {
        let (major, minor) = GLIBC;
        match self.is_linux() && !self.is_musl() {
            true => format!("{}.{major}.{minor}", self.triple),
            false => self.triple.to_owned(),
        }
    }

    /// The name of the npm package with the program.
    pub(super) fn npm_name(&self) -> String {
        let (os, cpu, _) = self.npm;
        let musl = if self.is_musl() { "-musl" } else { "" };
        format!("toolcrib-{os}-{cpu}{musl}")
    }
}
