//! `linerate lab`: a lab of network namespaces that stays open, to look inside; and the devices that labs have.
//!
//! A lab lives in a process; nothing of it is in the file system. `up` starts that process and
//! leaves it in the background; the others talk to it.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};
use lab::holder::{self, Side};
use testbed::Testbed;
use wording::usage::misuse;

use crate::Exit;
use crate::args::Device;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the labs that are open, those of running load tests too
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// List the devices that --dut takes, or the parameters of one
    Devices {
        /// The device whose parameters are listed
        device: Option<String>,
    },
    /// Open a lab and leave it in the background
    Up {
        /// What to call it
        name: String,
        #[command(flatten)]
        device: Box<Device>,
        /// The largest frame that will be sent, in bytes
        #[arg(long, default_value_t = 1518, help_heading = "Lab")]
        size: usize,
        /// Stay in the foreground until `lab down` or Ctrl-C
        #[arg(long, help_heading = "Lab")]
        foreground: bool,
    },
    /// Run a command inside a lab
    Exec {
        /// The lab
        name: String,
        /// Which side of the cable
        side: SideName,
        /// The command and its arguments
        #[arg(trailing_var_arg = true, required = true)]
        command: Vec<String>,
    },
    /// Close a lab
    Down {
        /// The lab
        name: String,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum SideName {
    /// The namespace with port0 and port1
    Tester,
    /// The namespace with dut0 and dut1
    Dut,
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.action {
        Action::List { json } => list(*json),
        Action::Devices { device } => devices(device.as_deref()),
        Action::Up { name, device, size, foreground: true } => hold(name, device, *size),
        Action::Up { name, .. } => up(name),
        Action::Exec { name, side, command } => exec(name, *side, command),
        Action::Down { name } => {
            holder::down(name).map_err(lab::Error::from)?;
            Ok(Exit::Done)
        }
    }
}

fn list(json: bool) -> Result<Exit> {
    let labs = holder::list();
    if json {
        println!("{}", serde_json::to_string_pretty(&labs)?);
        return Ok(Exit::Done);
    }
    if labs.is_empty() {
        eprintln!("no labs are open; `linerate lab up NAME` opens one");
    }
    for lab in labs {
        println!(
            "{:16} {:32} {} (process {}, DUT core {})",
            lab.name.escape_debug().to_string(),
            lab.dut.escape_debug().to_string(),
            lab.purpose.escape_debug(),
            lab.pid,
            lab.dut_core
        );
    }
    Ok(Exit::Done)
}

/// Lists all devices, or the parameters of the one called `wanted`.
fn devices(wanted: Option<&str>) -> Result<Exit> {
    let devices = dut::list();
    let Some(wanted) = wanted else {
        devices.iter().for_each(|device| println!("{:13} {}", device.name, device.summary));
        return Ok(Exit::Done);
    };
    let Some(device) = devices.iter().find(|device| device.name == wanted) else {
        let names = devices.map(|device| device.name).join(", ");
        return Err(misuse(format!("no device under test is called '{wanted}'. There are: {names}")));
    };
    println!("{}: {}", device.name, device.summary);
    for dut::Parameter { key, values, meaning } in device.parameters {
        println!("  {key}=\n      {meaning}\n      takes {values}");
    }
    Ok(Exit::Done)
}

/// The line by which a lab in the background says that it is open.
const READY: &str = "ready";

/// Starts this command again in the background and waits until its lab is open.
fn up(name: &str) -> Result<Exit> {
    let this = std::env::current_exe().context("cannot find this program again")?;
    let mut child = Command::new(this)
        .args(std::env::args_os().skip(1))
        .arg("--foreground")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("cannot start the lab's process")?;
    let mut line = String::new();
    if let Some(output) = child.stdout.take() {
        BufReader::new(output).read_line(&mut line)?;
    }
    if line.trim_end() == READY {
        eprintln!("lab '{name}' is open; look inside with `linerate lab exec {name} dut ip address`");
        return Ok(Exit::Done);
    }
    let output = child.wait_with_output()?;
    let reason = String::from_utf8_lossy(&output.stderr);
    let reason = reason.trim().trim_start_matches("linerate: ");
    if output.status.code() == Some(2) { Err(misuse(reason)) } else { bail!("{reason}") }
}

/// Holds a lab in this process.
fn hold(name: &str, device: &Device, size: usize) -> Result<Exit> {
    let testbed = Testbed::open(&device.target()?, size)?;
    let lab = testbed
        .lab()
        .ok_or_else(|| misuse("a lab holds a device of its own: --ports cannot be held open"))?;
    let server = holder::Server::start(name, lab, holder::Purpose::Hold)?;
    println!("{READY}");
    // Who started this may close the other end at any time.
    let _ = std::io::stdout().flush();
    server.wait();
    // The name stays taken until the lab is gone, so that who waits for that can watch it.
    drop(testbed);
    drop(server);
    Ok(Exit::Done)
}

fn exec(name: &str, side: SideName, command: &[String]) -> Result<Exit> {
    let side = match side {
        SideName::Tester => Side::Tester,
        SideName::Dut => Side::Dut,
    };
    let status: ExitStatus = holder::execute(name, side, command).map_err(lab::Error::from)?;
    match status.code() {
        Some(0) => Ok(Exit::Done),
        Some(code) => std::process::exit(code),
        None => Ok(Exit::Failed),
    }
}
