//! Web pages that may open WebSockets.

use tacho_net::ws::WsOrigins;

/// Ports that browsers leave out of the origins of these schemes.
const DEFAULT_PORTS: [(&str, &str); 2] = [("http", ":80"), ("https", ":443")];

/// From the keys `origins` and `origin_required` of a listener.
pub(super) fn resolve(
    origins: Option<Vec<String>>,
    origin_required: Option<bool>,
    is_web_socket: bool,
) -> Result<Option<WsOrigins>, String> {
    let is_required = origin_required.unwrap_or(false);
    match origins {
        Some(_) if !is_web_socket => {
            Err("`origins` are of web pages, and the transport has no WebSocket: use ws or wss"
                .to_owned())
        }
        None if is_required => {
            Err("`origin_required` needs `origins`, the web pages that may connect".to_owned())
        }
        None => Ok(None),
        Some(allowed) if is_required && allowed.is_empty() => {
            Err("`origin_required` and no `origins`: no client could connect".to_owned())
        }
        Some(allowed) => match allowed.iter().find_map(|origin| fault(origin)) {
            Some(fault) => Err(fault),
            None => Ok(Some(WsOrigins { allowed, is_required })),
        },
    }
}

/// The keys, as in the configuration file.
pub(super) fn describe(origins: &WsOrigins) -> String {
    let WsOrigins { allowed, is_required } = origins;
    let allowed = toml::Value::from(allowed.clone());
    format!("origins = {allowed}\norigin_required = {is_required}\n")
}

/// Why no browser would send such an origin: they are compared letter by letter.
fn fault(origin: &str) -> Option<String> {
    let shown = origin.escape_debug();
    let is_host = |byte: u8| byte.is_ascii_graphic() && !b"/?#@,*\\".contains(&byte);
    let parts = origin.split_once("://").filter(|(scheme, host)| {
        let scheme_bytes = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        !scheme.is_empty() && scheme_bytes && !host.is_empty() && host.bytes().all(is_host)
    });
    let Some((scheme, host)) = parts else {
        return Some(format!(
            "`origins`: `{shown}` is no origin such as https://app.example or \
             http://localhost:8080, without a path"
        ));
    };
    if origin.bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Some(format!(
            "`origins`: `{shown}` must be in small letters, as browsers write it"
        ));
    }
    let port = DEFAULT_PORTS.iter().find(|(of, port)| *of == scheme && host.ends_with(port));
    port.map(|(_, port)| format!("`origins`: browsers leave {port} out of `{shown}`: omit it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_that_no_browser_sends_are_refused_with_the_remedy() {
        for origin in [
            "https://app.example",
            "http://localhost:8080",
            "https://[2001:db8::7]:8443",
            "http://192.0.2.7:443",
            "capacitor://localhost",
            "chrome-extension://abcdef",
        ] {
            assert_eq!(fault(origin), None, "{origin}");
        }
        for (origin, words) in [
            ("", "is no origin"),
            ("null", "is no origin"),
            ("*", "is no origin"),
            ("app.example", "is no origin"),
            ("https://", "is no origin"),
            ("://app.example", "is no origin"),
            ("https://app.example/", "without a path"),
            ("https://*.example", "is no origin"),
            ("https://a b", "is no origin"),
            ("https://a.example, https://b.example", "is no origin"),
            ("https://App.example", "small letters"),
            ("https://app.example:443", "omit it"),
            ("http://app.example:80", "omit it"),
        ] {
            assert!(fault(origin).is_some_and(|fault| fault.contains(words)), "{origin}");
        }
        let resolve = |origins: &[&str], is_required: bool, is_web_socket: bool| {
            let origins = Some(origins.iter().map(|&origin| origin.to_owned()).collect());
            resolve(origins, Some(is_required), is_web_socket).map_err(|fault| fault.len() > 20)
        };
        assert!(resolve(&[], false, true).is_ok() && resolve(&["http://a"], true, true).is_ok());
        assert_eq!(resolve(&[], true, true), Err(true));
        assert_eq!(resolve(&["http://a"], false, false), Err(true));
        assert_eq!(super::resolve(None, None, false), Ok(None));
        assert!(super::resolve(None, Some(true), true).is_err());
    }
}
