//! One question over generic netlink: a family's name, a command and attributes enter; each object's
//! numbers leave.

use std::collections::BTreeMap;
use std::io;

use rtnetlink::packet_core::{
    DecodeError, DefaultNla, Emitable, NLM_F_DUMP, NLM_F_REQUEST, NetlinkDeserializable, NetlinkHeader,
    NetlinkMessage, NetlinkPayload, NetlinkSerializable, Nla, NlasIterator,
};
use rtnetlink::sys::Socket;
use rtnetlink::sys::protocols::NETLINK_GENERIC;

// The numbers of linux/genetlink.h.
const CONTROLLER: u16 = 0x10;
const GET_FAMILY: u8 = 3;
const FAMILY_ID: u16 = 1;
const FAMILY_NAME: u16 = 2;

/// Bytes of command, version and two that are reserved.
const HEADER: usize = 4;

/// The attributes of one object by kind, those that are numbers.
pub(super) type Numbers = BTreeMap<u16, u64>;

/// Every object that `command` of `family` tells of, in the network namespace of the calling thread.
pub(super) fn dump(family: &str, command: u8, attributes: &[(u16, u32)]) -> io::Result<Vec<Numbers>> {
    let socket = Socket::new(NETLINK_GENERIC)?;
    let families = ask(&socket, CONTROLLER, GET_FAMILY, Vec::new())?;
    let named = |message: &&Message| {
        let name = message.attributes.iter().find(|attribute| attribute.kind() == FAMILY_NAME);
        name.is_some_and(|name| bytes(name).strip_suffix(b"\0") == Some(family.as_bytes()))
    };
    let id = families.iter().find(named).and_then(|message| message.numbers().get(&FAMILY_ID).copied());
    let id = id.and_then(|id| u16::try_from(id).ok()).ok_or(io::ErrorKind::NotFound)?;
    let attributes =
        attributes.iter().map(|(kind, value)| DefaultNla::new(*kind, value.to_ne_bytes().into()));
    let answers = ask(&socket, id, command, attributes.collect())?;
    Ok(answers.iter().map(Message::numbers).collect())
}

/// Sends one request for all objects, and collects them.
fn ask(socket: &Socket, family: u16, command: u8, attributes: Vec<DefaultNla>) -> io::Result<Vec<Message>> {
    let mut request = NetlinkMessage::from(Message { family, command, attributes });
    request.header.flags = NLM_F_REQUEST | NLM_F_DUMP;
    request.finalize();
    let mut bytes = vec![0; request.buffer_len()];
    request.serialize(&mut bytes);
    socket.send(&bytes, 0)?;
    let mut collected = Vec::new();
    loop {
        let (datagram, _) = socket.recv_from_full()?;
        let mut rest = datagram.as_slice();
        while !rest.is_empty() {
            let answer = NetlinkMessage::<Message>::deserialize(rest).map_err(io::Error::other)?;
            match answer.payload {
                NetlinkPayload::InnerMessage(message) => collected.push(message),
                NetlinkPayload::Done(done) if done.code < 0 => {
                    return Err(io::Error::from_raw_os_error(done.code.saturating_neg()));
                }
                NetlinkPayload::Done(_) => return Ok(collected),
                NetlinkPayload::Error(error) => return Err(error.to_io()),
                _ => {}
            }
            // Every message has its header at least, so this goes on.
            rest = rest.get((answer.header.length as usize).next_multiple_of(4)..).unwrap_or_default();
        }
    }
}

/// A message of generic netlink.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Message {
    family: u16,
    command: u8,
    attributes: Vec<DefaultNla>,
}

impl Message {
    fn numbers(&self) -> Numbers {
        let number = |attribute: &DefaultNla| {
            let bytes = bytes(attribute);
            let value = match bytes.len() {
                2 => bytes.try_into().ok().map(u16::from_ne_bytes).map(u64::from),
                4 => bytes.try_into().ok().map(u32::from_ne_bytes).map(u64::from),
                8 => bytes.as_slice().try_into().ok().map(u64::from_ne_bytes),
                _ => None,
            };
            Some((attribute.kind(), value?))
        };
        self.attributes.iter().filter_map(number).collect()
    }
}

fn bytes(attribute: &DefaultNla) -> Vec<u8> {
    let mut bytes = vec![0; attribute.value_len()];
    attribute.emit_value(&mut bytes);
    bytes
}

impl From<Message> for NetlinkPayload<Message> {
    fn from(message: Message) -> Self {
        Self::InnerMessage(message)
    }
}

impl NetlinkSerializable for Message {
    fn message_type(&self) -> u16 {
        self.family
    }

    fn buffer_len(&self) -> usize {
        HEADER + self.attributes.as_slice().buffer_len()
    }

    fn serialize(&self, buffer: &mut [u8]) {
        if let Some((header, attributes)) = buffer.split_first_chunk_mut::<HEADER>() {
            *header = [self.command, 1, 0, 0];
            self.attributes.as_slice().emit(attributes);
        }
    }
}

impl NetlinkDeserializable for Message {
    type Error = DecodeError;

    fn deserialize(header: &NetlinkHeader, payload: &[u8]) -> Result<Self, DecodeError> {
        let (own, attributes) =
            payload.split_first_chunk::<HEADER>().ok_or(DecodeError::from("a message without its header"))?;
        let attributes = NlasIterator::new(attributes).map(|attribute| {
            let attribute = attribute?;
            Ok(DefaultNla::new(attribute.kind(), attribute.value().to_vec()))
        });
        let attributes = attributes.collect::<Result<_, DecodeError>>()?;
        Ok(Self { family: header.message_type, command: own[0], attributes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_can_be_read() {
        let attributes = vec![
            DefaultNla::new(1, 7_u32.to_ne_bytes().into()),
            DefaultNla::new(2, b"abc\0".to_vec()),
            DefaultNla::new(3, u64::MAX.to_ne_bytes().into()),
            DefaultNla::new(4, vec![1, 2, 3]),
        ];
        let mut message = NetlinkMessage::from(Message { family: 20, command: 12, attributes });
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        let read = NetlinkMessage::<Message>::deserialize(&bytes).unwrap();
        assert_eq!(read, message);
        let NetlinkPayload::InnerMessage(read) = read.payload else { panic!("{read:?}") };
        let text = u64::from(u32::from_ne_bytes(*b"abc\0"));
        assert_eq!(read.numbers(), [(1, 7), (2, text), (3, u64::MAX)].into(), "three bytes are no number");
        for broken in [&bytes[..19], &bytes[..2], &[]] {
            assert!(NetlinkMessage::<Message>::deserialize(broken).is_err());
        }
    }

    #[test]
    fn the_kernel_answers_and_refuses() {
        assert!(!dump("nlctrl", GET_FAMILY, &[]).unwrap().is_empty());
        assert_eq!(dump("no-such-family", 1, &[]).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
