//! The memory of this process, and its processor's clock.

use std::fs;

use nix::libc;

/// A line of `/proc/self/status`, in MB.
pub fn resident(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<f64>().unwrap() * 1024.0 / 1e6
}

/// Clocks in a second, as the kernel says.
pub fn clock_hz() -> f64 {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap();
    let mhz =
        info.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split(':').nth(1)?.trim().parse().ok());
    mhz.map_or(f64::NAN, |mhz: f64| mhz * 1e6)
}

/// Has no huge page back this process.
pub fn only_small() {
    nix::sys::prctl::set_thp_disable(true).unwrap();
}

/// Has huge pages back all large memory of this process, also what asked for none.
pub fn make_huge() {
    const LARGE: usize = 2 << 20;
    for line in fs::read_to_string("/proc/self/maps").unwrap().lines() {
        let mut words = line.split_whitespace();
        let (range, rights) = (words.next().unwrap(), words.next().unwrap());
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|address| usize::from_str_radix(address, 16).unwrap());
        let is_anonymous = line.contains(" 00:00 0 ") && rights == "rw-p";
        if is_anonymous && end - start >= LARGE {
            let start = start.next_multiple_of(LARGE);
            let length = (end & !(LARGE - 1)).saturating_sub(start);
            // SAFETY: it changes by which pages memory is backed, not what is in it. What cannot be
            // collapsed stays as it is.
            unsafe { libc::madvise(start as *mut libc::c_void, length, libc::MADV_COLLAPSE) };
        }
    }
}
