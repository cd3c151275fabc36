use super::*;
use proptest::prelude::*;
use serde_json::json;

fn program(instructions: &Value) -> Result<Program, Failure> {
    Program::read(instructions.as_array().unwrap(), 16, 1)
}

/// The first byte and the length of each of `count` packets.
fn packets(instructions: &Value, count: usize) -> Vec<(u8, usize)> {
    let program = program(instructions).unwrap();
    let mut run = program.run();
    let mut packet = [0; 16];
    (0..count)
        .map(|_| {
            let length = run.next(&mut packet);
            (packet[0], length)
        })
        .collect()
}

fn first_bytes(instructions: &Value, count: usize) -> Vec<u8> {
    packets(instructions, count).into_iter().map(|(byte, _)| byte).collect()
}

fn variable(operation: &str, low: u64, high: u64, step: u64, first: u64) -> Value {
    json!({"type": "flow_var", "name": "v", "size": 1, "op": operation, "step": step,
        "min_value": low, "max_value": high, "init_value": first, "split_to_cores": true, "next_var": null})
}

fn write() -> Value {
    json!({"type": "write_flow_var", "name": "v", "pkt_offset": 0, "add_value": 0, "is_big_endian": true})
}

#[test]
fn the_first_packet_has_the_first_value_and_ranges_wrap() {
    assert_eq!(first_bytes(&json!([variable("inc", 4, 6, 1, 4), write()]), 5), [4, 5, 6, 4, 5]);
    assert_eq!(first_bytes(&json!([variable("inc", 4, 6, 1, 6), write()]), 3), [6, 4, 5]);
    assert_eq!(first_bytes(&json!([variable("dec", 4, 6, 1, 6), write()]), 4), [6, 5, 4, 6]);
    // As TRex makes 1 to 8 by 3 a range of 9, in which steps fit.
    assert_eq!(first_bytes(&json!([variable("inc", 1, 8, 3, 1), write()]), 4), [1, 4, 7, 1]);
    let list =
        json!({"type": "flow_var", "name": "v", "size": 1, "op": "inc", "step": 1, "value_list": [9, 3]});
    assert_eq!(first_bytes(&json!([list, write()]), 3), [9, 3, 9]);
}

#[test]
fn a_next_variable_advances_when_the_first_wraps() {
    let mut port = variable("inc", 1, 2, 1, 1);
    port["name"] = json!("p");
    port["next_var"] = json!("v");
    let both = json!([port, variable("inc", 7, 9, 1, 7), write()]);
    assert_eq!(first_bytes(&both, 7), [7, 7, 8, 8, 9, 9, 7]);
    assert_eq!(program(&both).unwrap().period(), 6);
}

#[test]
fn tuples_take_every_address_before_the_next_port() {
    let tuple = json!([
        {"type": "tuple_flow_var", "name": "t", "ip_min": 1, "ip_max": 3, "port_min": 10, "port_max": 11,
            "limit_flows": 0, "flags": 0},
        {"type": "write_flow_var", "name": "t.ip", "pkt_offset": 4},
        {"type": "write_flow_var", "name": "t.port", "pkt_offset": 0, "is_big_endian": false},
    ]);
    assert_eq!(first_bytes(&tuple, 7), [10, 10, 10, 11, 11, 11, 10]);
    assert_eq!(program(&tuple).unwrap().period(), 6);
    let mut limited = tuple;
    limited[0]["limit_flows"] = json!(4);
    assert_eq!(first_bytes(&limited, 9), [10, 10, 10, 11, 10, 10, 10, 11, 10]);
    assert_eq!(program(&limited).unwrap().period(), 4);
}

#[test]
fn masks_shifts_and_trims_change_what_they_name() {
    let masked = json!({"type": "write_mask_flow_var", "name": "v", "pkt_offset": 0, "pkt_cast_size": 1,
        "mask": 0xf0, "shift": 4, "add_value": 1, "is_big_endian": true});
    assert_eq!(first_bytes(&json!([variable("inc", 1, 3, 1, 1), masked]), 2), [0x20, 0x30]);
    let size = json!({"type": "flow_var", "name": "s", "size": 2, "op": "inc", "step": 1, "min_value": 14, "max_value": 16});
    let trim = json!([size, {"type": "trim_pkt_size", "name": "s"}]);
    let lengths: Vec<usize> = packets(&trim, 4).into_iter().map(|(_, length)| length).collect();
    assert_eq!(lengths, [14, 15, 16, 14]);
    assert_eq!(program(&trim).unwrap().lengths(16), (14, 15.0));
}

#[test]
fn random_variables_stay_in_their_range_and_repeat_after_their_limit() {
    let bytes = first_bytes(&json!([variable("random", 4, 9, 1, 4), write()]), 1_000);
    assert!((4..=9).all(|value| bytes.contains(&value)) && bytes.iter().all(|byte| (4..=9).contains(byte)));
    let limited = json!({"type": "flow_var_rand_limit", "name": "v", "size": 1, "limit": 3, "seed": 5,
        "min_value": 0, "max_value": 255});
    let bytes = first_bytes(&json!([limited, write()]), 6);
    assert_eq!(bytes[..3], bytes[3..]);
}

#[test]
fn wrong_instructions_are_refused_by_name() {
    let refusal = |instructions: Value| program(&instructions).unwrap_err().reason;
    assert!(refusal(json!([{"type": "split_by_var"}])).contains("'split_by_var' is not known"));
    assert!(refusal(json!([write()])).contains("'v' does not exist"));
    assert!(refusal(json!([variable("inc", 9, 3, 1, 9)])).contains("no range"));
    assert!(refusal(json!([variable("inc", 1, 3, 1, 1), variable("inc", 1, 3, 1, 1)])).contains("twice"));
    let mut beyond = write();
    beyond["pkt_offset"] = json!(16);
    assert!(refusal(json!([variable("inc", 1, 3, 1, 1), beyond])).contains("offset 16 of a packet of 16"));
    let mut circle = variable("inc", 1, 3, 1, 1);
    circle["next_var"] = json!("v");
    assert!(refusal(json!([circle])).contains("circle"));
}

proptest! {
    #[test]
    fn packets_repeat_after_the_period(low: u8, high: u8, first: u8, step in 1u8.., down: bool) {
        let (low, high) = (low.min(high), low.max(high));
        let first = first.clamp(low, high);
        let operation = if down { "dec" } else { "inc" };
        let instructions =
            json!([variable(operation, low.into(), high.into(), step.into(), first.into()), write()]);
        let period = program(&instructions).unwrap().period() as usize;
        let bytes = first_bytes(&instructions, 2 * period);
        prop_assert_eq!(&bytes[..period], &bytes[period..]);
        prop_assert_eq!(bytes[0], first);
    }

    #[test]
    fn no_numbers_cause_a_panic(low: u64, high: u64, step: u64, first: u64, size in 0usize..10, add: i64, shift: i8, kind in 0usize..3) {
        let operation = ["inc", "dec", "random"][kind];
        let instructions = json!([
            {"type": "flow_var", "name": "v", "size": size, "op": operation, "step": step,
                "min_value": low, "max_value": high, "init_value": first},
            {"type": "write_flow_var", "name": "v", "pkt_offset": 3, "add_value": add},
            {"type": "write_mask_flow_var", "name": "v", "pkt_offset": 3, "pkt_cast_size": 4, "mask": 77, "shift": shift, "add_value": add},
        ]);
        if let Ok(program) = program(&instructions) {
            let mut packet = [0; 16];
            let mut run = program.run();
            for _ in 0..100 {
                run.next(&mut packet);
            }
            prop_assert!(program.period() >= 1);
        }
    }
}
