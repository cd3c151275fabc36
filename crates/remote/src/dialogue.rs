//! The way to a shell on a console: what the console shows enters, what to type next leaves. Pure.

/// Who logs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The name; `None` where the console has a shell without a login.
    pub user: Option<String>,
    /// The password, where one is asked for.
    pub password: Option<String>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Wait for more.
    Wait,
    /// Type this and a line break.
    Type(String),
    /// Nothing: a shell waits for a command.
    Shell,
    /// Nothing more can be done, and why.
    GiveUp { said: String, remedy: &'static str },
}

/// What to do when a console has shown `shown` since the last line was typed, and is `quiet` since.
pub fn next(shown: &str, login: &Login, quiet: bool) -> Next {
    let text = without_controls(shown);
    let lower = text.to_lowercase();
    let line = lower.lines().next_back().unwrap_or_default();
    if lower.contains("login incorrect") || lower.contains("authentication failure") {
        return Next::GiveUp {
            said: "the login was refused".to_owned(),
            remedy: "Check login= and LINERATE_VM_PASSWORD",
        };
    }
    match line.trim_end() {
        prompt if prompt.ends_with("login:") => login.user.clone().map_or_else(
            || Next::GiveUp { said: "it asks who logs in".to_owned(), remedy: "Give login=NAME" },
            Next::Type,
        ),
        prompt if prompt.ends_with("password:") => login.password.clone().map_or_else(
            || Next::GiveUp {
                said: "it asks for a password".to_owned(),
                remedy: "Set the environment variable LINERATE_VM_PASSWORD",
            },
            Next::Type,
        ),
        prompt if quiet && prompt.ends_with(['#', '$', '%', '>']) => Next::Shell,
        _ => Next::Wait,
    }
}

/// `text` without what steers a terminal: colours, cursors, carriage returns.
fn without_controls(text: &str) -> String {
    let mut plain = String::new();
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\x1b' if characters.peek() == Some(&'[') => {
                characters.next();
                // Parameters, up to a letter or the like (ECMA-48, 5.4).
                while characters.next().is_some_and(|character| !('@'..='~').contains(&character)) {}
            }
            '\n' | '\t' => plain.push(character),
            character if character.is_control() => {}
            character => plain.push(character),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> Login {
        Login { user: Some("root".to_owned()), password: Some("secret".to_owned()) }
    }

    fn typed(text: &str) -> Next {
        Next::Type(text.to_owned())
    }

    #[test]
    fn a_login_is_answered_line_by_line() {
        assert_eq!(next("Debian GNU/Linux 12 dut ttyS0\r\n\r\ndut login: ", &root(), false), typed("root"));
        assert_eq!(next("root\r\nPassword: ", &root(), false), typed("secret"));
        assert_eq!(next("\r\n\x1b[?2004hroot@dut:~# ", &root(), true), Next::Shell);
        assert_eq!(next("/ # \x1b[6n", &Login::default(), true), Next::Shell);
        assert_eq!(next("\r\nroot@freebsd:~ % ", &root(), true), Next::Shell);
    }

    #[test]
    fn text_that_is_no_prompt_is_not_answered() {
        assert_eq!(next("", &root(), true), Next::Wait);
        assert_eq!(next("[  0.1] pci: login: none\n", &root(), true), Next::Wait);
        assert_eq!(next("Starting kernel # 6", &root(), true), Next::Wait);
        assert_eq!(next("loading 50 %", &root(), false), Next::Wait, "more may follow");
    }

    #[test]
    fn what_is_missing_is_named() {
        let gives_up = |shown, login: &Login| match next(shown, login, true) {
            Next::GiveUp { said, remedy } => format!("{said}: {remedy}"),
            other => panic!("{other:?}"),
        };
        let none = Login::default();
        assert_eq!(gives_up("dut login: ", &none), "it asks who logs in: Give login=NAME");
        let user = Login { password: None, ..root() };
        assert!(gives_up("Password:", &user).contains("LINERATE_VM_PASSWORD"));
        assert!(gives_up("\nLogin incorrect\ndut login: ", &root()).starts_with("the login was refused"));
    }
}
