//! The command that started this program, fit to be shown to others.

/// Parts of option names whose values are secret.
const SECRET: [&str; 4] = ["password", "passwd", "token", "secret"];

/// What stands for something left out.
const LEFT_OUT: &str = "…";

/// How the console starts a run, which says nothing to a reader who wants to make it again.
const FOR_CONSOLE: &str = "--for-console";

/// The words of the command: the program without its path, and no passwords or tokens.
pub fn command_line() -> Vec<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let mut words = redacted(words.filter(|word| word != FOR_CONSOLE));
    if let Some(program) = words.first_mut()
        && let Some(name) = program.rsplit(['/', '\\']).next()
    {
        *program = name.to_owned();
    }
    words
}

/// The position of the first word that has a secret in it, which others on this machine could read.
pub fn secret_word(words: &[String]) -> Option<usize> {
    let shown = redacted(words.iter().cloned());
    words.iter().zip(&shown).position(|(word, shown)| word != shown)
}

/// Whether a value of a recorded command lacks its secret.
pub fn lacks_secret(value: &str) -> bool {
    match value.contains(' ') {
        true => value.split(' ').any(lacks_secret),
        false => {
            let in_url = value.contains(&format!("://{LEFT_OUT}@"));
            in_url
                || value
                    .strip_suffix(LEFT_OUT)
                    .is_some_and(|name| name.is_empty() || name.ends_with('='))
        }
    }
}

fn redacted(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut hide_next = false;
    words
        .map(|word| {
            if std::mem::replace(&mut hide_next, false) {
                return LEFT_OUT.to_owned();
            }
            hide_next =
                word == "-P" || (is_secret(&word) && word.starts_with('-') && !word.contains('='));
            // A whole command in one word, as of `--broker-cmd`, has words of its own.
            match word.contains(' ') {
                true => redacted(word.split(' ').map(str::to_owned)).join(" "),
                false => single(&word),
            }
        })
        .collect()
}

/// One word: values of secret names, and who asks in an address.
fn single(word: &str) -> String {
    if let Some((name, _)) = word.rsplit_once('=').filter(|(name, _)| is_secret(name)) {
        return format!("{name}={LEFT_OUT}");
    }
    match word.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
            match rest[..end].rsplit_once('@') {
                Some((_, host)) => format!("{scheme}://{LEFT_OUT}@{host}{}", &rest[end..]),
                None => word.to_owned(),
            }
        }
        None => word.to_owned(),
    }
}

/// Names of files, and of flags that take no value, are no secrets.
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    if name.ends_with("file") || name.starts_with("--insecure-") {
        return false;
    }
    SECRET.iter().any(|secret| name.contains(secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out() {
        let shown = |line: &str| redacted(line.split('|').map(str::to_owned)).join("|");
        for (line, expected) in [
            ("tacho|run|symmetric|--var|qos=2", "tacho|run|symmetric|--var|qos=2"),
            ("--password|hunter2|--qos|1", "--password|…|--qos|1"),
            ("--monitor-token=abc", "--monitor-token=…"),
            ("-P|hunter2", "-P|…"),
            ("--password-file|a.txt|--qos|1", "--password-file|a.txt|--qos|1"),
            (
                "--broker|n1=mqtt://me:pw@h,password-file=a.txt",
                "--broker|n1=mqtt://…@h,password-file=a.txt",
            ),
            ("--insecure-url-password|--qos|1", "--insecure-url-password|--qos|1"),
            ("--var|admin_password=x", "--var|admin_password=…"),
            ("--broker|mqtts://me:pw@host:8883/p", "--broker|mqtts://…@host:8883/p"),
            ("--monitor|tcp://host:1?token=abc", "--monitor|tcp://host:1?token=…"),
            ("--broker-cmd|mosquitto -P pw -p {port}", "--broker-cmd|mosquitto -P … -p {port}"),
            ("--broker|mqtt://host/a@b", "--broker|mqtt://host/a@b"),
        ] {
            assert_eq!(shown(line), expected);
            let words: Vec<String> = line.split('|').map(str::to_owned).collect();
            assert_eq!(secret_word(&words).is_some(), line != expected, "{line}");
            let lacks = expected.split('|').any(lacks_secret);
            assert_eq!(lacks, line != expected, "{line}");
        }
    }
}
