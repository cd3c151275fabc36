//! A small server of HTTP/1.1: requests enter, what answers them is asked, one answer a connection leaves.
//!
//! One thread serves all. It sleeps while nobody is connected, and no client makes it wait: sockets do not block,
//! and a connection that has not got its answer after 5 s is closed. Requests, connections and answers are
//! bounded. A page of another site that has its own name lead here (DNS rebinding) is refused by the Host header.

pub mod metrics;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How many are answered at once; one more takes the place of the oldest.
const CONNECTIONS: usize = 16;
/// The longest request, in bytes: browsers send less than 2 kB.
const REQUEST: usize = 8 << 10;
/// The longest body of one.
const BODY: usize = 1 << 10;
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often open connections are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// What a page may load and ask: only what comes from here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob: data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Answers a request with its body: the bytes that [`reply`] or [`refuse`] makes.
pub type Answer = dyn Fn(&Request, &[u8]) -> Vec<u8> + Send;

/// Serves until it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Serves at `listener`, on a thread called `name`. Requests to it by an IP address or as localhost are answered by
    /// `answer`, which must not wait.
    ///
    /// # Errors
    /// Why there can be no further thread.
    pub fn start(listener: TcpListener, name: &str, answer: Box<Answer>) -> io::Result<Self> {
        let address = listener.local_addr()?;
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name(format!("{name} {}", address.port()))
            .spawn(move || serve(&listener, &*answer, &ended))?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let here = match self.address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
            ip => ip,
        };
        // Wakes the thread. Where that does not succeed, the thread ends with the process.
        let woken = TcpStream::connect_timeout(&SocketAddr::new(here, self.address.port()), PATIENCE);
        if let (Ok(_), Some(thread)) = (woken, self.thread.take()) {
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, answer: &Answer, stop: &AtomicBool) {
    let mut open: Vec<Connection> = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        // With nobody connected it sleeps until somebody comes.
        let _ = listener.set_nonblocking(!open.is_empty());
        for _ in 0..CONNECTIONS / 2 {
            match listener.accept() {
                Ok((stream, _)) => {
                    if open.len() == CONNECTIONS {
                        open.remove(0);
                    }
                    open.extend(Connection::new(stream));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => {
                    // As when there are no more file descriptors: not again at once.
                    thread::sleep(Duration::from_millis(100));
                    break;
                }
            }
            let _ = listener.set_nonblocking(true);
        }
        open.retain_mut(|connection| connection.go_on(answer));
        if !open.is_empty() {
            thread::sleep(LOOK);
        }
    }
}

/// A client: first its request is read, then its answer is written.
struct Connection {
    stream: TcpStream,
    since: Instant,
    request: Vec<u8>,
    answer: Option<Vec<u8>>,
    written: usize,
}

impl Connection {
    fn new(stream: TcpStream) -> Option<Self> {
        stream.set_nonblocking(true).ok()?;
        Some(Self { stream, since: Instant::now(), request: Vec::new(), answer: None, written: 0 })
    }

    /// Does what can be done at once; whether anything is left to do.
    fn go_on(&mut self, answer: &Answer) -> bool {
        if self.since.elapsed() > PATIENCE {
            return false;
        }
        let done = match self.answer {
            None => self.read(answer),
            Some(_) => self.write(),
        };
        match done {
            Ok(goes_on) => goes_on,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn read(&mut self, answer: &Answer) -> io::Result<bool> {
        let mut buffer = [0; 2048];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(false);
        }
        self.request.extend_from_slice(&buffer[..count]);
        if let Some(end) = self.request.windows(4).position(|four| four == b"\r\n\r\n") {
            let (head, rest) = self.request.split_at(end);
            let request = Request::read(head);
            let length = request.as_ref().map_or(0, Request::length);
            let body = rest.get(4..).unwrap_or_default();
            if length > BODY {
                self.answer = Some(refuse("413 Content Too Large", "the body is too long"));
            } else if let Some(body) = body.get(..length) {
                self.answer = Some(answered(request.as_ref(), body, answer));
            }
        } else if self.request.len() > REQUEST {
            self.answer = Some(refuse("431 Request Header Fields Too Large", "the request is too long"));
        }
        Ok(true)
    }

    fn write(&mut self) -> io::Result<bool> {
        let answer = self.answer.as_deref().unwrap_or_default();
        self.written += self.stream.write(answer.get(self.written..).unwrap_or_default())?;
        Ok(self.written < answer.len())
    }
}

/// The head of a request.
pub struct Request {
    /// Like `GET`.
    pub method: String,
    /// What is asked for, like `/metrics`.
    pub target: String,
    headers: Vec<(String, String)>,
}

impl Request {
    fn read(head: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
            return None;
        };
        let headers = lines.filter_map(|line| line.split_once(':'));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
        Some(Self { method: method.to_owned(), target: target.to_owned(), headers })
    }

    /// The value of the only header of this name. One that is there twice is as good as none.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        match (found.next(), found.next()) {
            (Some((_, value)), None) => Some(value),
            _ => None,
        }
    }

    /// Bytes of its body.
    fn length(&self) -> usize {
        self.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)
    }
}

fn answered(request: Option<&Request>, body: &[u8], answer: &Answer) -> Vec<u8> {
    let Some(request) = request else {
        return refuse("400 Bad Request", "this is no request of HTTP");
    };
    if !request.header("host").is_some_and(is_known) {
        return refuse(
            "403 Forbidden",
            "open this page by its IP address or as localhost, not by another name",
        );
    }
    answer(request, body)
}

/// Whether a Host header is an IP address or this machine's own name for itself, with or without a port.
fn is_known(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || bare.parse::<IpAddr>().is_ok()
}

/// An answer that refuses, like `404 Not Found`, and says why.
#[must_use]
pub fn refuse(status: &str, why: &str) -> Vec<u8> {
    reply(status, "text/plain; charset=utf-8", &format!("{why}\n"), true)
}

/// An answer of a media type; HEAD asks for none of its body.
#[must_use]
pub fn reply(status: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
    let length = body.len();
    let mut reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nContent-Security-Policy: {POLICY}\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"
    );
    if with_body {
        reply.push_str(body);
    }
    reply.into_bytes()
}
