//! How a message stands on the wire: a magic number and a length, then a zlib stream; or plain text.
//!
//! Bytes of any kind enter, text of a bounded length leaves; and the other way round.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

/// What a compressed message begins with, as a big-endian number.
pub const MAGIC: u32 = 0xABE8_5CEA;
/// The most bytes of a request, unpacked: TRex's own limit.
pub const LARGEST: usize = 999_999;
/// Magic and length.
const HEAD: usize = 8;

/// Why a message has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FramingError {
    /// More than [`LARGEST`].
    #[error("the message has more than {LARGEST} bytes: send smaller batches")]
    TooLarge,
    /// The zlib stream does not hold what the head says.
    #[error("the compressed message is damaged")]
    Damaged,
}

/// The text of `message`, and whether it was compressed: then the reply must be, too.
///
/// # Errors
/// When it is too large or damaged.
pub fn open(message: &[u8]) -> Result<(Vec<u8>, bool), FramingError> {
    let Some((head, packed)) = message.split_first_chunk::<HEAD>() else {
        return Ok((message.to_vec(), false));
    };
    let [a, b, c, d, length @ ..] = *head;
    if u32::from_be_bytes([a, b, c, d]) != MAGIC {
        return if message.len() > LARGEST {
            Err(FramingError::TooLarge)
        } else {
            Ok((message.to_vec(), false))
        };
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > LARGEST {
        return Err(FramingError::TooLarge);
    }
    let mut text = Vec::new();
    // One byte more than announced shows a stream that is longer than its head says.
    ZlibDecoder::new(packed)
        .take(length as u64 + 1)
        .read_to_end(&mut text)
        .map_err(|_| FramingError::Damaged)?;
    if text.len() == length { Ok((text, true)) } else { Err(FramingError::Damaged) }
}

/// `text` as a compressed message.
#[must_use]
pub fn pack(text: &[u8]) -> Vec<u8> {
    let mut message = MAGIC.to_be_bytes().to_vec();
    message.extend((text.len() as u32).to_be_bytes());
    let mut encoder = ZlibEncoder::new(message, Compression::fast());
    // Writing to memory does not fail; a message without its text would be damaged, and be refused as such.
    let _ = encoder.write_all(text);
    encoder.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn text_passes_packed_and_plain() {
        let text = br#"{"jsonrpc":"2.0"}"#;
        assert_eq!(open(text), Ok((text.to_vec(), false)));
        assert_eq!(open(&pack(text)), Ok((text.to_vec(), true)));
        assert_eq!(open(b""), Ok((Vec::new(), false)));
        let longest = vec![b' '; LARGEST];
        assert_eq!(open(&pack(&longest)), Ok((longest.clone(), true)));
    }

    #[test]
    fn what_is_too_large_or_damaged_is_refused() {
        let larger = vec![b' '; LARGEST + 1];
        assert_eq!(open(&pack(&larger)), Err(FramingError::TooLarge));
        assert_eq!(open(&larger), Err(FramingError::TooLarge));
        let mut lying = pack(&larger);
        lying[4..8].copy_from_slice(&10_u32.to_be_bytes());
        assert_eq!(open(&lying), Err(FramingError::Damaged));
        let whole = pack(b"whole");
        assert_eq!(open(&whole[..whole.len() - 6]), Err(FramingError::Damaged));
    }

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(mut bytes: Vec<u8>, magic: bool) {
            if magic {
                bytes.splice(0..0, MAGIC.to_be_bytes());
            }
            let _ = open(&bytes);
        }

        #[test]
        fn any_text_returns(text: Vec<u8>) {
            prop_assert_eq!(open(&pack(&text)), Ok((text, true)));
        }
    }
}
