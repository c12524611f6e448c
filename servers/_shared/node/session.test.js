// Every vector of protocol/golden.json against the sessions, with the input sliced in many ways.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');

const { read } = require('./options.js');
const { newTotals } = require('./session.js');
const { makeSession } = require('./workloads.js');

const golden = JSON.parse(fs.readFileSync(path.join(__dirname, '../../../protocol/golden.json')));

/** Without the lines Date of http replies: these differ with each second. */
function undated(bytes) {
  return Buffer.from(bytes.latin1Slice().replaceAll(/\r\nDate: .{29}(?=\r\n)/g, ''), 'latin1');
}

/** An effect in the words of golden.json. */
function inWords({ kind, parts, duration }) {
  switch (kind) {
    case 'write':
      return { write: undated(Buffer.concat(parts)).toString('hex') };
    case 'broadcast':
      return { broadcast: parts.map((part) => part.toString('hex')) };
    case 'close':
      return { close: true };
    default:
      return { [kind]: duration };
  }
}

/** Joins a write with the one before it: where a server read twice, it may write twice. */
function joined(effects) {
  const list = [];
  for (const effect of effects) {
    const last = list.at(-1);
    if ('write' in effect && last && 'write' in last) last.write += effect.write;
    else list.push({ ...effect });
  }
  return list;
}

/** What the session makes of the slices. Each is overwritten once it was taken, as a server's read buffer is. */
function serve(vector, slices) {
  const options = read(vector.resolved);
  const totals = newTotals();
  const session = makeSession(options, totals);
  const effects = slices.flatMap((slice) => {
    const buffer = Buffer.from(slice);
    const made = session.receive(buffer);
    buffer.fill('?');
    return made;
  });
  if (vector.ends) effects.push(...session.end());
  const mayJoin = !options.split || vector.workload === 'echo';
  const words = effects.map(inWords);
  return { effects: mayJoin ? joined(words) : words, totals };
}

function expectGolden(vector, slices, how) {
  const { effects, totals } = serve(vector, slices);
  assert.deepEqual(effects, vector.workload === 'echo' ? joined(vector.effects) : vector.effects, how);
  assert.equal(totals.protocol_errors, vector.protocol_errors, how);
  if (vector.requests !== null) assert.equal(totals.requests, vector.requests, how);
}

/** `stream` cut into pieces of `size()` bytes each. */
function cut(stream, size) {
  const slices = [];
  for (let at = 0; at < stream.length; at += slices.at(-1).length) slices.push(stream.subarray(at, at + size()));
  return slices;
}

/** Pseudo-random numbers in [0, 1), the same in every run (Park and Miller's minimal standard generator). */
function* randomNumbers(seed) {
  for (let state = seed; ; ) {
    state = (state * 48271) % 2147483647;
    yield state / 2147483647;
  }
}

for (const vector of golden.vectors) {
  const chunks = vector.chunks.map((hex) => Buffer.from(hex, 'hex'));
  const stream = Buffer.concat(chunks);

  test(vector.name, () => {
    expectGolden(vector, chunks, 'as given');
    expectGolden(vector, [stream], 'in one piece');
    expectGolden(vector, cut(stream, () => 1), 'byte by byte');
    const step = 1 + Math.floor(stream.length / 64); // every place of short streams and near the ends
    for (let at = 1; at < stream.length; at += at < 32 || at + 32 > stream.length ? 1 : step)
      expectGolden(vector, [stream.subarray(0, at), stream.subarray(at)], `cut at ${at}`);
    const random = randomNumbers(20250101);
    for (let round = 0; round < 5; round += 1) {
      const longest = 1 + random.next().value * 60;
      expectGolden(vector, cut(stream, () => 1 + Math.floor(random.next().value * longest)), `random pieces ${round}`);
    }
  });
}
