//! OAuth as a client: tokens for HTTP servers that require authorization.
//!
//! A server that answers 401 names its authorization server. [`Authorization::login`] asks a person
//! in a browser and stores the tokens in a [`TokenStore`]; the connections of the client use and
//! refresh them. With [`OAuth::client_credentials`] no person is needed.
//!
//! | file | does |
//! |---|---|
//! | `challenge` | reads `WWW-Authenticate` |
//! | `discovery` | finds the authorization server and verifies its identity |
//! | `client` | chooses or registers this client |
//! | `login` | asks a person: address, redirect, code |
//! | `loopback` | receives the redirect |
//! | `grant` | requests tokens, refreshes and revokes them |
//! | `access` | gives the connections of one identity their token |
//! | `record` | the stored form |

mod access;
mod authorization;
mod challenge;
mod client;
mod discovery;
mod error;
pub(crate) mod fetch;
mod grant;
mod login;
mod loopback;
mod record;
mod settings;
mod store;

pub(crate) use self::{
    access::{Access, Owner},
    authorization::Authority,
    challenge::Challenge,
};
pub use self::{
    authorization::{Authorization, Login},
    error::OAuthError,
    settings::OAuth,
    store::{MemoryTokens, TokenLock, TokenStore},
};
