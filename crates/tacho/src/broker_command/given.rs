//! The management API by flags, and which keys of the configuration flags set.

use tacho_broker::{ManagementSocket, RawConfig};

use super::BrokerArgs;

impl BrokerArgs {
    pub(super) fn set_management(&self, raw: &mut RawConfig) {
        let management = &mut raw.management;
        match &self.management_socket {
            Some(socket) => management.socket = Some(socket.clone()),
            None => drop(management.socket.get_or_insert(ManagementSocket::Auto)),
        }
        management.listen = self.management_listen.or(management.listen);
        if self.management_store.is_some() {
            management.store.clone_from(&self.management_store);
        }
    }

    /// The keys of the configuration that flags set.
    pub(super) fn given(&self) -> Vec<&'static str> {
        let tls = self.tls_cert.is_some() || self.tls_client_ca.is_some();
        let tls = tls || !self.tls_client_crl.is_empty() || self.self_signed.is_some();
        let all = [
            ("listen", !self.listen.is_empty() || tls || self.tls_require_client_certificate),
            ("log.file", self.log_file.is_some()),
            ("log.format", self.log_format.is_some()),
            ("log.level", self.quiet || self.verbose > 0),
            ("shards", self.shards.is_some()),
            ("pin_shards", self.pin),
            ("allow_anonymous", self.allow_anonymous),
            ("access.password_file", self.password_file.is_some()),
            ("access.acl_file", self.acl_file.is_some()),
            ("access.rules_file", self.rules_file.is_some()),
            ("access.ban_file", self.ban_file.is_some()),
            ("access.audit_file", self.audit_file.is_some()),
            ("limits.connections_max", self.connections_max.is_some()),
            ("limits.packet_size_max", self.packet_size_max.is_some()),
            ("shared_subscription_strategy", self.shared_strategy.is_some()),
            ("data_dir", self.data_dir.is_some()),
            ("durability.persistent_level", self.durability.is_some()),
            ("durability.retained_level", self.durability.is_some()),
            ("limits.inflight_max", self.inflight_max.is_some()),
            ("limits.session_queue_len_max", self.session_queue_len_max.is_some()),
            ("metrics", self.metrics.is_some()),
            ("metrics_allow_remote", self.metrics_allow_remote),
            ("management.socket", self.management_socket.is_some()),
            ("management.listen", self.management_listen.is_some()),
            ("management.store", self.management_store.is_some()),
            ("outputs", !self.outputs.is_empty()),
            ("sys_interval_s", self.sys_interval_s.is_some()),
        ];
        all.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key).collect()
    }
}
