//! The loopback interface of a new network namespace, and the socket on it that this process, which
//! is outside, accepts connections from.
//!
//! A socket belongs to the namespace in which it was created. So the program's side creates it and
//! sends it to the host: no process forwards anything.

use std::{io, os::fd::RawFd, ptr};
#[cfg(feature = "http")]
use std::{
    net::TcpListener,
    os::{
        fd::{AsRawFd as _, FromRawFd as _, OwnedFd},
        unix::net::UnixStream,
    },
};

use libc::c_int;

use super::Stage;

/// The port of the proxy, on 127.0.0.1 of the program's namespace, which no other process uses yet.
pub(crate) const PROXY_PORT: u16 = 3128;

/// The number of connections that wait to be accepted.
const BACKLOG: c_int = 64;

/// A message with room for one descriptor.
#[repr(C, align(8))]
struct Message {
    control: [u8; 32],
    byte: u8,
}

/// Activates the interface `lo`, which has the addresses 127.0.0.1 and ::1 then.
pub(super) fn raise_loopback() -> io::Result<()> {
    // SAFETY: system calls on a structure of their type, for which all zero is a valid start.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        Stage::Network.check(socket)?;
        let mut request: libc::ifreq = std::mem::zeroed();
        for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
            *to = from.cast_signed() as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        let raised = libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request);
        let outcome = Stage::Network.check(raised);
        libc::close(socket);
        outcome.map(drop)
    }
}

/// Listens on [`PROXY_PORT`], and sends the listener over a socket.
pub(super) fn listen(to: RawFd) -> io::Result<()> {
    // SAFETY: system calls on structures of their types, for which all zero is a valid start.
    unsafe {
        let listener = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        Stage::Network.check(listener)?;
        let mut address: libc::sockaddr_in = std::mem::zeroed();
        address.sin_family = libc::AF_INET as libc::sa_family_t;
        address.sin_port = PROXY_PORT.to_be();
        address.sin_addr.s_addr = libc::INADDR_LOOPBACK.to_be();
        let bytes = size_of::<libc::sockaddr_in>() as libc::socklen_t;
        Stage::Network.check(libc::bind(listener, (&raw const address).cast(), bytes))?;
        Stage::Network.check(libc::listen(listener, BACKLOG))?;
        let sent = send(to, listener);
        libc::close(listener);
        sent
    }
}

fn send(to: RawFd, sent: RawFd) -> io::Result<()> {
    let mut message = Message { control: [0; 32], byte: 0 };
    // SAFETY: the header points into the message, which is large enough for one descriptor, and
    // stays in place.
    unsafe {
        let mut piece = libc::iovec { iov_base: (&raw mut message.byte).cast(), iov_len: 1 };
        let mut header = header(&mut piece, &mut message);
        let control = libc::CMSG_FIRSTHDR(&raw const header);
        if let Some(control) = control.as_mut() {
            control.cmsg_level = libc::SOL_SOCKET;
            control.cmsg_type = libc::SCM_RIGHTS;
            control.cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(control).cast::<RawFd>().write_unaligned(sent);
        }
        header.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        let count = libc::sendmsg(to, &raw const header, libc::MSG_NOSIGNAL);
        Stage::Network.check(if count == 1 { 0 } else { -1 }).map(drop)
    }
}

/// Receives the listener of a started program. Does not wait: it was sent before the program was
/// executed.
#[cfg(feature = "http")]
pub(crate) fn receive(from: &UnixStream) -> io::Result<TcpListener> {
    let mut message = Message { control: [0; 32], byte: 0 };
    // SAFETY: as above; the received descriptor is owned by nothing else.
    unsafe {
        let mut piece = libc::iovec { iov_base: (&raw mut message.byte).cast(), iov_len: 1 };
        let mut header = header(&mut piece, &mut message);
        let count = libc::recvmsg(from.as_raw_fd(), &raw mut header, libc::MSG_CMSG_CLOEXEC);
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let control = libc::CMSG_FIRSTHDR(&raw const header);
        match control.as_ref() {
            Some(found)
                if (found.cmsg_level, found.cmsg_type) == (libc::SOL_SOCKET, libc::SCM_RIGHTS) =>
            {
                let received = libc::CMSG_DATA(control).cast::<RawFd>().read_unaligned();
                Ok(TcpListener::from(OwnedFd::from_raw_fd(received)))
            }
            _ => Err(io::Error::other("the program's network sent no listener")),
        }
    }
}

/// A header for one byte and one descriptor.
fn header(piece: &mut libc::iovec, message: &mut Message) -> libc::msghdr {
    // SAFETY: all zero is a valid header.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_name = ptr::null_mut();
    header.msg_iov = ptr::from_mut(piece);
    header.msg_iovlen = 1;
    header.msg_control = message.control.as_mut_ptr().cast();
    header.msg_controllen = message.control.len() as _;
    header
}
