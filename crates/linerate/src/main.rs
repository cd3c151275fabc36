//! `linerate`: finds out how fast a router really forwards.
//!
//! [`commands`] has one module for each subcommand; the others are what they share.

mod args;
mod broken_pipe;
mod commands;
mod exit;
mod line;
mod live;
mod run;

use std::process::ExitCode;

use exit::Exit;

fn main() -> ExitCode {
    // Errors carry the cause; what libbpf prints beside them is for its own developers.
    libbpf_rs::set_print(None);
    broken_pipe::ends_quietly();
    let confined = lab::give_up_the_rest().map_err(anyhow::Error::from);
    let ready = confined.and_then(|()| commands::end_with_bench());
    match wording::command_line::parse::<commands::Cli>(commands::command()) {
        Ok(cli) => exit::status(ready.and_then(|()| commands::run(&cli.command))),
        Err(status) => status,
    }
}
