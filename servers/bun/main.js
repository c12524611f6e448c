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

async function answer(request) {
  const { pathname, searchParams } = new URL(request.url);
  if (pathname === '/items') {
    return Response.json(request.method === 'POST' ? (await request.arrayBuffer()).byteLength : ITEMS);
  }
  const us = (name) => parseInt(searchParams.get(name) ?? '0', 10);
  if (us('chunks') > 0) {
    const body = stream(pathname.slice(1), us('chunks'), us('every') / 1000, us('size'));
    return new Response(body, { headers: { 'Content-Type': 'text/event-stream' } });
  }
  if (us('wait') > 0) await Bun.sleep(us('wait') / 1000);
  burn(us('cpu'));
  const body = pathname.slice(1).padEnd(Number(searchParams.get('size')), 'x');
  return new Response(body, { headers: { 'Content-Type': 'text/plain' } });
}

Bun.serve({ hostname: Bun.argv[2], port: Number(Bun.argv[3]), fetch: answer });
