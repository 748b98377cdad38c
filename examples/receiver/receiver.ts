/**
 * A receiver of webhooks to run: `node examples/receiver/receiver.ts --port 0 --secret whsec_...`. It prints a line for each delivery,
 * and the counts at the end; what it does is in start-receiver.ts, and README.md says more.
 */
import { parseArgs } from 'node:util';
import { behaviours, earlyBehaviours } from './faults.ts';
import { type Received, type ReceiverOptions, startReceiver } from './start-receiver.ts';
import { type Scheme, schemes } from './verify.ts';

const usage = `Usage: node examples/receiver/receiver.ts [options]

  --port NUMBER        where it listens, 0 for any free port (4100)
  --host ADDRESS       (127.0.0.1)
  --scheme SCHEME      accepts only this one: ${schemes.join(', ')}
  --secret SECRET      whsec_...; may be given again; without one nothing is verified
  --fail STATUS        answers with this status
  --retry-after SECONDS  with --fail: says when to try again
  --slow MS            answers late       --flaky N   accepts each event when it comes for the Nth time
  --trickle --hang --never-closes --huge --reset --redirect --gone --gzip-bomb --garbage --long-head --early
  --every N            misbehaves at every Nth request alone
  --delay MS           waits so long before it answers anything

Without an option it accepts what is signed well. A path that names a behaviour outranks them: /status/503,
/retry-after/5, /slow/2000, /flaky/3, /trickle, /gone ... GET /log shows what came, as JSON.
The environment variable RECEIVER_SECRET is a secret as well.
`;

const number = { type: 'string' } as const;
const flags = [...behaviours.keys(), ...earlyBehaviours.keys()].filter(
  (name) => !['ok', 'status', 'retry-after', 'slow', 'flaky'].includes(name),
);

/** Runs until SIGINT or SIGTERM. @returns the exit code */
async function runReceiver(argv: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  let options: ReceiverOptions | undefined;
  try {
    options = optionsOf(argv, environment);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n\n${usage}`);
    return 2;
  }
  if (options === undefined) {
    console.log(usage);
    return 0;
  }
  const receiver = await startReceiver({ ...options, onReceived: tell });
  console.log(`receiver listening on ${receiver.url}`);
  await new Promise<void>((resolve) => {
    process.once('SIGINT', () => resolve()).once('SIGTERM', () => resolve());
  });
  const { received } = receiver;
  const duplicates = received.filter(({ duplicate }) => duplicate).length;
  await receiver.close();
  console.log(`${received.length} deliveries, ${duplicates} of them duplicates`);
  return 0;
}

/** Undefined: help was asked for. */
function optionsOf(argv: readonly string[], environment: NodeJS.ProcessEnv): ReceiverOptions | undefined {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      help: { type: 'boolean', short: 'h' },
      ...{ host: number, port: number, every: number, delay: number, scheme: number },
      ...{ fail: number, 'retry-after': number, slow: number, flaky: number },
      secret: { type: 'string', multiple: true },
      ...Object.fromEntries(flags.map((name) => [name, { type: 'boolean' } as const])),
    },
  });
  if (values.help === true) return undefined;
  const { scheme } = values;
  if (scheme !== undefined && !isScheme(scheme)) throw new Error(`--scheme is one of ${schemes.join(', ')}`);
  const behaviour = behaviourOf(values);
  const { RECEIVER_SECRET: ambient } = environment;
  return {
    port: wholeNumber('port', values.port) ?? 4100,
    secrets: [...(values.secret ?? []), ...(ambient === undefined || ambient === '' ? [] : [ambient])],
    ...(values.host === undefined ? {} : { host: values.host }),
    ...(scheme === undefined ? {} : { scheme }),
    ...(behaviour === undefined ? {} : { behaviour }),
    ...(values.every === undefined ? {} : { every: Math.max(1, wholeNumber('every', values.every) ?? 1) }),
    ...(values.delay === undefined ? {} : { delayMs: wholeNumber('delay', values.delay) ?? 0 }),
  };
}

/** As a path says it: `/retry-after/5/503`. */
function behaviourOf(values: Readonly<Record<string, unknown>>): string | undefined {
  const numberOf = (name: string): number | undefined => {
    const written = values[name];
    return wholeNumber(name, typeof written === 'string' ? written : undefined);
  };
  const fail = numberOf('fail');
  const retryAfter = numberOf('retry-after');
  const slow = numberOf('slow');
  const flaky = numberOf('flaky');
  if (retryAfter !== undefined) return `/retry-after/${retryAfter}/${fail ?? 429}`;
  if (fail !== undefined) return `/status/${fail}`;
  if (slow !== undefined) return `/slow/${slow}`;
  if (flaky !== undefined) return `/flaky/${flaky}`;
  const flag = flags.find((name) => values[name] === true);
  return flag === undefined ? undefined : `/${flag}`;
}

function wholeNumber(name: string, written: string | undefined): number | undefined {
  if (written === undefined) return undefined;
  if (!/^\d{1,9}$/.test(written)) throw new Error(`--${name} must be a whole number`);
  return Number(written);
}

function isScheme(name: string): name is Scheme {
  return schemes.some((scheme) => scheme === name);
}

function tell({ type, id, path, verdict, duplicate, status }: Received): void {
  const outcome = status === null ? 'no answer' : String(status);
  console.log(`${type ?? '?'}  ${id ?? '?'}  ${path}  ${verdict}${duplicate ? ', again' : ''}  ${outcome}`);
}

if (import.meta.main) process.exitCode = await runReceiver(process.argv.slice(2), process.env);
