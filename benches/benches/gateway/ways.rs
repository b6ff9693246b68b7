//! The ways from the client to the server, and the programs of each.

use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use toolcrib_benches::Outcome;

use crate::{
    client::{Era, Target},
    echo::TOOL,
    figures::Round,
    gateways,
    pipe::{Pipe, piped},
    program::{Program, free_address},
    roles::{ECHO_HTTP, ECHO_STDIO, HOP_HTTP, HOP_STDIO, own},
    served::{self, Behind, Door},
};

/// One way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Direct,
    Hop,
    OursToHttp,
    OursToStdio,
    McpProxy,
    Supergateway,
    DirectStateless,
    OursStateless,
    StdioDirect,
    StdioHop,
    StdioOursToStdio,
    StdioOursToHttp,
}

impl Way {
    /// All with HTTP in front, in groups for comparison.
    pub(crate) const HTTP: [Self; 8] = [
        Self::Direct,
        Self::Hop,
        Self::OursToHttp,
        Self::OursToStdio,
        Self::McpProxy,
        Self::Supergateway,
        Self::DirectStateless,
        Self::OursStateless,
    ];

    /// All with pipes in front.
    pub(crate) const STDIO: [Self; 4] =
        [Self::StdioDirect, Self::StdioHop, Self::StdioOursToStdio, Self::StdioOursToHttp];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct, sessions",
            Self::Hop => "bare rmcp proxy to stdio, sessions",
            Self::OursToHttp => "toolcrib to HTTP, sessions",
            Self::OursToStdio => "toolcrib to stdio, sessions",
            Self::McpProxy => "mcp-proxy to stdio, sessions",
            Self::Supergateway => "supergateway to stdio, sessions",
            Self::DirectStateless => "direct, stateless",
            Self::OursStateless => "toolcrib to HTTP, stateless",
            Self::StdioDirect => "direct",
            Self::StdioHop => "bare rmcp proxy to stdio",
            Self::StdioOursToStdio => "toolcrib to stdio",
            Self::StdioOursToHttp => "toolcrib to HTTP",
        }
    }
}

/// The parts that were built and installed for the bench.
#[derive(Debug)]
pub(crate) struct Setup {
    /// The program `toolcrib`.
    pub(crate) toolcrib: Option<PathBuf>,
    /// Node and the gateways.
    gateways: Option<PathBuf>,
    /// The misbehaving server.
    pub(crate) chaos: Option<PathBuf>,
    /// The folder for logs and states.
    folder: tempfile::TempDir,
}

impl Setup {
    pub(crate) fn find() -> Outcome<Self> {
        let named = |name: &str| env::var_os(name).map(PathBuf::from);
        Ok(Self {
            toolcrib: named("TOOLCRIB_BENCH_PROGRAM"),
            gateways: named("TOOLCRIB_BENCH_GATEWAYS"),
            chaos: named("TOOLCRIB_BENCH_CHAOS"),
            folder: tempfile::tempdir()?,
        })
    }

    /// Starts the programs of a way; `None` if one is missing.
    pub(crate) async fn open(&self, way: Way) -> Outcome<Option<Open>> {
        let (toolcrib, gateways) = (self.toolcrib.as_deref(), self.gateways.as_deref());
        let start = Start { folder: self.folder.path(), way };
        let open = match way {
            Way::Direct => Some(start.direct(Era::Sessions)?),
            Way::DirectStateless => Some(start.direct(Era::Stateless)?),
            Way::Hop => Some(start.hop()?),
            Way::StdioDirect => Some(start.own_pipe(ECHO_STDIO).await?),
            Way::StdioHop => Some(start.own_pipe(HOP_STDIO).await?),
            Way::McpProxy => {
                gateways.map(|at| start.gateway(at, gateways::mcp_proxy)).transpose()?
            }
            Way::Supergateway => {
                gateways.map(|at| start.gateway(at, gateways::supergateway)).transpose()?
            }
            Way::OursToHttp | Way::OursToStdio | Way::OursStateless => {
                toolcrib.map(|program| start.ours(program)).transpose()?
            }
            Way::StdioOursToStdio | Way::StdioOursToHttp => match toolcrib {
                Some(program) => Some(start.our_pipe(program).await?),
                None => None,
            },
        };
        if open.is_none() {
            missing(way.name());
        }
        Ok(open)
    }
}

/// Reports a missing part.
pub(crate) fn missing(what: &str) {
    eprintln!(
        "not measured: {what}; `cargo xtask bench gateway` installs and builds what it needs"
    );
}

/// A way with its programs running.
pub(crate) struct Open {
    pub(crate) way: Way,
    front: Front,
    /// The client's peer first, then the programs after it.
    programs: Vec<Program>,
}

enum Front {
    Http(Target),
    Pipe(Pipe),
}

impl Open {
    pub(crate) async fn round(&mut self, callers: usize) -> Outcome<Round> {
        let found = match &mut self.front {
            Front::Http(target) => target.round(callers).await,
            Front::Pipe(pipe) => pipe.round(callers).await,
        };
        found.map_err(|error| {
            let said = self.programs.first().map(Program::said).unwrap_or_default();
            format!("{}: {error}\n{said}", self.way.name()).into()
        })
    }

    /// One call, before anything is measured.
    pub(crate) async fn once(&mut self) -> Outcome {
        match &mut self.front {
            Front::Http(target) => target.once().await,
            Front::Pipe(pipe) => pipe.once().await,
        }
    }

    /// The memory of the client's peer, in MiB.
    pub(crate) fn memory(&self) -> f64 {
        self.programs.first().map(Program::memory).unwrap_or_default()
    }
}

/// How ways are opened.
struct Start<'a> {
    folder: &'a Path,
    way: Way,
}

impl Start<'_> {
    fn program(&self, command: Command, part: &str) -> Outcome<Program> {
        Program::start(command, self.folder, &format!("{:?}-{part}", self.way))
    }

    /// A program that listens at the address.
    fn listening(&self, mut command: Command, part: &str, address: SocketAddr) -> Outcome<Program> {
        command.stdout(Stdio::null());
        let mut program = self.program(command, part)?;
        program.wait_for(address)?;
        Ok(program)
    }

    fn echo(&self) -> Outcome<(Program, SocketAddr)> {
        let address = free_address()?;
        let command = own(&[ECHO_HTTP, &address.port().to_string(), "0"])?;
        Ok((self.listening(command, "server", address)?, address))
    }

    fn http(&self, programs: Vec<Program>, address: SocketAddr, tool: &str, era: Era) -> Open {
        let target = Target { address, token: None, tool: tool.into(), era };
        Open { way: self.way, front: Front::Http(target), programs }
    }

    fn direct(&self, era: Era) -> Outcome<Open> {
        let (echo, address) = self.echo()?;
        Ok(self.http(vec![echo], address, TOOL, era))
    }

    fn hop(&self) -> Outcome<Open> {
        let address = free_address()?;
        let command = own(&[HOP_HTTP, &address.port().to_string()])?;
        let program = self.listening(command, "proxy", address)?;
        Ok(self.http(vec![program], address, TOOL, Era::Sessions))
    }

    fn gateway(
        &self,
        folder: &Path,
        command: impl Fn(&Path, u16) -> Outcome<Command>,
    ) -> Outcome<Open> {
        let address = free_address()?;
        let program = self.listening(command(folder, address.port())?, "gateway", address)?;
        Ok(self.http(vec![program], address, TOOL, Era::Sessions))
    }

    async fn own_pipe(&self, role: &str) -> Outcome<Open> {
        let mut program = self.program(piped(own(&[role])?), "program")?;
        let pipe = Pipe::open(&mut program, TOOL).await?;
        Ok(Open { way: self.way, front: Front::Pipe(pipe), programs: vec![program] })
    }

    /// The server of our gateway, started unless it is the gateway's child.
    fn behind(&self) -> Outcome<(Behind, Option<Program>)> {
        if matches!(self.way, Way::OursToStdio | Way::StdioOursToStdio) {
            return Ok((Behind::Stdio(env::current_exe()?, ECHO_STDIO), None));
        }
        let (echo, address) = self.echo()?;
        Ok((Behind::Http(address), Some(echo)))
    }

    fn ours(&self, program: &Path) -> Outcome<Open> {
        let (behind, echo) = self.behind()?;
        let folder = self.folder.join(format!("{:?}", self.way));
        let address = free_address()?;
        let command = served::command(program, &folder, &behind, Door::Http(address))?;
        let mut programs = vec![self.listening(command, "gateway", address)?];
        programs.extend(echo);
        let era = if self.way == Way::OursStateless { Era::Stateless } else { Era::Sessions };
        let token = Some(served::token(&folder)?);
        let target = Target { address, token, tool: served::TOOL.into(), era };
        Ok(Open { way: self.way, front: Front::Http(target), programs })
    }

    async fn our_pipe(&self, program: &Path) -> Outcome<Open> {
        let (behind, echo) = self.behind()?;
        let folder = self.folder.join(format!("{:?}", self.way));
        let command = served::command(program, &folder, &behind, Door::Stdio)?;
        let mut gateway = self.program(piped(command), "gateway")?;
        let pipe = Pipe::open(&mut gateway, served::TOOL).await?;
        let mut programs = vec![gateway];
        programs.extend(echo);
        Ok(Open { way: self.way, front: Front::Pipe(pipe), programs })
    }
}
