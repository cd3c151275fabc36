//! The kernel programs: opened, set up, loaded, and unloaded when dropped.
//!
//! Closures that set a program up before loading enter; loaded programs and typed reads of
//! their maps leave.

use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, OpenObject, PrintLevel, set_print};

use crate::Error;
use crate::timeline::Bins;

#[allow(clippy::all, clippy::pedantic, missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
pub mod generate {
    include!(concat!(env!("OUT_DIR"), "/generate.skel.rs"));
}

#[allow(clippy::all, clippy::pedantic, missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
pub mod receive {
    include!(concat!(env!("OUT_DIR"), "/receive.skel.rs"));
}

/// A skeleton together with the storage it borrows from, unloaded when dropped.
pub struct Loaded<S> {
    skeleton: ManuallyDrop<S>,
    storage: *mut MaybeUninit<OpenObject>,
}

impl<S> Loaded<S> {
    /// Opens what `builder` builds, lets `set_up` change it, and loads it into the kernel.
    pub fn load<B>(
        builder: B,
        set_up: impl FnOnce(&mut B::Output) -> Result<(), libbpf_rs::Error>,
    ) -> Result<Self, Error>
    where
        B: SkelBuilder<'static>,
        B::Output: OpenSkel<'static, Output = S>,
        S: libbpf_rs::skel::Skel<'static>,
    {
        let storage = Box::into_raw(Box::new(MaybeUninit::uninit()));
        // SAFETY: the box was just made and is freed only after the skeleton that borrows it
        // is gone: below when loading fails, in `drop` otherwise.
        let borrowed = unsafe { &mut *storage };
        let load = || {
            let mut open = builder.open(borrowed)?;
            set_up(&mut open)?;
            open.load()
        };
        kept().clear();
        let printed_before = set_print(Some((PrintLevel::Warn, |_, text| keep(&text))));
        let loaded = load();
        set_print(printed_before);
        match loaded {
            Ok(skeleton) => Ok(Self { skeleton: ManuallyDrop::new(skeleton), storage }),
            Err(error) => {
                // SAFETY: the skeleton was consumed by the failed load, so nothing borrows it.
                drop(unsafe { Box::from_raw(storage) });
                Err(refused(&error, &kept()))
            }
        }
    }
}

// SAFETY: the pointer to the storage is used only to free it, when dropped.
unsafe impl<S: Send> Send for Loaded<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Loaded<S> {}

impl<S> Deref for Loaded<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.skeleton
    }
}

impl<S> DerefMut for Loaded<S> {
    fn deref_mut(&mut self) -> &mut S {
        &mut self.skeleton
    }
}

impl<S> Drop for Loaded<S> {
    fn drop(&mut self) {
        // SAFETY: dropped once, here, and not used again; then nothing borrows the storage.
        unsafe {
            ManuallyDrop::drop(&mut self.skeleton);
            drop(Box::from_raw(self.storage));
        }
    }
}

/// What libbpf said while programs were loaded last: it has the verifier's reasons.
static MESSAGES: Mutex<String> = Mutex::new(String::new());
/// Bytes that are kept of it.
const KEPT: usize = 1 << 20;
/// Lines of the verifier's log that an error shows.
const SHOWN: usize = 4;

fn kept() -> std::sync::MutexGuard<'static, String> {
    MESSAGES.lock().unwrap_or_else(PoisonError::into_inner)
}

fn keep(text: &str) {
    let mut messages = kept();
    if messages.len() + text.len() <= KEPT {
        messages.push_str(text);
    }
}

fn refused(error: &libbpf_rs::Error, messages: &str) -> Error {
    if let Some((program, reasons)) = refused_by_the_verifier(messages) {
        return Error::Refused(format!(
            "the verifier of this kernel does not accept Linerate's program '{program}': please report it, with the \
             version of the kernel and its reasons: {}; until it is mended, `--engine af_xdp` needs no such program",
            reasons.join(" | ")
        ));
    }
    let remedy = match error.kind() {
        libbpf_rs::ErrorKind::PermissionDenied => {
            ": run as root, or with the capabilities CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN"
        }
        _ => "; Linux 5.18 or newer with BPF is needed, `linerate doctor` says what is missing",
    };
    Error::Refused(format!("the kernel does not load Linerate's XDP program: {error:#}{remedy}"))
}

/// The program that the verifier refused, and the last lines of its reasons, as libbpf prints them.
fn refused_by_the_verifier(messages: &str) -> Option<(&str, Vec<&str>)> {
    let (before, log) = messages.split_once("-- BEGIN PROG LOAD LOG --\n")?;
    let (log, _) = log.split_once("-- END PROG LOAD LOG --").unwrap_or((log, ""));
    let program = before.rsplit('\'').nth(1)?;
    let is_reason = |line: &&str| !line.is_empty() && !line.starts_with("processed ");
    let mut last: Vec<&str> = log.lines().filter(is_reason).rev().take(SHOWN).collect();
    last.reverse();
    (!last.is_empty()).then_some((program, last))
}

/// Values of a map that are plain old data: structs of integers, laid out as in C.
///
/// # Safety
/// Every bit pattern of the type must be valid, and the type must have no padding.
pub unsafe trait Plain: Copy + Default {
    /// The value that `bytes` hold; the default value when they are too few.
    fn from_bytes(bytes: &[u8]) -> Self {
        let mut value = Self::default();
        let size = size_of::<Self>();
        if let Some(bytes) = bytes.get(..size) {
            // SAFETY: `bytes` has the type's size, and any bit pattern is a valid value.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut value).cast(), size) };
        }
        value
    }

    /// The bytes of the value.
    fn bytes(&self) -> &[u8] {
        // SAFETY: the type has no padding, so all of its bytes are initialized.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }
}

// SAFETY: structs of u64, without padding.
unsafe impl Plain for generate::types::load {}
// SAFETY: as above.
unsafe impl Plain for generate::types::sent {}
// SAFETY: as above.
unsafe impl Plain for generate::types::histogram {}
// SAFETY: bytes.
unsafe impl Plain for generate::types::filling {}
// SAFETY: structs of u64, without padding.
unsafe impl Plain for receive::types::received {}
// SAFETY: as above.
unsafe impl Plain for receive::types::totals {}
// SAFETY: as above.
unsafe impl Plain for generate::types::stream_sent {}
// SAFETY: as above.
unsafe impl Plain for receive::types::stream_totals {}
// SAFETY: as above.
unsafe impl Plain for receive::types::latencies {}

/// The value at `index` of an array.
pub fn read<T: Plain>(map: &impl MapCore, index: usize) -> Result<T, Error> {
    Ok(T::from_bytes(&read_bytes(map, index)?))
}

/// The bins at `index` of an array: `struct bins` of `shared.h`.
pub fn bins(map: &impl MapCore, index: usize) -> Result<Bins, Error> {
    let bytes = read_bytes(map, index)?;
    let (words, _) = bytes.as_chunks::<4>();
    let (pairs, _) = words.as_chunks::<2>();
    let pairs =
        pairs.iter().map(|[number, frames]| (u32::from_ne_bytes(*number), u32::from_ne_bytes(*frames)));
    Ok(Bins::new(pairs.collect()))
}

fn read_bytes(map: &impl MapCore, index: usize) -> Result<Vec<u8>, Error> {
    let bytes = map.lookup(&key(index), MapFlags::ANY).map_err(|error| unreadable(&error))?;
    Ok(bytes.unwrap_or_default())
}

/// The values at `index` of a per-CPU array, one for each possible CPU.
pub fn read_per_cpu<T: Plain>(map: &impl MapCore, index: usize) -> Result<Vec<T>, Error> {
    let values = map.lookup_percpu(&key(index), MapFlags::ANY).map_err(|error| unreadable(&error))?;
    Ok(values.unwrap_or_default().iter().map(|bytes| T::from_bytes(bytes)).collect())
}

/// Sets the value at `index` of an array.
pub fn write<T: Plain>(map: &impl MapCore, index: usize, value: &T) -> Result<(), Error> {
    map.update(&key(index), value.bytes(), MapFlags::ANY).map_err(|error| unreadable(&error))
}

/// Sets the value at `index` of a per-CPU array to zero on every CPU.
pub fn clear_per_cpu(map: &impl MapCore, index: usize) -> Result<(), Error> {
    let cpus = libbpf_rs::num_possible_cpus().map_err(|error| unreadable(&error))?;
    let zero = vec![0; map.value_size() as usize];
    map.update_percpu(&key(index), &vec![zero; cpus], MapFlags::ANY).map_err(|error| unreadable(&error))
}

fn key(index: usize) -> [u8; 4] {
    (index as u32).to_ne_bytes()
}

fn unreadable(error: &libbpf_rs::Error) -> Error {
    Error::Failed(format!(
        "a kernel counter cannot be read or set: {error:#}; this is a defect, please report it"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_shows_why_the_verifier_refused_a_program() {
        let error = libbpf_rs::Error::from_raw_os_error(13);
        let messages = "libbpf: prog 'generate': BPF program load failed: Permission denied\n\
                        libbpf: prog 'generate': -- BEGIN PROG LOAD LOG --\n\
                        0: R1=ctx(off=0,imm=0) R10=fp0\n1: (bf) r6 = r1\nR2 invalid mem access 'scalar'\n\
                        processed 2 insns (limit 1000000) max_states_per_insn 0\n\
                        -- END PROG LOAD LOG --\nlibbpf: failed to load object\n";
        let text = refused(&error, messages).to_string();
        assert!(text.contains("'generate'") && text.contains("R2 invalid mem access 'scalar';"), "{text}");
        assert!(!text.contains("processed") && !text.contains("failed to load object"), "{text}");
        let text = refused(&error, "").to_string();
        assert!(text.contains("CAP_PERFMON"), "{text}");
    }
}
