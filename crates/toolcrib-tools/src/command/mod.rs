//! A tool made from a program.
//!
//! A call runs the program once, never through a shell, and what it starts ends with it: see
//! [`toolcrib_capabilities::process`], which also says what a program is started with. The tool's deadline
//! is the program's: it gets SIGTERM, and SIGKILL shortly after.
//!
//! # Arguments
//! Each [`ArgItem`] becomes one argument of the program, whatever the values contain. `{title}` is the
//! place of the property `title` of the input schema, `{{` and `}}` are braces; a place for what is
//! not declared is an error, and so is a property that nothing uses. Strings are passed unchanged, all
//! else as compact JSON.
//!
//! - An item with a place for an argument that is absent or `null` is left out.
//! - An item that is one place and nothing else becomes, for a list, one argument per element.
//! - A value may not make an option of an item: where an item begins with a place, and then with a
//!   `-`, the call is `input_invalid`. This is not asked of items behind an item `--`, and of those
//!   with [`allow_leading_dash`](ArgItem::allow_leading_dash).
//! - A value with a NUL byte is `input_invalid`.
//!
//! With [`Stdin::Json`] the program reads all arguments of the call as one line of JSON, and items
//! need not use them.
//!
//! # Environment
//! Only what is declared: values, which may contain secrets (`secret:NAME`, `Bearer
//! {secret:NAME}`), and names that are passed on from the host. Not even `PATH` is there unless it
//! is declared.
//!
//! # Result
//! The text is stdout without trailing line ends, or stderr where stdout is empty. Bytes that
//! are no UTF-8 become U+FFFD; a first line in brackets says so, and what was cut at
//! [`max_output_bytes`](CommandToolSpec::max_output_bytes). The data is
//! `{"exit_code":0,"stdout":"…","stderr":"…","truncated":false}`.
//!
//! The artifact that an engine keeps of such a result is stdout itself, byte for byte but for secrets,
//! and nothing where it is empty, unless stderr has to be cut.
//!
//! A stdout of more bytes than that becomes an artifact as it comes, where an engine keeps any, and is
//! never in memory as a whole. The text is then the artifact's handle, and the data contains its id
//! as `artifact` instead of `stdout`. If it cannot be kept, the text has its beginning and its
//! end, and says why. Of a program that was cut off nothing is kept.
//!
//! While the program runs, the lines of its stdout, up to 8 KiB, are progress for dashboards.
//!
//! # Failures
//! - An exit code that is not among [`ok_exit_codes`](CommandToolSpec::ok_exit_codes), and an end by
//!   a signal, are `execution_failed` with the last 2,000 characters of stderr, or of stdout where
//!   stderr is empty. A program that reaches one of its limits ends in one of these ways.
//! - One that was cut off is `cancelled` if the tool is `read_only`, else `outcome_unknown`; the text
//!   contains its output until then.
//! - A program that cannot be run here is `not_available`, and arguments that are too long for the
//!   system are `input_invalid`.

mod arguments;
mod attached;
mod check;
mod environment;
mod hook;
pub(crate) mod limits;
pub(crate) mod lines;
pub(crate) mod outcome;
pub(crate) mod progress;
mod run;
mod table;
pub(crate) mod whole;

use std::path::PathBuf;

use toolcrib_capabilities::process::{DEFAULT_MAX_OUTPUT_BYTES, ProcessLimits, Sandbox};
use toolcrib_core::Tool;

pub use self::hook::{HookError, HookProgram, HookVerdict};
pub(crate) use self::{
    check::{CheckedCommand, prepare},
    run::Body,
    table::KIND,
};
#[doc(hidden)]
pub use self::{limits::ProcessLimitsSection, table::DeclaredCommand};
#[doc(hidden)]
pub use crate::kind::sandbox::{SandboxSection, tier as sandbox_tier};
use crate::{Declaration, ToolErrors};

/// One item of a program's argument vector.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ArgItem {
    /// The argument, with places for those of the call.
    pub text: String,
    /// A parameter on which the item depends: it is left out where that is absent, `null` or
    /// `false`.
    pub when: Option<String>,
    /// Whether a value may make the item begin with `-`, where the item begins with its place.
    pub allow_leading_dash: bool,
}

impl From<&str> for ArgItem {
    fn from(text: &str) -> Self {
        Self { text: text.to_owned(), ..Self::default() }
    }
}

/// The stdin of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdin {
    /// The program reads an empty stdin.
    #[default]
    None,
    /// The arguments of the call, as one line of compact JSON.
    Json,
}

/// The declaration of a command tool. Start from [`new`](Self::new), set fields, and
/// [`build`](Self::build) it.
#[derive(Debug, Clone, PartialEq)]
pub struct CommandToolSpec {
    /// The part that all kinds have.
    pub declaration: Declaration,
    /// The program. One without `/` is looked up on the `PATH` of this process when the tool is
    /// built; others are paths, relative to [`base_dir`](Self::base_dir).
    pub program: String,
    /// The folder from which paths here are relative.
    pub base_dir: PathBuf,
    /// The arguments of the program.
    pub args: Vec<ArgItem>,
    /// Its stdin; nothing unless set.
    pub stdin: Stdin,
    /// Its environment: names and values, the values with places for secrets.
    pub env: Vec<(String, String)>,
    /// The variables of this process that it has as well, as they are at the call. One that is not
    /// set is left out.
    pub inherit_env: Vec<String>,
    /// The folder that it runs in; that of the call
    /// ([`ToolContext::working_dir`](toolcrib_core::ToolContext::working_dir)) unless set.
    pub working_dir: Option<PathBuf>,
    /// How many bytes are kept of its stdout, and of its stderr; [`DEFAULT_MAX_OUTPUT_BYTES`] unless
    /// set.
    pub max_output_bytes: usize,
    /// Its limits in the kernel; [`ProcessLimits::default`] unless set.
    pub limits: ProcessLimits,
    /// Whether it is run even where what it starts could outlive it, as
    /// [`support`](toolcrib_capabilities::process::support) says.
    pub allow_stray_children: bool,
    /// Its sandbox; the tier `tree` unless set. Its network follows the rules of the call's
    /// personality too.
    pub sandbox: Sandbox,
    /// The exit codes, 0 to 255, of success; 0 unless set.
    pub ok_exit_codes: Vec<i32>,
}

impl CommandToolSpec {
    /// A tool that runs a program without arguments; see the fields for the other defaults.
    pub fn new(
        declaration: Declaration,
        program: impl Into<String>,
        base_dir: impl Into<PathBuf>,
    ) -> Self {
        Self {
            declaration,
            program: program.into(),
            base_dir: base_dir.into(),
            args: Vec::new(),
            stdin: Stdin::default(),
            env: Vec::new(),
            inherit_env: Vec::new(),
            working_dir: None,
            max_output_bytes: DEFAULT_MAX_OUTPUT_BYTES,
            limits: ProcessLimits::default(),
            allow_stray_children: false,
            sandbox: Sandbox::default(),
            ok_exit_codes: vec![0],
        }
    }

    /// Finds the program, reads all places, and makes the tool. Runs nothing.
    ///
    /// # Errors
    /// All that is wrong with it, not only the first.
    pub fn build(self) -> Result<Tool, ToolErrors> {
        check::build(self)
    }
}
