//! The `/proc` of a program in a namespace, and the limit that is set through it.

use std::{ffi::CStr, io, ptr};

use libc::c_int;

use super::{
    Stage,
    namespace::{unshare, write},
};

const FLAGS: libc::c_ulong = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

/// The result of [`show`].
pub(super) struct ProcMount {
    /// The process is in a mount namespace whose mounts are invisible outside.
    pub(super) own_mounts: bool,
    /// `/proc` is the namespace's: it shows no process outside. In many containers no such mount is
    /// permitted, and the program sees the existing `/proc`.
    pub(super) own_proc: bool,
    /// The program cannot change settings in `/proc/sys`.
    is_guarded: bool,
    /// The result of setting the limit.
    limited: io::Result<()>,
}

impl ProcMount {
    /// An error unless the limit was set and the program cannot lift it.
    pub(super) fn limited(self) -> io::Result<()> {
        self.limited?;
        if self.is_guarded {
            Ok(())
        } else {
            Err(Stage::Limit.failed(&io::Error::from_raw_os_error(libc::EPERM)))
        }
    }
}

/// In a mount namespace, mounts a `/proc` for the PID namespace of this process, sets the
/// namespace's `pid_max` if one is given, and makes read-only the files there that root could
/// write.
pub(super) fn show(pid_max: Option<&[u8]>) -> ProcMount {
    let own_mounts =
        unshare(libc::CLONE_NEWNS).is_ok() && mount(c"none", c"/", libc::MS_REC | libc::MS_SLAVE);
    let own_proc = own_mounts && mount(c"proc", c"/proc", FLAGS);
    let limited = pid_max.map_or(Ok(()), limit_pids);
    // SAFETY: a system call without pointers that cannot fail.
    let is_root = unsafe { libc::geteuid() } == 0;
    let is_guarded = !is_root || own_mounts && take_from_root();
    ProcMount { own_mounts, own_proc, is_guarded, limited }
}

/// The `pid_max` of a namespace for this number of processes and threads in addition to PID 1, as text.
/// The kernel assigns the first 300 numbers only once, and accepts nothing below 301.
pub(super) fn pid_max(most: u32) -> Vec<u8> {
    most.saturating_add(299).clamp(301, 4 * 1024 * 1024).to_string().into_bytes()
}

fn limit_pids(pid_max: &[u8]) -> io::Result<()> {
    // Uses up the first 300 numbers. If the kernel has no such file, that many more processes are
    // possible until they are used up.
    let _ = write(Stage::Limit, c"/proc/sys/kernel/ns_last_pid", b"300");
    write(Stage::Limit, c"/proc/sys/kernel/pid_max", pid_max)
}

/// Makes kernel files read-only that root may write without any capability: with `core_pattern` in
/// `/proc/sys` it would regain all capabilities, with `sysrq-trigger`, if the kernel has it, reset
/// the machine, with `/sys` change control groups and devices. Returns whether `/proc/sys` is
/// read-only.
fn take_from_root() -> bool {
    take_devices_from_root();
    make_read_only(c"/proc/sysrq-trigger");
    make_all_read_only(c"/sys");
    make_read_only(c"/proc/sys")
}

/// Hides from root the devices that belong to it: disks, memory, consoles. Without any capability
/// it could open them as their owner. Devices that any user may open remain; each is mounted on
/// itself, where the flag on `/dev` does not apply. If no such mount is permitted, all remain.
fn take_devices_from_root() {
    const FOR_ALL: [&CStr; 7] = [
        c"/dev/null",
        c"/dev/zero",
        c"/dev/full",
        c"/dev/random",
        c"/dev/urandom",
        c"/dev/tty",
        c"/dev/ptmx",
    ];
    let no_devices = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_NODEV | libc::MS_NOSUID;
    let dev = c"/dev";
    if FOR_ALL.iter().all(|device| mount(device, device, libc::MS_BIND))
        && mount(dev, dev, libc::MS_BIND | libc::MS_REC)
    {
        mount(dev, dev, no_devices);
    }
}

fn make_read_only(path: &CStr) -> bool {
    let read_only = libc::MS_REMOUNT | libc::MS_BIND | libc::MS_RDONLY | FLAGS;
    mount(path, path, libc::MS_BIND) && mount(path, path, read_only)
}

/// Also mounts below; from Linux 5.12 on.
fn make_all_read_only(path: &CStr) -> bool {
    set_mounts(path, libc::MOUNT_ATTR_RDONLY, 0, libc::AT_RECURSIVE) == 0
}

/// Sets and clears attributes of the mount at a path, and with a flag of those below. From Linux
/// 5.12 on.
pub(super) fn set_mounts(path: &CStr, set: u64, clear: u64, flags: c_int) -> c_int {
    let attributes =
        libc::mount_attr { attr_set: set, attr_clr: clear, propagation: 0, userns_fd: 0 };
    // SAFETY: the string ends in NUL, and the kernel reads as many bytes of the attributes as they
    // have.
    let set = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            &raw const attributes,
            size_of::<libc::mount_attr>(),
        )
    };
    c_int::try_from(set).unwrap_or(-1)
}

/// `what` is the type of the file system as well.
fn mount(what: &CStr, onto: &CStr, flags: libc::c_ulong) -> bool {
    // SAFETY: the strings end in NUL, and no data is passed.
    let mounted: c_int =
        unsafe { libc::mount(what.as_ptr(), onto.as_ptr(), what.as_ptr(), flags, ptr::null()) };
    mounted == 0
}
