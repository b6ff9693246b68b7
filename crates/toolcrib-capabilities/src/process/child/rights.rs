//! The rights that a program does not inherit from this process. Linux only.

use std::{io, ptr};

use libc::{c_int, c_long, c_ulong};

use super::Stage;

/// Drops all capabilities permanently. `NO_NEW_PRIVS` prevents set-user-ID programs and file
/// capabilities from restoring any.
pub(super) fn drop_all() -> io::Result<()> {
    const LAST: c_ulong = 63;
    const VERSION_3: u32 = 0x2008_0522;
    Stage::Rights.check(prctl(libc::PR_SET_NO_NEW_PRIVS, 1))?;
    for capability in 0..=LAST {
        // Fails without `CAP_SETPCAP`: then the bounding set stays, and `NO_NEW_PRIVS` makes it
        // irrelevant.
        prctl(libc::PR_CAPBSET_DROP, capability);
    }
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong);
    let this_process = [VERSION_3, 0];
    // Effective, permitted, inheritable: twice 32 bits each.
    let none = [0_u32; 6];
    // SAFETY: both arrays have the layout and size of version 3.
    let dropped = unsafe { libc::syscall(libc::SYS_capset, this_process.as_ptr(), none.as_ptr()) };
    Stage::Rights.check(as_int(dropped)).map(drop)
}

/// Prevents this process and its children from tracing others and from reading their environment
/// and memory through `/proc`, by entering a Landlock domain. Denies nothing else but mounts. Needs
/// Linux 5.19 and [`drop_all`] before; without Landlock it has no effect.
pub(super) fn leave_others_alone() {
    /// Moving files between folders, the only right that is denied unless a rule allows it.
    const REFER: u64 = 1 << 13;
    const PATH_BENEATH: c_int = 1;
    #[repr(C, packed)]
    struct Rule {
        allowed: u64,
        below: c_int,
    }
    let handled = [REFER];
    // SAFETY: system calls on structures of the passed sizes, and on descriptors that are opened
    // and closed here.
    unsafe {
        let ruleset = as_int(libc::syscall(
            libc::SYS_landlock_create_ruleset,
            handled.as_ptr(),
            size_of_val(&handled),
            0,
        ));
        let below = libc::open(c"/".as_ptr(), libc::O_PATH | libc::O_CLOEXEC);
        let rule = Rule { allowed: REFER, below };
        if ruleset != -1
            && libc::syscall(
                libc::SYS_landlock_add_rule,
                ruleset,
                PATH_BENEATH,
                ptr::from_ref(&rule),
                0,
            ) == 0
        {
            libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0);
        }
        libc::close(below);
        libc::close(ruleset);
    }
}

/// Sets whether processes of the same user may read this one's memory and environment, and trace
/// it.
pub(super) fn set_readable(readable: bool) {
    prctl(libc::PR_SET_DUMPABLE, readable.into());
}

fn prctl(option: c_int, argument: c_ulong) -> c_int {
    // SAFETY: a system call on numbers.
    unsafe { libc::prctl(option, argument, 0 as c_ulong, 0 as c_ulong, 0 as c_ulong) }
}

fn as_int(result: c_long) -> c_int {
    c_int::try_from(result).unwrap_or(-1)
}
