//! `linerate generator`: how fast Linerate or another program sends.

use std::time::Duration;

use anyhow::Result;
use rivals::build_rate::{Place, Wanted, measure, show};
use rivals::datagram::Datagram;
use rivals::known::Chosen;
use rivals::{Beside, Measurement, waterfall};
use testbed::stop;
use traffic::IpVersion;
use traffic::tunable::{Size, Vm};

use crate::args::{self, Device, Output};
use crate::{Exit, run};

/// How long a generator is measured.
const DURATION: Duration = Duration::from_secs(5);
/// How long each figure of built frames is measured.
const BUILD: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub struct Args {
    /// The generator: linerate, iperf3, trafgen, tcpreplay, testpmd-af_packet, testpmd-af_xdp or xdp-trafficgen;
    /// in user space linerate-memif, linerate-null, testpmd-memif or testpmd-null; or a TOML file that defines one
    #[arg(long, value_name = "NAME", default_value = "linerate")]
    program: Chosen,
    /// Bytes of UDP payload in each datagram; above 1472 it leaves in fragments
    #[arg(long, value_name = "BYTES", default_value = "18")]
    datagram: Datagram,
    /// Send through the device, and count what arrives at port 1 behind it [default device: linux-router]
    #[arg(long)]
    across: bool,
    #[command(flatten)]
    device: Device,
    /// How long it sends before it is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration, help_heading = "Measurement")]
    warm_up_duration: Duration,
    /// How long it is measured [default: 5s; with --onto 200ms, and a minute at most]
    #[arg(long, value_name = "TIME", value_parser = args::duration, help_heading = "Measurement")]
    duration: Option<Duration>,
    /// Length of a sample
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::duration, help_heading = "Measurement")]
    step: Duration,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    build: Build,
}

/// Frames that are built and not sent.
#[derive(clap::Args)]
#[command(next_help_heading = "Building frames in memory without sending them (as ipgen -X)")]
#[command(group = clap::ArgGroup::new("building").args(["onto", "waterfall"]).multiple(true))]
struct Build {
    /// Build frames at every place, then send them by AF_XDP and by XDP: one table and one record say what each step costs
    #[arg(long, conflicts_with_all = ["program", "datagram", "across"])]
    waterfall: bool,
    /// Where the frames go: memory, memif (to a sink), or with DPDK null and net_memif; everywhere if no place is
    /// named. It is measured with the first core of --cores, then with the first two, and so on
    #[arg(long, value_name = "PLACE,…", value_delimiter = ',', num_args = 0.., conflicts_with_all = ["program", "datagram", "across", "dut", "ports"])]
    onto: Option<Vec<Place>>,
    /// Frame sizes in bytes with FCS [default: 64,128,256,512,1024,1280,1518,4096,9216]
    #[arg(long, value_name = "SIZE,…", value_delimiter = ',', requires = "building")]
    sizes: Vec<Size>,
    /// How flows vary: none, var1, var2, random or tuple
    #[arg(long, visible_alias = "vm", default_value = "var2", requires = "building")]
    flows: Vm,
    /// IP version
    #[arg(long, default_value = "4", requires = "building")]
    ip: IpVersion,
}

impl Args {
    /// What is measured.
    ///
    /// # Errors
    /// Misuse, where flags do not go together.
    pub fn measurement(&self) -> Result<Measurement> {
        Ok(Measurement {
            program: self.program,
            datagram: self.datagram,
            target: self.output.metered(self.device.target_or(self.program.default_device(self.across))?),
            across: self.across,
            warm_up: self.warm_up_duration,
            duration: self.duration.unwrap_or(DURATION),
            step: self.step,
            beside: Beside::default(),
        })
    }
}

impl Args {
    /// What is built, and how long each figure takes.
    fn wanted(&self, duration: Duration) -> Wanted {
        let Build { sizes, flows, ip, onto, .. } = &self.build;
        Wanted {
            sizes: sizes.clone(),
            flows: *flows,
            ip: *ip,
            cores: self.device.cores.clone().unwrap_or_default(),
            onto: onto.clone().unwrap_or_default(),
            duration,
        }
    }
}

pub fn main(args: &Args) -> Result<Exit> {
    if args.build.onto.is_some() && !args.build.waterfall {
        return build(args);
    }
    let (given, name, runs) = (args.output.labels()?, args.output.name.as_deref(), &args.output.runs);
    let measurement = args.measurement()?;
    let record = if args.build.waterfall {
        let made = waterfall::run(args.wanted(BUILD), measurement, name, &given, runs, &*stop::flag()?)?;
        let Some(record) = made else { return Ok(Exit::Failed) };
        record
    } else {
        measurement.run(name, given, runs)?
    };
    run::show(&record, &args.output)?;
    Ok(run::ending(&record))
}

/// Builds frames without sending them, and shows how fast.
fn build(args: &Args) -> Result<Exit> {
    let wanted = args.wanted(args.duration.unwrap_or(BUILD));
    let Some(found) = measure(&wanted, &*stop::flag()?)? else { return Ok(Exit::Failed) };
    eprint!("{}", show(&found.figures));
    found.notes.iter().for_each(|note| eprintln!("{note}"));
    if args.output.json {
        println!("{}", serde_json::to_string_pretty(&found.figures)?);
    }
    Ok(Exit::Done)
}
