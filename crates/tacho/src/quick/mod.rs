//! `tacho pub` and `tacho sub`: messages from the command line, with the flags that users of
//! mosquitto_pub and mosquitto_sub have in their fingers.

mod arguments;
mod format;
mod properties;
mod publish;
mod subscribe;

use std::time::Duration;

use tacho_client::ClientError;

pub(crate) use publish::{PublishArguments, publish};
pub(crate) use subscribe::{SubscribeArguments, subscribe};

use crate::exit::{self, Failure};

/// The first pause before a client connects again, and the longest one: each is twice the last.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// An error of the client as that of the command.
fn failure(error: &ClientError) -> Failure {
    let code = match error {
        ClientError::Connect { .. }
        | ClientError::Refused { .. }
        | ClientError::Silent
        | ClientError::Lost(_) => exit::TARGET_UNREACHABLE,
        ClientError::Unsendable(_) | ClientError::NoIdentifier => exit::INVALID_CONFIG,
        ClientError::Stopped => exit::ABORTED,
    };
    Failure::new(code, error)
}

/// Growing pauses between attempts to connect.
#[derive(Debug)]
struct Pauses {
    next: Duration,
    is_quiet: bool,
}

impl Pauses {
    const fn new(is_quiet: bool) -> Self {
        Self { next: PAUSE_MIN, is_quiet }
    }

    /// The next one, which is told.
    fn next(&mut self, error: &ClientError) -> Duration {
        let pause = self.next;
        self.next = (2 * pause).min(PAUSE_MAX);
        if !self.is_quiet {
            eprintln!("{error}; trying again in {} s", pause.as_secs());
        }
        pause
    }
}

/// An error in what was asked for.
fn invalid(sentence: &str) -> Failure {
    Failure::new(exit::INVALID_CONFIG, sentence)
}
