//! Signals of a turn.

pub(crate) mod signals;

pub use self::signals::{AckSubscription, AlreadySignaledError, Signal, TurnSignals};
pub use crate::{
    names::{Identity, TurnInfo},
    tool::{
        AgentTask, Attachment, AttachmentError, Attachments, ClientAbilities, ClientHandle,
        ClientPort, ClientRefusal,
    },
};
