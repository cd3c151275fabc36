//! Memifs for a replay: two ends enter, a carrier of whole frames leaves.

use super::control::Controlled;
use super::queues::{Receiving, Sending};
use super::{End, open};
use crate::Error;
use crate::replay::Carrier;
use crate::user_space::{BURST, Receive, Transmit};

/// Two memifs, connected.
pub struct Ends {
    send: Sending,
    receive: Receiving,
    _controlled: Controlled,
}

impl Ends {
    /// Opens `ends` for frames of up to `longest` bytes, without FCS.
    ///
    /// # Errors
    /// When an end cannot be opened, or has no other end.
    pub fn open(ends: [&End; 2], longest: usize) -> Result<Self, Error> {
        let (controlled, [zero, one]) = open(ends, 1, longest, 0)?;
        let (send, receive) = (zero.transmit.into_iter().next(), one.receive.into_iter().next());
        let (Some(send), Some(receive)) = (send, receive) else {
            return Err(Error::Failed("a port has no queue; this is a defect".into()));
        };
        Ok(Self { send, receive, _controlled: controlled })
    }
}

impl Carrier for Ends {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
        let frames = &frames[..frames.len().min(BURST)];
        for (index, frame) in frames.iter().enumerate() {
            let place = self.send.place(index, frame.len()).and_then(|place| place.get_mut(..frame.len()));
            let too_long = || {
                Error::Refused(format!(
                    "a frame of {} bytes is longer than the other end's buffers: give it longer ones",
                    frame.len()
                ))
            };
            place.ok_or_else(too_long)?.copy_from_slice(frame);
        }
        // Those that found no room stay due.
        Ok(self.send.send(frames.len()))
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        for index in 0..self.receive.receive() {
            if let Some(frame) = self.receive.frame(index) {
                each(frame);
            }
        }
        self.receive.release();
        Ok(())
    }

    fn missed(&self) -> Result<u64, Error> {
        // What finds no room is refused to the sender, which knows.
        Ok(0)
    }
}
