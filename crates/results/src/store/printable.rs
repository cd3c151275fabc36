//! Documents of anybody: JSON enters, the same JSON leaves with strings that steer no terminal.

use std::borrow::Cow;

use serde_json::Value;

/// `json` with strings that steer no terminal, whatever is in it.
pub(super) fn json(json: Vec<u8>) -> Vec<u8> {
    fn text(text: &mut String) {
        if let Cow::Owned(printable) = foreign::text::printable(text) {
            *text = printable;
        }
    }
    fn each(value: &mut Value) {
        match value {
            Value::String(said) => text(said),
            Value::Array(values) => values.iter_mut().for_each(each),
            Value::Object(members) => {
                for (mut name, mut member) in std::mem::take(members) {
                    text(&mut name);
                    each(&mut member);
                    members.insert(name, member);
                }
            }
            _ => {}
        }
    }
    if !foreign::text::json_may_steer(&json) {
        return json;
    }
    // What is no JSON is told later, with its reason.
    let Ok(mut value) = serde_json::from_slice(&json) else { return json };
    each(&mut value);
    serde_json::to_vec(&value).unwrap_or(json)
}
