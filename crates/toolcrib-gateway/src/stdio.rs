//! One client on a pair of pipes, such as standard input and output.

use std::{sync::Arc, time::Duration};

use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite};
use toolcrib_core::CancellationToken;
use uuid::Uuid;

use super::{
    Gateway, GatewayError,
    access::{Access, Caller},
    connection::{Connection, Watched},
    handler::Handler,
    lines::Lines,
    output::Output,
    quoted::{LONGEST_ERROR, cut},
};

/// How long calls continue after the input has ended: enough to answer piped input, and less than
/// clients wait before they send signals.
const GRACE: Duration = Duration::from_secs(1);

/// How long a client may take to read the rest, from the end of its input or the token.
const READ_WITHIN: Duration = Duration::from_secs(5);

impl Gateway {
    /// Serves the one client at the other end of these pipes, as this access, until its input ends
    /// or the token fires. Running calls are then cancelled, a second after the end of the input,
    /// and nothing runs any more when this returns. A client that does not read its output has five
    /// seconds for it then; unread output is lost.
    ///
    /// A line of more than 4 MiB, and one that is not a message of the protocol, is refused with an
    /// error, which has the id of the request if one can be found.
    ///
    /// # Errors
    /// [`GatewayError`] if the access presets a skill that is unknown or that it may not activate,
    /// or the client's first message is not of the protocol.
    pub async fn serve_stdio(
        &self,
        stdin: impl AsyncRead + Send + Unpin + 'static,
        stdout: impl AsyncWrite + Send + Unpin + 'static,
        access: Access,
        cancellation: CancellationToken,
    ) -> Result<(), GatewayError> {
        self.0.check(&access).map_err(GatewayError::Access)?;
        let serving = self.serving(&cancellation);
        let id: Arc<str> = Uuid::now_v7().simple().to_string().into();
        let caller = Caller { access: Arc::new(access), peer: None };
        let connection = Connection::new(id, GRACE);
        let (input, closing) = (connection.clone(), serving.cancellation.clone());
        let stdout = Output::new(stdout, async move {
            tokio::select! {
                () = input.gone() => {}
                () = closing.cancelled() => {}
            }
            tokio::time::sleep(READ_WITHIN).await;
        });
        let gateway = Arc::clone(&serving.gateway);
        let lines = Lines::new((stdin, stdout), gateway, connection.clone(), caller.clone());
        let transport = Watched::new(lines, connection, Some(caller));
        let handler = Handler::new(&serving, None);
        let begun = serve_server_with_ct(handler, transport, serving.cancellation.clone()).await;
        let outcome = match begun {
            Ok(client) => {
                // The other way to end is a panic inside rmcp, after which nothing is served
                // either.
                let _ = client.waiting().await;
                Ok(())
            }
            Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => {
                Ok(())
            }
            Err(error) => Err(GatewayError::Handshake(cut(&error.to_string(), LONGEST_ERROR))),
        };
        serving.end().await;
        outcome
    }
}
