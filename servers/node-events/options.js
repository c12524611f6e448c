// The options that every server takes (the program contract): values mean what they mean in lib/server/options.cpp.
'use strict';

const path = require('node:path');

const program = path.basename(__dirname);
const KIB = 2 ** 10;
const GIB = 2 ** 30;

/** A value that an option does not take; the message names the option. */
class UsageError extends Error {}

function choice(values) {
  const names = Object.keys(values);
  return {
    type: names.join('|'),
    parse(text) {
      if (!Object.hasOwn(values, text)) throw new UsageError(`'${text}' is none of ${names.join('|')}`);
      return values[text];
    },
  };
}

function words(...names) {
  return choice(Object.fromEntries(names.map((name) => [name, name])));
}

function integer(low, high) {
  return {
    type: `INT in [${low} - ${high}]`,
    parse(text) {
      const value = Number(text);
      if (!/^[+-]?\d+$/.test(text)) throw new UsageError(`'${text}' is no whole number`);
      if (value < low || value > high) throw new UsageError(`${text} is not in [${low} - ${high}]`);
      return value;
    },
  };
}

/** "16384", "16KiB", "1MiB", "1GiB" (powers of 1024; "16k" and "16KB" are refused as ambiguous). */
function bytes(low, high) {
  const units = { '': 1, B: 1, KiB: KIB, MiB: 2 ** 20, GiB: GIB };
  return {
    type: 'BYTES',
    parse(text) {
      const [, number, unit] = /^(\d+)(B|[KMG]iB)?$/.exec(text) ?? [];
      if (number === undefined) throw new UsageError(`'${text}' is no size; want e.g. 512, 16KiB, 1MiB`);
      const value = Number(number) * units[unit ?? ''];
      if (value < low || value > high) throw new UsageError(`'${text}' is out of range`);
      return value;
    },
  };
}

/** "250us", "5ms", "1.5s", "2m", "0" as nanoseconds. A bare number other than 0 has no unit and is refused. */
const duration = {
  type: 'DUR',
  parse(text) {
    const units = { ns: 1, us: 1e3, ms: 1e6, s: 1e9, m: 60e9 };
    const [, number, unit] = /^(\d+\.?\d*|\.\d+)(ns|us|ms|s|m)?$/.exec(text) ?? [];
    const value = Number(number) * (unit ? units[unit] : 1);
    if (number === undefined || value > 9e18 || (!unit && value !== 0))
      throw new UsageError(`'${text}' is no duration; want e.g. 250us, 5ms, 1s`);
    return Math.round(value);
  },
};

/** tcp://host:port as {host, port}; an IPv6 host stands in brackets (RFC 3986, 3.2.2). */
const url = {
  type: 'URL',
  parse(text) {
    const [, transport, name, address, port] =
      /^([^:/]+):\/\/(?:([\w.-]+)|\[([\w.%-]*:[\w:.%-]*)\]):(\d+)(?:\?.*)?$/s.exec(text) ?? [];
    if (!transport || Number(port) > 65535) throw new UsageError(`'${text}' is no URL; want e.g. tcp://127.0.0.1:7000`);
    if (transport !== 'tcp') throw new UsageError(`transport '${transport}' is not spoken here`);
    return { host: name ?? address, port: Number(port) };
  },
};

// name: [key, kind, default, help]
const known = {
  '--listen': ['listen', url, 'tcp://127.0.0.1:0', 'where to listen; port 0 picks a free one'],
  '--workload': ['workload', words('echo', 'lines', 'rpc', 'chat', 'http'), 'echo', 'application protocol'],
  '--threads': ['threads', integer(1, 1024), '1', 'threads that serve'],
  '--backlog': ['backlog', integer(1, 65535), '4096', 'listen(2) backlog'],
  '--nodelay': ['nodelay', choice({ on: true, off: false }), 'on', 'TCP_NODELAY'],
  '--read-buffer': ['readBuffer', bytes(1, GIB), '16KiB', 'bytes asked for in one read'],
  '--write-mode': ['split', choice({ gathered: false, split: true }), 'gathered', 'header, body: one write or two'],
  '--audience': ['toAll', choice({ others: false, all: true }), 'others', 'who gets a chat message'],
  '--service-time': ['serviceTime', duration, '0', 'service time of a request of rpc or http'],
  '--service-kind': ['serviceKind', choice({ wait: 'wait', cpu: 'burn' }), 'wait', 'spend it waiting or burning CPU'],
  '--max-frame': ['maxFrame', bytes(1, GIB), '1MiB', 'longest message accepted'],
  '--outbox-limit': ['outboxLimit', bytes(1, 2 ** 40), '4MiB', 'bytes that may wait for one slow reader'],
};

function help() {
  const lines = Object.entries(known).map(
    ([name, [, kind, value, text]]) => `  ${`${name} ${kind.type}`.padEnd(38)} ${text} [${value}]`,
  );
  return [`${program}: netdyno contestant: see protocol/WIRE.md for what it speaks`, ...lines, ''].join('\n');
}

/** [name, value] pairs of "--name value" and "--name=value". */
function* pairs(argv) {
  const rest = [...argv];
  while (rest.length > 0) {
    const [, name, , value] = /^([^=]*)(=(.*))?$/s.exec(rest.shift());
    if (!Object.hasOwn(known, name)) throw new UsageError(`unknown argument: ${name}`);
    if (value === undefined && rest.length === 0) throw new UsageError(`${name}: a value is missing`);
    yield [name, value ?? rest.shift()];
  }
}

/** {listen: {host, port}, workload, ...}, sizes in bytes and durations in nanoseconds. Throws UsageError. */
function parse(argv) {
  const given = new Map();
  for (const [name, value] of pairs(argv)) {
    if (given.has(name)) throw new UsageError(`${name}: given twice`);
    given.set(name, value);
  }
  const options = {};
  for (const [name, [key, kind, byDefault]] of Object.entries(known)) {
    try {
      options[key] = kind.parse(given.get(name) ?? byDefault);
    } catch (error) {
      throw error instanceof UsageError ? new UsageError(`${name}: ${error.message}`) : error;
    }
  }
  if (options.threads !== 1) throw new UsageError(`--threads: ${program} runs on exactly one thread`);
  return options;
}

/** Like parse, but ends the program: exit 0 after --help; exit 2 and one clear line on what parse throws. */
function parseOrExit(argv) {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(help());
    process.exit(0);
  }
  try {
    return parse(argv);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    // Whatever is in an argument, the message about it stays one line and does nothing to a terminal.
    const message = error.message.replace(/[\x00-\x1f\x7f]/g, '?');
    process.stderr.write(`${program}: ${message} (--help lists the options)\n`);
    process.exit(2);
  }
}

module.exports = { parse, parseOrExit, program };
