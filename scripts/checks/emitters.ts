/**
 * Every event emitter of src/ has an error listener from the moment it exists: an expression that makes one is the first argument of `ownEmitter`, and
 * events that bring one are listened for by `onArrival` (src/observe/own-emitter.ts). An `error` event without a listener ends the process.
 *
 * `request` of node:http is left out: node emits `error` on its request and its response only where somebody listens.
 *
 * Usage: node scripts/checks/emitters.ts
 */
import type { Argument, CallExpression, Expression, NewExpression, Node } from 'oxc-parser';
import { parseSync, Visitor } from 'oxc-parser';
import { listCode, readText } from '../source-tree.ts';
import type { Problem } from './problem.ts';
import { runAlone } from './problem.ts';

const ownerFile = 'src/observe/own-emitter.ts';

/** What makes an emitter, by module. */
const makers: Readonly<Record<string, readonly string[]>> = {
  'node:child_process': ['exec', 'execFile', 'fork', 'spawn'],
  'node:dgram': ['createSocket'],
  'node:events': ['EventEmitter'],
  'node:fs': ['createReadStream', 'createWriteStream', 'watch'],
  'node:http': [
    'createServer',
    'get',
    'request',
    'ClientRequest',
    'OutgoingMessage',
    'Server',
    'ServerResponse',
  ],
  'node:http2': ['connect', 'createSecureServer', 'createServer'],
  'node:https': ['createServer', 'get', 'request'],
  'node:net': ['connect', 'createConnection', 'createServer', 'Server', 'Socket'],
  'node:readline': ['createInterface'],
  'node:readline/promises': ['createInterface'],
  'node:stream': ['Duplex', 'PassThrough', 'Readable', 'Transform', 'Writable', 'duplexPair', 'pipeline'],
  'node:tls': ['connect', 'createServer', 'TLSSocket'],
  'node:worker_threads': ['BroadcastChannel', 'Worker'],
  'node:zlib': [
    ...[
      'createBrotliCompress',
      'createBrotliDecompress',
      'createDeflate',
      'createDeflateRaw',
      'createGunzip',
    ],
    ...['createGzip', 'createInflate', 'createInflateRaw', 'createUnzip', 'createZstdCompress'],
    'createZstdDecompress',
  ],
  nodemailer: ['createTransport'],
  pg: ['Client', 'Pool'],
  undici: ['Agent', 'Client', 'Pool', 'BalancedPool'],
  ws: ['Receiver', 'Sender', 'WebSocket', 'WebSocketServer'],
};

/** Static methods that make one, of names above. */
const makingMethods: ReadonlySet<string> = new Set(['from', 'fromWeb', 'of']);

/** Events that bring an emitter. `connect` of a client brings none: its listener takes no argument. */
const arrivals: ReadonlySet<string> = new Set([
  ...['connection', 'secureConnection', 'session', 'stream', 'upgrade', 'connect', 'part'],
]);

const listening: ReadonlySet<string> = new Set([
  ...['addListener', 'on', 'once', 'prependListener', 'prependOnceListener'],
]);

/** Finds emitters that are made or taken without an error listener. */
export function findEmitterProblems(root: string): readonly Problem[] {
  const files = listCode(root, ['src']).filter((file) => file !== ownerFile);
  const sources = files.map((file) => ({ file, text: readText(root, file) }));
  const classes = new Set(sources.flatMap(({ file, text }) => emitterClasses(file, text)));
  return sources.flatMap(({ file, text }) => judgeFile(file, text, classes));
}

/** Names of classes of a file that extend an emitter. */
function emitterClasses(file: string, text: string): readonly string[] {
  // Few files hold one, and each is parsed again when it is judged.
  if (!/\bclass \w+[^{]* extends\b/.test(text)) return [];
  const { program } = parseSync(file, text);
  const named = makerNames(program);
  const found: string[] = [];
  new Visitor({
    ClassDeclaration: ({ id, superClass }) => {
      const isEmitter = superClass?.type === 'Identifier' && named.has(superClass.name);
      if (id !== null && isEmitter) found.push(id.name);
    },
  }).visit(program);
  return found;
}

function judgeFile(file: string, text: string, classes: ReadonlySet<string>): readonly Problem[] {
  const { program } = parseSync(file, text);
  const named = makerNames(program);
  const owned = new Set<Node>();
  const problems: Problem[] = [];
  const add = (node: Node, message: string) => {
    problems.push({ file, line: text.slice(0, node.start).split('\n').length, message });
  };
  const judge = (node: CallExpression | NewExpression) => {
    const maker = makerOf(node, named, classes);
    if (maker === undefined) return;
    if (!owned.has(node))
      add(node, `${maker} creates an emitter: pass it to ownEmitter() where it is created`);
    if (node.arguments.some(isFunction)) add(node, `${maker} has a listener: use onArrival()`);
  };
  new Visitor({
    NewExpression: judge,
    CallExpression: (node) => {
      const { callee } = node;
      if (callee.type === 'Identifier' && callee.name === 'ownEmitter') {
        const [made] = node.arguments;
        if (made !== undefined) owned.add(made);
        return;
      }
      const event = arrivalOf(node);
      if (event !== undefined) add(node, `'${event}' brings an emitter: use onArrival()`);
      judge(node);
    },
  }).visit(program);
  return problems;
}

/** Local names of a maker, whether imported at the top or where needed. */
function makerNames(program: Parameters<Visitor['visit']>[0]): ReadonlySet<string> {
  const named = new Set<string>();
  const add = (module: string, imported: string, local: string) => {
    if (makers[module]?.includes(imported) === true) named.add(local);
  };
  new Visitor({
    ImportDeclaration: ({ source, specifiers, importKind }) => {
      if (importKind === 'type') return;
      for (const each of specifiers) {
        if (each.type !== 'ImportSpecifier' || each.importKind === 'type') continue;
        if (each.imported.type === 'Identifier') add(source.value, each.imported.name, each.local.name);
      }
    },
    VariableDeclarator: ({ id, init }) => {
      const module = importedModule(init);
      if (module === undefined || id.type !== 'ObjectPattern') return;
      for (const each of id.properties) {
        if (each.type !== 'Property' || each.key.type !== 'Identifier') continue;
        if (each.value.type === 'Identifier') add(module, each.key.name, each.value.name);
      }
    },
  }).visit(program);
  return named;
}

function importedModule(init: Expression | null): string | undefined {
  if (init?.type !== 'AwaitExpression' || init.argument.type !== 'ImportExpression') return undefined;
  const { source } = init.argument;
  return source.type === 'Literal' && typeof source.value === 'string' ? source.value : undefined;
}

function makerOf(
  { callee, type }: CallExpression | NewExpression,
  named: ReadonlySet<string>,
  classes: ReadonlySet<string>,
): string | undefined {
  if (callee.type === 'Identifier') {
    const { name } = callee;
    return named.has(name) || (type === 'NewExpression' && classes.has(name)) ? name : undefined;
  }
  if (callee.type !== 'MemberExpression' || callee.object.type !== 'Identifier') return undefined;
  const method = callee.property.type === 'Identifier' ? callee.property.name : '';
  const { name } = callee.object;
  return named.has(name) && makingMethods.has(method) ? `${name}.${method}` : undefined;
}

function arrivalOf(node: CallExpression): string | undefined {
  const { callee } = node;
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return undefined;
  if (!listening.has(callee.property.name)) return undefined;
  const [event, listener] = node.arguments;
  if (event?.type !== 'Literal' || typeof event.value !== 'string' || !arrivals.has(event.value)) {
    return undefined;
  }
  const takesNothing = listener !== undefined && isFunction(listener) && listener.params.length === 0;
  return event.value === 'connect' && takesNothing ? undefined : event.value;
}

function isFunction(node: Argument): node is Extract<Argument, { type: 'ArrowFunctionExpression' }> {
  return node.type === 'ArrowFunctionExpression' || node.type === 'FunctionExpression';
}

if (import.meta.main) await runAlone(findEmitterProblems);
