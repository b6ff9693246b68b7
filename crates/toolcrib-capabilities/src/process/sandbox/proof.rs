//! Runs the acts of a self-test in a child process and judges their outcomes.

use std::{
    ffi::CString,
    fs::{self, DirBuilder},
    io::{self, Read as _},
    net::TcpListener,
    os::{
        linux::net::SocketAddrExt as _,
        unix::{
            ffi::OsStrExt as _,
            fs::DirBuilderExt as _,
            net::{SocketAddr, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use super::{Attempt, Sandbox, SandboxTier, SelfTest, prepare::prepare, rules};
use crate::process::{
    ProcessLimits, UnsupportedError,
    child::{Act, ChildAction, Plan, Targets},
    namespaces::namespaces,
    stage::Stage,
    start::lifeline,
    support,
};

/// An act and its requirement.
struct ActRequirement {
    act: Act,
    text: &'static str,
    /// The errors that count as a denial; empty if the act must succeed.
    denials: &'static [i32],
    /// The first tier with this requirement.
    since: SandboxTier,
}

const fn denied(
    act: Act,
    text: &'static str,
    since: SandboxTier,
    denials: &'static [i32],
) -> ActRequirement {
    ActRequirement { act, text, denials, since }
}

const fn permitted(act: Act, text: &'static str, since: SandboxTier) -> ActRequirement {
    ActRequirement { act, text, denials: &[], since }
}

const EPERM: &[i32] = &[libc::EPERM];
const EACCES: &[i32] = &[libc::EACCES];
/// Denied by Landlock, or by the read-only mount.
const UNCHANGEABLE: &[i32] = &[libc::EACCES, libc::EROFS];
/// A network namespace has no listener, or no route.
const UNREACHABLE: &[i32] = &[libc::ECONNREFUSED, libc::ENETUNREACH];

/// The acts; each tier has the ones of the tiers below.
const ACTS: [ActRequirement; 29] = {
    use SandboxTier::{Files, Full, Tree};
    [
        denied(Act::SeeHost, "see processes of the host", Tree, &[libc::ESRCH]),
        denied(Act::GainRights, "gain rights from set-user-ID programs", Tree, EPERM),
        denied(Act::Mount, "mount a file system", Tree, EPERM),
        denied(Act::ChangeRoot, "change the root folder", Tree, EPERM),
        denied(Act::ReadHidden, "read a hidden file", Files, EACCES),
        denied(
            Act::ReadThroughProc,
            "read a hidden file through /proc/1/root",
            Files,
            &[libc::EACCES, libc::EPERM, libc::ENOENT],
        ),
        denied(Act::ListHidden, "list a hidden folder", Files, EACCES),
        denied(Act::CreateOutside, "create a file outside", Files, UNCHANGEABLE),
        denied(Act::TruncateOutside, "truncate a file outside", Files, UNCHANGEABLE),
        denied(
            Act::LinkHidden,
            "link a hidden file into its own folder",
            Files,
            &[libc::EACCES, libc::EXDEV, libc::EPERM],
        ),
        denied(Act::ChangeMode, "change the mode of a file outside", Files, &[libc::EROFS]),
        denied(Act::HostLoopback, "connect to a server of this machine", Full, UNREACHABLE),
        denied(Act::RouteOut, "reach another network", Full, UNREACHABLE),
        denied(Act::UnixSocket, "open a Unix socket", Full, EPERM),
        denied(Act::DatagramPair, "open a pair of Unix datagram sockets", Full, EPERM),
        denied(Act::HypervisorSocket, "open a socket to the hypervisor", Full, EPERM),
        denied(Act::Trace, "trace a process", Full, EPERM),
        denied(Act::NewUserNamespace, "make a user namespace", Full, EPERM),
        denied(Act::NewNamespaceByClone3, "make a namespace by clone3", Full, &[libc::ENOSYS]),
        denied(Act::IoUring, "set up io_uring", Full, EPERM),
        denied(Act::Bpf, "use bpf", Full, EPERM),
        denied(Act::Performance, "open performance events", Full, EPERM),
        denied(Act::PageFaults, "handle page faults (userfaultfd)", Full, EPERM),
        denied(Act::Keyring, "use the kernel's keyrings", Full, EPERM),
        denied(Act::TypeIntoTerminal, "type into a terminal (TIOCSTI)", Full, EPERM),
        permitted(Act::ReadGranted, "read a granted file", Files),
        permitted(Act::WriteGranted, "write to a granted folder", Files),
        permitted(Act::WriteTemporary, "write to the private temporary folder", Files),
        permitted(Act::OwnLoopback, "use its own loopback interface", Full),
    ]
};

/// Denied from the tier `files` on where the kernel has the sixth version of Landlock, and from
/// `full` on in any case.
const ABSTRACT: ActRequirement = denied(
    Act::AbstractSocket,
    "connect to an abstract Unix socket of the host",
    SandboxTier::Files,
    &[libc::EPERM, libc::ECONNREFUSED],
);

pub(super) fn self_test(tier: SandboxTier) -> &'static SelfTest {
    static TESTS: [OnceLock<SelfTest>; SandboxTier::ALL.len()] =
        [const { OnceLock::new() }; SandboxTier::ALL.len()];
    static NONE: SelfTest =
        SelfTest { tier: SandboxTier::None, attempts: Vec::new(), verdict: Ok(()) };
    match TESTS.get(tier as usize) {
        Some(test) if tier > SandboxTier::None => test.get_or_init(|| run(tier)),
        _ => &NONE,
    }
}

fn run(tier: SandboxTier) -> SelfTest {
    let has_scopes = rules::version().is_ok_and(|abi| abi >= landlock::ABI::V6);
    let is_required = |required: &&ActRequirement| required.since <= tier;
    let of_kernel = [&ABSTRACT].into_iter().filter(|_| has_scopes || tier == SandboxTier::Full);
    let acts: Vec<&ActRequirement> = ACTS.iter().chain(of_kernel).filter(is_required).collect();
    let (attempts, verdict) = match attempts(tier, &acts) {
        Ok(attempts) => {
            let failed: Vec<_> =
                attempts.iter().filter(|attempt| !attempt.is_as_required).collect();
            let verdict = if failed.is_empty() { Ok(()) } else { Err(not_enforced(tier, &failed)) };
            (attempts, verdict)
        }
        Err(error) => (Vec::new(), Err(error)),
    };
    SelfTest { tier, attempts, verdict }
}

fn not_enforced(tier: SandboxTier, failed: &[&Attempt]) -> UnsupportedError {
    let list: Vec<_> = failed
        .iter()
        .map(|attempt| match &attempt.outcome {
            Ok(()) => format!("a program could {}", attempt.act),
            Err(error) => format!("a program could not {}: {error}", attempt.act),
        })
        .collect();
    UnsupportedError::new(format!(
        "the self-test of the sandbox `{tier}` failed on this machine ({}); run `toolcrib doctor` \
         on the machine itself, outside a container, and update its kernel",
        list.join("; ")
    ))
}

fn attempts(tier: SandboxTier, acts: &[&ActRequirement]) -> Result<Vec<Attempt>, UnsupportedError> {
    support()?;
    let of_test = |error: io::Error| {
        let folder = std::env::temp_dir();
        UnsupportedError::new(format!(
            "the self-test of the sandbox could not be made in {}: {error}; set TMPDIR to a folder \
             that this process may write",
            folder.display()
        ))
    };
    let folder = TestFolder::new().map_err(of_test)?;
    let numbers = folder.numbers(tier, acts).map_err(|failure| match failure {
        Failure::Test(error) => of_test(error),
        Failure::Entering(error) => error,
    })?;
    let judged = acts.iter().zip(numbers).map(|(required, number)| Attempt {
        act: required.text,
        must_fail: !required.denials.is_empty(),
        outcome: match number {
            0 => Ok(()),
            number => Err(io::Error::from_raw_os_error(number).to_string()),
        },
        is_as_required: match required.denials {
            [] => number == 0,
            denials => denials.contains(&number),
        },
    });
    Ok(judged.collect())
}

enum Failure {
    /// The test itself could not be made.
    Test(io::Error),
    /// The tier could not be entered.
    Entering(UnsupportedError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Test(error)
    }
}

/// A folder with files for the acts, removed at the end.
struct TestFolder(PathBuf);

#[expect(clippy::disallowed_methods, reason = "the files that the self-test tries to reach")]
impl TestFolder {
    fn new() -> io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("toolcrib-self-test-{}-{number}-{time:x}", process::id());
        let root = std::env::temp_dir().canonicalize()?.join(name);
        // Fails if it exists: another user might have made it.
        DirBuilder::new().mode(0o700).create(&root)?;
        let folder = Self(root);
        for name in ["hidden", "granted"] {
            DirBuilder::new().mode(0o700).create(folder.0.join(name))?;
            fs::write(folder.0.join(name).join("file"), "self-test")?;
        }
        Ok(folder)
    }

    /// The error number of each act in the tier.
    fn numbers(&self, tier: SandboxTier, acts: &[&ActRequirement]) -> Result<Vec<i32>, Failure> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let name = self.0.file_name().unwrap_or_default().as_bytes().to_vec();
        let _socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        let (hidden, granted) = (self.0.join("hidden"), self.0.join("granted"));
        let sandbox = Sandbox { write: vec![granted.clone()], ..tier.into() };
        let program = std::env::current_exe()?;
        let prepared = if tier >= SandboxTier::Files {
            let prepared = prepare(&sandbox, &program, &granted);
            Some(prepared.map_err(|error| Failure::Entering(reason(error)))?)
        } else {
            None
        };
        let tmp = prepared.as_ref().map_or(Path::new("/tmp"), |prepared| prepared.tmp().as_ref());
        let text = |path: &Path| CString::new(path.as_os_str().as_bytes()).map_err(io::Error::from);
        let proc = Path::new("/proc/1/root");
        let hidden_file = hidden.join("file");
        let targets = Targets {
            hidden_by_proc: text(
                &proc.join(hidden_file.strip_prefix("/").unwrap_or(&hidden_file)),
            )?,
            hidden_file: text(&hidden_file)?,
            hidden_folder: text(&hidden)?,
            new_file: text(&hidden.join("new"))?,
            granted_file: text(&granted.join("file"))?,
            granted_new: text(&granted.join("new"))?,
            link: text(&granted.join("link"))?,
            temporary: text(&tmp.join("toolcrib-self-test"))?,
            port: listener.local_addr()?.port(),
            socket: name,
        };
        let acts: Vec<Act> = acts.iter().map(|required| required.act).collect();
        let expected = acts.len();
        let numbers =
            try_acts(acts, targets, prepared.map(|prepared| prepared.split().0), &granted)?;
        if numbers.len() == expected {
            return Ok(numbers);
        }
        Err(Failure::Entering(UnsupportedError::new(format!(
            "the self-test of the sandbox `{tier}` was killed after {} of {expected} acts; look for \
             the reason in the kernel's messages (dmesg)",
            numbers.len()
        ))))
    }
}

impl Drop for TestFolder {
    #[expect(clippy::disallowed_methods, reason = "the folder of the self-test")]
    fn drop(&mut self) {
        // Left behind, it contains nothing of value.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Tries the acts in a child process.
fn try_acts(
    acts: Vec<Act>,
    targets: Targets,
    confinement: Option<crate::process::child::Confinement>,
    working_dir: &Path,
) -> Result<Vec<i32>, Failure> {
    let found = namespaces().map_err(Failure::Entering)?;
    let limits = ProcessLimits::default();
    let (namespace, held) = lifeline(found, limits)?;
    let plan = Plan {
        finish: ChildAction::Try { acts, targets },
        working_dir: CString::new(working_dir.as_os_str().as_bytes()).map_err(io::Error::from)?,
        limits,
        namespace: Some(namespace),
        confinement,
        keeps_rights: false,
    };
    let mut command = plan.into_command();
    command.stdin(process::Stdio::null()).stdout(process::Stdio::piped());
    command.stderr(process::Stdio::null());
    let mut child = command.spawn().map_err(|error| {
        let (stage, source) = Stage::of(error);
        let stage = stage.unwrap_or(Stage::Fork);
        Failure::Entering(UnsupportedError::new(format!(
            "this machine did not {}: {source}; {}",
            stage.action(),
            stage.remedy()
        )))
    })?;
    let mut bytes = Vec::new();
    let read = child.stdout.take().map_or(Ok(0), |mut stdout| stdout.read_to_end(&mut bytes));
    drop(held);
    child.wait()?;
    read?;
    let (numbers, _) = bytes.as_chunks::<4>();
    Ok(numbers.iter().map(|number| i32::from_ne_bytes(*number)).collect())
}

fn reason(error: crate::process::ProcessError) -> UnsupportedError {
    match error {
        crate::process::ProcessError::Sandbox { source, .. } => source,
        other => UnsupportedError::new(other.to_string()),
    }
}
