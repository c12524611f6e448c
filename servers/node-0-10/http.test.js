// The vectors of http in protocol/golden.json against the session, with the input sliced in many ways. Of today's Node,
// which runs the other tests as well; what 0.10 makes of the same code, the conformance tests see.
'use strict';

const assert = require('node:assert/strict');
const fs = require('node:fs');
const path = require('node:path');
const { test } = require('node:test');

const { HttpSession, newTotals } = require('./http.js');
const { read } = require('./options.js');

const golden = JSON.parse(fs.readFileSync(path.join(__dirname, '../../protocol/golden.json')));

/** An effect in the words of golden.json; without the lines Date, which differ with each second. */
function inWords({ kind, text, duration }) {
  if (kind === 'close') return { close: true };
  if (kind !== 'write') return { [kind]: duration };
  return { write: Buffer.from(text.replaceAll(/\r\nDate: .{29}(?=\r\n)/g, ''), 'latin1').toString('hex') };
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

function expectGolden(vector, slices, how) {
  const options = read(vector.resolved);
  const totals = newTotals();
  const session = new HttpSession(options, totals);
  const effects = slices.flatMap((slice) => session.receive(slice));
  if (vector.ends) effects.push(...session.end());
  const words = effects.map(inWords);
  assert.deepEqual(options.split ? words : joined(words), vector.effects, how);
  assert.equal(totals.protocol_errors, vector.protocol_errors, how);
  if (vector.requests !== null) assert.equal(totals.requests, vector.requests, how);
}

for (const vector of golden.vectors.filter(({ workload }) => workload === 'http')) {
  const chunks = vector.chunks.map((hex) => Buffer.from(hex, 'hex').toString('latin1'));
  const stream = chunks.join('');

  test(vector.name, () => {
    expectGolden(vector, chunks, 'as given');
    expectGolden(vector, [stream], 'in one piece');
    expectGolden(vector, [...stream], 'byte by byte');
    const step = 1 + Math.floor(stream.length / 64); // every place of short streams and near the ends
    for (let at = 1; at < stream.length; at += at < 32 || at + 32 > stream.length ? 1 : step)
      expectGolden(vector, [stream.slice(0, at), stream.slice(at)], `cut at ${at}`);
  });
}
