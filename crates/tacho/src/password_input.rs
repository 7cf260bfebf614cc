//! Passwords that commands are given by a person or a script, never as an argument.

use std::io::{self, BufRead as _, BufReader, IsTerminal as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// The length of a password travels as 16 bits.
pub(crate) const PASSWORD_BYTES_MAX: usize = 65_535;
/// What Ctrl-C sends to a terminal that makes no signal of it.
const CTRL_C: char = '\u{3}';

/// From the terminal, without echo, or from a line of standard input; a new one is asked for twice.
pub(crate) fn read_password(is_new: bool) -> Result<String, String> {
    let unreadable = |error: io::Error| format!("cannot read the password: {error}");
    if !io::stdin().is_terminal() {
        return read_line().map_err(unreadable);
    }
    let silence = Silence::begin().map_err(unreadable)?;
    let ask = |prompt: &str| {
        eprint!("{prompt}");
        let line = read_line();
        eprintln!();
        match line {
            Ok(line) if line.contains(CTRL_C) => Err("no password was given".to_owned()),
            line => line.map_err(unreadable),
        }
    };
    let password = ask("Password: ")?;
    let is_same = !is_new || ask("Reenter password: ")? == password;
    drop(silence);
    match is_same {
        true => Ok(password),
        false => Err("the passwords differ".to_owned()),
    }
}

fn read_line() -> io::Result<String> {
    line_of(io::stdin().lock())
}

/// The first line, of which no more is read than shows that it is too long.
pub(crate) fn first_line(from: impl io::Read) -> io::Result<String> {
    line_of(BufReader::new(from))
}

fn line_of(from: impl io::BufRead) -> io::Result<String> {
    let mut line = String::new();
    // One more than is allowed, and the end of the line.
    from.take(PASSWORD_BYTES_MAX as u64 + 3).read_line(&mut line)?;
    let end = line.trim_end_matches(['\n', '\r']).len();
    line.truncate(end);
    Ok(line)
}

/// The terminal shows nothing of what is typed, and makes no signals of it, which would end the
/// program and leave the terminal like that.
struct Silence(Termios);

impl Silence {
    fn begin() -> io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(io::stdin(), OptionalActions::Flush, &silent)?;
        Ok(Self(before))
    }
}

impl Drop for Silence {
    fn drop(&mut self) {
        // There is nothing else to do about a terminal that is gone.
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}
