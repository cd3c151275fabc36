//! Power, frequency and temperature during a run: the sources of the readings and the cores in use enter, a series leaves.
//!
//! A thread reads them twice a second. In a long run, pairs of neighbouring readings are merged, so that there are never
//! more than a few thousand.

use std::process::Command;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use hardware::{Energy, System};
use results::record::{GaugeReading, Gauges};

/// How often they are read.
const EVERY: Duration = Duration::from_millis(500);
/// If there are more readings, each two neighbours are merged into one.
const MOST: usize = 4096;
/// How long a command that reads a meter may take, and how much it may print.
const PATIENCE: Duration = Duration::from_secs(3);
const LONGEST: u64 = 4096;
/// How often it is asked.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// After this many failures in a row the command is not run again.
const FAILURES: u32 = 3;

/// Where the power comes from.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Watts {
    /// The processors, where they count energy (RAPL).
    #[default]
    Counted,
    /// The user gave it: this many watts at any time.
    Given(f64),
    /// A shell command that prints watts, as the first number of its output.
    Command(String),
}

/// What the user gave about energy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Wanted {
    /// Where the power comes from.
    pub watts: Watts,
    /// The price of a kilowatt hour.
    pub price_per_kwh: Option<f64>,
    /// The price of the device.
    pub device_price: Option<f64>,
}

/// A meter of power.
pub struct Meter {
    from: Origin,
    /// The source of the watts, in words; absent if there is none.
    pub source: Option<String>,
    /// Why there are none.
    pub missing: Option<String>,
}

enum Origin {
    Counted(Energy),
    Given(f64),
    Command(Asked),
    Nobody,
}

impl Meter {
    /// The meter that is `wanted`. A command is asked once, which may take three seconds.
    #[must_use]
    pub fn open(wanted: &Watts) -> Self {
        match wanted {
            Watts::Counted => Self::counted(Energy::start()),
            Watts::Given(watts) => Self {
                from: Origin::Given(*watts),
                source: Some(format!("{watts} W at every load, as given by --watts")),
                missing: None,
            },
            Watts::Command(command) => match ask(command) {
                Ok(watts) => Self {
                    from: Origin::Command(Asked::start(command.clone(), watts)),
                    source: Some(format!("what --watts-command prints ({command})")),
                    missing: None,
                },
                Err(reason) => Self::nobody(&format!("--watts-command '{command}': {reason}")),
            },
        }
    }

    fn counted(energy: Result<Energy, String>) -> Self {
        match energy {
            Ok(energy) => Self {
                from: Origin::Counted(energy),
                source: Some("whole processor packages, the tester's work included (RAPL)".to_owned()),
                missing: None,
            },
            Err(reason) => Self::nobody(&reason),
        }
    }

    fn nobody(reason: &str) -> Self {
        Self { from: Origin::Nobody, source: None, missing: Some(format!("power: {reason}")) }
    }

    /// Joules that the machine took over `time`, which is since the last call or since it was opened; `None` where
    /// nobody tells. It does not wait.
    pub fn joules(&mut self, time: Duration) -> Option<f64> {
        let watts = match &mut self.from {
            Origin::Counted(energy) => return energy.step(),
            Origin::Given(watts) => Some(*watts),
            Origin::Command(asked) => asked.last(),
            Origin::Nobody => None,
        };
        watts.map(|watts| watts * time.as_secs_f64())
    }
}

/// A thread that asks a command once a second, until this is dropped.
struct Asked {
    /// The last answer; `None` after the command failed several times in a row.
    last: Arc<Mutex<Option<f64>>>,
    _ending: Sender<()>,
}

impl Asked {
    fn start(command: String, first: f64) -> Self {
        let (ending, ended) = mpsc::channel::<()>();
        let last = Arc::new(Mutex::new(Some(first)));
        let theirs = Arc::clone(&last);
        // Where no thread can be started, the first answer stands.
        let _ = thread::Builder::new().name("watts".to_owned()).spawn(move || {
            let mut failures = 0;
            while failures < FAILURES && ended.recv_timeout(ASK_EVERY) == Err(mpsc::RecvTimeoutError::Timeout)
            {
                let answer = ask(&command);
                failures = if answer.is_ok() { 0 } else { failures + 1 };
                if let Ok(watts) = answer {
                    *theirs.lock().unwrap_or_else(PoisonError::into_inner) = Some(watts);
                }
            }
            if failures == FAILURES {
                *theirs.lock().unwrap_or_else(PoisonError::into_inner) = None;
            }
        });
        Self { last, _ending: ending }
    }

    fn last(&self) -> Option<f64> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first number that `command` prints.
fn ask(command: &str) -> Result<f64, String> {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]);
    let answer =
        programs::bounded::run("it", shell, b"", PATIENCE, LONGEST).map_err(|error| format!("{error:#}"))?;
    if !answer.status.success() {
        return Err(format!("it failed ({})", answer.status));
    }
    let text = String::from_utf8_lossy(&answer.output).into_owned();
    let mut words = text.split(|c: char| c.is_whitespace() || c == ',' || c == ';');
    let number = words.find_map(|word| word.trim_end_matches(['w', 'W']).parse::<f64>().ok());
    number
        .filter(|watts| watts.is_finite() && *watts >= 0.0)
        .ok_or_else(|| "it printed no number of watts".to_owned())
}

/// The thread that reads. Dropping it ends it.
pub struct Watch {
    ending: Sender<()>,
    thread: Option<JoinHandle<Gauges>>,
}

impl Watch {
    /// Reads from now on, which is the moment 0 of the series. `cores` are those in use.
    #[must_use]
    pub fn start(wanted: &Wanted, cores: Vec<usize>) -> Option<Self> {
        let (ending, ended) = mpsc::channel();
        let series = Series::new(Meter::open(&wanted.watts), wanted, System::here(), cores);
        let thread =
            thread::Builder::new().name("gauges".to_owned()).spawn(move || series.run(&ended)).ok()?;
        Some(Self { ending, thread: Some(thread) })
    }

    /// Ends it; what was read leaves.
    #[must_use]
    pub fn finish(mut self) -> Option<Gauges> {
        let _ = self.ending.send(());
        self.thread.take()?.join().ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.ending.send(());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A series that grows.
struct Series {
    meter: Meter,
    system: System,
    cores: Vec<usize>,
    gauges: Gauges,
}

impl Series {
    fn new(meter: Meter, wanted: &Wanted, system: System, cores: Vec<usize>) -> Self {
        let missing = [
            system.mhz(&cores).err().map(|why| ("frequency", why)),
            system.celsius().err().map(|why| ("temperature", why)),
        ];
        let missing = missing.into_iter().flatten().map(|(what, why)| format!("{what}: {why}")).collect();
        let gauges = Gauges {
            watts_source: meter.source.clone(),
            missing,
            price_per_kwh: wanted.price_per_kwh,
            device_price: wanted.device_price,
            readings: Vec::new(),
        };
        Self { meter, system, cores, gauges }
    }

    fn run(mut self, ended: &Receiver<()>) -> Gauges {
        let began = Instant::now();
        let mut last = began;
        let is_told = self.meter.source.is_some() || self.gauges.missing.len() < 2;
        loop {
            // Where nothing can be read there is nothing to wake for.
            let over = match is_told {
                true => !matches!(ended.recv_timeout(EVERY), Err(mpsc::RecvTimeoutError::Timeout)),
                false => {
                    let _ = ended.recv();
                    true
                }
            };
            let now = Instant::now();
            self.read((last - began).as_secs_f64(), now - last);
            last = now;
            if over {
                self.gauges.missing.extend(self.meter.missing.take());
                return self.gauges;
            }
        }
    }

    fn read(&mut self, at_s: f64, time: Duration) {
        let duration_s = time.as_secs_f64();
        let reading = GaugeReading {
            at_s,
            duration_s,
            watts: self.meter.joules(time).map(|joules| joules / duration_s.max(1e-9)),
            mhz: self.system.mhz(&self.cores).ok(),
            celsius: self.system.celsius().ok(),
        };
        if reading.watts.is_none() && reading.mhz.is_none() && reading.celsius.is_none() {
            return;
        }
        let readings = &mut self.gauges.readings;
        readings.push(reading);
        if readings.len() >= MOST {
            *readings = readings.chunks(2).map(together).collect();
        }
    }
}

/// Neighbours as one reading: their mean power, the slowest and the hottest.
fn together(readings: &[GaugeReading]) -> GaugeReading {
    let first = readings.first().copied().unwrap_or_default();
    let duration_s: f64 = readings.iter().map(|reading| reading.duration_s).sum();
    let joules =
        readings.iter().map(|reading| Some(reading.watts? * reading.duration_s)).sum::<Option<f64>>();
    GaugeReading {
        at_s: first.at_s,
        duration_s,
        watts: joules.map(|joules| joules / duration_s.max(1e-9)),
        mhz: readings.iter().filter_map(|reading| reading.mhz).reduce(f64::min),
        celsius: readings.iter().filter_map(|reading| reading.celsius).reduce(f64::max),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A machine of two cores with a counter of energy, two sensors and frequencies.
    fn machine(root: &Path, (microjoules, khz, millidegrees): (u64, u64, u64)) {
        let zone = "sys/class/powercap/intel-rapl:0";
        write(root, &format!("{zone}/name"), "package-0\n");
        write(root, &format!("{zone}/max_energy_range_uj"), "262143328850\n");
        write(root, &format!("{zone}/energy_uj"), &format!("{microjoules}\n"));
        for (core, khz) in [(0, khz), (1, 3_000_000)] {
            write(
                root,
                &format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"),
                &format!("{khz}\n"),
            );
        }
        write(root, "sys/class/thermal/thermal_zone0/temp", "45000\n");
        write(root, "sys/class/hwmon/hwmon0/temp1_input", &format!("{millidegrees}\n"));
        write(root, "sys/class/hwmon/hwmon0/temp2_input", "-274000\n");
    }

    #[test]
    fn watts_follow_from_the_energy_that_the_processors_counted() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        machine(root, (1_000_000, 2_500_000, 61_000));
        let meter = Meter::counted(Energy::at(&root.join("sys/class/powercap")));
        let mut series = Series::new(meter, &Wanted::default(), System::at(root), vec![0, 1]);
        machine(root, (20_000_000, 1_800_000, 84_500));
        series.read(3.0, Duration::from_secs(1));
        let reading = GaugeReading {
            at_s: 3.0,
            duration_s: 1.0,
            watts: Some(19.0),
            mhz: Some(1800.0),
            celsius: Some(84.5),
        };
        assert_eq!(series.gauges.readings, [reading]);
        assert_eq!(series.gauges.missing, [""; 0]);
        assert!(series.gauges.watts_source.unwrap().contains("RAPL"));
    }

    #[test]
    fn what_a_machine_does_not_report_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let meter = Meter::counted(Energy::at(directory.path()));
        let mut series = Series::new(meter, &Wanted::default(), System::at(directory.path()), vec![0]);
        series.read(0.0, Duration::from_secs(1));
        let (ending, ended) = mpsc::channel();
        ending.send(()).unwrap();
        let gauges = series.run(&ended);
        assert_eq!((gauges.readings.len(), gauges.watts_source), (0, None));
        let starts: Vec<&str> = gauges.missing.iter().filter_map(|text| text.split(':').next()).collect();
        assert_eq!(starts, ["frequency", "temperature", "power"]);
        assert!(gauges.missing[2].contains("--watts-command"), "{:?}", gauges.missing);
    }

    #[test]
    fn a_command_tells_watts_and_one_that_cannot_is_named() {
        let second = Duration::from_secs(2);
        let mut meter = Meter::open(&Watts::Command("echo 'power: 21.5W, 230 V'".to_owned()));
        assert_eq!(meter.joules(second), Some(43.0));
        let broken = Meter::open(&Watts::Command("echo none".to_owned()));
        let said = "power: --watts-command 'echo none': it printed no number of watts";
        assert_eq!((broken.missing.as_deref(), broken.source), (Some(said), None));
        assert!(matches!(broken.from, Origin::Nobody));
        assert!(ask("exit 3").unwrap_err().contains("it failed (exit status: 3)"));
        assert!(ask("yes").unwrap_err().contains("took longer"));
        assert_eq!(Meter::open(&Watts::Given(19.0)).joules(second), Some(38.0));
    }

    #[test]
    fn neighbouring_readings_of_a_long_run_are_merged() {
        let reading = |at_s, watts, mhz, celsius| GaugeReading { at_s, duration_s: 1.0, watts, mhz, celsius };
        let both = [
            reading(0.0, Some(10.0), Some(2e3), Some(50.0)),
            reading(1.0, Some(20.0), Some(1e3), Some(40.0)),
        ];
        let joined = GaugeReading { duration_s: 2.0, ..reading(0.0, Some(15.0), Some(1e3), Some(50.0)) };
        assert_eq!(together(&both), joined);
        assert_eq!(together(&[both[0], reading(1.0, None, None, None)]).watts, None, "half is not known");
    }
}
