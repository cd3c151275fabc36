//! `linerate bench`: a matrix of load tests enters; its records, a table of them, what they prove
//! and one page leave.
//!
//! [`quick`] is the matrix that is built in. Others are files ([`mod@file`]), from which a plan ([`testbed::bench`])
//! follows; [`matrix`] carries it out, or a [`part`] of it, each run a process of its own ([`run`]), shows how far it is
//! ([`view`]) and what came of it ([`figures`]).

mod figures;
mod file;
mod matrix;
mod part;
mod quick;
mod run;
mod view;

use std::path::PathBuf;

use anyhow::Result;
use wording::usage::misuse;

use crate::Exit;
use crate::live::Live;

pub use run::end_with_bench;

#[derive(clap::Args)]
pub struct Args {
    /// The bench file: TOML that names devices, profiles, a strategy and repeats
    #[arg(value_name = "FILE", conflicts_with = "quick")]
    file: Option<PathBuf>,
    #[command(flatten)]
    matrix: matrix::Args,
    #[command(flatten)]
    quick: quick::Args,
    #[command(flatten)]
    output: Output,
}

/// Where results go.
#[derive(clap::Args)]
#[command(next_help_heading = "Output")]
struct Output {
    /// The directory that records are kept in [default: runs/NAME of the bench, or runs/quick]
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
    /// The page to write [default: report.html among the records, or here with --quick]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print figures, comparisons and records, or of a dry run the plan, as JSON on standard output
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    live: Live,
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.file {
        Some(file) => matrix::main(file, &args.matrix, &args.output),
        None if args.quick.is_asked() => quick::main(&args.quick, &args.output),
        None => Err(misuse(
            "say which bench: name a bench file, or give --quick, which runs the eight load tests",
        )),
    }
}
