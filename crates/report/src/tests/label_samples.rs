//! One of every label, difference and condition of a record.

use tacho_record::{
    Cause, ConditionCause, DataDisk, FigureName, FigureUnit, NetworkLimit, Property, PropertyValue,
    Requirement, Scale, SideLabel,
};

pub(super) fn properties() -> Vec<Property> {
    let (name, target) = (|| "eth1".to_owned(), || "node1".to_owned());
    vec![
        Property::ToolVersion,
        Property::Platform,
        Property::Distribution,
        Property::Kernel,
        Property::CpuModel,
        Property::CoresOnline,
        Property::CoreCount,
        Property::HostName,
        Property::InstanceType,
        Property::DataDisk,
        Property::NetworkLimit,
        Property::SharedCores,
        Property::VirtualMachine,
        Property::FrequencyGovernor,
        Property::Turbo,
        Property::ClockSource,
        Property::NumaNodes,
        Property::Memory,
        Property::OpenFilesSoft,
        Property::OpenFilesHard,
        Property::BrokerCores,
        Property::GeneratorCores,
        Property::GeneratorThreads,
        Property::BackgroundCores,
        Property::GeneratorTiming,
        Property::BatchedWrites,
        Property::ScenarioHash,
        Property::ControlGroup,
        Property::ControlGroupCores,
        Property::ControlGroupMemory,
        Property::Interface { name: name() },
        Property::KernelSetting { name: "net.core.somaxconn".to_owned() },
        Property::Broker { target: String::new() },
        Property::Broker { target: target() },
        Property::MqttVersion { target: target() },
        Property::Durability { target: target() },
        Property::CertificateVerified { target: target() },
        Property::SessionsResumed { target: target() },
        Property::CommandBefore,
        Property::Key("vars.qos".to_owned()),
    ]
}

pub(super) fn property_values() -> Vec<PropertyValue> {
    vec![
        PropertyValue::Unknown,
        PropertyValue::Yes,
        PropertyValue::No,
        PropertyValue::Unlimited,
        PropertyValue::NotPinned,
        PropertyValue::Link { mtu: None, speed_mbit_per_s: Some(10_000) },
        PropertyValue::Disk {
            disk: DataDisk {
                file_system: "xfs".to_owned(),
                mount_point: "/data".to_owned(),
                device: "/dev/nvme0n1".to_owned(),
                size_bytes: Some(1 << 30),
                model: Some("EBS".to_owned()),
                rotational: Some(false),
            },
        },
        PropertyValue::NetworkLimit {
            limit: NetworkLimit { bits_per_s: Some(8_000_000_000), packets_per_s: Some(800_000) },
        },
        PropertyValue::Text("6.1.0".to_owned()),
    ]
}

pub(super) fn requirements() -> Vec<Requirement> {
    let regression = |figure, is_percent| {
        let limit = 2.5;
        Requirement::NoRegression { figure, limit, is_percent }
    };
    vec![
        Requirement::NotWorse,
        Requirement::Better,
        regression(None, true),
        regression(Some(FigureName::E2eP99), true),
        regression(Some(FigureName::AcknowledgedLost), false),
    ]
}

pub(super) fn condition_causes() -> Vec<ConditionCause> {
    let worse = |point: &str, change| ConditionCause::Worse {
        point: point.to_owned(),
        side: "b".to_owned(),
        figure: "e2e_p99".to_owned(),
        change,
        unit: FigureUnit::Microseconds,
        scale: Scale::Percent,
    };
    vec![
        worse("", Some(30.0)),
        worse("rate=10", None),
        ConditionCause::NothingBetter,
        ConditionCause::NotObserved,
        ConditionCause::FewRepeats { least: 5 },
    ]
}

pub(super) fn failed_condition() -> Cause {
    Cause::ConditionFailed { requirement: Requirement::NotWorse, because: condition_causes() }
}

pub(super) fn undecided_condition() -> Cause {
    Cause::ConditionUndecided { requirement: Requirement::Better, because: condition_causes() }
}

pub(super) fn side_labels() -> Vec<SideLabel> {
    let own = |arguments: &str| SideLabel::OwnBroker { arguments: arguments.to_owned() };
    vec![own(""), own("--shards 1"), SideLabel::Text("broker -p 1883".to_owned())]
}
