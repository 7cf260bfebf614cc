"""Checks a broker through paho-mqtt: paho_client.py PORT VERSION CHECK QOS.

TACHO_PEERS_TRANSPORT is tcp, tls, ws or wss; TACHO_PEERS_CA is the certificate to trust.
"""

import os
import queue
import subprocess
import sys
import threading
import time

import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

PATIENCE_S = 45


TRANSPORT = os.environ.get("TACHO_PEERS_TRANSPORT", "tcp")


class Client:
    """A connected client whose messages wait in a queue."""

    def __init__(self, port, version, name="", clean=True, will=None):
        is_v5 = version == "5"
        old = {"3.1": mqtt.MQTTv31, "3.1.1": mqtt.MQTTv311}
        protocol = mqtt.MQTTv5 if is_v5 else old[version]
        options = {} if is_v5 else {"clean_session": clean}
        self.paho = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            name,
            protocol=protocol,
            transport="websockets" if TRANSPORT in ("ws", "wss") else "tcp",
            **options,
        )
        if TRANSPORT in ("tls", "wss"):
            self.paho.tls_set(ca_certs=os.environ["TACHO_PEERS_CA"])
        self.messages = queue.Queue()
        self.session_present = False
        self._connected = threading.Event()
        self._subscribed = threading.Event()
        self.paho.on_connect = self._on_connect
        self.paho.on_subscribe = self._on_subscribe
        self.paho.on_message = lambda client, data, message: self.messages.put(message)
        if will:
            self.paho.will_set(*will)
        if is_v5:
            properties = Properties(PacketTypes.CONNECT)
            properties.SessionExpiryInterval = 0 if clean else 300
            self.paho.connect(
                "127.0.0.1", port, clean_start=clean, properties=properties
            )
        else:
            self.paho.connect("127.0.0.1", port)
        self.paho.loop_start()
        check(self._connected.wait(PATIENCE_S), "no CONNACK")

    def _on_connect(self, client, data, flags, reason, properties):
        check(not reason.is_failure, f"refused: {reason}")
        self.session_present = flags.session_present
        self._connected.set()

    def _on_subscribe(self, client, data, mid, reasons, properties):
        check(all(not reason.is_failure for reason in reasons), f"refused: {reasons}")
        self._subscribed.set()

    def subscribe(self, topic_filter, qos):
        self._subscribed.clear()
        self.paho.subscribe(topic_filter, qos)
        check(self._subscribed.wait(PATIENCE_S), "no SUBACK")

    def publish(self, topic, payload, qos, **options):
        info = self.paho.publish(topic, payload, qos, **options)
        info.wait_for_publish(PATIENCE_S)
        check(info.is_published(), "not acknowledged")

    def take(self, count):
        return [self.messages.get(timeout=PATIENCE_S) for _ in range(count)]

    def expect_silence(self):
        try:
            message = self.messages.get(timeout=0.3)
        except queue.Empty:
            return
        check(False, f"unexpected: {message.topic} {message.payload}")

    def leave(self):
        self.paho.disconnect()
        self.paho.loop_stop()


def check(condition, complaint):
    if not condition:
        print(complaint, file=sys.stderr, flush=True)
        # Callbacks run on paho's thread: end the process from there too.
        os._exit(1)


def payloads(count):
    return [f"payload-{number}".encode() for number in range(count)]


def deliver(port, version, qos):
    subscriber = Client(port, version)
    subscriber.subscribe("deliver/+", qos)
    publisher = Client(port, version)
    sent = payloads(100) + [b""] + [bytes(range(256)) * 1000]
    for payload in sent:
        publisher.publish("deliver/a", payload, qos)
    got = subscriber.take(len(sent))
    check([message.payload for message in got] == sent, "payloads differ")
    check(all(message.qos == qos for message in got), "another QoS")
    check(not any(message.retain or message.dup for message in got), "odd flags")
    subscriber.expect_silence()


def retained(port, version, qos):
    publisher = Client(port, version)
    publisher.publish("kept/a", b"old", qos, retain=True)
    publisher.publish("kept/a", b"new", qos, retain=True)
    publisher.publish("kept/b", b"other", qos, retain=True)
    publisher.publish("kept/b", b"", qos, retain=True)
    subscriber = Client(port, version)
    subscriber.subscribe("kept/#", qos)
    (message,) = subscriber.take(1)
    check((message.topic, message.payload) == ("kept/a", b"new"), "the wrong one")
    check(message.retain, "the retain flag is missing")
    subscriber.expect_silence()


def will(port, version, qos):
    watcher = Client(port, version)
    watcher.subscribe("wills/#", qos)
    victim = subprocess.Popen(
        [sys.executable, __file__, str(port), version, "victim", str(qos)],
        stdout=subprocess.PIPE,
    )
    check(victim.stdout.readline().strip() == b"ready", "the victim never connected")
    watcher.expect_silence()
    victim.kill()
    (message,) = watcher.take(1)
    check((message.topic, message.payload) == ("wills/victim", b"gone"), "not the will")
    check(message.qos == qos, "another QoS")
    polite = Client(port, version, will=("wills/polite", b"gone", qos, False))
    polite.leave()
    watcher.expect_silence()


def victim(port, version, qos):
    client = Client(port, version, will=("wills/victim", b"gone", qos, False))
    print("ready", flush=True)
    client.messages.get()


def shared(port, version, qos):
    members = [Client(port, version) for _ in range(3)]
    for member in members:
        member.subscribe("$share/group/chores/#", qos)
    publisher = Client(port, version)
    sent = payloads(60)
    for payload in sent:
        publisher.publish("chores/item", payload, qos)
    got = []
    deadline = time.monotonic() + PATIENCE_S
    while len(got) < len(sent):
        for member in members:
            try:
                got.append(member.messages.get(timeout=0.01).payload)
            except queue.Empty:
                pass
        check(time.monotonic() < deadline, f"only {len(got)} of {len(sent)} arrived")
    check(sorted(got) == sorted(sent), "not each message exactly once")
    for member in members:
        member.expect_silence()


def resume(port, version, qos):
    reader = Client(port, version, "reader", clean=False)
    check(not reader.session_present, "a session that never was")
    reader.subscribe("mail/#", qos)
    reader.leave()
    publisher = Client(port, version)
    sent = payloads(50)
    for payload in sent:
        publisher.publish("mail/in", payload, qos)
    reader = Client(port, version, "reader", clean=False)
    check(reader.session_present, "the session is gone")
    got = reader.take(len(sent))
    check([message.payload for message in got] == sent, "payloads differ")
    reader.expect_silence()


def properties(port, version, qos):
    subscriber = Client(port, version)
    subscriber.subscribe("props/#", qos)
    publisher = Client(port, version)
    given = Properties(PacketTypes.PUBLISH)
    given.UserProperty = [("a", "1"), ("b", "2"), ("a", "3")]
    given.ResponseTopic = "reply/here"
    given.CorrelationData = b"\x00\x01\xff"
    given.ContentType = "text/plain"
    given.PayloadFormatIndicator = 1
    given.MessageExpiryInterval = 1000
    publisher.publish("props/x", b"text", qos, properties=given)
    (message,) = subscriber.take(1)
    got = message.properties
    check(got.UserProperty == given.UserProperty, f"user properties {got}")
    check(got.ResponseTopic == "reply/here", f"response topic {got}")
    check(got.CorrelationData == b"\x00\x01\xff", f"correlation data {got}")
    check(got.ContentType == "text/plain", f"content type {got}")
    check(got.PayloadFormatIndicator == 1, f"payload format {got}")
    check(990 <= got.MessageExpiryInterval <= 1000, f"message expiry {got}")


def main():
    port, version, name, qos = sys.argv[1:5]
    checks = {
        "deliver": deliver,
        "retained": retained,
        "will": will,
        "victim": victim,
        "shared": shared,
        "resume": resume,
        "properties": properties,
    }
    try:
        checks[name](int(port), version, int(qos))
    except queue.Empty:
        check(False, f"{name}: a message did not arrive in {PATIENCE_S} s")


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    # Background threads of clients that are still connected must not hold the process.
    import os

    os._exit(0)
