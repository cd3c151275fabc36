//! Two ports in user space as a carrier of whole frames: a queue that sends and one that receives enter.

use super::{BURST, DroppedBy, Receive, Transmit};
use crate::replay::Carrier;
use crate::{Error, Untaken};

/// Tells how many frames arrived at port 1 and found no room.
type Missed = Box<dyn Fn() -> Result<u64, Error>>;

/// A queue of port 0 that sends, one of port 1 that receives, and the ports.
pub struct Pair<T, R> {
    send: T,
    /// Its queues; frames arrive at any.
    receive: Vec<R>,
    /// Lengths of frames that the port still has of an earlier call, and that were told as sent.
    pending: Vec<usize>,
    /// Frames that the port took and that did not leave all the same, and their bytes.
    untaken: (Untaken, u64),
    /// It has the ports, which are closed after the queues.
    missed: Missed,
}

impl<T: Transmit, R: Receive> Pair<T, R> {
    /// `missed` tells how many frames found no room at port 1, and has the ports.
    pub(crate) fn new(send: T, receive: Vec<R>, missed: impl Fn() -> Result<u64, Error> + 'static) -> Self {
        Self {
            send,
            receive,
            pending: Vec::new(),
            untaken: (Untaken::default(), 0),
            missed: Box::new(missed),
        }
    }

    /// As [`Self::new`], of queues that may be missing.
    ///
    /// # Errors
    /// When one is.
    pub(crate) fn of(
        send: Vec<T>,
        receive: Vec<R>,
        missed: impl Fn() -> Result<u64, Error> + 'static,
    ) -> Result<Self, Error> {
        match (send.into_iter().next(), receive.is_empty()) {
            (Some(send), false) => Ok(Self::new(send, receive, missed)),
            _ => Err(Error::Failed("a port has no queue; this is a defect".into())),
        }
    }

    /// Notes which of the frames that the port just took, of these `lengths`, did not leave, and why.
    fn note_dropped(&mut self, lengths: impl Iterator<Item = usize>) {
        let dropped = self.send.dropped();
        let unsent = dropped.unsent();
        let (untaken, bytes) = &mut self.untaken;
        for (_, length) in lengths.enumerate().filter(|(place, _)| unsent >> place & 1 == 1) {
            *untaken += match dropped.by {
                DroppedBy::DownInterface => Untaken { down: 1, ..Untaken::default() },
                DroppedBy::Driver | DroppedBy::Device => Untaken { other: 1, ..Untaken::default() },
            };
            *bytes += length as u64;
        }
    }
}

impl<T: Transmit, R: Receive> Carrier for Pair<T, R> {
    fn send(&mut self, frames: &[&[u8]]) -> Result<usize, Error> {
        if !self.pending.is_empty() {
            let sent = self.send.send(self.pending.len());
            let lengths: Vec<usize> = self.pending.drain(..sent).collect();
            self.note_dropped(lengths.into_iter());
        }
        if !self.pending.is_empty() || !self.send.is_up() {
            // All stay due until the port is ready again.
            return Ok(0);
        }
        let frames = &frames[..frames.len().min(BURST)];
        let mut placed = 0;
        for frame in frames {
            let place = self.send.place(placed, frame.len()).and_then(|place| place.get_mut(..frame.len()));
            let Some(place) = place else { break };
            place.copy_from_slice(frame);
            placed += 1;
        }
        if placed == 0 {
            let refusal = frames.first().and_then(|frame| self.send.refusal(frame.len()));
            return refusal.map_or(Ok(0), |refusal| Err(Error::Refused(refusal)));
        }
        let sent = self.send.send(placed);
        self.note_dropped(frames[..sent].iter().map(|frame| frame.len()));
        // Those that found no room are written anew, but for those that cannot be had back.
        let done = placed - self.send.recall(placed - sent);
        self.pending.extend(frames[sent..done].iter().map(|frame| frame.len()));
        Ok(done)
    }

    fn receive(&mut self, each: &mut dyn FnMut(&[u8])) -> Result<(), Error> {
        for queue in &mut self.receive {
            for index in 0..queue.receive() {
                if let Some(frame) = queue.frame(index) {
                    each(frame);
                }
            }
            queue.release();
        }
        Ok(())
    }

    fn missed(&self) -> Result<u64, Error> {
        (self.missed)()
    }

    fn untaken(&self) -> (Untaken, u64) {
        self.untaken
    }
}

#[cfg(test)]
mod tests {
    use super::super::Dropped;
    use super::*;

    /// A port that takes two frames a call, drops the first of all, and keeps the one after those two.
    #[derive(Default)]
    struct Port {
        frames: Vec<Vec<u8>>,
        left: Vec<u8>,
        dropped: u64,
    }

    impl Transmit for Port {
        fn place(&mut self, index: usize, length: usize) -> Option<&mut [u8]> {
            self.frames.truncate(index);
            self.frames.push(vec![0; length]);
            self.frames.last_mut().filter(|_| length < 100).map(Vec::as_mut_slice)
        }

        fn send(&mut self, count: usize) -> usize {
            let taken = count.min(2);
            self.dropped = u64::from(self.left.is_empty() && taken > 0);
            self.left.extend(self.frames.drain(..taken).map(|frame| frame[0]));
            taken
        }

        fn dropped(&mut self) -> Dropped {
            Dropped { frames: std::mem::take(&mut self.dropped), by: DroppedBy::Driver }
        }

        fn recall(&mut self, count: usize) -> usize {
            count.saturating_sub(1)
        }

        fn refusal(&self, length: usize) -> Option<String> {
            (length >= 100).then(|| "too long".to_owned())
        }

        fn is_up(&self) -> bool {
            true
        }
    }

    struct Nothing;

    impl Receive for Nothing {
        fn receive(&mut self) -> usize {
            0
        }

        fn frame(&self, _: usize) -> Option<&[u8]> {
            None
        }

        fn release(&mut self) {}
    }

    #[test]
    fn each_frame_leaves_once_though_the_port_keeps_one_and_drops_one() {
        let mut pair = Pair::of(vec![Port::default()], vec![Nothing], || Ok(0)).unwrap();
        let frames: Vec<Vec<u8>> = (0..20).map(|number| vec![number; 60]).collect();
        let mut done = 0;
        while done < frames.len() {
            let rest: Vec<&[u8]> = frames[done..].iter().map(Vec::as_slice).collect();
            done += pair.send(&rest).unwrap();
        }
        pair.send(&[]).unwrap();
        assert_eq!(pair.send.left, (0..20).collect::<Vec<u8>>());
        assert_eq!(pair.untaken(), (Untaken { other: 1, ..Untaken::default() }, 60));
        let error = pair.send(&[&[0; 200]]).unwrap_err();
        assert!(error.to_string().contains("too long"), "{error}");
    }
}
