import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findEmitterProblems } from '../../../scripts/checks/emitters.ts';
import { assertNoProblems, makeTree, placesOf } from '../../repository/fixture-tree.ts';

test('finds emitters that are made without a listener, also of classes that extend one', (t) => {
  const root = makeTree(t, {
    'src/a.ts': `import { Worker as Thread } from 'node:worker_threads';\nconst thread = new Thread(url);\n`,
    'src/b.ts': `import { connect } from 'node:net';\n\nexport const open = () => connect(80);\n`,
    'src/c.ts': `const { createTransport } = await import('nodemailer');\ncreateTransport({});\n`,
    'src/line.ts': `import { Client } from 'undici';\nexport class Line extends Client {}\n`,
    'src/d.ts': `import { Line } from './line.ts';\nexport const line = new Line(origin);\n`,
    'src/e.ts': `import { Readable } from 'node:stream';\nexport const none = Readable.from([]);\n`,
  });
  const places = ['src/a.ts:2', 'src/b.ts:3', 'src/c.ts:2', 'src/d.ts:2', 'src/e.ts:2'];
  assert.deepEqual(placesOf(findEmitterProblems(root)), places);
});

test('finds events that bring an emitter without an owner', (t) => {
  const root = makeTree(t, {
    'src/a.ts': `server.on('stream', (stream) => take(stream));\n`,
    'src/b.ts': `http.on('connect', (incoming, stream) => take(stream));\n`,
    'src/c.ts': `import { createServer } from 'node:net';\nownEmitter(createServer((socket) => take(socket)), ignore);\n`,
  });
  assert.deepEqual(placesOf(findEmitterProblems(root)), ['src/a.ts:1', 'src/b.ts:1', 'src/c.ts:2']);
});

test('takes emitters that are owned where they are made, types, and the connect of a client', (t) => {
  const root = makeTree(t, {
    'src/a.ts': `import { connect, type Socket } from 'node:net';\nownEmitter(connect(80), ignore);\n`,
    'src/b.ts': `socket.once('connect', () => resolve());\nonArrival(server, 'stream', ignore, take);\n`,
    'src/c.ts': `import type { Worker } from 'node:worker_threads';\nexport type Thread = Worker;\n`,
  });
  assertNoProblems(findEmitterProblems(root));
});
