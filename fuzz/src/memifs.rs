//! A client of a memif that says and shares anything: the bytes of a script enter, of which most steps are what a client
//! should say, with some bytes changed. The server neither stops nor keeps a file of it.

use std::fs::{self, File};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use memif::{Config, Frame, Memif, Role, Socket};
use nix::sys::eventfd::EventFd;
use nix::sys::memfd::{MFdFlags, memfd_create};

#[path = "../../crates/memif/tests/common/raw.rs"]
#[allow(missing_docs)]
mod raw;

use raw::{CONNECT, Raw, SIZE, Shared, TO_CLIENT, TO_SERVER, add_region, add_ring, init, message};

/// What a client says in turn.
fn said(step: u8) -> [u8; 128] {
    match step % 6 {
        0 => init(),
        1 => add_region(0, SIZE as u64),
        2 => add_ring(1, TO_SERVER as u32, 3),
        3 => add_ring(0, TO_CLIENT as u32, 3),
        4 => message(CONNECT, &[(2, b"fuzz")]),
        _ => message(step, &[]),
    }
}

/// The server at one client, which plays `script`.
pub fn server(script: &[u8]) {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let name = format!("/fuzz-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let config = Config { ring_size: 8, ..Config::new(Role::Server, Socket::Abstract(name)) };
    let socket = config.socket.clone();
    let mut ours = Memif::open(config).unwrap();
    let open_files = files();
    {
        let client = Raw::connect(&socket, &mut ours.memif);
        let shared = Shared::new(SIZE);
        let event = EventFd::new().unwrap();
        let mut script = script.iter().copied();
        while let Some(step) = script.next() {
            let mut next = || script.next().unwrap_or(0);
            if step >= 192 {
                // Memory that both share.
                let at = usize::from(next()) << 4 | usize::from(next() & 15);
                shared.put(at.min(SIZE - 1), [next()]);
            } else {
                let mut bytes = said(step);
                for _ in 0..step / 64 {
                    let at = usize::from(next()) % bytes.len();
                    bytes[at] = next();
                }
                let odd: OwnedFd;
                let file = match (step / 6 % 8, step % 6) {
                    (0, _) => {
                        // Neither sealed nor large enough.
                        odd = memfd_create(c"odd", MFdFlags::empty()).unwrap();
                        odd.as_fd()
                    }
                    (1, _) => {
                        odd = File::open("/dev/null").unwrap().into();
                        odd.as_fd()
                    }
                    (_, 1) => shared.file.as_fd(),
                    _ => event.as_fd(),
                };
                let count = match step % 6 {
                    0 | 4 => usize::from(step / 6 % 8 == 2),
                    _ => {
                        if step / 6 % 8 == 3 {
                            20
                        } else {
                            1
                        }
                    }
                };
                client.try_send(&bytes, file, count);
            }
            ours.memif.poll(Duration::ZERO).unwrap();
            let mut frames = [Frame::NONE; 16];
            for receiver in &mut ours.receivers {
                let count = receiver.receive(&mut frames);
                // SAFETY: they are lent until the release below.
                frames[..count].iter_mut().for_each(|frame| drop(unsafe { frame.bytes() }.to_vec()));
                receiver.release();
            }
            for sender in &mut ours.senders {
                // What finds no room is not sent.
                let _ = sender.send(&[&[0x55; 60]]);
            }
        }
    }
    // The client has gone.
    for _ in 0..3 {
        ours.memif.poll(Duration::ZERO).unwrap();
    }
    drop(ours.receivers);
    drop(ours.senders);
    let mut left = files();
    // Another thread may still have to close some.
    for _ in 0..1000 {
        if left <= open_files {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
        left = files();
    }
    panic!("{} files are left of {open_files}", left);
}

fn files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// A client that behaves, and one of each file that does not fit.
pub fn scripts() -> Vec<Vec<u8>> {
    let put_head = [192, 0, 6, 3];
    let behaves: Vec<u8> = (0..5).map(|step| 24 + step).chain(put_head).collect();
    (0..4).map(|kind| (0..5).map(|step| 6 * kind + step).collect()).chain([behaves]).collect()
}
