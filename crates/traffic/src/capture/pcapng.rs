//! pcapng: the bytes of a file enter, its frames leave. Blocks that hold no frames are passed over.

use super::{CaptureError, ETHERNET, Found, MAX_RECORD, Order, Record};

/// The first bytes of every file: a section header, the same in both byte orders.
pub(super) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
const INTERFACE: u32 = 1;
/// A frame, as older programs wrote it.
const PACKET: u32 = 2;
/// A frame without a time.
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// What tells the byte order of a section.
const ORDER: u32 = 0x1a2b_3c4d;
/// Bytes of a block around its body: type and length in front, the length again behind.
const FRONT: usize = 8;
const BEHIND: usize = 4;
/// The option of an interface that says how long a unit of its times is.
const RESOLUTION: u16 = 9;
/// The unit where nothing says so: microseconds.
const MICROSECONDS: u8 = 6;

/// An interface that frames were captured at.
struct Interface {
    link_type: u16,
    /// The most bytes of a frame that were kept; 0: all.
    kept: usize,
    resolution: u8,
}

/// Reads the file; says whether it has more frames than are read.
pub(super) fn read(file: &[u8], found: &mut Found) -> Result<bool, CaptureError> {
    let mut order = Order::Little;
    let mut interfaces: Vec<Interface> = Vec::new();
    let mut rest = file;
    while !rest.is_empty() {
        if rest.starts_with(&MAGIC) {
            order = match Order::Little.u32(rest, FRONT) {
                Some(ORDER) => Order::Little,
                Some(number) if number == ORDER.swap_bytes() => Order::Big,
                Some(_) => return Err(CaptureError::Unknown),
                None => return Ok(cut(found)),
            };
            interfaces.clear();
        }
        let (Some(kind), Some(length)) = (order.u32(rest, 0), order.u32(rest, 4)) else {
            return Ok(cut(found));
        };
        let length = length as usize;
        if !(FRONT + BEHIND..=4 * MAX_RECORD).contains(&length) {
            return Err(CaptureError::Damaged { frame: found.seen + 1, length });
        }
        let Some(body) = rest.get(FRONT..length - BEHIND).filter(|_| rest.len() >= length) else {
            return Ok(cut(found));
        };
        match kind {
            INTERFACE => interfaces.extend(interface(order, body)),
            PACKET | SIMPLE_PACKET | ENHANCED_PACKET => {
                let damaged = CaptureError::Damaged { frame: found.seen + 1, length };
                let (number, record) = frame(order, kind, body, &interfaces).ok_or(damaged)?;
                let link_type = interfaces.get(number).map_or(ETHERNET, |interface| interface.link_type);
                if link_type != ETHERNET {
                    return Err(CaptureError::LinkType { number: link_type });
                }
                if !found.take(&record) {
                    return Ok(true);
                }
            }
            // No frame.
            _ => {}
        }
        // Blocks begin at multiples of four.
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(false)
}

fn cut(found: &mut Found) -> bool {
    found.is_cut = true;
    false
}

/// What the body of an interface's description says.
fn interface(order: Order, body: &[u8]) -> Option<Interface> {
    let mut interface = Interface {
        link_type: order.u16(body, 0)?,
        kept: order.u32(body, 4)? as usize,
        resolution: MICROSECONDS,
    };
    let mut options = body.get(8..).unwrap_or_default();
    while let (Some(code), Some(length)) = (order.u16(options, 0), order.u16(options, 2)) {
        if code == RESOLUTION {
            interface.resolution = options.get(4).copied().unwrap_or(MICROSECONDS);
        }
        options = options.get(4 + usize::from(length).next_multiple_of(4)..).unwrap_or_default();
    }
    Some(interface)
}

/// The frame in the body of a block of this kind, and the number of its interface.
fn frame<'a>(
    order: Order,
    kind: u32,
    body: &'a [u8],
    interfaces: &[Interface],
) -> Option<(usize, Record<'a>)> {
    if kind == SIMPLE_PACKET {
        let length = order.u32(body, 0)? as usize;
        let kept = interfaces.first().map_or(0, |interface| interface.kept);
        let captured = if kept == 0 { length } else { length.min(kept) };
        return Some((0, Record { time: None, bytes: body.get(4..4 + captured)?, length }));
    }
    let number = if kind == PACKET { u32::from(order.u16(body, 0)?) } else { order.u32(body, 0)? } as usize;
    let interface = interfaces.get(number)?;
    let ticks = u64::from(order.u32(body, 4)?) << 32 | u64::from(order.u32(body, 8)?);
    let (captured, length) = (order.u32(body, 12)? as usize, order.u32(body, 16)? as usize);
    let bytes = body.get(20..20_usize.checked_add(captured)?)?;
    let time = Some(nanoseconds(ticks, interface.resolution));
    Some((number, Record { time, bytes, length: length.max(captured) }))
}

/// `ticks` of 10^-n seconds, or of 2^-n where the highest bit is set.
fn nanoseconds(ticks: u64, resolution: u8) -> u64 {
    let exponent = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    let a_second = base.checked_pow(exponent).unwrap_or(u128::MAX);
    u64::try_from(u128::from(ticks) * 1_000_000_000 / a_second).unwrap_or(u64::MAX)
}
