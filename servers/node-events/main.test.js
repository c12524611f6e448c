// The program in the process of the test, where a connection can come at the one moment that is asked about.
'use strict';

const assert = require('node:assert/strict');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const { mock, test } = require('node:test');

const golden = JSON.parse(fs.readFileSync(path.join(__dirname, '../../protocol/golden.json')));

test('who is accepted after the signal is let go as all others are', async () => {
  process.argv = [process.argv[0], 'main.js', golden.vectors[0].resolved];
  const exited = new Promise((resolve) => mock.method(process, 'exit', resolve));
  const made = mock.method(net, 'createServer');
  require('./main.js');
  const listener = made.mock.calls[0].result;
  listener.prependListener('connection', () => process.emit('SIGTERM'));
  await once(listener, 'listening');

  const late = net.connect(listener.address().port, '127.0.0.1').resume();
  const end = await Promise.race([once(late, 'end').then(() => 'let go'), exited.then(() => 'the grace was over')]);
  late.destroy();
  assert.equal(end, 'let go');
  assert.equal(await exited, 0);
});
