//! Connections to the backend of logins. They are kept alive, and do not outlive what they were
//! made with: the address of the backend, certificates and secrets are read again every while, and
//! the address after a failure.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tacho_access::read_text;
use tacho_output::{tls_config, tls_identity};
use ureq::config::Config;
use ureq::http::{HeaderName, HeaderValue, Uri};
use ureq::tls::TlsConfig;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

use crate::config::{HttpSettings, SecretHeader};

/// Of a header's value.
const SECRET_BYTES_MAX: usize = 8 * 1024;

/// Gives connections to the backend.
pub(super) struct Agents {
    settings: HttpSettings,
    current: Mutex<CurrentLink>,
}

struct CurrentLink {
    link: Arc<BackendLink>,
    files: LinkFiles,
    /// When files were read and the address was looked up.
    since_ns: u64,
    /// The log says that files cannot be used.
    is_told: bool,
}

/// Connections to the backend, and what every request has.
pub(super) struct BackendLink {
    pub(super) agent: ureq::Agent,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// What comes from files.
#[derive(Clone)]
struct LinkFiles {
    tls: Option<TlsConfig>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Agents {
    /// Reads the files.
    pub(super) fn open(settings: &HttpSettings, now_ns: u64) -> Result<Self, String> {
        let files = LinkFiles::read(settings)?;
        let link = files.link(settings);
        let current = CurrentLink { link, files, since_ns: now_ns, is_told: false };
        Ok(Self { settings: settings.clone(), current: Mutex::new(current) })
    }

    /// The connections to use now.
    pub(super) fn current(&self, now_ns: u64) -> Arc<BackendLink> {
        let mut current = self.lock();
        let age_ns = now_ns.saturating_sub(current.since_ns);
        if age_ns >= u64::from(self.settings.reconnect_s) * 1_000_000_000 {
            match LinkFiles::read(&self.settings) {
                Ok(files) => (current.files, current.is_told) = (files, false),
                Err(why) if !current.is_told => {
                    let shown = self.settings.shown();
                    tracing::error!("access.http: {shown}: the old secrets stay in use: {why}");
                    current.is_told = true;
                }
                Err(_) => {}
            }
            current.since_ns = now_ns;
            current.link = current.files.link(&self.settings);
        }
        Arc::clone(&current.link)
    }

    /// A request has failed on these connections: others may be dead as well, and the address
    /// another one by now.
    pub(super) fn renew(&self, failed: &Arc<BackendLink>) {
        let mut current = self.lock();
        // Another thread may have done that.
        if Arc::ptr_eq(&current.link, failed) {
            current.link = current.files.link(&self.settings);
        }
    }

    fn lock(&self) -> MutexGuard<'_, CurrentLink> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LinkFiles {
    fn read(settings: &HttpSettings) -> Result<Self, String> {
        let mut headers = Vec::new();
        for (name, value) in &settings.headers {
            let value = HeaderValue::from_str(value);
            headers.push((header_name(name)?, value.map_err(|_| unusable(name))?));
        }
        for (name, source) in &settings.secret_headers {
            headers.push((header_name(name)?, secret(name, source)?));
        }
        let tls = match settings.is_encrypted() {
            true => Some(tls(settings)?),
            false => None,
        };
        Ok(Self { tls, headers })
    }

    /// New connections, none of which is made yet.
    fn link(&self, settings: &HttpSettings) -> Arc<BackendLink> {
        let connect = Duration::from_millis(settings.connect_timeout_ms.into());
        let connections = settings.connections_max as usize;
        let mut config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            // Answers are believed, and passwords sent: only to the address that is configured.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(None)
            .timeout_resolve(Some(connect))
            .timeout_connect(Some(connect))
            .max_idle_connections(connections)
            .max_idle_connections_per_host(connections)
            .user_agent(concat!("tacho/", env!("CARGO_PKG_VERSION")))
            .accept("application/json");
        if let Some(tls) = &self.tls {
            config = config.tls_config(tls.clone());
        }
        let (connector, resolver) = (DefaultConnector::default(), BackendAddresses::default());
        let agent = ureq::Agent::with_parts(config.build(), connector, resolver);
        Arc::new(BackendLink { agent, headers: self.headers.clone() })
    }
}

fn tls(settings: &HttpSettings) -> Result<TlsConfig, String> {
    let own = match (&settings.cert_file, &settings.key_file) {
        (Some(cert), Some(key)) => Some(tls_identity(cert, key)?),
        _ => None,
    };
    let ca_file = settings.ca_file.as_deref();
    tls_config(ca_file, own).map_err(|why| {
        let path = ca_file.map(|path| path.display().to_string()).unwrap_or_default();
        format!("the certificates in {path} (`ca_file`) cannot be used: {why}")
    })
}

fn header_name(name: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(name.as_bytes()).map_err(|_| unusable(name))
}

fn unusable(name: &str) -> String {
    format!("the header `{}` cannot be used", name.escape_debug())
}

/// The secret value of a header; an error does not show it.
fn secret(name: &str, source: &SecretHeader) -> Result<HeaderValue, String> {
    let (prefix, text, place) = match source {
        SecretHeader::File { file, prefix } => {
            let text =
                read_text(file).map_err(|error| format!("`secret_headers`: `{name}`: {error}"))?;
            (prefix, text, file.display().to_string())
        }
        SecretHeader::Env { env, prefix } => {
            let text = std::env::var(env).unwrap_or_default();
            (prefix, text, format!("the variable {env} of the environment"))
        }
        SecretHeader::Unknown => return Err(unusable(name)),
    };
    let text = text.trim_end_matches(['\r', '\n']);
    if text.is_empty() || text.len() > SECRET_BYTES_MAX {
        return Err(format!(
            "`secret_headers`: `{name}`: {place} has no value, or one of more than \
             {SECRET_BYTES_MAX} bytes"
        ));
    }
    let mut value = HeaderValue::from_str(&format!("{prefix}{text}")).map_err(|_| {
        format!("`secret_headers`: `{name}`: {place} has characters that a header cannot have")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

/// Looks the address of the backend up once for all connections of an agent.
#[derive(Debug, Default)]
struct BackendAddresses {
    system: DefaultResolver,
    known: Mutex<Option<ResolvedSocketAddrs>>,
}

impl Resolver for BackendAddresses {
    fn resolve(
        &self,
        uri: &Uri,
        config: &Config,
        timeout: NextTimeout,
    ) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(addresses) = &*known() {
            return Ok(addresses.clone());
        }
        // Without the lock: each request has its own time limit.
        let found = self.system.resolve(uri, config, timeout)?;
        *known() = Some(found.clone());
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
