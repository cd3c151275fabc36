//! The features of a virtio device: the text of its file in sysfs enters, their names leave.

use std::collections::BTreeSet;

/// The features that matter here, by their bits (virtio 1.2, section 5.1.3; the offloads of received frames, the
/// queues, and whether the guest can switch the former off).
const FEATURES: [(usize, &str); 10] = [
    (1, "GUEST_CSUM"),
    (2, "CTRL_GUEST_OFFLOADS"),
    (7, "GUEST_TSO4"),
    (8, "GUEST_TSO6"),
    (9, "GUEST_ECN"),
    (10, "GUEST_UFO"),
    (17, "CTRL_VQ"),
    (22, "MQ"),
    (54, "GUEST_USO4"),
    (55, "GUEST_USO6"),
];

/// Reads `/sys/class/net/IF/device/features`: one character for each bit, the lowest first.
pub(crate) fn parse(text: &str) -> Option<BTreeSet<String>> {
    let bits = text.trim().as_bytes();
    let whole = bits.len() >= 24 && bits.iter().all(|bit| matches!(bit, b'0' | b'1'));
    let taken = FEATURES.iter().filter(|(bit, _)| bits.get(*bit) == Some(&b'1'));
    whole.then(|| taken.map(|(_, name)| (*name).to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_names() {
        // As QEMU offers with one pair of queues.
        let text = "1110010111111111111111010000110010000000100000000000000000000000\n";
        let names: Vec<_> = parse(text).unwrap().into_iter().collect();
        assert_eq!(
            names,
            [
                "CTRL_GUEST_OFFLOADS",
                "CTRL_VQ",
                "GUEST_CSUM",
                "GUEST_ECN",
                "GUEST_TSO4",
                "GUEST_TSO6",
                "GUEST_UFO"
            ]
        );
        for broken in ["", "101", "11100101111111111111110100001100x0"] {
            assert_eq!(parse(broken), None, "{broken}");
        }
    }
}
