//! The subcommands: one module for each, which reads its flags, calls and prints.

mod bench;
mod compare;
mod count;
mod device;
mod doctor;
mod explain;
mod export;
mod generator;
mod import;
mod lab;
mod latency;
mod profile;
mod ramp;
mod remote;
mod report;
mod rfc2544;
mod saturate;
mod search;
mod send;
mod serve;
mod soak;
mod stall;
mod verify;

use anyhow::Result;
use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Exit;
use crate::run::LoadTest;

pub use bench::end_with_bench;

/// Finds out how fast routers really forward packets.
#[derive(Parser)]
#[command(version = env!("LINERATE_VERSION"), propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Ramp the load to line rate and find where loss starts
    Ramp(LoadTest<ramp::Args>),
    /// Send at full rate and measure the forwarded rate
    Saturate(LoadTest<saturate::Args>),
    /// Find the non-drop rate (NDR) and the partial drop rate (PDR) with MLRsearch
    Search(LoadTest<search::Args>),
    /// Measure the distribution of the latency at chosen loads
    Latency(LoadTest<latency::Args>),
    /// Hold one load for a long time: stalls, patterns of loss, drift of latency
    Soak(LoadTest<soak::Args>),
    /// Find the rates at which a device stops forwarding
    Stall(LoadTest<stall::Args>),
    /// Run the benchmarking tests of RFC 2544 at each frame size
    Rfc2544(rfc2544::Args),
    /// Run a matrix of load tests with repeats, and compare the devices
    Bench(bench::Args),
    /// Send a profile until Ctrl-C, or a capture as it is
    Send(Box<send::Args>),
    /// Benchmark traffic generators (linerate, iperf3, trafgen, …) and frame building
    Generator(generator::Args),
    /// Count what arrives at a port, two ports or a lab, by any engine
    Count(count::Args),
    /// Find the bottleneck of a device: cost per frame, flame graph, receive queues
    Explain(explain::Args),
    /// Let TRex's clients drive the ports
    Serve(Box<serve::Args>),
    /// Show profiles, and the frames that they send
    Profile(profile::Args),
    /// List the devices for --dut; keep a lab of network namespaces open, and look inside
    Lab(lab::Args),
    /// Try the drivers of devices that are configured over SSH
    Remote(remote::Args),
    /// Check the tester's accuracy against reference devices, or find its own maximum
    Verify(verify::Args),
    /// Compare repeats of several configurations, and say what they prove
    Compare(compare::Args),
    /// Create one HTML report from result files
    Report(report::Args),
    /// Export results as CSV, Markdown, one archive, or for trex-loadtest-viz
    Export(export::Args),
    /// Read results of trex-loadtest.py as records
    Import(import::Args),
    /// Check this host's prerequisites and suggest fixes
    Doctor(doctor::Args),
    /// The device of a load test in user space, which starts it
    #[command(hide = true)]
    UserSpaceDevice(device::Forward),
    /// The router of a load test in user space, which starts it
    #[command(hide = true)]
    UserSpaceRouter(device::Route),
}

/// What the program does, in two lines.
const SUMMARY: &str =
    "Linerate sends traffic through a device under test (DUT) and counts what comes back: one of its
own (--dut, in network namespaces on this host), or yours between two interfaces (--ports A,B).";

/// The subcommands as the help lists them.
const GROUPS: [(&str, &[&str]); 4] = [
    ("Measure", &["ramp", "saturate", "search", "latency", "soak", "stall", "rfc2544", "bench"]),
    ("Traffic", &["send", "serve", "count", "profile"]),
    ("Results", &["compare", "report", "export", "import"]),
    ("Set-up", &["lab", "remote", "doctor", "verify", "explain", "generator"]),
];

/// The command line, whose help lists the subcommands in groups.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let mut template = format!("{{about-with-newline}}\n{SUMMARY}\n\n{{usage-heading}} {{usage}}\n");
    for (group, names) in GROUPS {
        template += &format!("\n{group}:\n");
        for name in names {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            template += &format!("  {name:10} {}\n", about.map(ToString::to_string).unwrap_or_default());
        }
    }
    command.help_template(
        template
            + "\nOptions: -h, --help; -V, --version\n\
        'linerate COMMAND -h' shows the flags that most people need, \
        --help all of them.",
    )
}

/// Does what `command` says.
///
/// # Errors
/// Why it could not be done, with the remedy.
pub fn run(command: &Command) -> Result<Exit> {
    match command {
        Command::Ramp(test) => test.main(),
        Command::Saturate(test) => test.main(),
        Command::Search(test) => test.main(),
        Command::Latency(test) => test.main(),
        Command::Soak(test) => test.main(),
        Command::Stall(test) => test.main(),
        Command::Rfc2544(args) => rfc2544::main(args),
        Command::Bench(args) => bench::main(args),
        Command::Send(args) => send::main(args),
        Command::Serve(args) => serve::main(args),
        Command::Generator(args) => generator::main(args),
        Command::Count(args) => count::main(args),
        Command::Explain(args) => explain::main(args),
        Command::Profile(args) => profile::main(args),
        Command::Lab(args) => lab::main(args),
        Command::Remote(args) => remote::main(args),
        Command::Verify(args) => verify::main(args),
        Command::Compare(args) => compare::main(args),
        Command::Report(args) => report::main(args),
        Command::Export(args) => export::main(args),
        Command::Import(args) => import::main(args),
        Command::Doctor(args) => doctor::main(args),
        Command::UserSpaceDevice(args) => device::forward(args),
        Command::UserSpaceRouter(args) => device::route(args),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn the_help_lists_every_subcommand_once_and_fits_a_screen() {
        let mut listed: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
        let mut there: Vec<&str> = shown.map(clap::Command::get_name).collect();
        listed.sort_unstable();
        there.sort_unstable();
        assert_eq!(listed, there);
        let (short, long) = (super::command().render_help(), super::command().render_long_help());
        assert_eq!(short.to_string(), long.to_string());
        assert!(long.to_string().lines().count() <= 40, "{long}");
    }

    #[test]
    fn the_short_help_of_a_ramp_fits_a_screen() {
        let mut ramp = super::command().find_subcommand("ramp").unwrap().clone();
        let help = ramp.render_help().to_string();
        assert!(help.lines().count() <= 40, "{help}");
        assert!(help.contains("--dut") && !help.contains("--receive-cores"), "{help}");
    }

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// The commands that a document names within its sentences: what stands between backquotes and begins with the
    /// program's name.
    fn commands_in_sentences(document: &str) -> Vec<String> {
        let lines = document.lines().scan(false, |in_block, line| {
            let fence = line.trim_start().starts_with("```");
            *in_block ^= fence;
            Some(if *in_block || fence { "\n" } else { line })
        });
        let text: String = lines.flat_map(|line| [line, " "]).collect();
        let quoted = text.split('`').skip(1).step_by(2);
        quoted.filter(|code| code.starts_with("linerate ")).map(str::to_owned).collect()
    }

    /// What the program has against `command` as a text shows it: what is needed may be left out, "…" stands for a value
    /// or for more, COMMAND for any subcommand, and files are those of the repository.
    fn objection(command: &str) -> Option<String> {
        let files = format!(" {}/generators/", root().display());
        let command = command.replace(" COMMAND", " ramp").replace(" generators/", &files);
        let mut words: Vec<&str> = Vec::new();
        for word in command.split_whitespace() {
            match words.last() {
                Some(flag) if word == "…" && flag.starts_with("--") => words.push("x"),
                _ if word == "…" => {}
                _ => words.push(word),
            }
        }
        let error = super::command().try_get_matches_from(words).err()?;
        let is_shortened = matches!(
            error.kind(),
            ErrorKind::MissingRequiredArgument
                | ErrorKind::MissingSubcommand
                | ErrorKind::DisplayHelp
                | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                | ErrorKind::DisplayVersion
        );
        (!is_shortened).then(|| format!("{command}: {error}"))
    }

    #[test]
    fn every_command_in_a_sentence_of_the_documents_is_understood() {
        let root = root();
        let beside = ["README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"];
        let docs = fs::read_dir(root.join("docs")).unwrap().flatten().map(|entry| entry.path());
        let pages = docs.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
        let texts = beside.map(|path| root.join(path)).into_iter().chain(pages);
        let commands: Vec<String> =
            texts.flat_map(|path| commands_in_sentences(&fs::read_to_string(path).unwrap())).collect();
        assert!(commands.len() > 150, "{} commands found", commands.len());
        let objections: Vec<String> = commands.iter().filter_map(|command| objection(command)).collect();
        assert!(objections.is_empty(), "{}", objections.join("\n"));
    }

    #[test]
    fn a_command_in_a_sentence_may_be_shortened_and_must_exist() {
        let text = "Try `linerate ramp --dut sink …`, not `linerate\nrampe`.\n```sh\nlinerate no `linerate never`\n```\n`linerate -V`";
        let found = commands_in_sentences(text);
        assert_eq!(found, ["linerate ramp --dut sink …", "linerate rampe", "linerate -V"]);
        assert!(objection(&found[0]).is_none() && objection("linerate compare").is_none());
        assert!(objection(&found[1]).is_some() && objection("linerate ramp --no-such-flag").is_some());
        assert!(objection("linerate ramp --duration tomorrow").is_some());
    }
}
