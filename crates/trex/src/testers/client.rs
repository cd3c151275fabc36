//! One server as its client sees it: calls enter, results leave, or an error that names the server.

use std::time::Duration;

use serde_json::{Value, json};

use crate::framing;

/// How long a reply may take. TRex's own client waits as long.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the last calls may take, when a run has ended.
const FAREWELL: Duration = Duration::from_millis(500);
/// The most characters of a server's text in an error.
const LONGEST_TEXT: usize = 300;

/// Moves messages to one server and back.
pub trait Transport {
    /// Sends a request.
    ///
    /// # Errors
    /// Why it cannot be sent.
    fn send(&mut self, message: &[u8]) -> Result<(), String>;

    /// The reply, if it comes within `timeout`.
    ///
    /// # Errors
    /// Why none can come.
    fn receive(&mut self, timeout: Duration) -> Result<Option<Vec<u8>>, String>;

    /// Begins anew, so that the next request can be sent though a reply has not come.
    ///
    /// # Errors
    /// Why there is no way to the server any more.
    fn renew(&mut self) -> Result<(), String>;
}

/// Why a server cannot be used: the text names it, the cause and, where there is one, the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("tester {server}: {reason}")]
pub struct TesterError {
    /// Its address.
    pub server: String,
    /// What is wrong.
    pub reason: String,
}

/// The client of one server.
pub struct Client {
    server: String,
    transport: Box<dyn Transport>,
    /// What calls must carry once the server said it.
    api: Option<Value>,
    /// The numbers of the calls that are not answered yet.
    asked: Vec<String>,
    calls: u64,
    patience: Duration,
}

impl Client {
    /// A client of the server that users call `server`.
    pub fn new(server: String, transport: Box<dyn Transport>) -> Self {
        Self { server, transport, api: None, asked: Vec::new(), calls: 0, patience: PATIENCE }
    }

    /// What users call the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// An error of this server.
    pub fn error(&self, reason: impl Into<String>) -> TesterError {
        TesterError { server: self.server.clone(), reason: reason.into() }
    }

    /// Agrees with the server on the protocol's version.
    ///
    /// # Errors
    /// When it does not answer, or speaks another protocol.
    pub fn connect(&mut self) -> Result<(), TesterError> {
        let reply = self.call("api_sync_v2", json!({"name": "STL", "major": 5, "minor": 1}))?;
        let handle = reply.get("api_h").filter(|handle| handle.is_string()).cloned();
        let missing = || self.error("no TRex stateless server: the answer to api_sync_v2 has no 'api_h'");
        self.api = Some(handle.ok_or_else(missing)?);
        Ok(())
    }

    /// Calls `method`, and waits for the result.
    ///
    /// # Errors
    /// When the server refuses it, or does not answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> Result<Value, TesterError> {
        self.ask(vec![(method, parameters)])?;
        self.answer().map(|mut results| results.pop().unwrap_or_default())
    }

    /// Sends `calls` together, each a method and its parameters.
    ///
    /// # Errors
    /// When they cannot be sent.
    pub fn ask(&mut self, calls: Vec<(&str, Value)>) -> Result<(), TesterError> {
        if !self.asked.is_empty() {
            // The answer to what was asked before is not waited for any more.
            self.transport.renew().map_err(|reason| self.error(reason))?;
            self.asked.clear();
        }
        let mut requests = Vec::new();
        for (method, mut parameters) in calls {
            self.calls += 1;
            let id = self.calls.to_string();
            if let (Some(api), Some(parameters)) = (&self.api, parameters.as_object_mut()) {
                parameters.insert("api_h".to_owned(), api.clone());
            }
            requests.push(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
            self.asked.push(id);
        }
        let text = match requests.as_slice() {
            [single] => single.to_string(),
            _ => Value::Array(requests).to_string(),
        };
        if text.len() > framing::LARGEST {
            self.asked.clear();
            return Err(self.error(format!(
                "a request of {} bytes is more than the protocol's {}: choose a profile with fewer streams",
                text.len(),
                framing::LARGEST
            )));
        }
        self.transport.send(&framing::pack(text.as_bytes())).map_err(|reason| self.error(reason))
    }

    /// The results of what was asked, in its order.
    ///
    /// # Errors
    /// When the server refused a call, does not answer, or answers something else.
    pub fn answer(&mut self) -> Result<Vec<Value>, TesterError> {
        let message = self.transport.receive(self.patience).map_err(|reason| self.error(reason))?;
        let message = message.ok_or_else(|| {
            self.error(format!(
                "no answer within {:?}: look whether a TRex stateless server, or linerate serve, listens there",
                self.patience
            ))
        })?;
        let asked = std::mem::take(&mut self.asked);
        let (text, _) = framing::open(&message).map_err(|error| self.error(error.to_string()))?;
        let reply: Value = serde_json::from_slice(&text)
            .map_err(|error| self.error(format!("the answer is no JSON: {error}")))?;
        let replies = match reply {
            Value::Array(replies) => replies,
            single => vec![single],
        };
        if replies.len() != asked.len() {
            return Err(self.refusal_or(
                &replies,
                &format!("{} answers to {} calls: no TRex stateless server", replies.len(), asked.len()),
            ));
        }
        asked.iter().zip(replies).map(|(id, reply)| self.result(id, reply)).collect()
    }

    /// What a server says that refuses a whole request; else `otherwise`.
    fn refusal_or(&self, replies: &[Value], otherwise: &str) -> TesterError {
        let refusal = replies.iter().find_map(refusal);
        self.error(refusal.unwrap_or_else(|| otherwise.to_owned()))
    }

    fn result(&self, id: &str, mut reply: Value) -> Result<Value, TesterError> {
        if let Some(refusal) = refusal(&reply) {
            return Err(self.error(refusal));
        }
        if reply.get("id").and_then(Value::as_str) != Some(id) {
            return Err(self.error("the answer is to another call: no TRex stateless server"));
        }
        match reply.get_mut("result") {
            Some(result) => Ok(result.take()),
            None => Err(self.error("the answer has neither 'result' nor 'error': no TRex stateless server")),
        }
    }

    /// From now on answers are waited for only briefly.
    pub fn hurry(&mut self) {
        self.patience = FAREWELL;
    }
}

/// Why the server refuses a call, if it does.
fn refusal(reply: &Value) -> Option<String> {
    let error = reply.get("error").filter(|error| !error.is_null())?;
    let text = ["specific_err", "message"].iter().find_map(|key| error.get(key)?.as_str());
    let text: String = text.unwrap_or("no reason is given").chars().take(LONGEST_TEXT).collect();
    Some(format!("it refuses: {}", text.replace(char::is_control, " ")))
}
