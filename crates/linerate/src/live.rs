//! `--live`: the flag enters; a board that a run fills, and the server that shows it, leave.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use live::{Board, File, Screen, Server};
use report::live::{PAGE, SCRIPT, STYLE};
use wording::usage::misuse;

const FILES: &[File] = &[
    File { path: "/", kind: "text/html; charset=utf-8", body: PAGE },
    File { path: "/live.js", kind: "text/javascript; charset=utf-8", body: SCRIPT },
    File { path: "/live.css", kind: "text/css; charset=utf-8", body: STYLE },
];

/// Whether others can watch.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
#[group(skip)]
pub struct Live {
    /// Show the run live at http://IP:PORT [default: 127.0.0.1:4580]
    #[arg(long, value_name = "IP:PORT", num_args = 0..=1, default_missing_value = "127.0.0.1:4580", value_parser = address)]
    live: Option<SocketAddr>,
    /// Show the run on the whole terminal; its last line has the keys
    #[arg(long, hide_short_help = true)]
    tui: bool,
}

/// Shown until it is dropped.
pub struct Showing {
    board: Board,
    _screen: Option<Screen>,
    _server: Option<Server>,
}

impl Live {
    /// Begins to show what will be on the board, and says where; nothing without the flags.
    ///
    /// # Errors
    /// When the address cannot be listened at, or there is no terminal.
    pub fn start(self) -> Result<Option<Showing>> {
        if self.live.is_none() && !self.tui {
            return Ok(None);
        }
        let board = Board::default();
        let server = self.live.map(|address| self.serve(address, &board)).transpose()?;
        let screen = self.tui.then(|| Screen::start(board.clone())).transpose();
        let screen = screen.map_err(|error| {
            misuse(format!("--tui needs a terminal on standard error ({error}): leave it out, or use --live"))
        })?;
        Ok(Some(Showing { board, _screen: screen, _server: server }))
    }

    fn serve(self, address: SocketAddr, board: &Board) -> Result<Server> {
        let server = Server::start(address, board.clone(), FILES).with_context(|| {
            format!(
                "cannot listen at {address}: give --live another IP:PORT, where port 0 is any that is free"
            )
        })?;
        self.tell(server.address());
        Ok(server)
    }

    /// Says where runs of `subcommand` are shown that are processes of their own, one after the other; their words.
    ///
    /// # Errors
    /// Misuse, where they cannot be.
    pub fn pass_on(self, subcommand: &str) -> Result<Vec<String>> {
        if self.tui {
            return Err(misuse("--tui shows one run, and a bench has many: use --live"));
        }
        let Some(address) = self.live else { return Ok(Vec::new()) };
        if subcommand == "generator" {
            return Err(misuse("--live shows load tests, which `generator` is not: leave it out"));
        }
        if address.port() == 0 {
            return Err(misuse(
                "--live of a bench needs a port of its own, which each run listens at: give one",
            ));
        }
        self.tell(address);
        Ok(vec!["--live".to_owned(), address.to_string()])
    }

    fn tell(self, address: SocketAddr) {
        eprintln!("live: http://{address}/ and http://{address}/metrics");
        if !address.ip().is_loopback() {
            eprintln!("anybody who reaches {} can read what is measured there", address.ip());
        }
    }
}

impl Showing {
    /// What is shown.
    pub fn board(&self) -> Board {
        self.board.clone()
    }
}

fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("'{text}' is not an address: write 127.0.0.1:4580, or leave it out"))
}
