//! One engine, three doors: a library's own loop, the agent, and the gateway in both eras. The
//! result of a call, and its events, are the same through each.

mod same;
mod through;
mod world;
