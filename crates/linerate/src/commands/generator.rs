//! `linerate generator`: how fast a generator sends, ours or another program.

use std::time::Duration;

use anyhow::Result;
use rivals::Measurement;
use rivals::datagram::Datagram;
use rivals::program::Chosen;

use crate::args::{self, Device, Output};
use crate::{Exit, run};

#[derive(clap::Args)]
pub struct Args {
    /// Which: linerate, iperf3, trafgen, tcpreplay, testpmd-af_packet, testpmd-af_xdp or xdp-trafficgen;
    /// in user space linerate-memif, linerate-null, testpmd-memif or testpmd-null
    #[arg(long, value_name = "NAME", default_value = "linerate")]
    program: Chosen,
    /// Bytes of UDP payload in each datagram; above 1472 it leaves in fragments
    #[arg(long, value_name = "BYTES", default_value = "18")]
    datagram: Datagram,
    #[command(flatten)]
    device: Device,
    /// How long it sends before it is measured
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = args::duration)]
    warm_up_duration: Duration,
    /// How long it is measured
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = args::duration)]
    duration: Duration,
    /// How long one sample is
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = args::duration)]
    step: Duration,
    #[command(flatten)]
    output: Output,
}

impl Args {
    /// What is measured.
    pub fn measurement(&self) -> Measurement {
        Measurement {
            program: self.program,
            datagram: self.datagram,
            target: self.device.target(),
            warm_up: self.warm_up_duration,
            duration: self.duration,
            step: self.step,
        }
    }
}

pub fn main(args: &Args) -> Result<Exit> {
    let given = args.output.labels()?;
    let record = args.measurement().run(args.output.name.as_deref(), given, &args.output.output)?;
    run::show(&record, &args.output)?;
    Ok(run::ending(&record))
}
