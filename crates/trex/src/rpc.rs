//! JSON-RPC 2.0: text enters, calls leave; results and failures enter, text leaves.

use serde_json::{Map, Value, json};

/// The most calls of one batch.
pub const MOST_CALLS: usize = 5_000;
/// The most bytes of a reply.
const LARGEST_REPLY: usize = 16 << 20;
/// The most characters of an id that is sent back.
const LONGEST_ID: usize = 256;

/// Why a call has no result, as the protocol says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The protocol's number.
    pub code: i32,
    /// What is wrong and, where there is one, the remedy.
    pub reason: String,
}

impl Failure {
    /// The text is not JSON, or the message is damaged.
    pub(crate) fn parse(reason: impl Into<String>) -> Self {
        Self { code: -32700, reason: reason.into() }
    }

    /// The JSON is no call.
    pub(crate) fn request(reason: impl Into<String>) -> Self {
        Self { code: -32600, reason: reason.into() }
    }

    /// There is no such method.
    pub(crate) fn method(name: &str) -> Self {
        let name: String = name.chars().take(64).collect();
        Self { code: -32601, reason: format!("method '{name}' is not registered") }
    }

    /// A parameter is missing or wrong.
    pub(crate) fn parameters(reason: impl Into<String>) -> Self {
        Self { code: -32602, reason: reason.into() }
    }

    /// The call cannot be done.
    pub(crate) fn execute(reason: impl Into<String>) -> Self {
        Self { code: -32000, reason: reason.into() }
    }

    fn message(&self) -> &'static str {
        match self.code {
            -32700 => "Parse Error",
            -32600 => "Invalid Request",
            -32601 => "Method not found",
            -32602 => "Invalid Params",
            _ => "Failed To Execute Method",
        }
    }
}

/// The parameters of a call, or an object inside of them.
#[derive(Clone, Copy)]
pub struct Parameters<'a>(pub &'a Map<String, Value>);

impl<'a> Parameters<'a> {
    /// The value of `key`.
    pub fn value(&self, key: &str) -> Result<&'a Value, Failure> {
        self.0.get(key).ok_or_else(|| Failure::parameters(format!("field '{key}' is missing")))
    }

    /// The value of `key`, if it is there and not null.
    pub fn optional(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn read<T>(&self, key: &str, what: &str, read: impl Fn(&'a Value) -> Option<T>) -> Result<T, Failure> {
        read(self.value(key)?).ok_or_else(|| Failure::parameters(format!("field '{key}' must be {what}")))
    }

    /// A number that is not negative and at most `most`.
    pub fn number(&self, key: &str, most: u64) -> Result<u64, Failure> {
        let number = self.read(key, "an unsigned integer", Value::as_u64)?;
        if number <= most {
            Ok(number)
        } else {
            Err(Failure::parameters(format!("field '{key}' must be at most {most}, not {number}")))
        }
    }

    /// A number with a sign.
    pub fn signed(&self, key: &str) -> Result<i64, Failure> {
        self.read(key, "an integer", Value::as_i64)
    }

    /// A finite number.
    pub fn float(&self, key: &str) -> Result<f64, Failure> {
        self.read(key, "a number", Value::as_f64)
    }

    /// Yes or no.
    pub fn flag(&self, key: &str) -> Result<bool, Failure> {
        self.read(key, "true or false", Value::as_bool)
    }

    /// Text.
    pub fn text(&self, key: &str) -> Result<&'a str, Failure> {
        self.read(key, "a string", Value::as_str)
    }

    /// An object.
    pub fn object(&self, key: &str) -> Result<Parameters<'a>, Failure> {
        self.read(key, "an object", Value::as_object).map(Parameters)
    }

    /// A list.
    pub fn list(&self, key: &str) -> Result<&'a [Value], Failure> {
        self.read(key, "a list", Value::as_array).map(Vec::as_slice)
    }

    /// `read` of `key`, or `otherwise` where it is left out.
    pub fn or<T>(
        &self,
        key: &str,
        otherwise: T,
        read: impl FnOnce(&Self) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if self.optional(key).is_some() { read(self) } else { Ok(otherwise) }
    }
}

/// Answers `text`, which is one call or a batch of them, by `call`, which gets a method and its parameters.
/// The reply to a batch has the order of its calls; that to a batch of one is a bare object, as TRex's is.
pub fn answer(
    text: &[u8],
    mut call: impl FnMut(&str, Parameters<'_>) -> Result<Value, Failure>,
) -> Result<Vec<u8>, Failure> {
    let message: Value =
        serde_json::from_slice(text).map_err(|error| Failure::parse(format!("no JSON: {error}")))?;
    let calls = match &message {
        Value::Array(calls) if calls.is_empty() => return Err(Failure::request("the batch is empty")),
        Value::Array(calls) if calls.len() > MOST_CALLS => {
            return Err(Failure::request(format!(
                "a batch has at most {MOST_CALLS} calls, not {}",
                calls.len()
            )));
        }
        Value::Array(calls) => calls.as_slice(),
        single => std::slice::from_ref(single),
    };
    let mut replies: Vec<Vec<u8>> = Vec::with_capacity(calls.len());
    let mut bytes = 0;
    for request in calls {
        let reply = if bytes > LARGEST_REPLY {
            reply(id(request), Err(Failure::execute("the reply to this batch is too large: split it")))
        } else {
            reply(id(request), one(request, &mut call))
        };
        bytes += reply.len();
        replies.push(reply);
    }
    Ok(match replies.as_slice() {
        [single] => single.clone(),
        _ => [b"[".as_slice(), &replies.join(b",".as_slice()), b"]"].concat(),
    })
}

/// The reply to what is no call at all.
pub fn refuse(failure: Failure) -> Vec<u8> {
    reply(Value::Null, Err(failure))
}

fn one(
    request: &Value,
    call: &mut impl FnMut(&str, Parameters<'_>) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let request = request.as_object().ok_or_else(|| Failure::request("a call must be an object"))?;
    if request.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Failure::request("field 'jsonrpc' must be '2.0'"));
    }
    let method = request.get("method").and_then(Value::as_str);
    let method = method.ok_or_else(|| Failure::request("field 'method' must be a string"))?;
    let none = Map::new();
    let parameters = match request.get("params") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(parameters)) => parameters,
        Some(_) => return Err(Failure::parameters("field 'params' must be an object")),
    };
    call(method, Parameters(parameters))
}

/// The id of a call, if it is one that can be sent back.
fn id(request: &Value) -> Value {
    match request.get("id") {
        Some(Value::String(id)) if id.len() <= LONGEST_ID => Value::String(id.clone()),
        Some(Value::Number(id)) => Value::Number(id.clone()),
        _ => Value::Null,
    }
}

fn reply(id: Value, result: Result<Value, Failure>) -> Vec<u8> {
    let reply = match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(failure) => json!({"jsonrpc": "2.0", "id": id, "error": {
            "code": failure.code, "message": failure.message(), "specific_err": failure.reason,
        }}),
    };
    reply.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> Value {
        let reply = answer(text.as_bytes(), |method, parameters| match method {
            "echo" => parameters.value("it").cloned(),
            method => Err(Failure::method(method)),
        });
        serde_json::from_slice(&reply.unwrap_or_else(refuse)).unwrap()
    }

    #[test]
    fn calls_and_batches_are_answered_in_order() {
        let call =
            |id: &str, it: u64| json!({"jsonrpc": "2.0", "id": id, "method": "echo", "params": {"it": it}});
        assert_eq!(answered(&call("a", 7).to_string())["result"], 7);
        let batch = answered(&json!([call("a", 1), 3, call("b", 2)]).to_string());
        assert_eq!(
            (&batch[0]["result"], &batch[2]["result"], &batch[2]["id"]),
            (&json!(1), &json!(2), &json!("b"))
        );
        assert_eq!(batch[1]["error"]["code"], -32600);
        // As TRex answers a batch of one.
        assert_eq!(answered(&json!([call("a", 1)]).to_string())["result"], 1);
    }

    #[test]
    fn what_is_no_call_is_refused_by_its_number() {
        for (text, code) in [
            ("", -32700),
            ("{", -32700),
            ("[]", -32600),
            ("7", -32600),
            (r#"{"method":"echo"}"#, -32600),
            (r#"{"jsonrpc":"2.0"}"#, -32600),
            (r#"{"jsonrpc":"2.0","method":"other"}"#, -32601),
            (r#"{"jsonrpc":"2.0","method":"echo"}"#, -32602),
            (r#"{"jsonrpc":"2.0","method":"echo","params":[1]}"#, -32602),
        ] {
            assert_eq!(answered(text)["error"]["code"], code, "{text}");
        }
        let many = format!("[{}]", vec!["1"; MOST_CALLS + 1].join(","));
        assert_eq!(answered(&many)["error"]["code"], -32600);
    }
}
