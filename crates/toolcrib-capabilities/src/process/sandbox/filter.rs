//! The system calls that the tier `full` denies.
//!
//! The list contains calls that give access around files and network (mounts, namespaces, keys,
//! other processes), and those that programs do not need and that had most of the kernel's faults
//! (io_uring, bpf, userfaultfd, performance events). A denied call fails with `EPERM`, so that
//! programs which probe for a feature work without it.

use std::{collections::BTreeMap, sync::OnceLock};

use libc::c_long;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// Denied with any arguments.
const DENIED: &[c_long] = &[
    // Mounts.
    libc::SYS_chroot,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_pivot_root,
    libc::SYS_umount2,
    // Other processes and their namespaces.
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_setns,
    // Keys of the kernel, which are not part of any namespace.
    libc::SYS_add_key,
    libc::SYS_keyctl,
    libc::SYS_request_key,
    // Files by handle, past the rules on paths, and events about the files of others.
    libc::SYS_fanotify_init,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    // Large interfaces of the kernel.
    libc::SYS_bpf,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // The machine.
    libc::SYS_acct,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_kexec_file_load,
    libc::SYS_kexec_load,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    OPEN_TREE_ATTR,
];

#[cfg(target_arch = "x86_64")]
const DENIED_HERE: &[c_long] = &[libc::SYS_ioperm, libc::SYS_iopl, libc::SYS_uselib];
#[cfg(not(target_arch = "x86_64"))]
const DENIED_HERE: &[c_long] = &[];

/// `open_tree_attr`, which has the same number on all architectures and no name in `libc` yet.
const OPEN_TREE_ATTR: c_long = 467;

/// The bit of the numbers of x32, a second table of calls on x86-64, and the range of calls that only it has.
#[cfg(target_arch = "x86_64")]
const X32: c_long = 0x4000_0000;
#[cfg(target_arch = "x86_64")]
const X32_OWN: std::ops::RangeInclusive<c_long> = 512..=547;

/// The flags of `clone` and `unshare` that make namespaces.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    CLONE_NEWTIME,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// A flag of `unshare` alone, without a name in `libc`: for `clone`, the lowest byte is a signal.
const CLONE_NEWTIME: libc::c_int = 0x80;

/// The families of sockets that a network namespace confines. Others reach services of the host
/// (Unix sockets by path) or its hypervisor (vsock), or are not needed.
const FAMILIES: [libc::c_int; 3] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Terminal requests that type as if the user did: TIOCSTI and TIOCLINUX. The types of the numbers
/// in `libc` differ between C libraries.
const TERMINAL: [u64; 2] = [0x5412, 0x541C];

/// The filters, in the order of installation. Made once per process.
pub(super) fn filters() -> Result<Vec<BpfProgram>, String> {
    static MADE: OnceLock<Result<Vec<BpfProgram>, String>> = OnceLock::new();
    MADE.get_or_init(|| make().map_err(|error| error.to_string())).clone()
}

fn make() -> Result<Vec<BpfProgram>, seccompiler::BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let program = |rules, errno: libc::c_int| -> Result<BpfProgram, seccompiler::BackendError> {
        let denied = SeccompAction::Errno(errno.unsigned_abs());
        SeccompFilter::new(rules, SeccompAction::Allow, denied, arch)?.try_into()
    };
    // Its flags are in memory, which a filter cannot read. The C library uses `clone` instead.
    let in_memory = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    Ok(vec![program(denied()?, libc::EPERM)?, program(in_memory, libc::ENOSYS)?])
}

fn denied() -> Result<BTreeMap<c_long, Vec<SeccompRule>>, seccompiler::BackendError> {
    let mut rules: BTreeMap<c_long, Vec<SeccompRule>> = BTreeMap::new();
    for number in DENIED.iter().chain(DENIED_HERE) {
        rules.insert(*number, Vec::new());
    }
    let has_flag = |flag: libc::c_int| {
        let flag = u64::from(flag.unsigned_abs());
        SeccompRule::new(vec![SeccompCondition::new(0, Len::Dword, Op::MaskedEq(flag), flag)?])
    };
    let unshare = NAMESPACES.into_iter().map(has_flag).collect::<Result<Vec<_>, _>>()?;
    let of_clone = NAMESPACES.into_iter().filter(|flag| *flag != CLONE_NEWTIME);
    let clone = of_clone.map(has_flag).collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_unshare, unshare);
    rules.insert(libc::SYS_clone, clone);
    let other_family = FAMILIES
        .into_iter()
        .map(|family| {
            SeccompCondition::new(0, Len::Dword, Op::Ne, u64::from(family.unsigned_abs()))
        })
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(other_family)?]);
    // A datagram socket of a pair can send to any Unix socket by path. The low bits are the type.
    let datagram = u64::from(libc::SOCK_DGRAM.unsigned_abs());
    let datagram = SeccompCondition::new(1, Len::Dword, Op::MaskedEq(0xf), datagram)?;
    rules.insert(libc::SYS_socketpair, vec![SeccompRule::new(vec![datagram])?]);
    let typing = TERMINAL
        .into_iter()
        .map(|request| {
            SeccompRule::new(vec![SeccompCondition::new(1, Len::Dword, Op::Eq, request)?])
        })
        .collect::<Result<Vec<_>, _>>()?;
    rules.insert(libc::SYS_ioctl, typing);
    #[cfg(target_arch = "x86_64")]
    deny_x32(&mut rules);
    Ok(rules)
}

/// Denies in the second table of calls what the first one denies, and with any arguments.
#[cfg(target_arch = "x86_64")]
fn deny_x32(rules: &mut BTreeMap<c_long, Vec<SeccompRule>>) {
    let numbers: Vec<_> = rules.keys().copied().chain([libc::SYS_clone3]).chain(X32_OWN).collect();
    for number in numbers {
        rules.insert(number | X32, Vec::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_fit_into_the_kernel() {
        let filters = filters().unwrap();
        // BPF_MAXINSNS.
        assert!(filters.iter().all(|filter| !filter.is_empty() && filter.len() <= 4096));
        assert_eq!(filters.len(), 2);
    }
}
