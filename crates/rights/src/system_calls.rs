//! Which system calls a thread gives up: a [`Duty`] enters, and from then on the kernel refuses with EPERM what this duty
//! never calls, to the thread and to all that it starts.
//!
//! What is given up is a list. The alternative, a list of what is kept, would have to know every call of every driver, C
//! library and allocator that a worker runs in.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use nix::errno::Errno;
use nix::libc::{self, c_long};
use nix::sys::prctl;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// What a thread is there for, once it has opened what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Duty {
    /// It runs a router, with its interfaces and kernel programs, and starts no other programs.
    Router,
    /// It moves frames, and opens nothing more. Of bpf(2) it runs programs.
    Frames,
}

/// Why system calls cannot be given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel filters none.
    #[error("the kernel does not filter system calls ({}): use one with CONFIG_SECCOMP_FILTER", .0.desc())]
    Kernel(Errno),
    /// There is no filter for this processor.
    #[error("system calls cannot be filtered on this processor: {0}")]
    Processor(#[from] BackendError),
}

/// The number of kexec_file_load(2). The crate libc lacks it for arm64 with musl; there it is that of the kernel's
/// asm-generic/unistd.h.
#[cfg(not(target_arch = "aarch64"))]
const KEXEC_FILE_LOAD: c_long = libc::SYS_kexec_file_load;
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: c_long = 294;

/// Programs, other processes, mounts, other kernels and modules, the machine's clock and name, keys, measuring others, and
/// what attacks on kernels like best.
const NO_ROUTER: [c_long; 47] = [
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_personality,
];
/// What moving frames needs no more besides: other namespaces, other users and rights, connections and files by name that
/// others would find.
const NO_FRAMES: [c_long; 16] = [
    libc::SYS_setns,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_fchmodat,
    libc::SYS_fchownat,
];
/// The command of bpf(2) that runs a program.
const BPF_PROG_TEST_RUN: u64 = 10;

/// Gives up the system calls that `duty` does not need, for the calling thread and for what it starts from now on. What
/// it could gain by starting programs it gives up as well.
///
/// # Errors
/// [`Error`]; everything goes on as before then.
pub fn give_up(duty: Duty) -> Result<(), Error> {
    let filter = filter(duty)?;
    prctl::set_no_new_privs().map_err(Error::Kernel)?;
    let program = libc::sock_fprog {
        // A filter has some hundreds of instructions, and the kernel refuses one that is too long.
        len: filter.len().try_into().unwrap_or(u16::MAX),
        filter: filter.as_ptr().cast::<libc::sock_filter>().cast_mut(),
    };
    // Without the flag, kernels before 5.16 have a thread with a filter speculate less, which makes it slower.
    let (action, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW);
    // SAFETY: the kernel copies the instructions, which outlive the call; both types are the kernel's struct sock_filter.
    let result = unsafe { libc::syscall(libc::SYS_seccomp, action, flags, &raw const program) };
    Errno::result(result).map(drop).map_err(Error::Kernel)
}

/// Whether this kernel can filter system calls.
///
/// # Errors
/// [`Error::Kernel`] where it cannot.
pub fn can_be_given_up() -> Result<(), Error> {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: the kernel reads one number, which outlives the call.
    let result =
        unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &raw const action) };
    Errno::result(result).map(drop).map_err(Error::Kernel)
}

fn filter(duty: Duty) -> Result<BpfProgram, Error> {
    let mut refused: BTreeMap<i64, Vec<SeccompRule>> = NO_ROUTER.map(|call| (call, Vec::new())).into();
    if duty == Duty::Frames {
        // A driver of DPDK may need them at its start.
        #[cfg(target_arch = "x86_64")]
        refused.extend([libc::SYS_iopl, libc::SYS_ioperm].map(|call| (call, Vec::new())));
        refused.extend(NO_FRAMES.map(|call| (call, Vec::new())));
        let other = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, BPF_PROG_TEST_RUN)?;
        refused.insert(libc::SYS_bpf, vec![SeccompRule::new(vec![other])?]);
    }
    let refusal = SeccompAction::Errno(Errno::EPERM as u32);
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, refusal, ARCH.try_into()?)?;
    let known: BpfProgram = filter.try_into()?;
    let mut program = if cfg!(target_arch = "x86_64") { without_x32().to_vec() } else { Vec::new() };
    program.extend(known);
    Ok(program)
}

/// Refuses all calls of the kind x32: the same processor and the same calls, by other numbers.
fn without_x32() -> [sock_filter; 3] {
    const FIRST: u32 = 0x4000_0000;
    let instruction = |code: u32, jf, k| sock_filter { code: code as u16, jt: 0, jf, k };
    [
        // The number is the first word of what the kernel says of a call.
        instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        instruction(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, FIRST),
        instruction(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ERRNO | Errno::EPERM as u32),
    ]
}

#[cfg(test)]
mod tests {
    use std::process::Command;
    use std::{fs, io, ptr, thread};

    use super::*;

    /// What a thread says that has this duty.
    fn with<T: Send + 'static>(duty: Duty, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        if let Err(error) = can_be_given_up() {
            eprintln!("skipped: {error}");
            return None;
        }
        let thread = thread::spawn(move || give_up(duty).map(|()| work()));
        Some(thread.join().unwrap().unwrap())
    }

    fn refused(result: c_long) -> bool {
        Errno::result(result) == Err(Errno::EPERM)
    }

    #[test]
    fn a_worker_starts_no_program_and_others_do() {
        for duty in [Duty::Router, Duty::Frames] {
            let Some(started) = with(duty, || Command::new("/bin/true").status()) else { return };
            assert_eq!(started.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
        }
        assert!(Command::new("/bin/true").status().unwrap().success());
    }

    #[test]
    fn what_a_worker_starts_is_bound_too() {
        let started = || thread::spawn(|| Command::new("/bin/true").status()).join().unwrap().is_err();
        assert!(with(Duty::Frames, started).unwrap_or(true));
    }

    #[test]
    fn of_bpf_a_worker_runs_programs_and_loads_none() {
        // Nothing is meant by either: a call that is let through fails for other reasons.
        // SAFETY: the kernel reads no bytes of a null pointer.
        let call =
            |command: c_long| unsafe { libc::syscall(libc::SYS_bpf, command, ptr::null::<u8>(), 0_u32) };
        let load = 5;
        let Some((loads, runs)) = with(Duty::Frames, move || (refused(call(load)), call(10) == 0)) else {
            return;
        };
        assert!(loads && !runs);
    }

    #[test]
    fn neither_tracing_nor_mounting_nor_calls_of_x32_pass() {
        let tried = || {
            // SAFETY: none of these calls reads or writes memory of this process.
            unsafe {
                let trace = libc::syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0);
                let detach = libc::syscall(libc::SYS_umount2, ptr::null::<u8>(), 0);
                let x32 = libc::syscall(libc::SYS_getpid | 0x4000_0000);
                [refused(trace), refused(detach), !cfg!(target_arch = "x86_64") || refused(x32)]
            }
        };
        assert_eq!(with(Duty::Router, tried).unwrap_or([true; 3]), [true; 3]);
    }

    #[test]
    fn a_worker_goes_on_with_threads_memory_and_files() {
        let work = || {
            let read = thread::spawn(|| fs::read_to_string("/proc/thread-self/status").unwrap());
            (read.join().unwrap(), vec![1_u8; 64 << 20].len())
        };
        let Some((status, length)) = with(Duty::Frames, work) else { return };
        assert!(status.contains("Seccomp:\t2") && length == 64 << 20, "{status}");
    }
}
