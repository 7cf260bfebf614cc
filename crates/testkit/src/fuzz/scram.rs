//! Messages of SCRAM with any content: answered, or refused with a sentence; no proof is guessed.

use std::sync::OnceLock;

use tacho_access::{
    ProcessKey, SCRAM_ITERATIONS, Scheme, ScramError, ScramExchange, ScramHash, StoredPassword,
    Users, set_user,
};

/// Stands for the nonce of both sides in the last message: no input knows the server's part.
const NONCE: &str = "%n";

/// What a server has.
struct Server {
    users: Users,
    key: ProcessKey,
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Server> = OnceLock::new();
    SERVER.get_or_init(|| {
        let text = ScramHash::ALL.into_iter().fold(String::new(), |text, hash| {
            let scheme = Scheme::Scram { hash, iterations: SCRAM_ITERATIONS };
            let stored = StoredPassword::make(b"pencil", scheme).expect("random numbers");
            set_user(&text, hash.name(), &stored)
        });
        let users = Users::parse("users", &text).expect("valid");
        Server { users, key: ProcessKey::new().expect("random numbers") }
    })
}

/// Bit 0 of the first byte: the hash. The rest is the first message of a client, or up to a line
/// end, with its last message behind that.
pub fn check(data: &[u8]) {
    let Some((&kind, rest)) = data.split_first() else { return };
    let hash = ScramHash::ALL[usize::from(kind & 1)];
    let mut messages = rest.splitn(2, |&byte| byte == b'\n');
    let (first, last) = (messages.next().unwrap_or_default(), messages.next());
    let Server { users, key } = server();
    let (exchange, answer) = match ScramExchange::begin(users, hash, key, first) {
        Ok(begun) => begun,
        Err(error) => return refused(&error),
    };
    assert!(!exchange.user().is_empty());
    let answer = String::from_utf8(answer).expect("answers are text");
    let nonce = answer.strip_prefix("r=").and_then(|rest| rest.split(',').next());
    let nonce = nonce.expect("an answer begins with the nonce");
    let first = std::str::from_utf8(first).expect("what is answered is text");
    let own = first.split(',').find_map(|part| part.strip_prefix("r=")).expect("has a nonce");
    assert!(nonce.len() > own.len() && nonce.starts_with(own), "{answer}");
    assert!(answer.contains(",s=") && answer.contains(",i="), "{answer}");
    let Some(last) = last else { return };
    let last = String::from_utf8_lossy(last).replace(NONCE, nonce);
    match exchange.finish(last.as_bytes()) {
        Ok(success) => panic!("a proof was guessed: {success:?}"),
        Err(error) => refused(&error),
    }
}

fn refused(error: &ScramError) {
    assert!(!error.to_string().trim().is_empty());
}
