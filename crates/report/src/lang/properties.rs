//! Properties of machines, brokers and scenarios, and their values.

use tacho_record::{DataDisk, Difference, Environment, NetworkLimit, Property, PropertyValue};
use tacho_scenario::format;

use super::{Lang, statements};

statements! {
    /// The name of a property.
    property(lang, Property);
    Property::ToolVersion => [] "tacho", "Tacho 版本";
    Property::Platform => [] "platform", "平台";
    Property::Distribution => [] "distribution", "发行版";
    Property::Kernel => [] "kernel", "内核";
    Property::CpuModel => [] "CPU", "CPU 型号";
    Property::CoresOnline => [] "cores online", "在线核";
    Property::CoreCount => [] "cores", "核数";
    Property::HostName => [] "host", "主机";
    Property::InstanceType => [] "instance type", "实例类型";
    Property::DataDisk => [] "disk of the data directory", "数据目录所在磁盘";
    Property::NetworkLimit => [] "network limit, stated", "网络上限（用户提供）";
    Property::SharedCores => [] "hardware threads share cores", "硬件线程共享核";
    Property::VirtualMachine => [] "virtual machine", "虚拟机";
    Property::FrequencyGovernor => [] "frequency governor", "频率调节策略";
    Property::Turbo => [] "turbo", "睿频";
    Property::ClockSource => [] "clock source", "时钟源";
    Property::NumaNodes => [] "NUMA nodes", "NUMA 节点";
    Property::Memory => [] "memory", "内存";
    Property::OpenFilesSoft => [] "open files, soft limit", "打开文件数软限制";
    Property::OpenFilesHard => [] "open files, hard limit", "打开文件数硬限制";
    Property::BrokerCores => [] "broker cores", "Broker 所用核";
    Property::GeneratorCores => [] "generator cores", "负载生成器所用核";
    Property::GeneratorThreads => [] "generator threads", "负载生成器线程";
    Property::BackgroundCores => [] "cores of background threads", "后台线程的核";
    Property::GeneratorTiming => [] "generator timing", "负载生成器计时方式";
    Property::BatchedWrites => [] "generator writes with io_uring", "负载生成器用 io_uring 写入";
    Property::ScenarioHash => [] "scenario hash", "场景散列值";
    Property::ControlGroup => [] "control group", "控制组";
    Property::ControlGroupCores => [] "cores, by control group", "核数（控制组限制）";
    Property::ControlGroupMemory => [] "memory, by control group", "内存（控制组限制）";
    Property::Interface { name } => [] "interface {name}", "网络接口 {name}";
    Property::KernelSetting { name } => [] "{name}", "{name}";
    Property::Broker { target } => [of = lang.of_target(target);] "broker{of}", "Broker 程序{of}";
    Property::MqttVersion { target } => [of = lang.of_target(target);]
        "MQTT version{of}", "MQTT 版本{of}";
    Property::Durability { target } => [of = lang.of_target(target);] "durability{of}", "持久性{of}";
    Property::CertificateVerified { target } => [of = lang.of_target(target);]
        "certificate verified{of}", "已验证证书{of}";
    Property::SessionsResumed { target } => [of = lang.of_target(target);]
        "TLS sessions resumed{of}", "恢复 TLS 会话{of}";
    Property::CommandBefore => [] "command before each repeat", "每次重复前执行的命令";
    Property::Key(name) => [] "{name}", "{name}";
}

impl Lang {
    /// A value of a property.
    pub(crate) fn property_value(self, value: &PropertyValue) -> String {
        match (self, value) {
            (_, PropertyValue::Text(text)) => text.clone(),
            (_, PropertyValue::Unknown) => self.unknown().to_owned(),
            (_, PropertyValue::Link { mtu, speed_mbit_per_s }) => {
                let mtu = mtu.map_or_else(|| self.unknown().to_owned(), |mtu| mtu.to_string());
                let speed = speed_mbit_per_s.map(|speed| format!(", {speed} Mbit/s"));
                format!("MTU {mtu}{}", speed.unwrap_or_default())
            }
            (_, PropertyValue::Disk { disk }) => self.disk(disk),
            (_, PropertyValue::NetworkLimit { limit }) => self.network_limit(*limit),
            (Self::En, PropertyValue::Yes) => "yes".to_owned(),
            (Self::En, PropertyValue::No) => "no".to_owned(),
            (Self::En, PropertyValue::Unlimited) => "unlimited".to_owned(),
            (Self::En, PropertyValue::NotPinned) => "not pinned".to_owned(),
            (Self::Zh, PropertyValue::Yes) => "是".to_owned(),
            (Self::Zh, PropertyValue::No) => "否".to_owned(),
            (Self::Zh, PropertyValue::Unlimited) => "无限制".to_owned(),
            (Self::Zh, PropertyValue::NotPinned) => "未绑定".to_owned(),
        }
    }

    /// The machine, and its kernel settings.
    pub(crate) fn entries(self, environment: &Environment) -> [Vec<(String, String)>; 2] {
        let is_setting = |property: &Property| matches!(property, Property::KernelSetting { .. });
        let entries = environment.entries().into_iter();
        let (settings, machine): (Vec<_>, Vec<_>) =
            entries.partition(|(property, _)| is_setting(property));
        [machine, settings].map(|entries| {
            let words = |(property, value)| (self.property(&property), self.property_value(&value));
            entries.into_iter().map(words).collect()
        })
    }

    /// The host of a broker, and those of its kernel settings that this machine has otherwise.
    pub(crate) fn host_entries(
        self,
        entries: Vec<(Property, PropertyValue)>,
        environment: &Environment,
    ) -> Vec<(String, String)> {
        let here = environment.entries();
        let is_new = |entry: &(Property, PropertyValue)| {
            !matches!(entry.0, Property::KernelSetting { .. }) || !here.contains(entry)
        };
        let words = |(property, value)| (self.property(&property), self.property_value(&value));
        entries.into_iter().filter(is_new).map(words).collect()
    }

    /// A file system and its disk.
    fn disk(self, disk: &DataDisk) -> String {
        let DataDisk { file_system, mount_point, device, .. } = disk;
        let mut text = match self {
            Self::En => format!("{file_system} on {device}, mounted at {mount_point}"),
            Self::Zh => format!("{file_system}，设备 {device}，挂载于 {mount_point}"),
        };
        let size = disk.size_bytes.map(format::bytes);
        let kind = match (self, disk.rotational) {
            (_, None) => None,
            (Self::En, Some(true)) => Some("rotating".to_owned()),
            (Self::En, Some(false)) => Some("not rotating".to_owned()),
            (Self::Zh, Some(true)) => Some("机械盘".to_owned()),
            (Self::Zh, Some(false)) => Some("非机械盘".to_owned()),
        };
        let separator = if self == Self::En { ", " } else { "，" };
        for more in [disk.model.clone(), size, kind].into_iter().flatten() {
            text.push_str(separator);
            text.push_str(&more);
        }
        text
    }

    /// Bits and packets per second.
    fn network_limit(self, limit: NetworkLimit) -> String {
        let bits = limit.bits_per_s.map(|bits| format!("{} Mbit/s", bits as f64 / 1e6));
        let packets = limit.packets_per_s.map(|packets| {
            let packets = format::thousands(packets);
            match self {
                Self::En => format!("{packets} packets/s"),
                Self::Zh => format!("每秒 {packets} 个数据包"),
            }
        });
        let parts: Vec<String> = bits.into_iter().chain(packets).collect();
        parts.join(if self == Self::En { ", " } else { "，" })
    }

    /// What differs; the name in an old record as it is.
    pub(crate) fn difference_name(self, difference: &Difference) -> String {
        let property = difference.property.as_ref();
        property.map_or_else(|| difference.name.clone(), |property| self.property(property))
    }

    /// Its value on each side; those of an old record as they are.
    pub(crate) fn difference_values(self, difference: &Difference) -> Vec<String> {
        if difference.property.is_none() {
            return difference.values.clone();
        }
        let words = |values: &Vec<PropertyValue>| match values.as_slice() {
            [] => "–".to_owned(),
            values => {
                let words: Vec<String> =
                    values.iter().map(|value| self.property_value(value)).collect();
                words.join(" / ")
            }
        };
        difference.property_values.iter().map(words).collect()
    }

    /// Behind the name of a property: the broker that has it, where there are several.
    fn of_target(self, target: &str) -> String {
        match (self, target) {
            (_, "") => String::new(),
            (Self::En, target) => format!(" of {target}"),
            (Self::Zh, target) => self.named(target),
        }
    }
}
