//! `-D PACKET PROPERTY VALUE`: the properties of MQTT 5.0, as mosquitto's commands take them.

use clap::Args;
use tacho_client::MessageProperties;

use super::invalid;
use crate::exit::Failure;

/// Properties of packets.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PropertyArguments {
    /// A property of MQTT 5.0, may be given several times: -D publish content-type text/plain,
    /// -D publish user-property NAME VALUE
    ///
    /// Of publish and will: content-type, correlation-data, message-expiry-interval,
    /// payload-format-indicator, response-topic, user-property; will-delay-interval of will. Of
    /// connect: receive-maximum, session-expiry-interval, user-property. Of subscribe:
    /// subscription-identifier.
    #[arg(short = 'D', long = "property", num_args = 3..=4, value_names = ["PACKET", "PROPERTY", "VALUE"],
          action = clap::ArgAction::Append, help_heading = "Connection")]
    tokens: Vec<String>,
}

/// Those of CONNECT.
#[derive(Debug, Default)]
pub(super) struct OfConnect {
    pub(super) session_expiry_s: Option<u32>,
    pub(super) receive_maximum: Option<u16>,
    pub(super) user_properties: Vec<(String, String)>,
}

/// One property: the packet, its name, and one or two values.
struct Given<'a> {
    packet: &'a str,
    name: &'a str,
    value: &'a str,
    /// Of a user property, whose name is then `value`.
    second: &'a str,
}

const PACKETS: [&str; 4] = ["connect", "publish", "subscribe", "will"];

impl PropertyArguments {
    /// Whether there are any.
    pub(super) fn has_any(&self) -> bool {
        !self.tokens.is_empty()
    }

    pub(super) fn of_connect(&self) -> Result<OfConnect, Failure> {
        let mut all = OfConnect::default();
        for given in self.of("connect")? {
            match given.name {
                "session-expiry-interval" => all.session_expiry_s = Some(given.number()?),
                "receive-maximum" => {
                    let number = given.number::<u16>()?;
                    all.receive_maximum =
                        Some(Some(number).filter(|&n| n > 0).ok_or_else(|| given.wrong())?);
                }
                "user-property" => all.user_properties.push(given.pair()),
                _ => return Err(given.unknown()),
            }
        }
        Ok(all)
    }

    pub(super) fn of_publish(&self) -> Result<MessageProperties, Failure> {
        let mut all = MessageProperties::default();
        for given in self.of("publish")? {
            given.add_to(&mut all)?;
        }
        Ok(all)
    }

    pub(super) fn of_will(&self) -> Result<MessageProperties, Failure> {
        let mut all = MessageProperties::default();
        for given in self.of("will")? {
            if given.name != "will-delay-interval" {
                given.add_to(&mut all)?;
            }
        }
        Ok(all)
    }

    pub(super) fn will_delay_s(&self) -> Result<Option<u32>, Failure> {
        let all = self.of("will")?;
        let delay = all.iter().find(|given| given.name == "will-delay-interval");
        delay.map(Given::number).transpose()
    }

    pub(super) fn subscription_id(&self) -> Result<Option<u32>, Failure> {
        let mut found = None;
        for given in self.of("subscribe")? {
            if given.name != "subscription-identifier" {
                return Err(given.unknown());
            }
            let number = given.number()?;
            if !(1..=268_435_455).contains(&number) {
                return Err(given.wrong());
            }
            found = Some(number);
        }
        Ok(found)
    }

    /// Those of one packet.
    fn of(&self, packet: &str) -> Result<Vec<Given<'_>>, Failure> {
        let mut all = Vec::new();
        let mut rest = &self.tokens[..];
        while let [of, name, value, ..] = rest {
            // A user property has a name and a value.
            let len = if name == "user-property" { 4 } else { 3 };
            let second = rest.get(3).map_or("", String::as_str);
            if len > rest.len() {
                return Err(invalid("-D ... user-property needs a name and a value"));
            }
            if !PACKETS.contains(&of.as_str()) {
                let known = PACKETS.join(", ");
                return Err(invalid(&format!("-D {of}: properties are of {known}")));
            }
            if of == packet {
                all.push(Given { packet: of, name, value, second });
            }
            rest = &rest[len..];
        }
        match rest {
            [] => Ok(all),
            _ => Err(invalid(&format!("-D: '{}' is out of place", rest.join(" ")))),
        }
    }
}

impl Given<'_> {
    fn add_to(&self, all: &mut MessageProperties) -> Result<(), Failure> {
        let text = self.value.to_owned();
        match self.name {
            "content-type" => all.content_type = Some(text),
            "correlation-data" => all.correlation_data = Some(text.into_bytes()),
            "message-expiry-interval" => all.message_expiry_s = Some(self.number()?),
            "payload-format-indicator" => {
                all.payload_format_utf8 = Some(match self.value {
                    "0" => false,
                    "1" => true,
                    _ => return Err(self.wrong()),
                });
            }
            "response-topic" => all.response_topic = Some(text),
            "user-property" => all.user_properties.push(self.pair()),
            _ => return Err(self.unknown()),
        }
        Ok(())
    }

    fn pair(&self) -> (String, String) {
        (self.value.to_owned(), self.second.to_owned())
    }

    fn number<T: std::str::FromStr>(&self) -> Result<T, Failure> {
        self.value.parse().map_err(|_| self.wrong())
    }

    fn wrong(&self) -> Failure {
        let Self { packet, name, value, .. } = self;
        invalid(&format!("-D {packet} {name}: '{value}' is no value of this property"))
    }

    fn unknown(&self) -> Failure {
        let Self { packet, name, .. } = self;
        invalid(&format!("-D {packet} {name}: there is no such property here; see --help"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &str) -> PropertyArguments {
        PropertyArguments { tokens: text.split(' ').map(str::to_owned).collect() }
    }

    #[test]
    fn properties_go_to_their_packets() {
        let all = arguments(
            "publish content-type text/plain publish user-property a b connect receive-maximum 5 \
             will will-delay-interval 7 subscribe subscription-identifier 9 \
             publish payload-format-indicator 1 will content-type x",
        );
        let publish = all.of_publish().unwrap();
        assert_eq!(publish.content_type.as_deref(), Some("text/plain"));
        assert_eq!(publish.user_properties, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(publish.payload_format_utf8, Some(true));
        assert_eq!(all.of_connect().unwrap().receive_maximum, Some(5));
        assert_eq!(all.will_delay_s().unwrap(), Some(7));
        assert_eq!(all.of_will().unwrap().content_type.as_deref(), Some("x"));
        assert_eq!(all.subscription_id().unwrap(), Some(9));
    }

    #[test]
    fn what_is_no_property_is_named() {
        for (text, named) in [
            ("publish colour red", "publish colour"),
            ("publish message-expiry-interval soon", "'soon'"),
            ("publish payload-format-indicator 2", "'2'"),
            ("connect receive-maximum 0", "'0'"),
            ("subscribe subscription-identifier 0", "'0'"),
            ("publish user-property a", "name and a value"),
            ("puback reason-string x", "-D puback"),
            ("publish content-type a b", "'b' is out of place"),
        ] {
            let all = arguments(text);
            let errors =
                [all.of_publish().err(), all.of_connect().err(), all.subscription_id().err()];
            let shown: Vec<_> = errors.into_iter().flatten().map(|error| error.message).collect();
            assert!(shown.iter().any(|error| error.contains(named)), "{text}: {shown:?}");
        }
    }
}
