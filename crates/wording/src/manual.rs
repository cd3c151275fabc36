//! What a program tells of itself beside its help: its definition enters; manual pages and completions for shells
//! leave, as files that packages install.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::{Shell, generate_to};

/// The hidden first word of a command line that asks for these files, before the directory that they are for.
pub const FLAG: &str = "--write-manual";
/// The shells that completions are for.
const SHELLS: [Shell; 3] = [Shell::Bash, Shell::Zsh, Shell::Fish];

/// The directory of a command line that asks for the files.
pub(crate) fn asked_for(mut words: impl Iterator<Item = OsString>) -> Option<PathBuf> {
    let is_asked = words.nth(1).is_some_and(|word| word == FLAG);
    words.next().filter(|_| is_asked).map(PathBuf::from)
}

/// Writes a page for `program` and for each of its subcommands, and completions for the usual shells, to `directory`.
///
/// # Errors
/// When a file cannot be written.
pub fn write(program: &Command, directory: &Path) -> io::Result<()> {
    let name = program.get_name().to_owned();
    for shell in SHELLS {
        generate_to(shell, &mut program.clone(), &name, directory)?;
    }
    clap_mangen::generate_to(program.clone(), directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_completions_are_of_what_the_program_shows() {
        let hidden = Command::new("secret").hide(true);
        let show = Command::new("show").about("Show what there is");
        let program = Command::new("ctl").version("1.2 (abc)").subcommands([show, hidden]);
        let directory = std::env::temp_dir().join(format!("manual-{}", std::process::id()));
        std::fs::create_dir(&directory).unwrap();
        write(&program, &directory).unwrap();
        let mut names: Vec<String> = std::fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let page = std::fs::read_to_string(directory.join("ctl-show.1")).unwrap();
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(names, ["_ctl", "ctl-show.1", "ctl.1", "ctl.bash", "ctl.fish"]);
        assert!(page.contains("Show what there is"), "{page}");
    }

    #[test]
    fn only_the_first_word_asks_for_the_manual() {
        let asked = |line: &str| asked_for(line.split(' ').map(OsString::from));
        assert_eq!(asked("ctl --write-manual out"), Some(PathBuf::from("out")));
        assert_eq!(asked("ctl --write-manual"), None);
        assert_eq!(asked("ctl show --write-manual out"), None);
    }
}
