//! How fast cores run and how hot the machine is at this moment: `/sys` enters, MHz and degrees Celsius leave.

use crate::System;

/// Temperatures outside of these are those of sensors that do not work.
const LIVING: std::ops::Range<f64> = -40.0..150.0;

impl System {
    /// The frequency of the slowest of `cores` in MHz, as their driver sets or measures it.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn mhz(&self, cores: &[usize]) -> Result<f64, String> {
        let of = |core: &usize| {
            let khz = self.number(&format!("sys/devices/system/cpu/cpu{core}/cpufreq/scaling_cur_freq"))?;
            Some(khz as f64 / 1e3)
        };
        cores.iter().filter_map(of).reduce(f64::min).ok_or_else(|| {
            "this machine does not tell how fast its cores run (no cpufreq in /sys); virtual machines hide it".to_owned()
        })
    }

    /// The temperature of the hottest sensor in degrees Celsius.
    ///
    /// # Errors
    /// Why it is not known.
    pub fn celsius(&self) -> Result<f64, String> {
        let zones =
            self.entries("sys/class/thermal").into_iter().filter(|name| name.starts_with("thermal_zone"));
        let zones = zones.map(|name| format!("sys/class/thermal/{name}/temp"));
        let chips = self.entries("sys/class/hwmon").into_iter().flat_map(|chip| {
            let directory = format!("sys/class/hwmon/{chip}");
            let inputs = self.entries(&directory).into_iter();
            let inputs = inputs.filter(|name| name.starts_with("temp") && name.ends_with("_input"));
            inputs.map(|name| format!("{directory}/{name}")).collect::<Vec<_>>()
        });
        let read = |path: String| {
            let degrees = self.text(&path)?.parse::<f64>().ok()? / 1e3;
            LIVING.contains(&degrees).then_some(degrees)
        };
        zones
            .chain(chips)
            .filter_map(read)
            .reduce(f64::max)
            .ok_or_else(|| "this machine has no sensor (neither thermal zones nor hwmon in /sys)".to_owned())
    }
}
