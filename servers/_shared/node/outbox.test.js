// What waits for a reader counts as protocol/WIRE.md says, in either write mode.
'use strict';

const assert = require('node:assert/strict');
const { test } = require('node:test');

const { Outbox } = require('./outbox.js');

const FULL = { writableLength: 1, destroyed: false }; // a socket that takes nothing

function frames(split, outboxLimit) {
  const outbox = new Outbox(FULL, { split, outboxLimit }, {});
  const frame = Buffer.alloc(5);
  const parts = split ? [frame.subarray(0, 4), frame.subarray(4)] : [frame];
  let taken = 0;
  while (outbox.offer(parts, frame.length)) taken += 1;
  return taken;
}

test('a frame counts as its bytes and 128 more, however many writes it leaves in', () => {
  assert.deepEqual([frames(false, 1330), frames(true, 1330)], [10, 10]);
  assert.deepEqual([frames(false, 1329), frames(true, 1329)], [9, 9]);
  assert.deepEqual([frames(false, 1), frames(true, 1)], [1, 1]);
});
