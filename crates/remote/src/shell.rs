//! A shell on a device: scripts enter, what they said and how they ended leaves.

use std::fmt::Debug;

use crate::error::Result;
use crate::keeper::Keeper;

/// How a script ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What it printed.
    pub stdout: String,
    /// What it printed for people.
    pub stderr: String,
    /// Its exit status.
    pub status: i32,
}

impl Answer {
    /// Whether it ended well.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.status == 0
    }

    /// What a message may say of it: the first lines with words, those for people first.
    #[must_use]
    pub fn said(&self) -> String {
        const LINES: usize = 4;
        let lines = self.stderr.lines().chain(self.stdout.lines()).map(str::trim);
        let mut lines = lines.filter(|line| line.contains(char::is_alphanumeric));
        let first: Vec<&str> = lines.by_ref().take(LINES).collect();
        match first.as_slice() {
            [] => "it does not say why".to_owned(),
            lines => lines.join("; ").trim_end_matches('.').to_owned(),
        }
    }
}

/// A shell on a device. It remembers what is to be undone, and undoes it when the connection ends,
/// however that ends.
pub trait Shell: Debug {
    /// Has all scripts begin with `text` from now on, those too that are remembered: what they share is sent once.
    ///
    /// # Errors
    /// When the connection is lost.
    fn begin_with(&mut self, text: &str) -> Result<()>;

    /// Runs `script` to its end.
    ///
    /// # Errors
    /// When the connection is lost. A script that fails is an answer.
    fn run(&mut self, script: &str) -> Result<Answer>;

    /// Remembers `script`, to be run at the end before those remembered earlier.
    ///
    /// # Errors
    /// When the connection is lost.
    fn remember(&mut self, script: &str) -> Result<()>;

    /// Runs the script that was remembered last, and forgets it.
    ///
    /// # Errors
    /// When the connection is lost. What is still remembered is then run by the device itself.
    fn undo(&mut self) -> Result<Answer>;

    /// The device's name, for messages.
    fn host(&self) -> &str;
}

/// A connection whose other end is a [`Keeper`]: all that a shell does goes to that.
pub(crate) trait Kept: Debug {
    fn keeper(&self) -> &Keeper;

    fn keeper_mut(&mut self) -> &mut Keeper;
}

impl<T: Kept> Shell for T {
    fn run(&mut self, script: &str) -> Result<Answer> {
        self.keeper_mut().run(script)
    }

    fn remember(&mut self, script: &str) -> Result<()> {
        self.keeper_mut().remember(script)
    }

    fn undo(&mut self) -> Result<Answer> {
        self.keeper_mut().undo()
    }

    fn begin_with(&mut self, text: &str) -> Result<()> {
        self.keeper_mut().begin_with(text)
    }

    fn host(&self) -> &str {
        self.keeper().host()
    }
}

impl Shell for Box<dyn Shell> {
    fn begin_with(&mut self, text: &str) -> Result<()> {
        (**self).begin_with(text)
    }

    fn run(&mut self, script: &str) -> Result<Answer> {
        (**self).run(script)
    }

    fn remember(&mut self, script: &str) -> Result<()> {
        (**self).remember(script)
    }

    fn undo(&mut self) -> Result<Answer> {
        (**self).undo()
    }

    fn host(&self) -> &str {
        (**self).host()
    }
}
