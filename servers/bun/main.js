// The workload web by Bun's own server: one event loop.

const ITEMS = [{ id: 1, name: 'one' }, { id: 2, name: 'two' }, { id: 3, name: 'three' }];

// Busy by the clock, as JavaScript has no CPU clock of a thread.
function burn(us) {
  const end = performance.now() + us / 1000;
  while (performance.now() < end);
}

async function* stream(stamp, chunks, every, size) {
  const begin = performance.now();
  for (let number = 0; number < chunks; number++) {
    for (let left; (left = begin + number * every - performance.now()) > 0; ) await Bun.sleep(left);
    yield `data: ${`${stamp}${String(number).padStart(4, '0')}`.padEnd(size, 'x')}\n\n`;
  }
}

function finish(stamp, us, size) {
  burn(us);
  return new Response(stamp.padEnd(size, 'x'), { headers: { 'Content-Type': 'text/plain' } });
}

function answer(request) {
  const { url, params: { stamp } } = request;
  const query = new URLSearchParams(url.slice(url.indexOf('?') + 1));
  const find = (name) => parseInt(query.get(name) ?? '0', 10);
  const size = find('size');
  if (find('chunks') > 0) {
    const body = stream(stamp, find('chunks'), find('every') / 1000, size);
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
  }
  const wait = find('wait');
  if (wait === 0) return finish(stamp, find('cpu'), size);
  return Bun.sleep(wait / 1000).then(() => finish(stamp, find('cpu'), size));
}

const routes = {
  '/items': {
    GET: () => Response.json(ITEMS),
    POST: async (request) => Response.json((await request.arrayBuffer()).byteLength),
  },
  '/:stamp': answer,
};

Bun.serve({ hostname: Bun.argv[2], port: Number(Bun.argv[3]), routes });
