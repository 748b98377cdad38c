/**
 * Command-line clients, a process a request, with their defaults (`plain`) or their settings (`set`): a request a line in, its response a line
 * out (line-exchange.ts has the form).
 */
import { spawn } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

const [client, mode, file] = process.argv.slice(2);
const isSet = mode === 'set';

/** Each writes the fields and the content to its output. */
const commands = {
  curl: ({ method, url, fields, hasContent }) => [
    ...['curl', '-sS', '-i', '-N', '-X', method, url, ...fields.flatMap((field) => ['-H', field])],
    ...(hasContent ? ['--data-binary', `@${file}`] : []),
    ...(isSet ? ['--location', '--compressed', '--retry', '2', '--retry-all-errors'] : []),
  ],
  wget2: ({ url, fields, hasContent }) => [
    ...['wget2', '-q', '-O', '-', '--save-headers', '--content-on-error', url],
    ...fields.map((field) => `--header=${field}`),
    ...(hasContent ? [`--post-file=${file}`] : []),
  ],
  httpie: ({ method, url, fields, hasContent }) => [
    ...['python3', '-m', 'httpie', '--ignore-stdin', '--stream', '--print=hb', '--pretty=none', method, url],
    ...fields.map((field) => field.replace(': ', ':')),
    ...(hasContent ? [`@${file}`] : []),
    ...(isSet ? ['--follow'] : []),
  ],
};

/** What a process writes until it ends, or until the first event of a stream. */
function outputOf([command, ...args], isStream) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks = [];
    let words = '';
    child.stdout.on('data', (chunk) => {
      chunks.push(chunk);
      if (isStream && Buffer.concat(chunks).includes('\ndata:')) child.kill('SIGTERM');
    });
    child.stderr.on('data', (chunk) => {
      words += chunk;
    });
    child.on('error', (error) => {
      words += error.message;
    });
    child.on('close', (code) => resolve({ output: Buffer.concat(chunks), words, code }));
  });
}

/** The last header section of an output, and the content after it. */
function answerOf(output) {
  let rest = output;
  let head = '';
  while (/^HTTP\/\S+ \d/.test(rest.subarray(0, 20).toString())) {
    const [end, width] = [
      [rest.indexOf('\r\n\r\n'), 4],
      [rest.indexOf('\n\n'), 2],
    ]
      .filter(([at]) => at !== -1)
      .sort(([a], [b]) => a - b)[0] ?? [rest.length, 0];
    head = rest.subarray(0, end).toString();
    rest = rest.subarray(end + width);
  }
  const [first = '', ...fields] = head.split(/\r?\n/);
  return { status: first.split(' ')[1], fields, body: rest };
}

for await (const line of createInterface({ input: process.stdin })) {
  const [method, url, content, ...fields] = line.split('\t');
  if (content !== '') writeFileSync(file, Buffer.from(content, 'base64'));
  const isStream = fields.includes('Accept: text/event-stream');
  if (client === 'wget2' && method !== (content === '' ? 'GET' : 'POST')) {
    console.log('error\tno such option');
    continue;
  }
  const command = commands[client]({ method, url, fields, hasContent: content !== '' });
  const { output, words, code } = await outputOf(command, isStream);
  const { status, fields: answered, body } = answerOf(output);
  console.log(
    status === undefined
      ? `error\t${words.replace(/\s+/g, ' ') || `exit ${code}`}`
      : [status, body.toString('base64'), ...answered].join('\t'),
  );
}
rmSync(file, { force: true });
