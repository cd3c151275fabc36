//! `linerate remote`: drivers for devices that are configured over SSH: listed, planned and checked.

use anyhow::Result;
use remote::{Device, Driver, Parameter, Ssh};
use serde_json::json;
use testbed::remote_device;

use crate::Exit;
use crate::args::key_value;

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List the built-in drivers, or the options of one
    Drivers {
        /// A built-in driver, or a TOML file
        driver: Option<String>,
        /// Print the source of the driver, as a template for your own
        #[arg(long, requires = "driver")]
        text: bool,
    },
    /// Print the script that would configure the device and undo that, without running it
    Plan {
        #[command(flatten)]
        wanted: Wanted,
    },
    /// Connect to the device, check it, and print its description and its counters; this changes nothing
    Check {
        /// The device, as ssh takes it
        #[arg(long, value_name = "[USER@]HOST")]
        dut_host: String,
        #[command(flatten)]
        wanted: Wanted,
        /// Use sudo on the device
        #[arg(long)]
        dut_sudo: bool,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
}

/// A driver and its options.
#[derive(clap::Args)]
struct Wanted {
    /// The driver: linux, freebsd (pfSense too), vpp, or a TOML file
    #[arg(long, value_name = "DRIVER")]
    dut_driver: String,
    /// An option of the driver; repeat it for more
    #[arg(long = "dut-option", value_name = "KEY=VALUE", value_parser = key_value)]
    dut_options: Vec<(String, String)>,
}

pub fn main(args: &Args) -> Result<Exit> {
    match &args.action {
        Action::Drivers { driver: None, .. } => {
            for driver in Driver::builtin()? {
                println!("{:9} {}", driver.name, driver.title);
            }
        }
        Action::Drivers { driver: Some(name), text: true } => print!("{}", Driver::open(name)?.text),
        Action::Drivers { driver: Some(name), text: false } => {
            let driver = Driver::open(name)?;
            println!("{}: {}", driver.name, driver.title);
            driver.parameters.iter().for_each(|parameter| println!("  {}", line(parameter)));
        }
        Action::Plan { wanted } => print!("{}", wanted.plan()?.listing()),
        Action::Check { dut_host, wanted, dut_sudo, json } => {
            let plan = wanted.plan()?;
            check(&mut Device::check(Ssh::connect(dut_host, *dut_sudo)?, plan)?, *json)?;
        }
    }
    Ok(Exit::Done)
}

impl Wanted {
    fn plan(&self) -> Result<remote::Plan> {
        remote_device::plan(&self.dut_driver, &self.dut_options, None)
    }
}

fn line(parameter: &Parameter) -> String {
    let Parameter { name, about, default, choices } = parameter;
    let choices = if choices.is_empty() { String::new() } else { format!(": {}", choices.join(", ")) };
    let default = match default.as_deref() {
        None => " (needed)".to_owned(),
        Some("") => String::new(),
        Some(default) => format!(" [{default}]"),
    };
    format!("{name:14} {about}{choices}{default}")
}

fn check(device: &mut Device<Ssh>, json: bool) -> Result<()> {
    let (fingerprint, counted) = (device.fingerprint()?, device.counters()?);
    let (counters, cores, queues) = (&counted.counters, &counted.cores, &counted.queues);
    let (host, driver) = (device.host().to_owned(), device.plan().driver().name.clone());
    if json {
        let found = json!({ "host": host, "driver": driver, "fingerprint": fingerprint, "counters": counters,
            "cores": cores, "queues": queues });
        println!("{}", serde_json::to_string_pretty(&found)?);
        return Ok(());
    }
    println!("{host} can be configured by {driver}");
    for (name, value) in &fingerprint {
        println!("  {name:22} {}", value.replace('\n', &format!("\n{:25}", "")));
    }
    println!("its counters:");
    let width = counters.keys().map(|name| name.chars().count()).max().unwrap_or(0);
    for (name, value) in counters {
        println!("  {name:width$} {:>16}", wire::human::count(*value));
    }
    for (core, counters) in cores {
        let told: Vec<String> = counters.iter().map(|(name, value)| format!("{name} {value}")).collect();
        println!("  core {core}: {}", told.join(", "));
    }
    println!("the drivers of its ports have {} statistics", queues.len());
    Ok(())
}
