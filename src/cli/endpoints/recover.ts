/**
 * `comity endpoints recover`: sends again what an endpoint missed since a time. The server does it; this follows it, and going away
 * leaves it running.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { Recovery } from '../../webhooks/outbound/recovery/recovery.ts';
import { CommandFailure, exitCodes } from '../failure.ts';
import { pastTime } from '../past-time.ts';
import { openWebhookServer, type ServerArguments, type ServerClient } from '../server-client.ts';
import { showStatusLine } from '../status-line.ts';
import type { Terminal } from '../terminal.ts';
import { endpointPath } from './show.ts';

export type RecoverArguments = ServerArguments & {
  readonly since: string;
  readonly until?: string;
  readonly dryRun?: boolean;
  /** False for `--no-wait`. */
  readonly wait: boolean;
};

const againMs = 250;

export async function recoverEndpoint(
  terminal: Terminal,
  id: string,
  options: RecoverArguments,
  json: boolean,
): Promise<number> {
  const now = Date.now();
  const { since, until, dryRun = false, wait } = options;
  const wanted = {
    since: pastTime('--since', since, now),
    ...(until === undefined ? {} : { until: pastTime('--until', until, now) }),
    dryRun,
  };
  const server = openWebhookServer(terminal, options);
  const asked = { json: wanted, subject: `endpoint ${id}` };
  const begun = (await server.ask('POST', `${endpointPath(id)}/recover`, asked)) as Recovery;
  const recovery = wait ? await followed(terminal, server, begun) : begun;
  terminal.out(json ? JSON.stringify(recovery, undefined, 2) : recoveryText(recovery));
  if (recovery.status === 'stopped') throw new CommandFailure(`${recovery.id} was stopped before its end`);
  return exitCodes.done;
}

async function followed(terminal: Terminal, server: ServerClient, begun: Recovery): Promise<Recovery> {
  const line = showStatusLine(terminal.stderr);
  let recovery = begun;
  try {
    while (recovery.status === 'running') {
      line.show(`comity: ${recovery.examined} events examined, ${recovery.matching} for this endpoint`);
      await delay(againMs);
      const subject = `recovery ${begun.id} any more; it was stopped`;
      recovery = (await server.ask('GET', `/recoveries/${begun.id}`, { subject })) as Recovery;
    }
  } finally {
    line.end();
  }
  return recovery;
}

function recoveryText({ id, status, dryRun, examined, matching, resent, created }: Recovery): string {
  if (status === 'running') return `${id} is running.`;
  const verb = dryRun ? 'would be sent' : 'are sent';
  return (
    `${id}: ${examined} events examined, ${matching} for this endpoint; ` +
    `${resent} that had failed ${verb} again, ${created} that were missed ${verb}.`
  );
}
