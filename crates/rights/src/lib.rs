//! What a process may do: the capabilities that it needs enter, and perhaps the user that it is to be; the process
//! keeps these and nothing else. [`system_calls`] does the same for what its threads call.
//!
//! Capabilities belong to threads, and a new thread has those of the one that starts it: all here is to be called
//! before there are others.

use std::ffi::CString;

use caps::errors::CapsError;
use caps::{CapSet, CapsHashSet};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{User, getresuid, initgroups, setgid, setuid};

pub use caps::Capability;

pub mod system_calls;

/// Why rights cannot be given up.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no such user.
    #[error("there is no user '{0}': add one (adduser --system {0}), or name another")]
    NoSuchUser(String),
    /// The kernel does not let this process become the user.
    #[error("cannot become the user '{user}': {}; only root can", .cause.desc())]
    User {
        /// The user's name.
        user: String,
        /// What the kernel answered.
        cause: Errno,
    },
    /// The kernel does not take capabilities.
    #[error("cannot give up capabilities: {0}; does a container forbid it?")]
    Capabilities(#[from] CapsError),
}

/// Keeps those of `kept` that the calling thread has, and gives up all others for good. What it starts as root gets
/// them again (capabilities(7)), unless it is started so that it gains none.
///
/// # Errors
/// [`Error::Capabilities`].
pub fn keep_only(kept: &[Capability]) -> Result<(), Error> {
    let permitted = caps::read(None, CapSet::Permitted)?;
    keep(kept, &permitted)
}

/// Becomes `user`, with the groups of that user, unless it is that user already; and keeps of the capabilities those of `kept` that the calling
/// thread has. Neither this process nor what it starts can gain others.
///
/// # Errors
/// [`Error`].
pub fn become_user(user: &str, kept: &[Capability]) -> Result<(), Error> {
    let found = User::from_name(user).ok().flatten().ok_or_else(|| Error::NoSuchUser(user.to_owned()))?;
    let permitted = caps::read(None, CapSet::Permitted)?;
    let uids = getresuid().map_err(|cause| Error::User { user: user.to_owned(), cause })?;
    let change = || {
        if [uids.real, uids.effective, uids.saved] == [found.uid; 3] && !found.uid.is_root() {
            // Only root can choose its groups.
            return prctl::set_no_new_privs();
        }
        // Who leaves root loses all capabilities unless asked to keep them.
        prctl::set_keepcaps(true)?;
        initgroups(&CString::new(user).map_err(|_| Errno::EINVAL)?, found.gid)?;
        setgid(found.gid)?;
        setuid(found.uid)?;
        prctl::set_no_new_privs()
    };
    change().map_err(|cause| Error::User { user: user.to_owned(), cause })?;
    keep(kept, &permitted)
}

fn keep(kept: &[Capability], permitted: &CapsHashSet) -> Result<(), Error> {
    let kept: CapsHashSet = kept.iter().copied().filter(|one| permitted.contains(one)).collect();
    let inherited = caps::read(None, CapSet::Inheritable)?;
    caps::set(None, CapSet::Effective, &kept)?;
    caps::set(None, CapSet::Permitted, &kept)?;
    // What a process starts inherits these only where it did before.
    Ok(caps::set(None, CapSet::Inheritable, &inherited.intersection(&kept).copied().collect())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a thread of its own has after `change`.
    fn after(change: impl FnOnce() -> Result<(), Error> + Send + 'static) -> Result<CapsHashSet, Error> {
        let thread = std::thread::spawn(|| {
            change()?;
            let [effective, permitted] =
                [CapSet::Effective, CapSet::Permitted].map(|set| caps::read(None, set));
            let effective = effective?;
            assert_eq!(effective, permitted?);
            Ok(effective)
        });
        thread.join().unwrap()
    }

    #[test]
    fn what_is_not_kept_is_gone_and_nothing_is_gained() {
        let before = caps::read(None, CapSet::Permitted).unwrap();
        let kept = [Capability::CAP_NET_ADMIN, Capability::CAP_BPF];
        let expected: CapsHashSet = before.iter().copied().filter(|one| kept.contains(one)).collect();
        assert_eq!(after(move || keep_only(&kept)).unwrap(), expected);
        let none = after(|| keep_only(&[]).and_then(|()| keep_only(&[Capability::CAP_NET_ADMIN])));
        assert!(none.unwrap().is_empty());
    }

    #[test]
    fn who_is_no_user_is_refused() {
        let refused = after(|| become_user("no such user", &[])).unwrap_err().to_string();
        assert!(refused.contains("adduser"), "{refused}");
    }
}
