//! The control socket: connections enter, each with requests a line; what the router replies leaves. Each
//! connection has a thread of its own, so that one that is slow keeps nobody waiting.

use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::control::place;
use crate::control::protocol::{Reply, Request};

/// The longest request, in bytes.
const LINE: u64 = 1 << 20;
/// The most connections at a time.
const CONNECTIONS: usize = 32;
/// How long a connection may say nothing, and how long it may take to read a reply.
const PATIENCE: Duration = Duration::from_secs(600);

/// Why there is no control socket.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Another router has it.
    #[error(
        "another fastpath listens at {0}: end it, or give this one another socket ([control] socket = …)"
    )]
    Taken(PathBuf),
    /// The kernel refuses.
    #[error("cannot listen at {path}: {cause}; may this user write there, and is it no other file?")]
    Listen {
        /// Where.
        path: PathBuf,
        /// What it answered.
        cause: io::Error,
    },
    /// A thread does not start.
    #[error("cannot serve the control socket: {0}; raise the limit of processes (ulimit -u)")]
    Start(io::Error),
}

/// A control socket. Its file, if it has one, goes when this is dropped.
pub struct Socket {
    path: PathBuf,
    listener: UnixListener,
    /// The device and number of its file, so that no other one is removed.
    identity: Option<(u64, u64)>,
}

impl Socket {
    /// One at `path`, or with the name after `@`. A file there that nobody listens at was left behind, and is replaced.
    ///
    /// # Errors
    /// [`Error::Taken`], [`Error::Listen`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let listen_error = |cause| Error::Listen { path: path.to_owned(), cause };
        if place::name(path).is_some() {
            let listener = place::listen(path).map_err(|cause| match cause.kind() {
                io::ErrorKind::AddrInUse => Error::Taken(path.to_owned()),
                _ => listen_error(cause),
            })?;
            return Ok(Self { path: path.to_owned(), listener, identity: None });
        }
        let _alone = memif::lock_directory(path);
        let listener = match UnixListener::bind(path) {
            Err(cause) if cause.kind() == io::ErrorKind::AddrInUse && is_socket(path) => {
                match UnixStream::connect(path) {
                    Err(nobody) if nobody.kind() == io::ErrorKind::ConnectionRefused => {}
                    Err(other) => return Err(listen_error(other)),
                    Ok(_) => return Err(Error::Taken(path.to_owned())),
                }
                fs::remove_file(path).and_then(|()| UnixListener::bind(path)).map_err(listen_error)?
            }
            listener => listener.map_err(listen_error)?,
        };
        let file = fs::symlink_metadata(path).map_err(listen_error)?;
        Ok(Self { path: path.to_owned(), listener, identity: Some((file.dev(), file.ino())) })
    }

    /// Has requests answered by `answer`, from as many threads as there are connections.
    ///
    /// # Errors
    /// [`Error::Listen`], [`Error::Start`].
    pub fn serve(&self, answer: impl Fn(Request) -> Reply + Send + Sync + 'static) -> Result<(), Error> {
        let listener = self.listener.try_clone();
        let listener = listener.map_err(|cause| Error::Listen { path: self.path.clone(), cause })?;
        let answer: Arc<Answer> = Arc::new(answer);
        // A file's mode says who may open it.
        let is_open_to_all = place::name(&self.path).is_some();
        let accept = move || {
            let connections = Arc::new(AtomicUsize::new(0));
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) if is_open_to_all && place::check(&stream).is_err() => {}
                    Ok(stream) => connect(stream, &answer, &connections),
                    // Such as too many open files: it passes.
                    Err(_) => thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        thread::Builder::new().name("control".into()).spawn(accept).map(drop).map_err(Error::Start)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let found = fs::symlink_metadata(&self.path).map(|file| (file.dev(), file.ino())).ok();
        let ours = found.is_some() && found == self.identity;
        if ours {
            // If it cannot be removed, the next start replaces it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Nothing else is ever replaced.
fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

type Answer = dyn Fn(Request) -> Reply + Send + Sync;

/// Serves one more connection, if there may be one.
fn connect(stream: UnixStream, answer: &Arc<Answer>, connections: &Arc<AtomicUsize>) {
    let (answer, connections) = (Arc::clone(answer), Arc::clone(connections));
    if connections.fetch_add(1, Ordering::Relaxed) >= CONNECTIONS {
        let reason = format!("{CONNECTIONS} connections are open: close one, and ask again");
        let _ = write(&stream, &Reply::Error(reason));
        connections.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let counter = Arc::clone(&connections);
    let serve = move || {
        // A client that breaks the connection wants no reply.
        let _ = serve(&stream, &*answer);
        connections.fetch_sub(1, Ordering::Relaxed);
    };
    if thread::Builder::new().name("control".into()).spawn(serve).is_err() {
        counter.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Answers the requests of a connection until it ends.
fn serve(stream: &UnixStream, answer: &Answer) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = Vec::new();
        if (&mut reader).take(LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if line.last() != Some(&b'\n') && line.len() as u64 == LINE {
            let reason = format!("a request of more than {LINE} bytes: ask for less at once");
            return write(stream, &Reply::Error(reason));
        }
        let reply = match serde_json::from_slice(&line) {
            Ok(request) => answer(request),
            Err(error) => Reply::Error(format!("this is no request: {error}; fastpathctl writes them")),
        };
        write(stream, &reply)?;
    }
}

fn write(mut stream: &UnixStream, reply: &Reply) -> io::Result<()> {
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    stream.write_all(&line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::protocol::{Answer, Show};

    fn ask(path: &Path, request: &[u8]) -> String {
        let mut stream = UnixStream::connect(path).unwrap();
        stream.write_all(request).unwrap();
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn requests_are_answered_and_nonsense_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let socket = Socket::open(&path).unwrap();
        let answer = |request| match request {
            Request::Show(Show::Graph) => Reply::Answer(Answer::Done("seen".into())),
            _ => Reply::Error("no".into()),
        };
        socket.serve(answer).unwrap();
        assert_eq!(ask(&path, b"{\"show\":\"graph\"}\n"), "{\"answer\":{\"done\":\"seen\"}}\n");
        assert_eq!(ask(&path, b"{\"clear\":\"errors\"}\n"), "{\"error\":\"no\"}\n");
        for nonsense in
            [&b"\n"[..], b"{}\n", b"\xff\n", b"{\"show\":\"nothing\"}\n", b"{\"show\":\"graph\"}}\n"]
        {
            assert!(ask(&path, nonsense).starts_with("{\"error\":\"this is no request"), "{nonsense:?}");
        }
        let long = vec![b' '; LINE as usize + 1];
        assert!(ask(&path, &long).contains("ask for less"));
        let others: Vec<_> = (0..CONNECTIONS).map(|_| UnixStream::connect(&path).unwrap()).collect();
        assert!(ask(&path, b"").contains("close one"));
        drop(others);
        drop(socket);
        assert!(!path.exists());
    }

    #[test]
    fn of_many_that_start_at_once_one_has_the_socket() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        for _ in 0..50 {
            drop(UnixListener::bind(&path).unwrap());
            let opened: Vec<_> = thread::scope(|scope| {
                let starting: Vec<_> = (0..4).map(|_| scope.spawn(|| Socket::open(&path))).collect();
                starting.into_iter().map(|start| start.join().unwrap()).collect()
            });
            assert_eq!(opened.iter().filter(|socket| socket.is_ok()).count(), 1);
            assert!(UnixStream::connect(&path).is_ok(), "and it is the one that is found");
        }
    }

    #[test]
    fn what_was_left_behind_is_replaced_and_what_is_in_use_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = Socket::open(&path).unwrap();
        assert!(matches!(Socket::open(&path), Err(Error::Taken(_))));
        // A file that somebody put there since is not ours.
        fs::remove_file(&path).unwrap();
        fs::write(&path, "mine").unwrap();
        drop(socket);
        assert!(path.exists());
        assert!(matches!(Socket::open(&path), Err(Error::Listen { .. })));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }
}
