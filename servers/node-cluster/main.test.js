// The server as several processes: connections are dealt out, chat passes between them, and they end together.
'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const net = require('node:net');
const path = require('node:path');
const readline = require('node:readline');
const { test } = require('node:test');

const golden = JSON.parse(fs.readFileSync(path.join(__dirname, '../../protocol/golden.json')));
const WORKERS = 3;

/** A running server; its lines come one by one from `next()`. */
async function start(workload, t) {
  const options = { ...JSON.parse(golden.vectors[0].resolved), workload, threads: WORKERS };
  const stdio = ['ignore', 'pipe', 'pipe'];
  const server = spawn(process.execPath, [path.join(__dirname, 'main.js'), JSON.stringify(options)], { stdio });
  t.after(() => server.kill('SIGKILL'));
  const exited = once(server, 'exit');
  const lines = readline.createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  const next = async () => JSON.parse((await lines.next()).value);
  const { endpoint, pid } = await next();
  assert.equal(pid, server.pid);
  return { server, exited, next, port: Number(new URL(endpoint).port), workers: listChildren(pid) };
}

function listChildren(pid) {
  return fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'ascii').trim().split(' ').map(Number);
}

function exists(pid) {
  try {
    return !/^State:\sZ/m.test(fs.readFileSync(`/proc/${pid}/status`, 'ascii')); // not every init(1) collects orphans
  } catch {
    return false;
  }
}

async function until(condition) {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A client, by `read(size)` of the next bytes from the server. */
async function connect(port, t) {
  const socket = net.connect(port, '127.0.0.1');
  t.after(() => socket.destroy());
  await once(socket, 'connect');
  const read = async (size) => {
    for (;;) {
      const bytes = socket.read(size);
      if (bytes !== null) return bytes.toString('latin1');
      await once(socket, 'readable');
    }
  };
  return { socket, read };
}

test('connections are dealt out in turn, and the totals are the sum of the workers', async (t) => {
  const { server, exited, next, port } = await start('echo', t);
  for (let i = 0; i < 2 * WORKERS; i += 1) {
    const { socket, read } = await connect(port, t);
    socket.write('hello');
    assert.equal(await read(5), 'hello');
  }
  server.kill('SIGTERM');
  const totals = await next();
  assert.deepEqual(totals.connections_per_thread, [2, 2, 2]);
  assert.deepEqual([totals.connections, totals.requests, totals.bytes_in, totals.bytes_out], [6, 6, 30, 30]);
  assert.deepEqual(await exited, [0, null]);
});

test('each client hears all that the others say, whatever worker it is with, and each of them in order', async (t) => {
  const { port } = await start('chat', t);
  const say = ({ socket }, ...texts) => socket.write(texts.map((text) => `\0\0\0\x03${text}`).join(''), 'latin1');
  const hear = async ({ read }) => (await read(7)).slice(4);
  const crowd = [];
  for (let i = 0; i < 2 * WORKERS; i += 1) {
    const newcomer = await connect(port, t);
    say(newcomer, `${i}-0`); // a client that is heard has joined, and may hear others that have just joined
    for (const member of crowd) while ((await hear(member)) !== `${i}-0`);
    crowd.push(newcomer);
  }
  for (const [i, member] of crowd.entries()) say(member, `${i}-1`, `${i}-2`, `${i}-3`);
  for (const [i, member] of crowd.entries()) {
    const heard = [];
    while (heard.length < 3 * (crowd.length - 1)) {
      const text = await hear(member);
      if (!text.endsWith('-0')) heard.push(text);
    }
    for (const j of crowd.keys()) {
      const ofSender = heard.filter((text) => text.startsWith(`${j}-`));
      assert.deepEqual(ofSender, i === j ? [] : [`${j}-1`, `${j}-2`, `${j}-3`]);
    }
  }
});

test('workers end with a primary that is killed', async (t) => {
  const { server, exited, workers } = await start('rpc', t);
  assert.equal(workers.length, WORKERS);
  server.kill('SIGKILL');
  await exited;
  await until(() => !workers.some(exists));
});

test('a worker that is killed ends the server, which says so', async (t) => {
  const { server, exited, workers } = await start('rpc', t);
  let errors = '';
  server.stderr.on('data', (text) => (errors += text));
  process.kill(workers[1], 'SIGKILL');
  assert.deepEqual(await exited, [1, null]);
  await until(() => !workers.some(exists));
  assert.equal(errors, 'node-cluster: a worker has ended by itself: SIGKILL\n');
});

test('a worker that stands still does not keep the server from ending', async (t) => {
  const { server, exited, next, workers } = await start('rpc', t);
  process.kill(workers[1], 'SIGSTOP');
  server.kill('SIGTERM');
  assert.deepEqual((await next()).connections_per_thread, [0, 0, 0]);
  assert.deepEqual(await exited, [0, null]);
  await until(() => !workers.some(exists));
});
