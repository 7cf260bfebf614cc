//! Listeners in the format of the configuration file.

use std::fmt;

use tacho_net::tls::{ClientCertificates, TlsServerSettings};

use super::Listener;
use crate::config::{CertificateLogin, origins};

impl Listener {
    /// The listener in the format of the configuration file.
    pub(in crate::config) fn describe(&self) -> String {
        let mut text = format!(
            "\n[[listeners]]\naddress = \"{}\"\ntransport = \"{}\"\n",
            self.address,
            self.transport.name()
        );
        let mut line = |key: &str, value: &dyn fmt::Display| {
            // Quoted as TOML does it.
            let value = toml::Value::String(value.to_string());
            text.push_str(&format!("{key} = {value}\n"));
        };
        if let Some(tls) = &self.tls {
            line("cert", &tls.cert.display());
            line("key", &tls.key.display());
            match &tls.clients {
                ClientCertificates::Ignored => {}
                ClientCertificates::Optional(path) | ClientCertificates::Required(path) => {
                    line("client_ca", &path.display());
                }
            }
        }
        if let Some(path) = &self.path {
            line("path", path);
        }
        if let Some(level) = &self.persistent_level {
            line("persistent_level", level);
        }
        if let Some(level) = &self.clean_level {
            line("clean_level", level);
        }
        if let Some(policy) = &self.persistent_queue_full {
            line("persistent_queue_full", policy);
        }
        if let Some(policy) = &self.clean_queue_full {
            line("clean_queue_full", policy);
        }
        if let Some(path) = &self.password_file {
            line("password_file", &path.display());
        }
        text.push_str(&self.login_backend.describe());
        if self.allow_anonymous {
            text.push_str("allow_anonymous = true\n");
        }
        text.push_str(&self.describe_certificates());
        if let Some(proxies) = &self.proxies {
            text.push_str(&proxies.describe());
        }
        if let Some(origins) = &self.origins {
            text.push_str(&origins::describe(origins));
        }
        text.push_str(&self.connections.describe());
        text.push_str(&self.publish.describe());
        text.push_str(&self.sockets.describe());
        if let Some(TlsServerSettings { clients: ClientCertificates::Required(_), .. }) = &self.tls
        {
            text.push_str("require_client_certificate = true\n");
        }
        text
    }

    /// What it does with certificates of clients.
    fn describe_certificates(&self) -> String {
        let mut text = String::new();
        if let Some(tls) = self.tls.as_ref().filter(|tls| !tls.client_crls.is_empty()) {
            let lists: Vec<String> =
                tls.client_crls.iter().map(|path| path.display().to_string()).collect();
            text.push_str(&format!("client_crl = {}\n", toml::Value::from(lists)));
        }
        if let Some(CertificateLogin { user, client_id, needs_password, from_proxy }) =
            self.certificates
        {
            // Invariant: words, which TOML can always express.
            let [user, client_id] = [toml::Value::try_from(user), toml::Value::try_from(client_id)]
                .map(|word| word.map_or_else(|_| String::new(), |word| word.to_string()));
            text.push_str(&format!(
                "certificate_user = {user}\ncertificate_client_id = {client_id}\n\
                 certificate_password = {needs_password}\n"
            ));
            if from_proxy {
                text.push_str("certificate_from_proxy = true\n");
            }
        }
        text
    }
}
