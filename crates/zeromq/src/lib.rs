//! Sockets of ZeroMQ: addresses and messages enter, messages leave.
//!
//! libzmq is loaded when the first socket is made, so that a program that has sockets of this kind runs without
//! it, and says which package it lacks once it needs one. Debian: libzmq5.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::rc::Rc;
use std::time::Duration;

use libloading::Library;

/// What the library is called.
const NAME: &str = "libzmq.so.5";
/// The largest message of a peer: one that sends more is disconnected.
const LARGEST_MESSAGE: usize = 2 << 20;
/// The most parts of an envelope, which say where a reply goes: who asked, and what is between.
const LONGEST_ENVELOPE: usize = 8;
/// The most bytes of such a part.
const LARGEST_PART: usize = 256;

// From zmq.h.
const ZMQ_PUB: c_int = 1;
const ZMQ_REQ: c_int = 3;
const ZMQ_ROUTER: c_int = 6;
const ZMQ_RCVMORE: c_int = 13;
const ZMQ_LINGER: c_int = 17;
const ZMQ_MAXMSGSIZE: c_int = 22;
const ZMQ_RCVTIMEO: c_int = 27;
const ZMQ_SNDTIMEO: c_int = 28;
const ZMQ_LAST_ENDPOINT: c_int = 32;
const ZMQ_IPV6: c_int = 42;
const ZMQ_SNDMORE: c_int = 2;
const EINTR: c_int = 4;
const EAGAIN: c_int = 11;

/// Why a socket cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The library is not there.
    #[error("{NAME} cannot be loaded ({0}): install ZeroMQ (Debian: apt install libzmq5)")]
    Missing(String),
    /// This program was linked without shared libraries, and can load none.
    #[error(
        "a static linerate cannot load {NAME}: use the Debian package, or build linerate (docs/installing.md)"
    )]
    Static,
    /// The library refused.
    #[error("ZeroMQ: {action}: {reason}")]
    Refused {
        /// What was to be done.
        action: String,
        /// What the library says.
        reason: String,
    },
}

/// What a socket is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Answers one request after the other, of clients that have sockets of the kind REQ.
    ///
    /// It is no REP: that one loses the reply to the next client where a peer that has gone left a message without an
    /// envelope (libzmq 4.3).
    Reply,
    /// Tells everybody who listens.
    Publish,
}

/// How long a request waits at most for its turn to be sent.
const SEND_TIMEOUT_MS: i32 = 1_000;

type ContextNew = unsafe extern "C" fn() -> *mut c_void;
type ContextTerminate = unsafe extern "C" fn(*mut c_void) -> c_int;
type SocketNew = unsafe extern "C" fn(*mut c_void, c_int) -> *mut c_void;
type SocketClose = unsafe extern "C" fn(*mut c_void) -> c_int;
type SetOption = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, usize) -> c_int;
type GetOption = unsafe extern "C" fn(*mut c_void, c_int, *mut c_void, *mut usize) -> c_int;
type Bind = unsafe extern "C" fn(*mut c_void, *const c_char) -> c_int;
type Send = unsafe extern "C" fn(*mut c_void, *const c_void, usize, c_int) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, *mut c_void, usize, c_int) -> c_int;
type ErrorNumber = unsafe extern "C" fn() -> c_int;
type ErrorText = unsafe extern "C" fn(c_int) -> *const c_char;

/// The functions of the library that are used.
struct Functions {
    context_new: ContextNew,
    context_terminate: ContextTerminate,
    socket_new: SocketNew,
    socket_close: SocketClose,
    set_option: SetOption,
    get_option: GetOption,
    bind: Bind,
    connect: Bind,
    send: Send,
    receive: Receive,
    error_number: ErrorNumber,
    error_text: ErrorText,
    /// Keeps them where they are.
    _library: Library,
}

impl Functions {
    fn load() -> Result<Self, Error> {
        if cfg!(target_feature = "crt-static") {
            return Err(Error::Static);
        }
        // SAFETY: libzmq has no initializers with requirements on who loads it.
        let library = unsafe { Library::new(NAME) }.map_err(missing)?;
        // SAFETY: each type is the one that zmq.h declares for this name, in all versions with this soname; the
        // library is kept as long as the functions are.
        unsafe {
            Ok(Self {
                context_new: function(&library, "zmq_ctx_new")?,
                context_terminate: function(&library, "zmq_ctx_term")?,
                socket_new: function(&library, "zmq_socket")?,
                socket_close: function(&library, "zmq_close")?,
                set_option: function(&library, "zmq_setsockopt")?,
                get_option: function(&library, "zmq_getsockopt")?,
                bind: function(&library, "zmq_bind")?,
                connect: function(&library, "zmq_connect")?,
                send: function(&library, "zmq_send")?,
                receive: function(&library, "zmq_recv")?,
                error_number: function(&library, "zmq_errno")?,
                error_text: function(&library, "zmq_strerror")?,
                _library: library,
            })
        }
    }

    fn number(&self) -> c_int {
        // SAFETY: it takes nothing and returns the calling thread's last error.
        unsafe { (self.error_number)() }
    }

    fn refused(&self, action: impl Into<String>) -> Error {
        // SAFETY: it takes any number, and returns text that is never freed.
        let text = unsafe { (self.error_text)(self.number()) };
        let reason = if text.is_null() {
            "no reason is known".to_owned()
        } else {
            // SAFETY: a C string, as said.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        Error::Refused { action: action.into(), reason }
    }
}

/// The function `name` of `library`.
///
/// # Safety
/// `F` must be a function pointer of the type that the library declares.
unsafe fn function<F: Copy>(library: &Library, name: &str) -> Result<F, Error> {
    // SAFETY: as the caller says.
    let symbol = unsafe { library.get::<F>(name.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(missing)
}

fn missing(error: libloading::Error) -> Error {
    Error::Missing(error.to_string())
}

/// What sockets share: the library's threads.
#[derive(Clone)]
pub struct Context(Rc<Inner>);

struct Inner {
    functions: Functions,
    context: *mut c_void,
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: the context is valid, and no socket of it is left: each holds this.
        unsafe { (self.functions.context_terminate)(self.context) };
    }
}

impl Context {
    /// Loads the library, and starts its threads.
    ///
    /// # Errors
    /// [`Error::Missing`] where it is not installed.
    pub fn new() -> Result<Self, Error> {
        let functions = Functions::load()?;
        // SAFETY: it takes nothing; a null pointer is looked for.
        let context = unsafe { (functions.context_new)() };
        if context.is_null() {
            return Err(functions.refused("cannot start"));
        }
        Ok(Self(Rc::new(Inner { functions, context })))
    }

    /// A socket that listens at `address`, such as `tcp://127.0.0.1:4501`; port 0 is any that is free.
    ///
    /// # Errors
    /// [`Error::Refused`], for example where the address is in use.
    pub fn listen(&self, kind: Kind, address: &str) -> Result<Socket, Error> {
        let number = match kind {
            Kind::Reply => ZMQ_ROUTER,
            Kind::Publish => ZMQ_PUB,
        };
        let mut socket = self.socket(number, address, 0)?;
        let functions = &self.0.functions;
        let text = address_text(address)?;
        // SAFETY: the socket is valid and the text ends with a zero.
        if unsafe { (functions.bind)(socket.handle, text.as_ptr()) } != 0 {
            return Err(functions.refused(format!("cannot listen at {address}")));
        }
        socket.has_envelopes = true;
        Ok(socket)
    }

    /// A socket that asks the server at `address`, such as `tcp://127.0.0.1:4501`: one request, then its reply. It
    /// connects by itself and again, so that only a reply shows that somebody is there.
    ///
    /// # Errors
    /// [`Error::Refused`], where `address` is none.
    pub fn connect(&self, address: &str) -> Result<Socket, Error> {
        let socket = self.socket(ZMQ_REQ, address, SEND_TIMEOUT_MS)?;
        let functions = &self.0.functions;
        let text = address_text(address)?;
        // SAFETY: the socket is valid and the text ends with a zero.
        if unsafe { (functions.connect)(socket.handle, text.as_ptr()) } != 0 {
            return Err(functions.refused(format!("cannot connect to {address}")));
        }
        Ok(socket)
    }

    /// A socket of the library's kind `number`.
    fn socket(&self, number: c_int, address: &str, send_timeout_ms: i32) -> Result<Socket, Error> {
        let Inner { functions, context } = &*self.0;
        // SAFETY: the context is valid; a null pointer is looked for.
        let handle = unsafe { (functions.socket_new)(*context, number) };
        if handle.is_null() {
            return Err(functions.refused("cannot make a socket"));
        }
        let inner = Rc::clone(&self.0);
        let (envelope, buffer) = (Vec::new(), Vec::new());
        let mut socket = Socket { handle, inner, timeout: None, has_envelopes: false, envelope, buffer };
        // Nobody is waited for when it ends, nor while a reply is sent.
        socket.set(ZMQ_LINGER, &0_i32.to_ne_bytes())?;
        socket.set(ZMQ_SNDTIMEO, &send_timeout_ms.to_ne_bytes())?;
        socket.set(ZMQ_MAXMSGSIZE, &(LARGEST_MESSAGE as i64).to_ne_bytes())?;
        if address.contains('[') {
            socket.set(ZMQ_IPV6, &1_i32.to_ne_bytes())?;
        }
        Ok(socket)
    }
}

fn address_text(address: &str) -> Result<CString, Error> {
    let refused = |_| Error::Refused { action: format!("{address:?}"), reason: "not an address".into() };
    CString::new(address).map_err(refused)
}

/// A socket. It belongs to one thread.
pub struct Socket {
    handle: *mut c_void,
    inner: Rc<Inner>,
    /// What is set in the library, in milliseconds.
    timeout: Option<i32>,
    /// Whether what comes says who asks. The library keeps that to itself at a socket that asks.
    has_envelopes: bool,
    /// Where the next reply goes.
    envelope: Vec<Vec<u8>>,
    buffer: Vec<u8>,
}

impl Socket {
    fn set(&mut self, option: c_int, value: &[u8]) -> Result<(), Error> {
        let functions = &self.inner.functions;
        // SAFETY: the socket is valid, the value is readable for its length, and the library checks that length.
        let done = unsafe { (functions.set_option)(self.handle, option, value.as_ptr().cast(), value.len()) };
        if done == 0 { Ok(()) } else { Err(functions.refused(format!("cannot set option {option}"))) }
    }

    fn get(&self, option: c_int, value: &mut [u8]) -> Result<usize, Error> {
        let functions = &self.inner.functions;
        let mut length = value.len();
        // SAFETY: the socket is valid, the value is writable for its length, which the library keeps to.
        let done = unsafe {
            (functions.get_option)(self.handle, option, value.as_mut_ptr().cast(), &raw mut length)
        };
        if done == 0 { Ok(length) } else { Err(functions.refused(format!("cannot read option {option}"))) }
    }

    /// The address that it listens at.
    ///
    /// # Errors
    /// When the library does not say.
    pub fn address(&self) -> Result<String, Error> {
        let mut text = [0; 256];
        let length = self.get(ZMQ_LAST_ENDPOINT, &mut text)?;
        Ok(String::from_utf8_lossy(&text[..length.saturating_sub(1).min(text.len())]).into_owned())
    }

    /// The next request, or the reply to what was asked, if one comes within `timeout` (whole milliseconds) and no
    /// signal before. Of one in several parts, the first. A request without an envelope is none, and is passed over.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn receive(&mut self, timeout: Duration) -> Result<Option<&[u8]>, Error> {
        let timeout = timeout.as_millis().min(i32::MAX as u128) as i32;
        if self.timeout != Some(timeout) {
            self.set(ZMQ_RCVTIMEO, &timeout.to_ne_bytes())?;
            self.timeout = Some(timeout);
        }
        self.buffer.resize(LARGEST_MESSAGE, 0);
        self.envelope.clear();
        let Some(mut length) = self.part()? else { return Ok(None) };
        if !self.has_envelopes {
            self.skip_rest()?;
            return Ok(self.buffer.get(..length));
        }
        // An empty part ends the envelope.
        loop {
            let fits = self.envelope.len() < LONGEST_ENVELOPE && length <= LARGEST_PART;
            let has_ended = length == 0 && !self.envelope.is_empty();
            if fits {
                self.envelope.push(self.buffer.get(..length).unwrap_or_default().to_vec());
            }
            if !fits || !self.has_more()? {
                self.envelope.clear();
                self.skip_rest()?;
                return Ok(None);
            }
            let Some(next) = self.part()? else { return Ok(None) };
            length = next;
            if has_ended {
                break;
            }
        }
        self.skip_rest()?;
        Ok(self.buffer.get(..length))
    }

    /// Whether the part that was received last has others behind it.
    fn has_more(&self) -> Result<bool, Error> {
        let mut more = [0; 4];
        Ok(self.get(ZMQ_RCVMORE, &mut more)? > 0 && i32::from_ne_bytes(more) != 0)
    }

    fn skip_rest(&mut self) -> Result<(), Error> {
        while self.has_more()? {
            self.skip()?;
        }
        Ok(())
    }

    /// Puts one part into the buffer; its length.
    fn part(&mut self) -> Result<Option<usize>, Error> {
        let functions = &self.inner.functions;
        let (place, size) = (self.buffer.as_mut_ptr(), self.buffer.len());
        // SAFETY: the socket is valid and the buffer writable for its length, which the library keeps to.
        let length = unsafe { (functions.receive)(self.handle, place.cast(), size, 0) };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length.min(size))),
            Err(_) if matches!(functions.number(), EAGAIN | EINTR) => Ok(None),
            Err(_) => Err(functions.refused("cannot receive")),
        }
    }

    /// Takes one part and forgets it.
    fn skip(&mut self) -> Result<(), Error> {
        let functions = &self.inner.functions;
        let mut nothing = [0_u8; 1];
        // SAFETY: as in `part`; what does not fit is cut off.
        let length = unsafe { (functions.receive)(self.handle, nothing.as_mut_ptr().cast(), 1, 0) };
        if length >= 0 || functions.number() == EINTR {
            Ok(())
        } else {
            Err(functions.refused("cannot receive"))
        }
    }

    /// Sends `message`, to whom it is a reply or to everybody. One that nobody takes at once is dropped: its
    /// receiver has gone.
    ///
    /// # Errors
    /// When the library refuses.
    pub fn send(&mut self, message: &[u8]) -> Result<(), Error> {
        for part in std::mem::take(&mut self.envelope) {
            if !self.send_part(&part, ZMQ_SNDMORE)? {
                return Ok(());
            }
        }
        self.send_part(message, 0).map(drop)
    }

    /// Whether the part was taken.
    fn send_part(&self, part: &[u8], flags: c_int) -> Result<bool, Error> {
        let functions = &self.inner.functions;
        loop {
            // SAFETY: the socket is valid and the part readable for its length.
            let sent = unsafe { (functions.send)(self.handle, part.as_ptr().cast(), part.len(), flags) };
            match functions.number() {
                _ if sent >= 0 => return Ok(true),
                EINTR => {}
                EAGAIN => return Ok(false),
                _ => return Err(functions.refused("cannot send")),
            }
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // SAFETY: the socket is valid and not used any more; its context outlives it.
        unsafe { (self.inner.functions.socket_close)(self.handle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_listen_wait_and_refuse_addresses_in_use() {
        let context = match Context::new() {
            Ok(context) => context,
            Err(error @ Error::Missing(_)) => {
                assert!(error.to_string().contains("apt install libzmq5"));
                eprintln!("skipped: {error}");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        let mut socket = context.listen(Kind::Reply, "tcp://127.0.0.1:0").unwrap();
        let address = socket.address().unwrap();
        assert!(address.starts_with("tcp://127.0.0.1:") && !address.ends_with(":0"), "{address}");
        assert!(socket.receive(Duration::from_millis(1)).unwrap().is_none());
        let refusal = context.listen(Kind::Publish, &address).err().unwrap().to_string();
        assert!(refusal.contains("in use"), "{refusal}");
        assert!(context.listen(Kind::Publish, "nonsense").is_err());
        assert!(context.connect("nonsense").is_err());
        let mut client = context.connect(&address).unwrap();
        client.send(b"question").unwrap();
        let long = Duration::from_secs(5);
        assert_eq!(socket.receive(long).unwrap().unwrap(), b"question");
        assert!(client.receive(Duration::from_millis(1)).unwrap().is_none(), "nobody has answered yet");
        socket.send(b"answer").unwrap();
        assert_eq!(client.receive(long).unwrap().unwrap(), b"answer");
        // Nobody is at the other end: nothing hangs.
        let mut lonely = context.connect("tcp://127.0.0.1:1").unwrap();
        lonely.send(b"question").unwrap();
        assert!(lonely.receive(Duration::from_millis(20)).unwrap().is_none());
        let mut publisher = context.listen(Kind::Publish, "tcp://127.0.0.1:0").unwrap();
        publisher.send(b"{}").unwrap();
    }
}
