//! A bridge in the format of the configuration file.

use std::fmt::{Display, Write as _};

use super::{BridgeConfig, Mapping};

impl BridgeConfig {
    /// The configuration of this bridge. A password that is in the configuration itself is left
    /// out.
    pub(in crate::config) fn describe(&self) -> String {
        let mut file = File::default();
        file.table("bridges");
        file.text("name", &self.name);
        file.text("address", &self.remote);
        file.text("version", if self.version.is_v5() { "5" } else { "3.1.1" });
        file.text("client_id", &self.client_id);
        if let Some(name) = &self.username {
            file.text("username", name);
        }
        match self.password.as_ref().map(|password| &password.file) {
            None => {}
            Some(Some(path)) => file.text("password_file", &path.display()),
            Some(None) => file.line("# password", "(not shown)"),
        }
        file.line("enabled", self.enabled);
        file.line("clean_start", self.clean_start);
        match self.version.is_v5() {
            true => file.line("session_expiry_s", self.session_expiry_s),
            false => file.line("bridge_flag", self.bridge_flag),
        }
        if let Some(id) = &self.counterpart {
            file.text("counterpart", id);
        }
        file.line("keep_alive_s", self.keep_alive_s);
        file.line("connect_timeout_s", self.connect_timeout_s);
        file.line("connections", self.connections);
        file.line("inflight", self.inflight);
        file.line("buffer_bytes_max", self.buffer_bytes_max);
        file.line("buffer_ttl_s", self.buffer_ttl_s);
        file.line("retry_first_s", self.retry_first_s);
        file.line("retry_longest_s", self.retry_longest_s);
        file.line("health_check_s", self.health_check_s);
        file.line("ack_timeout_s", self.ack_timeout_s);
        file.line("hops_max", self.hops_max);
        if let Some(tls) = &self.remote.tls {
            file.0.push_str("\n[bridges.tls]\n");
            for (key, path) in [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)] {
                if let Some(path) = path {
                    file.text(key, &path.display());
                }
            }
            file.text("server_name", &tls.server_name);
            file.line("insecure", tls.insecure);
            let alpn: Vec<_> = tls.alpn.iter().map(|name| quoted(name).to_string()).collect();
            file.line("alpn", format!("[{}]", alpn.join(", ")));
        }
        for rule in &self.egress {
            file.rule("egress", &rule.filter, &rule.mapping);
        }
        for rule in &self.ingress {
            file.rule("ingress", &rule.filter, &rule.mapping);
        }
        file.0
    }
}

#[derive(Default)]
struct File(String);

impl File {
    fn table(&mut self, name: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "\n[[{name}]]\n");
    }

    fn line(&mut self, key: &str, value: impl Display) {
        let _ = writeln!(self.0, "{key} = {value}");
    }

    fn text(&mut self, key: &str, value: &(impl Display + ?Sized)) {
        self.line(key, quoted(value));
    }

    fn rule(&mut self, way: &str, filter: &dyn Display, mapping: &Mapping) {
        self.table(&format!("bridges.{way}"));
        self.text("filter", &filter.to_string());
        self.text("topic", &mapping.topic);
        self.text("payload", &mapping.payload);
        match mapping.qos {
            None => self.text("qos", "keep"),
            Some(qos) => self.line("qos", qos as u8),
        }
        match mapping.retain {
            None => self.text("retain", "keep"),
            Some(retain) => self.line("retain", retain),
        }
    }
}

/// A quoted TOML string.
fn quoted(value: &(impl Display + ?Sized)) -> toml::Value {
    toml::Value::String(value.to_string())
}
