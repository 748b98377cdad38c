#!/usr/bin/env node
/** The command of the package `comity-conduct`. */
import { parseArgs } from 'node:util';
import { type ConductOptions, conductExits, runConduct } from './command.ts';
import { reasonOf } from './connection.ts';
import { screenOf } from './screen.ts';

const usage = `comity-conduct URL | --receiver URL --scheme NAME --secret TEXT | --sender
judges the HTTP conduct of an API, of a receiver of webhooks, or of a sender

  --target FILE      {"collection": "/notes", "sample": {...}, "change": {...}, "headers": {...}}
  --header "N: v"    a field of every request, such as Authorization; may be repeated
  --receiver URL     judge a receiver, by deliveries of --scheme and --secret
  --scheme NAME      standard, svix, timestamped, stripe, plain or github
  --secret TEXT      the secret of a receiver or a sender
  --secrets FILE     a secret a line, read at the end: for a sender that makes them
  --sender           listen for a sender, and judge it
  --port N           where; any free port unless given
  --seconds N        for how long; 60 unless given
  --only NAMES       clauses or groups, separated by commas
  --json             print the report as JSON
  --junit FILE       write it for CI servers
  --html FILE        write it as a page
  --verbose          name what does not apply, too
  --list             print the clauses
  --explain ID       say what a clause judges
  --insecure         take a certificate that no authority signed
  --yes              write to a server of another machine without asking

Exit codes: 0 no clause fails, 1 some fail, 2 nothing could be judged`;

const { values, positionals } = readArguments();
const { help, port, seconds, ...others } = values;
const options: ConductOptions = {
  ...others,
  ...(port !== undefined && { port: numberOf('--port', port) }),
  ...(seconds !== undefined && { seconds: numberOf('--seconds', seconds) }),
};
if (help === true) process.stdout.write(`${usage}\n`);
else process.exitCode = await runConduct(positionals[0], options, screenOf(process, process.env));

function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        ...{ target: { type: 'string' }, header: { type: 'string', multiple: true } },
        ...{ only: { type: 'string', multiple: true }, json: { type: 'boolean' }, junit: { type: 'string' } },
        ...{ html: { type: 'string' }, verbose: { type: 'boolean' }, list: { type: 'boolean' } },
        ...{ explain: { type: 'string' }, insecure: { type: 'boolean' }, yes: { type: 'boolean' } },
        ...{ receiver: { type: 'string' }, scheme: { type: 'string' }, secret: { type: 'string' } },
        secrets: { type: 'string' },
        ...{ sender: { type: 'boolean' }, port: { type: 'string' }, seconds: { type: 'string' } },
        help: { type: 'boolean', short: 'h' },
      },
    });
  } catch (error) {
    return fail(reasonOf(error));
  }
}

function numberOf(name: string, written: string): number {
  return /^\d{1,5}$/.test(written) ? Number(written) : fail(`${name} is a whole number, not ${written}`);
}

function fail(message: string): never {
  process.stderr.write(`conduct: ${message}\n\n${usage}\n`);
  process.exit(conductExits.mistake);
}
