//! Kernel programs at a port: its index enters; a program that passes every frame on stays attached as long as
//! it is kept, and a handful of frames is sent to see whether any leaves.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::thread;
use std::time::{Duration, Instant};

use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Link as BpfLink, OpenObject};

use crate::link::Link;
use crate::{Error, Result};

#[allow(clippy::all, clippy::pedantic, missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/port.skel.rs"));
}

/// `BPF_F_TEST_XDP_LIVE_FRAMES` of linux/bpf.h.
const LIVE_FRAMES: u32 = 2;
/// Frames in one call, as many as the kernel hands a driver at once.
const BATCH: u32 = 16;
/// Drivers such as virtio_net count a batch when they send the next one and the card, or the host, is done with it.
const BATCHES: u32 = 4;
/// So another is sent as often as this.
const AGAIN: Duration = Duration::from_millis(250);
/// How long a driver may take to count: cards refresh their counters every second or two.
const PATIENCE: Duration = Duration::from_millis(2500);
const PAUSE: Duration = Duration::from_millis(50);
/// IEEE 802's type for local experiments: nothing acts on such a frame.
const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];
const FRAME: usize = 60;

/// A program that hands every frame to the kernel, attached to an interface until this is dropped or its
/// process ends, however it ends.
#[derive(Debug)]
pub struct Attached {
    _link: BpfLink,
}

impl Attached {
    /// Attaches it to the interface of this index, in the driver where it can. Drivers such as virtio_net and
    /// i40e transmit redirected frames only while a program is attached to the sending interface. Some reset
    /// their card for it: see [`crate::wait_for_carrier`].
    ///
    /// # Errors
    /// [`Error::Program`], also when there is another program already.
    pub fn to(index: u32) -> Result<Self> {
        let mut object = MaybeUninit::uninit();
        let loaded = load(&mut object, 0)?;
        let attached = loaded.progs.pass.attach_xdp(i32::try_from(index).unwrap_or_default());
        attached.map(|link| Self { _link: link }).map_err(|cause| Error::Program {
            what: format!("attach an XDP program to interface {index}"),
            cause,
        })
    }
}

/// Whether frames that are redirected to the interface `name` leave by it, as its own counter tells: 64 frames
/// of a type for local experiments, addressed to the interface itself, are sent, and 16 more each quarter of a second
/// until they are counted. Takes some 0.1 s when they leave, and 2.5 s when they do not. For kernels that do not tell
/// what a driver can do.
///
/// # Errors
/// [`Error::Program`] when the kernel sends no frames by a program (before Linux 5.18, or without the
/// capabilities); [`Error::Missing`].
pub fn probe(name: &str, mac: wire::MacAddress) -> Result<bool> {
    let before = Link::by_name(name)?;
    let mut object = MaybeUninit::uninit();
    let loaded = load(&mut object, before.index)?;
    let page = frame(mac);
    for _ in 0..BATCHES {
        send(&loaded, &page, name)?;
    }
    // The kernel sends frames of its own, but never so many in that time.
    let enough = u64::from(BATCH * BATCHES / 2);
    let (deadline, mut again) = (Instant::now() + PATIENCE, Instant::now() + AGAIN);
    loop {
        if Link::by_name(name)?.sent.saturating_sub(before.sent) >= enough {
            return Ok(true);
        }
        let now = Instant::now();
        if now >= deadline {
            return Ok(false);
        }
        if now >= again {
            send(&loaded, &page, name)?;
            again = now + AGAIN;
        }
        thread::sleep(PAUSE);
    }
}

/// Sends a batch of `page` to the interface `name`, for which the program was loaded.
fn send(loaded: &skeleton::PortSkel<'_>, page: &[u8], name: &str) -> Result<()> {
    let mut options = bpf_test_run_opts {
        sz: size_of::<bpf_test_run_opts>() as _,
        data_in: page.as_ptr().cast(),
        data_size_in: page.len() as u32,
        repeat: BATCH.cast_signed(),
        batch_size: BATCH,
        flags: LIVE_FRAMES,
        ..bpf_test_run_opts::default()
    };
    let program = loaded.progs.send.as_fd().as_raw_fd();
    // SAFETY: the frame, the options and the program's descriptor are valid until the call returns.
    let result = unsafe { bpf_prog_test_run_opts(program, &raw mut options) };
    if result < 0 {
        let cause = libbpf_rs::Error::from_raw_os_error(-result);
        return Err(Error::Program { what: format!("send frames by a program to '{name}'"), cause });
    }
    Ok(())
}

/// A frame from `mac` to itself: a switch that knows it drops it, and everything else ignores its type.
fn frame(mac: wire::MacAddress) -> [u8; FRAME] {
    let mut frame = [0; FRAME];
    frame[..6].copy_from_slice(&mac.0);
    frame[6..12].copy_from_slice(&mac.0);
    frame[12..14].copy_from_slice(&EXPERIMENTAL);
    frame
}

fn load(object: &mut MaybeUninit<OpenObject>, index: u32) -> Result<skeleton::PortSkel<'_>> {
    let failed = |cause| Error::Program { what: "load an XDP program".to_owned(), cause };
    let mut open = skeleton::PortSkelBuilder::default().open(object).map_err(failed)?;
    if let Some(rodata) = open.maps.rodata_data.as_deref_mut() {
        rodata.port_ifindex = index;
    }
    open.load().map_err(failed)
}
