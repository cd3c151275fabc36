//! Requests enter, a page, its samples and metrics leave ([`web`]). GET and HEAD change nothing.
//!
//! One thing can be changed: the load, where a person steers, by a POST, and only where the server listens at a
//! loopback address. The request must carry the token that stands in the page, and come from the page itself by its
//! Origin, so that no page of another site changes anything, nor another program that has not read the page.

use std::fs;
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener};

use web::{Request, metrics, refuse, reply};

use crate::{Board, Steering};

/// What stands in the page where its token belongs.
const TOKEN: &str = "{token}";

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
pub struct Server(web::Server);

impl Server {
    /// Listens at `address`, where port 0 is any that is free.
    ///
    /// # Errors
    /// Why the address cannot be listened at.
    pub fn start(address: SocketAddr, board: Board, files: &'static [File]) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // Without one nobody can steer.
        let token = if listener.local_addr()?.ip().is_loopback() { token() } else { None };
        let site = Site { board, files, token };
        let answer = Box::new(move |request: &Request, body: &[u8]| site.answer(request, body));
        Ok(Self(web::Server::start(listener, "live", answer)?))
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.0.address()
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

impl Site {
    fn answer(&self, request: &Request, body: &[u8]) -> Vec<u8> {
        let (path, query) = request.target.split_once('?').unwrap_or((&request.target, ""));
        match request.method.as_str() {
            "GET" | "HEAD" => self.show(path, query, request.method == "GET"),
            "POST" if path == "/load" => self.steer(request, body),
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
            "/metrics" => reply("200 OK", metrics::KIND, &self.board.metrics(), with_body),
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
    fn steer(&self, request: &Request, body: &[u8]) -> Vec<u8> {
        let Some(token) = self.token.as_deref() else {
            return refuse(
                "403 Forbidden",
                "the load can be changed only where this listens at a loopback address: --live 127.0.0.1:4580",
            );
        };
        let host = request.header("host").unwrap_or_default();
        if request.header("origin") != Some(&format!("http://{host}")) {
            return refuse("403 Forbidden", "the load can be changed only by the page itself (Origin)");
        }
        if request.header("x-linerate-token") != Some(token) {
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
