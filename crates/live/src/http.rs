//! Requests enter, a page, its samples and metrics leave: HTTP/1.1, one answer a connection.
//!
//! One thread serves all. It sleeps while nobody is connected, and no client makes it wait: sockets do not block,
//! and a connection that has not got its answer after [`PATIENCE`] is closed. Requests, connections and answers are
//! bounded. GET and HEAD change nothing. A page of another site that has its own name lead here (DNS rebinding) is
//! refused by the Host header.
//!
//! One thing can be changed: the load, where a person steers, by a POST, and only where the server listens at a
//! loopback address. The request must carry the token that stands in the page, and come from the page itself by its
//! Origin, so that no page of another site changes anything, nor another program that has not read the page.

use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::{Board, Steering};

/// How many are answered at once; one more takes the place of the oldest.
const CONNECTIONS: usize = 16;
/// The longest request, in bytes: browsers send less than 2 kB.
const REQUEST: usize = 8 << 10;
/// The longest body of one.
const BODY: usize = 1 << 10;
/// What stands in the page where its token belongs.
const TOKEN: &str = "{token}";
/// How long a connection may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often open connections are looked at.
const LOOK: Duration = Duration::from_millis(2);
/// What the page may load and ask: only what comes from here.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src blob: data:; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub struct File {
    /// Like `/live.js`.
    pub path: &'static str,
    /// Its media type.
    pub kind: &'static str,
    /// What is in it.
    pub body: &'static str,
}

/// Serves a board until it is dropped.
pub struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens at `address`, where port 0 is any that is free.
    ///
    /// # Errors
    /// Why the address cannot be listened at.
    pub fn start(address: SocketAddr, board: Board, files: &'static [File]) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        // Without one nobody can steer.
        let token = if address.ip().is_loopback() { token() } else { None };
        let stop = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name(format!("live {}", address.port()))
            .spawn(move || serve(&listener, &Site { board, files, token }, &ended))?;
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

/// What is served.
struct Site {
    board: Board,
    files: &'static [File],
    /// What a request must carry that changes the load; none where nobody can.
    token: Option<String>,
}

/// A word that nobody guesses.
fn token() -> Option<String> {
    let mut bytes = [0; 16];
    fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn serve(listener: &TcpListener, site: &Site, stop: &AtomicBool) {
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
        open.retain_mut(|connection| connection.go_on(site));
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
    fn go_on(&mut self, site: &Site) -> bool {
        if self.since.elapsed() > PATIENCE {
            return false;
        }
        let done = match self.answer {
            None => self.read(site),
            Some(_) => self.write(),
        };
        match done {
            Ok(goes_on) => goes_on,
            Err(error) => matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    fn read(&mut self, site: &Site) -> io::Result<bool> {
        let mut buffer = [0; 2048];
        let count = self.stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(false);
        }
        self.request.extend_from_slice(&buffer[..count]);
        if let Some(end) = self.request.windows(4).position(|four| four == b"\r\n\r\n") {
            let (head, rest) = self.request.split_at(end);
            let request = Request::read(head);
            let length = request.as_ref().map_or(0, |request| request.length);
            let body = rest.get(4..).unwrap_or_default();
            if length > BODY {
                self.answer = Some(refuse("413 Content Too Large", "the body is too long"));
            } else if let Some(body) = body.get(..length) {
                self.answer = Some(site.answer(request.as_ref(), body));
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

/// The head of a request, as far as it matters.
struct Request {
    method: String,
    target: String,
    /// The only Host header.
    host: Option<String>,
    /// The only Origin header.
    origin: Option<String>,
    token: Option<String>,
    /// Bytes of the body.
    length: usize,
}

impl Request {
    fn read(head: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(head);
        let mut lines = text.split("\r\n");
        let mut words = lines.next().unwrap_or_default().split(' ');
        let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
            return None;
        };
        let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(':')).collect();
        // One that is there twice is as good as none.
        let only = |wanted: &str| {
            let mut found = headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
            match (found.next(), found.next()) {
                (Some((_, value)), None) => Some(value.trim().to_owned()),
                _ => None,
            }
        };
        Some(Self {
            method: method.to_owned(),
            target: target.to_owned(),
            host: only("host"),
            origin: only("origin"),
            token: only("x-linerate-token"),
            length: only("content-length").and_then(|length| length.parse().ok()).unwrap_or(0),
        })
    }
}

impl Site {
    fn answer(&self, request: Option<&Request>, body: &[u8]) -> Vec<u8> {
        let Some(request) = request else {
            return refuse("400 Bad Request", "this is no request of HTTP");
        };
        let Some(host) = request.host.as_deref().filter(|host| is_known(host)) else {
            return refuse(
                "403 Forbidden",
                "open this page by its IP address or as localhost, not by another name",
            );
        };
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        match request.method.as_str() {
            "GET" | "HEAD" => self.show(path, query, request.method == "GET"),
            "POST" if path == "/load" => self.steer(request, host, body),
            _ => refuse(
                "405 Method Not Allowed",
                "nothing but the load can be changed here, by the page: only GET is answered",
            ),
        }
    }

    fn show(&self, path: &str, query: &str, with_body: bool) -> Vec<u8> {
        if let Some(file) = self.files.iter().find(|file| file.path == path) {
            let body = file.body.replace(TOKEN, self.token.as_deref().unwrap_or_default());
            return reply("200 OK", file.kind, &body, with_body);
        }
        match path {
            "/metrics" => {
                let kind = "text/plain; version=0.0.4; charset=utf-8";
                reply("200 OK", kind, &self.board.metrics(), with_body)
            }
            "/samples" => {
                let after = query.strip_prefix("after=").and_then(|number| number.parse().ok()).unwrap_or(0);
                match serde_json::to_string(&self.board.since(after)) {
                    Ok(samples) => reply("200 OK", "application/json", &samples, with_body),
                    Err(error) => refuse("500 Internal Server Error", &error.to_string()),
                }
            }
            _ => refuse("404 Not Found", "there is only the page (/), its /samples, and /metrics"),
        }
    }

    /// Changes the load, if the page itself asks for it.
    fn steer(&self, request: &Request, host: &str, body: &[u8]) -> Vec<u8> {
        let Some(token) = self.token.as_deref() else {
            return refuse(
                "403 Forbidden",
                "the load can be changed only where this listens at a loopback address: --live 127.0.0.1:4580",
            );
        };
        if request.origin.as_deref() != Some(&format!("http://{host}")) {
            return refuse("403 Forbidden", "the load can be changed only by the page itself (Origin)");
        }
        if request.token.as_deref() != Some(token) {
            return refuse("403 Forbidden", "the page's token is missing or old: load the page again");
        }
        let wish: Result<Steering, _> = serde_json::from_slice(body);
        let Ok(wish) = wish else {
            return refuse("400 Bad Request", r#"the body must be like {"percent": 50, "paused": false}"#);
        };
        match self.board.wish(wish) {
            Ok(()) => reply("200 OK", "application/json", "{}", true),
            Err(reason) => refuse("409 Conflict", reason),
        }
    }
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

fn refuse(status: &str, why: &str) -> Vec<u8> {
    reply(status, "text/plain; charset=utf-8", &format!("{why}\n"), true)
}

fn reply(status: &str, kind: &str, body: &str, with_body: bool) -> Vec<u8> {
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
