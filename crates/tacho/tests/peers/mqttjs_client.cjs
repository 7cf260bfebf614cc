// Checks a broker through mqtt.js: mqttjs_client.cjs PORT VERSION CHECK QOS.
// TACHO_PEERS_TRANSPORT is tcp, tls, ws or wss; TACHO_PEERS_CA is the certificate to trust.
'use strict';

const assert = require('node:assert');
const { spawn } = require('node:child_process');
const { readFileSync } = require('node:fs');
const { createRequire } = require('node:module');

const mqtt = createRequire(`${process.env.TACHO_PEERS_DIR}/`)('mqtt');

const PATIENCE_MS = 45_000;
const [port, version, checkName, qosText] = process.argv.slice(2);
const qos = Number(qosText);

const transport = process.env.TACHO_PEERS_TRANSPORT ?? 'tcp';
const carrier = { protocol: { tcp: 'mqtt', tls: 'mqtts', ws: 'ws', wss: 'wss' }[transport] };
if (transport === 'ws' || transport === 'wss') carrier.path = '/mqtt';
if (transport === 'tls' || transport === 'wss') {
  carrier.ca = readFileSync(process.env.TACHO_PEERS_CA);
}
const protocol = {
  3.1: { protocolVersion: 3, protocolId: 'MQIsdp' },
  '3.1.1': { protocolVersion: 4 },
  5: { protocolVersion: 5 },
}[version];

function deadline(promise, complaint) {
  const late = new Promise((_, reject) => {
    setTimeout(() => reject(new Error(complaint)), PATIENCE_MS).unref();
  });
  return Promise.race([promise, late]);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A connected client whose messages wait in a list. */
class Client {
  static async connect(options = {}) {
    const client = new Client();
    client.messages = [];
    const { keep, properties = {}, ...rest } = options;
    client.mqtt = mqtt.connect({
      host: '127.0.0.1',
      port: Number(port),
      ...carrier,
      ...protocol,
      reconnectPeriod: 0,
      clean: !keep,
      ...(version === '5'
        ? { properties: { sessionExpiryInterval: keep ? 300 : 0, ...properties } }
        : {}),
      ...rest,
    });
    // The topic is what mqtt.js made of it; the packet may name an alias only.
    client.mqtt.on('message', (topic, payload, packet) => {
      client.messages.push(Object.assign(packet, { topic, sentTopic: packet.topic }));
    });
    const connected = new Promise((resolve, reject) => {
      client.mqtt.once('connect', resolve);
      client.mqtt.once('error', reject);
    });
    const connack = await deadline(connected, 'no CONNACK');
    client.sessionPresent = connack.sessionPresent;
    return client;
  }

  async subscribe(filter, wanted = qos) {
    const granted = await deadline(this.mqtt.subscribeAsync(filter, { qos: wanted }), 'no SUBACK');
    assert.strictEqual(granted[0].qos, wanted, 'another QoS was granted');
  }

  publish(topic, payload, options = {}) {
    return deadline(this.mqtt.publishAsync(topic, payload, { qos, ...options }), 'no ack');
  }

  async take(count) {
    const start = Date.now();
    while (this.messages.length < count) {
      const waited = Date.now() - start;
      assert.ok(waited < PATIENCE_MS, `only ${this.messages.length} of ${count} arrived`);
      await pause(5);
    }
    return this.messages.splice(0, count);
  }

  async expectSilence() {
    await pause(300);
    assert.deepStrictEqual(this.messages.map((packet) => packet.topic), [], 'unexpected');
  }

  leave() {
    return this.mqtt.endAsync();
  }
}

const payloads = (count) => Array.from({ length: count }, (_, n) => Buffer.from(`payload-${n}`));

const checks = {
  async deliver() {
    const subscriber = await Client.connect();
    await subscriber.subscribe('deliver/+');
    const publisher = await Client.connect();
    const sent = [...payloads(100), Buffer.alloc(0), Buffer.alloc(256_000, 'tacho')];
    for (const payload of sent) await publisher.publish('deliver/a', payload);
    const got = await subscriber.take(sent.length);
    got.forEach((packet, n) => {
      assert.ok(packet.payload.equals(sent[n]), `payload ${n} differs`);
      assert.deepStrictEqual([packet.qos, packet.retain, packet.dup], [qos, false, false]);
    });
    await subscriber.expectSilence();
  },

  async retained() {
    const publisher = await Client.connect();
    await publisher.publish('kept/a', 'old', { retain: true });
    await publisher.publish('kept/a', 'new', { retain: true });
    await publisher.publish('kept/b', 'other', { retain: true });
    await publisher.publish('kept/b', '', { retain: true });
    const subscriber = await Client.connect();
    await subscriber.subscribe('kept/#');
    const [packet] = await subscriber.take(1);
    assert.deepStrictEqual([packet.topic, String(packet.payload)], ['kept/a', 'new']);
    assert.strictEqual(packet.retain, true);
    await subscriber.expectSilence();
  },

  async will() {
    const watcher = await Client.connect();
    await watcher.subscribe('wills/#');
    const victim = spawn(process.execPath, [__filename, port, version, 'victim', qosText], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await deadline(
      new Promise((resolve) => {
        victim.stdout.once('data', resolve);
      }),
      'the victim never connected',
    );
    await watcher.expectSilence();
    victim.kill('SIGKILL');
    const [packet] = await watcher.take(1);
    assert.deepStrictEqual([packet.topic, String(packet.payload)], ['wills/victim', 'gone']);
    const polite = await Client.connect({ will: { topic: 'wills/polite', payload: 'gone', qos } });
    await polite.leave();
    await watcher.expectSilence();
  },

  async victim() {
    await Client.connect({ will: { topic: 'wills/victim', payload: 'gone', qos } });
    console.log('ready');
    await pause(60_000);
  },

  async shared() {
    const members = [];
    for (let n = 0; n < 3; n += 1) {
      const member = await Client.connect();
      await member.subscribe('$share/group/chores/#');
      members.push(member);
    }
    const publisher = await Client.connect();
    const sent = payloads(60);
    for (const payload of sent) await publisher.publish('chores/item', payload);
    const total = () => members.reduce((sum, member) => sum + member.messages.length, 0);
    const start = Date.now();
    while (total() < sent.length) {
      assert.ok(Date.now() - start < PATIENCE_MS, `only ${total()} of ${sent.length} arrived`);
      await pause(5);
    }
    await pause(300);
    const got = members.flatMap((member) => member.messages.map((m) => String(m.payload)));
    assert.deepStrictEqual(got.sort(), sent.map(String).sort(), 'not each exactly once');
  },

  async resume() {
    let reader = await Client.connect({ clientId: 'reader', keep: true });
    assert.strictEqual(reader.sessionPresent, false);
    await reader.subscribe('mail/#');
    await reader.leave();
    const publisher = await Client.connect();
    const sent = payloads(50);
    for (const payload of sent) await publisher.publish('mail/in', payload);
    reader = await Client.connect({ clientId: 'reader', keep: true });
    assert.strictEqual(reader.sessionPresent, true, 'the session is gone');
    const got = await reader.take(sent.length);
    assert.deepStrictEqual(got.map((p) => String(p.payload)), sent.map(String));
    await reader.expectSilence();
  },

  async properties() {
    const subscriber = await Client.connect();
    await subscriber.subscribe('props/#');
    const publisher = await Client.connect();
    const given = {
      payloadFormatIndicator: true,
      messageExpiryInterval: 1000,
      responseTopic: 'reply/here',
      correlationData: Buffer.from([0, 1, 255]),
      userProperties: { a: ['1', '3'], b: '2' },
      contentType: 'text/plain',
    };
    await publisher.publish('props/x', 'text', { properties: given });
    const [packet] = await subscriber.take(1);
    const got = packet.properties;
    assert.deepStrictEqual({ ...got.userProperties }, given.userProperties);
    assert.strictEqual(got.responseTopic, 'reply/here');
    assert.ok(got.correlationData.equals(given.correlationData));
    assert.strictEqual(got.contentType, 'text/plain');
    assert.strictEqual(got.payloadFormatIndicator, true);
    assert.ok(got.messageExpiryInterval >= 990 && got.messageExpiryInterval <= 1000);
  },

  async aliases() {
    const options = { clientId: 'short', keep: true, properties: { topicAliasMaximum: 2 } };
    let subscriber = await Client.connect(options);
    await subscriber.subscribe('aliases/#');
    const publisher = await Client.connect();
    let unnamed = 0;
    for (let turn = 0; turn < 2; turn += 1) {
      for (let n = 0; n < 100; n += 1) {
        const topic = `aliases/of/a/long/topic/${n % 3}/${Math.floor(n / 50)}`;
        await publisher.publish(topic, String(n));
        const [packet] = await subscriber.take(1);
        assert.deepStrictEqual([packet.topic, String(packet.payload)], [topic, String(n)]);
        assert.ok((packet.properties?.topicAlias ?? 1) <= 2, 'an alias above the maximum');
        if (packet.sentTopic === '') unnamed += 1;
      }
      // Aliases end with the connection.
      await subscriber.leave();
      subscriber = await Client.connect(options);
    }
    assert.ok(unnamed > 60, `only ${unnamed} of 200 were sent without their topic`);
  },

  async sizes() {
    const options = { properties: { maximumPacketSize: 200, receiveMaximum: 2 } };
    const subscriber = await Client.connect(options);
    await subscriber.subscribe('sizes/#');
    const publisher = await Client.connect();
    for (let n = 0; n < 20; n += 1) {
      await publisher.publish('sizes/x', Buffer.alloc(n % 2 ? 1000 : 10, n));
    }
    const got = await subscriber.take(10);
    assert.deepStrictEqual(got.map((packet) => packet.payload[0] % 2), Array(10).fill(0));
    await subscriber.expectSilence();
  },
};

checks[checkName]().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
