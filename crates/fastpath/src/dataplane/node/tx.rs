//! tx: packets enter, and go to the devices of their interfaces; what a device has no room for is dropped.

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Frame, Index, List, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], _: &mut [Node]) {
    let Some(&first) = vector.first() else { return };
    let output = packets.output[first];
    if vector.iter().all(|&index| packets.output[index] == output) {
        send(context, packets, output, vector);
    } else {
        send_apart(context, packets, vector);
    }
}

/// Sends the packets of several interfaces, by interface, so that each keeps its order.
fn send_apart(context: &mut Context, packets: &mut Packets, vector: &[Index]) {
    let (mut outputs, mut of_one) = (List::EMPTY, List::EMPTY);
    for &index in vector {
        let output = packets.output[index];
        let is_new = !outputs.items().contains(&output);
        outputs.push_if(output, is_new);
    }
    for &output in outputs.items() {
        of_one.clear();
        for &index in vector {
            of_one.push_if(index, packets.output[index] == output);
        }
        send(context, packets, output, of_one.items());
    }
}

/// Sends packets by the device of one interface.
fn send(context: &mut Context, packets: &mut Packets, interface: u16, vector: &[Index]) {
    let device = context.forwarding.interfaces.get(usize::from(interface)).map(|found| found.device);
    let output = device.and_then(|device| context.outputs.get_mut(usize::from(device)));
    let frames = context.scratch.frames.get_mut(..vector.len()).unwrap_or_default();
    let (mut done, mut long) = (0, 0);
    if let Some(output) = output {
        for (&index, frame) in vector.iter().zip(&mut *frames) {
            *frame = packets.frame(index);
        }
        loop {
            let left = frames.get(done..).unwrap_or_default();
            done += output.transmit(left).min(left.len());
            let (Some(&index), Some(frame)) = (vector.get(done), frames.get_mut(done)) else { break };
            if !output.stopped_at_long() {
                break;
            }
            // It alone is left out, not those behind it.
            context.beside.push((index, packets.drop(index, Reason::TooLong)));
            *frame = Frame::NONE;
            (done, long) = (done + 1, long + 1);
        }
    }
    let counters = context.counters.interface(interface);
    counters.sent.add((done - long) as u64);
    counters.sent_bytes.add(frames.iter().take(done).map(|frame| frame.len() as u64).sum());
    counters.no_room.add((vector.len() - done) as u64);
    for &index in vector.iter().skip(done) {
        let node = packets.drop(index, Reason::Full);
        context.beside.push((index, node));
    }
}
