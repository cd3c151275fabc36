//! tx: packets enter, and go to the devices of their interfaces; what a device has no room for is dropped.

use super::Node;
use crate::dataplane::counters::Reason;
use crate::dataplane::graph::Context;
use crate::dataplane::vector::{Frame, Index, PACKETS, Packets};

pub(super) fn process(context: &mut Context, packets: &mut Packets, vector: &[Index], _: &mut [Node]) {
    let Some(&first) = vector.first() else { return };
    let output = packets.output[usize::from(first)];
    if vector.iter().all(|&index| packets.output[usize::from(index)] == output) {
        send(context, packets, output, vector);
    } else {
        send_apart(context, packets, vector);
    }
}

/// Sends the packets of several interfaces, by interface, so that each keeps its order.
fn send_apart(context: &mut Context, packets: &mut Packets, vector: &[Index]) {
    let mut outputs = [0; PACKETS];
    let mut of_one = [0; PACKETS];
    let mut interfaces = 0;
    for &index in vector {
        let output = packets.output[usize::from(index)];
        if !outputs[..interfaces].contains(&output) {
            outputs[interfaces] = output;
            interfaces += 1;
        }
    }
    for &output in &outputs[..interfaces] {
        let mut count = 0;
        for &index in vector {
            of_one[count] = index;
            count += usize::from(packets.output[usize::from(index)] == output);
            count = count.min(PACKETS - 1);
        }
        send(context, packets, output, &of_one[..count]);
    }
}

/// Sends packets by the device of one interface.
fn send(context: &mut Context, packets: &mut Packets, interface: u16, vector: &[Index]) {
    let device = context.forwarding.interfaces.get(usize::from(interface)).map(|found| found.device);
    let output = device.and_then(|device| context.outputs.get_mut(usize::from(device)));
    let frames = &mut context.scratch.frames;
    let (mut done, mut long) = (0, 0);
    if let Some(output) = output {
        for (&index, frame) in vector.iter().zip(&mut *frames) {
            *frame = packets.frame(index);
        }
        let count = vector.len().min(PACKETS);
        loop {
            done += output.transmit(&frames[done..count]).min(count - done);
            if done == count || !output.stopped_at_long() {
                break;
            }
            // It alone is left out, not those behind it.
            let node = packets.drop(vector[done], Reason::TooLong);
            context.beside.push((vector[done], node));
            frames[done] = Frame::NONE;
            (done, long) = (done + 1, long + 1);
        }
    }
    let counters = &context.counters.interfaces[usize::from(interface)];
    counters.sent.add((done - long) as u64);
    counters.sent_bytes.add(frames[..done].iter().map(|frame| frame.len() as u64).sum());
    counters.no_room.add((vector.len() - done) as u64);
    for &index in &vector[done..] {
        let node = packets.drop(index, Reason::Full);
        context.beside.push((index, node));
    }
}
